"""Archives made to exhaust time, memory or disk end as one error, or as a problem an entry, after little work."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dumpscope.domain.records import DumpIndex
from dumpscope.errors import LimitError, UnreadableError
from dumpscope.readers import Limits, open_dump
from dumpscope.readers.archives import tar_archive, target_folder
from dumpscope.readers.archives.target_folder import PROBLEM_LIMIT
from readers.test_archive import DUMP, GOOD, left, make_tar, make_zip

MEMORY = 60 << 20
DISK = 80 << 20

Written = list[int]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Bytes that came out of the archive so far, in its one element."""
    total = [0]
    count = target_folder.Target.count

    def counting(target: target_folder.Target, size: int) -> None:
        total[0] += size
        count(target, size)

    monkeypatch.setattr(target_folder.Target, "count", counting)
    return total


@contextmanager
def little_memory(most: int = MEMORY) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def refused_whole(path: Path, says: str, **limits: int) -> None:
    """It is one error, and nothing stays."""
    work = path.parent / "work"
    with little_memory(), pytest.raises(LimitError, match=says):
        open_dump(path, work, limits=Limits(**limits))
    assert left(work) == []


def opened(path: Path, memory: int = MEMORY) -> DumpIndex:
    with little_memory(memory):
        return open_dump(path, path.parent / "work")


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def packed_tar(path: Path, *blocks: tuple[bytes, int]) -> Path:
    """A compressed tar of these blocks, each so many times; a block is compressed once, as gzip streams may be joined."""
    with path.open("wb") as out:
        for block, times in ((good_tar(), 1), *blocks):
            packed = gzip.compress(block, compresslevel=6)
            for _ in range(times):
                out.write(packed)
    return path


def good_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(GOOD)
        info.size = len(DUMP)
        archive.addfile(info, io.BytesIO(DUMP))
    return buffer.getvalue()[:1024]


def forged_zip(path: Path, entries: int, packed: int, size: int) -> Path:
    """A zip that is little but a directory, which names one file again and again."""
    fields = (20, 0, 20, 0, 0, 8, 0, 0, 0, packed, size, 1, 0, 0, 0, 0, 0, 0)
    directory = (struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *fields) + b"f") * entries
    local = b"PK\x03\x04" + bytes(26)
    claimed = entries & 0xFFFF
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, claimed, claimed, len(directory), len(local), 0)
    path.write_bytes(local + directory + end)
    return path


def test_a_zip_that_promises_too_much_is_refused_before_anything_is_written(tmp_path: Path, written: Written) -> None:
    path = make_zip(tmp_path, [(GOOD, DUMP), ("bomb", bytes(100 << 20))])
    refused_whole(path, "200 times its size")
    assert written == [0]


def test_a_tar_that_promises_too_much_is_refused_at_its_header(tmp_path: Path, written: Written) -> None:
    path = packed_tar(tmp_path / "x.tar.gz", (header("bomb", 100 << 20), 1), (bytes(1 << 20), 100))
    refused_whole(path, "200 times its size")
    assert written[0] < 1 << 20


def test_a_bomb_of_many_small_files_is_stopped_by_its_ratio(tmp_path: Path, written: Written) -> None:
    files = [(header(f"{number}", 1 << 20) + bytes(1 << 20), 1) for number in range(120)]
    refused_whole(packed_tar(tmp_path / "x.tar.gz", *files), "200 times its size")
    assert written[0] < DISK


def test_headers_count_as_unpacked_bytes_too(tmp_path: Path, written: Written) -> None:
    """A long comment before each file costs as much to read as a body."""
    comment = b"1000000 comment=".ljust(999_999, b"x") + b"\n"
    block = header("c", 1_000_000, tarfile.XHDTYPE) + comment.ljust(1_000_448, b"\0")
    file = block + header("f", 1) + b"1".ljust(512, b"\0")
    refused_whole(packed_tar(tmp_path / "x.tar.gz", (file, 120)), "200 times its size")
    assert written[0] < DISK


@pytest.mark.parametrize("depth", [17, 5000])
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_a_name_of_thousands_of_folders_is_one_problem(
    tmp_path: Path, make: Callable[[Path, list[tuple[str, bytes]]], Path], depth: int
) -> None:
    layout = opened(make(tmp_path, [("d/" * depth + "f", b"1"), (GOOD, DUMP)]))
    assert [problem.message for problem in layout.problems] == [
        "The entry is deeper than 16 folders; it was not unpacked."
    ]
    assert len(layout.problems[0].loc) < 250
    assert len(layout.ranks) == 1


def test_two_million_empty_entries_of_a_zip_end_while_they_are_counted(tmp_path: Path, written: Written) -> None:
    path = forged_zip(tmp_path / "x.zip", 2_000_000, 0, 0)
    refused_whole(path, r"holds more than \d+ entries without content")
    assert written == [0]


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE])
def test_two_million_empty_entries_of_a_tar_end_after_some_thousands(
    tmp_path: Path, written: Written, kind: bytes
) -> None:
    path = packed_tar(tmp_path / "x.tar.gz", (header("f", 0, kind) * 20_000, 100))
    refused_whole(path, r"holds more than 2000\d entries without content")
    assert written[0] < 12 << 20


def test_many_entries_that_hold_something_are_a_limit_before_the_directory_is_loaded(
    tmp_path: Path, written: Written
) -> None:
    path = forged_zip(tmp_path / "x.zip", 50_000, 3, 1)
    refused_whole(path, "holds more than 40000 entries", entries=40_000)
    assert written == [0]


def test_folders_that_stand_only_in_paths_are_counted(tmp_path: Path) -> None:
    path = make_zip(tmp_path, [(f"{number}/a/b/c/d/e/f", b"1") for number in range(20)])
    refused_whole(path, "holds more than 100 entries", entries=100)


def test_the_folders_of_a_real_run_of_many_ranks_are_no_attack(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for rank in range(300):
            for name in (f"step0/rank{rank}", f"step0/rank{rank}/dump_tensor_data"):
                folder = tarfile.TarInfo(name)
                folder.type = tarfile.DIRTYPE
                archive.addfile(folder)
            info = tarfile.TarInfo(f"step0/rank{rank}/dump.json")
            info.size = len(DUMP)
            archive.addfile(info, io.BytesIO(DUMP))
    layout = open_dump(tmp_path / "x.tar", tmp_path / "work", limits=Limits(idle=10))
    assert (len(layout.ranks), layout.problems) == (300, [])


def test_sparse_entries_are_refused_and_skipped_however_long(tmp_path: Path) -> None:
    """An old GNU sparse file of 8 GiB, of which 3 MB are stored, and one of the newer kind with a map that never ends."""
    sparse = bytearray(header("step0/rank0/sparse", 3 << 20, tarfile.GNUTYPE_SPARSE))
    sparse[386:410] = b"%011o\0%011o\0" % (0, 3 << 20)
    sparse[483:495] = b"%011o\0" % ((8 << 30) - 1)
    sparse[148:156] = b"        "
    sparse[148:156] = b"%06o\0 " % sum(sparse)
    path = tmp_path / "x.tar"
    path.write_bytes(bytes(sparse) + bytes(3 << 20) + good_tar() + bytes(1024))
    layout = opened(path)
    assert [(one.kind, one.loc) for one in layout.problems] == [("refused", "x.tar:step0/rank0/sparse")]
    assert [entry.name for entry in Path(layout.ranks[0].folder).iterdir()] == ["dump.json"]


@pytest.mark.parametrize("value", ["x", "9" * 5000, "-1"])
def test_numbers_that_are_none_in_extended_headers_are_damage(tmp_path: Path, value: str) -> None:
    def record(key: str, text: str) -> bytes:
        body = f" {key}={text}\n".encode()
        length = len(body) + 1
        while len(str(length)) + len(body) != length:
            length += 1
        return str(length).encode() + body

    extended = record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.realsize", value)
    padded = extended.ljust(-(-len(extended) // 512) * 512, b"\0")
    path = tmp_path / "x.tar"
    path.write_bytes(
        good_tar() + header("p", len(extended), tarfile.XHDTYPE) + padded + header("f", 512) + bytes(512) + bytes(1024)
    )
    layout = opened(path)
    assert [problem.kind for problem in layout.problems] in (["truncated"], ["refused"])
    assert len(layout.ranks) == 1


def test_headers_about_headers_without_end_are_damage(tmp_path: Path) -> None:
    link = header("././@LongLink", 2, tarfile.GNUTYPE_LONGNAME) + b"x".ljust(512, b"\0")
    path = tmp_path / "x.tar"
    path.write_bytes(good_tar() + link * 800 + header("f", 0))
    layout = opened(path)
    assert [problem.kind for problem in layout.problems] == ["truncated"]
    assert len(layout.ranks) == 1


def test_a_size_past_the_end_of_the_archive_is_damage_and_no_endless_loop(tmp_path: Path) -> None:
    huge = bytearray(header("strange", 0, b"Z"))
    huge[124:136] = b"\x80\0\0\0" + (1 << 62).to_bytes(8, "big")
    huge[148:156] = b"        "
    huge[148:156] = b"%06o\0 " % sum(huge)
    path = tmp_path / "x.tar"
    path.write_bytes(good_tar() + bytes(huge) + bytes(1024))
    layout = opened(path)
    assert [problem.kind for problem in layout.problems] == ["refused", "truncated"]
    assert len(layout.ranks) == 1


@pytest.mark.parametrize(("lie", "problems"), [(0, 1), (10, 1), (0xFFFFFFF0, 0)])
def test_a_zip_entry_with_a_false_size_is_at_most_one_problem(
    tmp_path: Path, written: Written, lie: int, problems: int
) -> None:
    """Too small: what it promised is kept. Too large: deflate knows its own end."""
    path = make_zip(tmp_path, [(GOOD, DUMP), ("step0/rank0/liar", bytes(1 << 20))])
    data = bytearray(path.read_bytes())
    for mark, field in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rfind(mark) + field
        data[at : at + 4] = lie.to_bytes(4, "little")
    path.write_bytes(data)
    layout = opened(path)
    assert [problem.loc for problem in layout.problems] == ["x.zip:step0/rank0/liar"] * problems
    assert len(layout.ranks) == 1
    assert written[0] < 2 << 20


def test_a_directory_that_lies_about_its_own_size_is_damage(tmp_path: Path) -> None:
    path = make_zip(tmp_path, [(GOOD, DUMP)])
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x05\x06") + 12
    data[at : at + 4] = (1 << 27).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(UnreadableError, match="does not fit"):
        opened(path)
    assert left(tmp_path / "work") == []


def test_one_name_again_and_again_is_listed_and_then_counted(tmp_path: Path) -> None:
    layout = opened(make_tar(tmp_path, [(GOOD, DUMP)] + [(GOOD, b"{}")] * (PROBLEM_LIMIT + 7)))
    assert [problem.kind for problem in layout.problems] == ["refused"] * PROBLEM_LIMIT + ["more"]
    assert layout.problems[-1].message == "7 more entries were refused than are listed."
    assert Path(layout.ranks[0].dump_json).read_bytes() == DUMP


def test_long_names_do_not_fill_memory(tmp_path: Path) -> None:
    """3000 names of 3 kB are 9 MB, with those of their folders 140 MB."""
    folder = "/".join(["d" * 200] * 15)
    names = (
        header("././@LongLink", 3100, tarfile.GNUTYPE_LONGNAME)
        + f"{folder}/{number:07d}".ljust(3099, "0").encode().ljust(3584, b"\0")
        + header("f", 1)
        + b"1".ljust(512, b"\0")
        for number in range(3000)
    )
    layout = opened(packed_tar(tmp_path / "x.tar.gz", (b"".join(names), 1)), 6 << 20)
    assert layout.problems == []


def test_the_budget_of_headers_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with path.open("wb") as out:
        out.write(good_tar() + header("x", 1 << 31, tarfile.XHDTYPE))
        out.truncate(1 << 31)
    refused_whole(path, f"header of more than {tar_archive.HEADER_BYTES >> 20} MB")
