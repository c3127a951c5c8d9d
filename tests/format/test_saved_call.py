"""A saved call's documents: read whole, refused with a reason, and never led out of their folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dumpscope_format.saved_call import SavedCallError, bare, call_folder, find, read

CALL = {
    "schema": 1,
    "name": "Functional.gelu.0",
    "api": {"prefix": "Functional", "name": "gelu", "target": "torch.nn.functional.gelu"},
    "args": [1],
    "kwargs": {},
    "tensors": [],
    "storages": [],
}


def _write(folder: Path, name: str, data: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize("file", ["", "call.json"])
def test_a_call_is_read_from_its_folder_or_its_file(file: str, tmp_path: Path) -> None:
    _write(tmp_path, "call.json", CALL)
    found = read(tmp_path / file)
    assert found.call["args"] == [1]
    assert (found.results, found.gradients) == (None, None)


def test_results_and_gradients_are_read_where_they_came(tmp_path: Path) -> None:
    _write(tmp_path, "call.json", CALL)
    _write(tmp_path, "gradients.json", {"schema": 1, "gradients": [None], "tensors": [], "storages": []})
    found = read(tmp_path)
    assert found.results is None
    assert found.gradients is not None
    assert found.gradients["gradients"] == [None]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ("{", "damaged"),
        ("[]", "no JSON object"),
        ('{"schema": NaN}', "damaged"),
        ({**CALL, "schema": 2}, "schema 2"),
        ({key: value for key, value in CALL.items() if key != "storages"}, "storages"),
    ],
)
def test_a_call_that_cannot_be_used_says_why(data: Any, word: str, tmp_path: Path) -> None:
    _write(tmp_path, "call.json", data)
    with pytest.raises(SavedCallError, match=word):
        read(tmp_path)


def test_a_folder_whose_writing_was_cut_off_is_no_saved_call(tmp_path: Path) -> None:
    _write(tmp_path, "storage.0.pt", "x")
    with pytest.raises(SavedCallError, match="cut off"):
        read(tmp_path)


def test_a_file_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "call", "call.json", CALL)
    with pytest.raises(SavedCallError, match="climbs"):
        read(tmp_path / "call").file("../storage.pt")


def test_folders_are_named_by_the_call_without_its_direction(tmp_path: Path) -> None:
    name = call_folder("Functional.gelu.0.backward")
    assert name == "saved_calls/Functional.gelu.0" == f"saved_calls/{bare('Functional.gelu.0.forward')}"
    _write(tmp_path / "step0" / "rank0" / name, "call.json", CALL)
    assert find(tmp_path) == [tmp_path / "step0" / "rank0" / name]
