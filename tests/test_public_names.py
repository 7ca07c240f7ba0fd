"""The names that others build on. To change this list is to change what users rely on."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import headrace as hr

PUBLIC = {
    "headrace": [
        "Dataset", "DatasetDict", "Encoder", "Loader", "Spec", "Vocabulary", "__version__",
        "build", "encode", "load_dataset", "load_from_disk", "verify", "why_stale",
    ],
    "headrace.errors": [
        "BuildError", "CorpusError", "HeadraceError", "LoaderError", "OrderError", "SourceError", "SpecError",
        "StateError", "StoreError", "TextError", "VocabularyError", "did_you_mean",
    ],
    "headrace.cli": ["main"],
}  # fmt: skip


@pytest.mark.parametrize("module", PUBLIC)
def test_a_module_says_exactly_these_names(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module])


@pytest.mark.parametrize("module", PUBLIC)
def test_every_name_is_there_and_says_what_it_is(module: str) -> None:
    for name in PUBLIC[module]:
        value = getattr(importlib.import_module(module), name)
        assert isinstance(value, str) or value.__doc__, name


def test_dir_lists_them() -> None:
    assert set(PUBLIC["headrace"]) <= set(dir(hr))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'biuld'"):
        _ = hr.biuld


def test_functions_are_not_hidden_by_modules_of_the_same_name() -> None:
    code = (
        "import headrace as hr, headrace.building.build, headrace.building.encode, headrace.dataset.splits\n"
        "assert all(map(callable, (hr.build, hr.encode, hr.verify, hr.load_from_disk)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_needs_no_extra_and_little_else() -> None:
    code = (
        "import sys, headrace; "
        "print(sorted({'numpy', 'numba', 'pyarrow', 'duckdb', 'torch', 'jax', 'pandas'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_batches_of_a_store_need_little_to_be_imported() -> None:
    """Numba compiles the kernels where no process did before; the loader itself imports none of these."""
    code = (
        "import sys, headrace.dataset.splits, headrace.loading.loader; "
        "print(sorted({'numba', 'duckdb', 'pandas', 'torch', 'fsspec', 'pyarrow.compute'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_everything_but_the_adapters_imports_without_an_extra() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'jax', 'tokenizers', 'tiktoken', 'sentencepiece', 'ftfy', 'selectolax',\n"
        "             'matplotlib', 'ray', 's3fs', 'pandas', 'polars'):\n"
        "    sys.modules[name] = None\n"
        "import importlib, pkgutil, headrace\n"
        "adapters = ('headrace.loading.torch', 'headrace.loading.jax')\n"
        "for module in pkgutil.walk_packages(headrace.__path__, 'headrace.'):\n"
        "    if not module.name.startswith(adapters):\n"
        "        importlib.import_module(module.name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
