"""Names that two tables would share, rows that are not there, an encoder over an encoded store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import SpecError


def test_a_feature_with_ids_of_its_own_cannot_have_the_name_of_a_vocabulary() -> None:
    declared = {
        "name": "t",
        "source": {"files": "log.jsonl"},
        "vocabularies": {"item": {}},
        "features": {
            "seen": {"kind": "sequence", "vocabulary": "item", "max_length": 3},
            "item": {"kind": "hashed", "buckets": 9},
        },
    }
    with pytest.raises(
        SpecError, match=r"features\.item: has ids of its own, and the name of \[vocabularies\.item\]"
    ):
        hr.Spec.from_dict(declared)


def test_ids_of_rows_that_are_not_there(ads: hr.DatasetDict) -> None:
    rows = len(ads["valid"])
    with pytest.raises(IndexError, match=f"sample {rows}: valid has {rows} rows"):
        ads["valid"].ids([0, rows])


def test_an_encoder_over_a_store_of_new_data(
    ads: hr.DatasetDict, ads_file: Path, ads_spec: dict[str, Any], tmp_path: Path
) -> None:
    hr.encode(ads.folder, ads_file, out=tmp_path / "new")
    row = {"user": "u1", "w": 1.0}
    with_labels = hr.Encoder(tmp_path / "new", labels=True).encode([row])
    assert len(with_labels["sample_id"]) == 1
