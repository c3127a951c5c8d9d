"""A zip container that lies about its members, or was cut off, is turned down."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dumpscope.readers.tensors import torch_file as torchfile

from .pickles import PROTOCOL, STOP, failure, good, tensor, torch_file


def test_a_storage_shorter_than_claimed_is_truncated(tmp_path: Path) -> None:
    assert failure(torch_file(tmp_path / "a.pt", tensor((4,), (1,)), b"\0" * 15)).kind == "truncated"


@pytest.mark.parametrize("member", ["/etc/passwd", "archive/../../x", "archive/data\\0"])
def test_an_unsafe_member_name_is_refused(tmp_path: Path, member: str) -> None:
    path = torch_file(tmp_path / "a.pt", tensor((4,), (1,)), **{member.replace("\\", "|"): b"x"})
    path.write_bytes(path.read_bytes().replace(b"archive/data|0", b"archive/data\\0"))
    assert failure(path).kind == "refused"


def test_a_repeated_member_name_is_refused(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", tensor((4,), (1,)), **{"archive/data/1": b"x"})
    path.write_bytes(path.read_bytes().replace(b"archive/data/1", b"archive/data/0"))
    assert failure(path).kind == "refused"


def central(raw: bytearray, member: bytes) -> int:
    """Where the directory record of a member starts."""
    return raw.rindex(member) - 46


def test_overlapping_members_are_refused(tmp_path: Path) -> None:
    path = good(tmp_path / "a.pt")
    raw = bytearray(path.read_bytes())
    struct.pack_into("<I", raw, central(raw, b"archive/data/0") + 42, 0)
    path.write_bytes(raw)
    assert failure(path).kind == "refused"


def test_a_member_of_another_name_than_the_directory_says_is_damaged(tmp_path: Path) -> None:
    path = good(tmp_path / "a.pt")
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"archive/data/0") : raw.index(b"archive/data/0") + 14] = b"archive/data/7"
    path.write_bytes(raw)
    assert failure(path).kind == "damaged"


@pytest.mark.parametrize(("field", "value"), [(8, 1), (10, 12), (20, 1 << 30), (24, 1 << 30), (42, 1 << 30)])
def test_a_lying_directory_record_is_turned_down(tmp_path: Path, field: int, value: int) -> None:
    path = good(tmp_path / "a.pt")
    raw = bytearray(path.read_bytes())
    struct.pack_into("<H" if field < 20 else "<I", raw, central(raw, b"archive/data/0") + field, value)
    path.write_bytes(raw)
    failure(path)


def test_a_directory_that_claims_too_many_members_is_refused(tmp_path: Path) -> None:
    path = good(tmp_path / "a.pt")
    raw = path.read_bytes()[:-22]
    wide = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1 << 40, 1 << 40, 1 << 40, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(raw), 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(raw + wide + locator + end)
    assert failure(path).kind == "refused"


def test_zip64_sizes_and_offsets_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "wide.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", PROTOCOL + tensor((2, 2), (2, 1)) + STOP)
        with archive.open("archive/data/0", "w", force_zip64=True) as member:
            member.write(np.arange(4, dtype="<f4").tobytes())
    raw = bytearray(path.read_bytes())
    record = central(raw, b"archive/data/0")
    packed, size = struct.unpack_from("<2I", raw, record + 20)
    (header,) = struct.unpack_from("<I", raw, record + 42)
    extra = struct.pack("<2H3Q", 1, 24, size, packed, header)
    struct.pack_into("<2I", raw, record + 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<I", raw, record + 42, 0xFFFFFFFF)
    struct.pack_into("<H", raw, record + 30, len(extra))
    raw[record + 60 : record + 60] = extra
    (directory_size,) = struct.unpack_from("<I", raw, len(raw) - 10)
    struct.pack_into("<I", raw, len(raw) - 10, directory_size + len(extra))
    path.write_bytes(raw)
    assert torchfile.load(path).array.tolist() == [[0, 1], [2, 3]]
    assert zipfile.ZipFile(path).testzip() is None


def test_a_zip_comment_does_not_hide_the_directory(tmp_path: Path) -> None:
    path = good(tmp_path / "a.pt")
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"made by hand" * 100
    assert torchfile.load(path).array.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", "truncated"), (bytes(2000), "damaged"), (b"text", "damaged"), (b"PK\x05\x06" + bytes(18), "damaged"),
     (b"\x93NUMPY\x01\x00", "damaged"), (b"\x80", "damaged"), (b"\x80\x02N.", "refused"), (b"PK\x03\x04", "truncated")],
)  # fmt: skip
def test_what_is_no_tensor_file_says_so(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    assert failure(path).kind == kind


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    whole = good(tmp_path / "a.pt").read_bytes()
    for length in range(len(whole)):
        path = tmp_path / "cut.pt"
        path.write_bytes(whole[:length])
        failure(path)
