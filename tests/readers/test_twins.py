"""A file laid out like one that was read before is read by comparison: the answer is that of the long way."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import layout_cache, torch_file

ARCHIVE = Path(__file__).parents[1] / "data" / "tensors.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    NAMES = [name for name, about in json.loads(_archive.read("index.json")).items() if "shape" in about]
STEM = "Functional.linear.0.forward.input.0"
MEMBERS = ("data.pkl", "byteorder", "data/0", "version")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    layout_cache.forget()
    yield
    layout_cache.forget()


def saved(path: Path, values: np.ndarray[Any, Any], stem: str = STEM) -> Path:
    """A file as torch.save lays it out."""
    shape = b"".join(b"K" + bytes([size]) for size in values.shape)
    steps = b"".join(b"K" + bytes([step // 4]) for step in values.strides)
    pickled = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK"
        + bytes([values.size]) + b"tQK\x00(" + shape + b"t(" + steps + b"t\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip
    members = {"data.pkl": pickled, "byteorder": b"little", "data/0": values.tobytes(), "version": b"3\n"}
    with zipfile.ZipFile(path, "w") as archive:
        for member in MEMBERS:
            about = zipfile.ZipInfo(f"{stem}/{member}")
            padding = -(archive.fp.tell() + 34 + len(about.filename)) % 64  # type: ignore[union-attr]
            about.extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
            archive.writestr(about, members[member])
    return path


def outcome(path: Path, budget: int = 1 << 20) -> tuple[Any, ...]:
    try:
        loaded = torch_file.load(path, budget=budget)
    except TensorError as error:
        return ("refused", error.kind)
    return (loaded.dtype, loaded.shape, loaded.device, loaded.array.strides, loaded.array.tobytes())


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_file_reads_the_second_time_as_it_did_the_first(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extract(name, tmp_path)
    first, second = torch_file.load(tmp_path / name), torch_file.load(tmp_path / name)
    for field in ("dtype", "shape", "device", "requires_grad", "parameter", "notes"):
        assert getattr(first, field) == getattr(second, field)
    assert first.array.strides == second.array.strides
    assert first.array.tobytes() == second.array.tobytes()
    assert not second.array.flags.writeable


def test_values_come_from_the_file_at_hand_whatever_the_archive_is_called(tmp_path: Path) -> None:
    one = saved(tmp_path / "1.pt", np.arange(6, dtype=np.float32).reshape(2, 3))
    other = saved(
        tmp_path / "2.pt", np.arange(6, dtype=np.float32).reshape(2, 3) * 7, stem=STEM.replace("input.0", "input.1")
    )
    outcome(one)
    assert layout_cache.find(other.read_bytes(), 1 << 20) is not None
    assert outcome(other)[-1] == (np.arange(6, dtype=np.float32) * 7).tobytes()


def test_another_shape_of_the_same_size_is_another_tensor(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    shapes = [values.reshape(2, 3), values.reshape(3, 2), np.asfortranarray(values.reshape(2, 3))]
    for turn in range(2):
        for place, array in enumerate(shapes):
            found = outcome(saved(tmp_path / f"{turn}{place}.pt", array))
            assert found[1:4] == (array.shape, "cpu", array.strides)


def test_a_known_layout_does_not_lift_the_budget(tmp_path: Path) -> None:
    path = saved(tmp_path / "1.pt", np.arange(6, dtype=np.float32).reshape(2, 3))
    outcome(path)
    assert outcome(path, budget=23) == ("refused", "over_budget")


def test_a_changed_byte_means_what_it_means_to_the_long_way(tmp_path: Path) -> None:
    whole = saved(tmp_path / "1.pt", np.arange(6, dtype=np.float32).reshape(2, 3)).read_bytes()
    path = tmp_path / "changed.pt"
    named = {
        place for place in range(len(whole)) for at in starts(whole, STEM.encode()) if at <= place < at + len(STEM)
    }
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x15
        path.write_bytes(changed)
        layout_cache.forget()
        slow = outcome(path)
        layout_cache.forget()
        outcome(tmp_path / "1.pt")
        quick = outcome(path)
        if place not in named:
            assert quick == slow, place
        else:  # only that the members' folder is spelled in two ways goes unnoticed
            assert quick == outcome(tmp_path / "1.pt")


def starts(whole: bytes, word: bytes) -> Iterator[int]:
    at = whole.find(word)
    while at >= 0:
        yield at
        at = whole.find(word, at + 1)


def test_no_more_layouts_are_kept_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_cache, "MAX_KNOWN", 5)
    for size in range(1, 20):
        outcome(saved(tmp_path / f"{size}.pt", np.ones((1, size), np.float32)))
        assert 1 <= layout_cache.count() <= 5
