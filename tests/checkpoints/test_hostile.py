"""Hostile and damaged files: refused with file and place, never executed, and never more work than their size."""

from __future__ import annotations

import json
import os
import pickle
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.errors import UnreadableError
from dumpscope.pipeline.checkpoints.compare import compare_checkpoints
from dumpscope.readers.checkpoints.opening import open_checkpoint

from .conftest import place, save_file, weights


def test_a_header_longer_than_the_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    for length in (1 << 63, 99_000_000, 40):
        file.write_bytes(struct.pack("<Q", length) + b"{}")
        with pytest.raises(UnreadableError, match=r"a\.safetensors.*header"):
            open_checkpoint(file)


def test_tensors_that_overlap_are_refused(tmp_path: Path) -> None:
    file = save_file(tmp_path / "a.safetensors", weights(a=(4,), b=(4,)), b={"data_offsets": [8, 24]})
    with pytest.raises(UnreadableError, match="before another ends"):
        open_checkpoint(file)


def test_a_tensor_beyond_the_file_is_refused(tmp_path: Path) -> None:
    file = save_file(tmp_path / "a.safetensors", weights(a=(4,)), a={"data_offsets": [0, 1 << 40], "shape": [1 << 38]})
    with pytest.raises(UnreadableError, match="the file has 16 bytes"):
        open_checkpoint(file)


def test_an_unknown_dtype_leaves_the_other_tensors_readable(tmp_path: Path) -> None:
    file = save_file(tmp_path / "a.safetensors", weights(a=(4,), b=(4,)), a={"dtype": "F5"})
    other = save_file(tmp_path / "b.safetensors", weights(a=(4,), b=(4,)))
    diff = compare_checkpoints(file, other)
    assert {one.name: one.state for one in diff.tensors} == {"a": "unreadable", "b": "equal"}
    assert [(one.kind, one.loc.endswith("a.safetensors: a")) for one in diff.problems] == [("unsupported", True)]


def test_a_shape_that_does_not_fit_its_bytes_is_a_problem(tmp_path: Path) -> None:
    file = save_file(tmp_path / "a.safetensors", weights(a=(4,), b=(2, 2)), a={"shape": [5]})
    assert [one.kind for one in open_checkpoint(file).problems] == ["damaged"]


@pytest.mark.parametrize("header", [b"[]", b'{"a": 1}', b'{"a": {}, "a": {}}', b"\xff", b"[" * 100_000])
def test_a_header_of_no_known_form_is_refused(header: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(UnreadableError):
        open_checkpoint(file)


def test_an_index_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    save_file(tmp_path / "secret.safetensors", weights(a=(4,)))
    (tmp_path / "model").mkdir()
    index = {"weight_map": {"a": "../secret.safetensors", "b": "/etc/passwd"}}
    (tmp_path / "model" / "model.safetensors.index.json").write_text(json.dumps(index))
    held = open_checkpoint(tmp_path / "model")
    assert {one.problem is not None for one in held.tensors} == {True}
    assert {one.kind for one in held.problems} == {"refused"}


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    save_file(tmp_path / "secret.safetensors", weights(a=(4,)))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.safetensors").symlink_to(tmp_path / "secret.safetensors")
    assert open_checkpoint(tmp_path / "root" / "a.safetensors").tensors
    with pytest.raises(UnreadableError):
        open_checkpoint(tmp_path / "root" / "a.safetensors", root=str(tmp_path / "root"))


DAMAGED = ("safetensors/healthy/model.safetensors", "distributed/healthy/.metadata", "legacy/healthy/model.pth")


class Evil:
    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._marker}",)


def test_nothing_of_a_pickle_is_executed(saved: Path, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    folder = tmp_path / "distributed"
    folder.mkdir()
    (folder / ".metadata").write_bytes(pickle.dumps({"state_dict_metadata": Evil(marker)}))
    with pytest.raises(UnreadableError):
        open_checkpoint(folder)
    assert not marker.exists()


def test_a_list_that_holds_itself_a_billion_times_ends(saved: Path, tmp_path: Path) -> None:
    """Twenty nested lists of ten times the same list: 10**20 values in a hundred bytes."""
    value: Any = [1.0]
    for _ in range(20):
        value = [value] * 10
    file = tmp_path / "bomb.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("bomb/data.pkl", pickle.dumps({"state_dict": value, "model": {"a": value}}, protocol=2))
        archive.writestr("bomb/version", b"3")
    begun = time.process_time()
    with pytest.raises(UnreadableError, match="inside of itself"):
        open_checkpoint(file)
    assert time.process_time() - begun < 60


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_end_in_a_problem_or_an_error(data: st.DataObject, saved: Path, tmp_path: Path) -> None:
    """Any few bytes of the lists of tensors replaced: nothing but an error of ours may come out."""
    name = data.draw(
        st.sampled_from(
            ["safetensors/healthy/model.safetensors", "distributed/healthy/.metadata", "legacy/healthy/model.pth"]
        )
    )
    content = bytearray((saved / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 4000) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path / Path(name).name
    file.write_bytes(content)
    for part in ("__0_0.distcp", "__1_0.distcp"):
        (tmp_path / part).write_bytes((saved / "distributed" / "healthy" / part).read_bytes())
    try:
        diff = compare_checkpoints(file, place(saved, "safetensors", "healthy"))
    except UnreadableError:
        return
    assert sum(diff.counts.values()) == len(diff.tensors)


def test_an_empty_tensor_and_a_scalar_are_compared(tmp_path: Path) -> None:
    tensors = {
        "empty": np.zeros((0, 4), np.float32),
        "scalar": np.array(2.5, np.float32),
        "flag": np.array([True, False]),
    }
    diff = compare_checkpoints(
        save_file(tmp_path / "a.safetensors", tensors), save_file(tmp_path / "b.safetensors", tensors)
    )
    assert diff.counts == {"equal": 3}
