"""`.npy` files are mapped as numpy wrote them, and nothing in them is trusted."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import mapped_file, npy_file, tensor_file

from .pickles import KINDS, failure, good

NUMBERS = st.sampled_from(
    [
        "f2",
        "f4",
        "f8",
        "c8",
        "c16",
        "?",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        ">f4",
        ">f8",
        ">i2",
        ">u8",
        ">c8",
    ]
)


def header_file(path: Path, header: str, data: bytes = bytes(64), version: int = 1) -> Path:
    raw = header.encode()
    width = 2 if version == 1 else 4
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + len(raw).to_bytes(width, "little") + raw + data)
    return path


@given(
    array=NUMBERS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0, max_side=5))),
    fortran=st.booleans(),
    mapped=st.booleans(),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_numpy_saved_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, array: np.ndarray[Any, Any], fortran: bool, mapped: bool
) -> None:
    monkeypatch.setattr(mapped_file, "MAPPED_FROM", 1 if mapped else 1 << 20)
    path = tmp_path / "a.npy"
    np.save(path, np.array(array, order="F" if fortran else "C"))
    loaded = npy_file.load(path, root=tmp_path)
    assert loaded.shape == array.shape
    assert loaded.array.dtype == array.dtype.newbyteorder("=")
    assert loaded.array.tobytes() == np.load(path).astype(loaded.array.dtype).tobytes()
    assert loaded.dtype == f"torch.{loaded.array.dtype.name}"
    assert not loaded.array.flags.writeable


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_each_version_of_the_format_is_read(tmp_path: Path, version: tuple[int, int]) -> None:
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.arange(6.0).reshape(2, 3), version=version)
    assert npy_file.load(path).array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_large_array_is_mapped_and_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(1 << 18))
    base: Any = npy_file.load(path).array
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)


def test_an_object_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    assert failure(path, npy_file.load).kind == "refused"


@pytest.mark.parametrize(
    "array",
    [np.array(["text"]), np.zeros(2, "M8[s]"), np.zeros(2, [("a", "f4"), ("b", "i4")]), np.zeros(2, "V2"), np.zeros(2, "g")],
    ids=["text", "dates", "records", "raw bytes", "long double"],
)  # fmt: skip
def test_a_dtype_that_torch_lacks_is_not_supported(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    path = tmp_path / "a.npy"
    np.save(path, array)
    assert failure(path, npy_file.load).kind == "unsupported"


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}", "truncated"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592,)}", "over_budget"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "damaged"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}", "damaged"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': 4}", "damaged"),
        ("{'descr': '<f4', 'fortran_order': 0, 'shape': (4,)}", "damaged"),
        ("{'descr': '<f4', 'fortran_order': False}", "damaged"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'more': 1}", "damaged"),
        ("{'descr': 'f4,f4', 'fortran_order': False, 'shape': (4,)}", "unsupported"),
        ("{'descr': '(9999999,9999999)f4', 'fortran_order': False, 'shape': (4,)}", "unsupported"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (4,)}", "refused"),
        ("{'descr': '<x4', 'fortran_order': False, 'shape': (4,)}", "unsupported"),
        ("__import__('os').system('true')", "damaged"),
        ("(" * 5000, "damaged"),
        ("-" * 9000 + "1", "damaged"),
        ("1+" * 4000 + "1", "damaged"),
        ("[]" * 3, "damaged"),
        ("", "damaged"),
    ],
)
def test_a_header_that_is_not_a_plain_one_is_turned_down(tmp_path: Path, header: str, kind: str) -> None:
    assert failure(header_file(tmp_path / "a.npy", header), npy_file.load).kind == kind


def test_an_oversized_header_is_refused_unread(tmp_path: Path) -> None:
    assert failure(header_file(tmp_path / "a.npy", " " * 20_000, version=2), npy_file.load).kind == "refused"


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", "truncated"), (b"\x93NUM", "truncated"), (b"\x93NUMPY\x01\x00\x76\x00{", "truncated"), (b"text", "damaged"),
     (b"PK\x03\x04" + bytes(40), "damaged"), (b"\x93NUMPY\x09\x00" + bytes(40), "unsupported")],
)  # fmt: skip
def test_what_is_no_npy_file_says_so(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    assert failure(path, npy_file.load).kind == kind


@given(
    damage=st.lists(st.tuples(st.integers(0, 191), st.integers(0, 255)), min_size=1, max_size=5),
    cut=st.integers(0, 192),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_damage_ends_in_an_array_or_a_tensor_error(
    tmp_path: Path, damage: list[tuple[int, int]], cut: int
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(16, dtype=np.float32))
    raw = bytearray(path.read_bytes())
    for place, value in damage:
        raw[place] = value
    path.write_bytes(raw[:cut] if cut % 3 == 0 else raw)
    kind = None
    try:
        npy_file.load(path, budget=1 << 20)
    except TensorError as error:
        kind = error.kind
    assert kind is None or kind in KINDS


def test_the_name_of_a_file_chooses_its_reader(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(4, dtype=np.float32))
    assert tensor_file.load(tmp_path / "a.npy", root=tmp_path).array.tolist() == [0, 1, 2, 3]
    assert tensor_file.load(good(tmp_path / "a.pt")).array.tolist() == [[0, 1], [2, 3]]
    assert failure(tmp_path / "none.npy", tensor_file.load).kind == "missing"
