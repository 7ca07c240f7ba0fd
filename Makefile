# Two commands do everything on a new machine: `make demo` and `make test`.
# Python 3.11 or newer is all that must be there.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STORE := stores/open_bandit
# One worker for each processor; the suite takes about 2 GB of memory for each.
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench docs clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: $(VENV)/.demo ## build a store from real ad impressions, stream batches, train a small model
	$(BIN)/headrace build examples/open_bandit/ads.toml --out $(STORE)
	$(BIN)/headrace show $(STORE) --rows 1
	$(BIN)/headrace verify $(STORE)
	$(BIN)/python examples/open_bandit/demo.py --store $(STORE)

test: $(VENV)/.dev ## run every test
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.dev ## ruff, ruff format, mypy --strict, and the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench ## headrace and its peers, side by side (about an hour; QUICK=1: small sizes)
	$(BIN)/python benchmarks/all.py $(if $(QUICK),--quick)

docs: $(VENV)/.dev ## build the pages into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove what these commands made; .venv stays
	rm -rf site stores build dist benchmarks/work .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

INSTALL = $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check "pip>=25.1"
	@touch $@

$(VENV)/.demo: $(VENV)/.pip pyproject.toml constraints.txt
	$(INSTALL) -e ".[torch]"
	@touch $@

$(VENV)/.dev: $(VENV)/.pip pyproject.toml constraints.txt
	$(INSTALL) -e ".[torch,jax,text,report]" --group dev
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(INSTALL) --group bench
	@touch $@
