"""Archives open like folders; nothing in them is trusted."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.domain.records import DumpIndex
from dumpscope.errors import DumpscopeError, LimitError, UnreadableError
from dumpscope.readers import Limits, open_dump, read_rank
from dumpscope.readers.archives import unpack as archive
from dumpscope.readers.archives.entry_names import FOLDED, PLAIN

DUMP = b'{"task": "statistics", "data": {"Functional.a.0.forward": {}}}'
GOOD = "step0/rank0/dump.json"
Maker = Callable[[Path, list[tuple[str, bytes]]], Path]


def make_zip(folder: Path, entries: list[tuple[str, bytes]]) -> Path:
    path = folder / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10)), data, zipfile.ZIP_DEFLATED)
    return path


def make_tar(folder: Path, entries: list[tuple[str, bytes]], mode: str = "w") -> Path:
    path = folder / "x.tar"
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


both = pytest.mark.parametrize("make", [make_zip, make_tar])


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.exists() else []


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
def test_a_real_dump_reads_the_same_from_an_archive(dumps: Path, tmp_path: Path, mode: str) -> None:
    source = dumps / "dist2_stat_fault"
    entries = [(str(file.relative_to(source.parent)), file.read_bytes()) for file in sorted(source.rglob("*.json"))]
    path = make_zip(tmp_path, entries) if mode == "zip" else make_tar(tmp_path, entries, mode)
    layout = open_dump(path, tmp_path / "work")
    assert layout.problems == []
    assert [(ref.step, ref.rank) for ref in layout.ranks] == [(0, 0), (0, 1)]
    plain = open_dump(source, tmp_path / "work")
    for one, two in zip(layout.ranks, plain.ranks, strict=True):
        assert read_rank(one).nodes.names == read_rank(two).nodes.names
        assert (read_rank(one).items.stats == read_rank(two).items.stats).all()


@both
@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "a/../../out",
        "/etc/out",
        "C:\\out",
        "c:/out",
        "..\\out",
        "\\\\host\\out",
        "a\nb",
        "a" * 300,
        "/".join("d" * 30),
    ],
)
def test_an_entry_that_would_leave_is_refused_and_the_rest_unpacked(tmp_path: Path, make: Maker, name: str) -> None:
    layout = open_dump(make(tmp_path, [(name, b"x"), (GOOD, DUMP)]), tmp_path / "work")
    assert [problem.kind for problem in layout.problems] == ["refused"]
    assert len(layout.ranks) == 1
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["dump.json", os.path.basename(make(tmp_path, [(GOOD, DUMP)]))]


@both
def test_clashing_entries_are_refused_one_by_one(tmp_path: Path, make: Maker) -> None:
    entries = [
        (GOOD, DUMP),
        (f"./{GOOD}", b"{}"),
        (f"{GOOD}/x", b"1"),
        ("step0", b"2"),
        ("step0//rank0/dump.json", b"3"),
    ]
    layout = open_dump(make(tmp_path, entries), tmp_path / "work")
    assert [problem.kind for problem in layout.problems] == ["refused"] * 4
    assert Path(layout.ranks[0].dump_json).read_bytes() == DUMP


@both
@pytest.mark.parametrize(
    ("first", "second"), [("A.pt", "a.pt"), ("\u00e9.pt", "e\u0301.pt"), ("Stra\u00dfe.pt", "STRASSE.pt")]
)
def test_names_that_only_some_disks_tell_apart_clash_where_the_disk_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Maker, first: str, second: str
) -> None:
    folder = "step0/rank0"
    entries = [(GOOD, DUMP), (f"{folder}/{first}", b"1"), (f"{folder}/{second}", b"2")]
    monkeypatch.setattr(archive, "probe", lambda _folder: PLAIN)
    layout = open_dump(make(tmp_path, entries), tmp_path / "work")
    assert layout.problems == []
    kept = {path.name: path.read_bytes() for path in Path(layout.ranks[0].folder).glob("*.pt")}
    assert kept == {first: b"1", second: b"2"}
    monkeypatch.setattr(archive, "probe", lambda _folder: FOLDED)
    layout = open_dump(make(tmp_path, entries), tmp_path / "work")
    assert [(one.kind, one.loc.rpartition("/")[2]) for one in layout.problems] == [("refused", second)]
    assert {path.name for path in Path(layout.ranks[0].folder).iterdir()} == {"dump.json", first}


def test_links_devices_and_pipes_in_a_tar_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"step0/rank0/{kind.decode()}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo(GOOD)
        info.size = len(DUMP)
        archive.addfile(info, io.BytesIO(DUMP))
    layout = open_dump(path, tmp_path / "work")
    assert [problem.kind for problem in layout.problems] == ["refused"] * 5
    assert [entry.name for entry in Path(layout.ranks[0].folder).iterdir()] == ["dump.json"]


def _hard_linked(path: Path, links: list[tuple[str, str]]) -> Path:
    """A tar of one dump with a tensor file, and names linked to others."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in ((GOOD, DUMP), ("step0/rank0/dump_tensor_data/a.pt", b"tensor" * 100)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, first in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.LNKTYPE, first
            archive.addfile(info)
    return path


def test_a_second_name_of_a_file_before_it_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "step0/rank0/dump_tensor_data"
    path = _hard_linked(
        tmp_path / "x.tgz", [(f"{folder}/b.pt", f"{folder}/a.pt"), (f"{folder}/c.pt", f"./{folder}/b.pt")]
    )
    for linking in (True, False):
        if not linking:  # a disk without hard links
            monkeypatch.setattr(
                os, "link", lambda *names, **options: (_ for _ in ()).throw(PermissionError(1, "no links"))
            )
        layout = open_dump(path, tmp_path / "work")
        assert layout.problems == []
        files = sorted((Path(layout.ranks[0].folder) / "dump_tensor_data").iterdir())
        assert [file.name for file in files] == ["a.pt", "b.pt", "c.pt"]
        assert {file.read_bytes() for file in files} == {b"tensor" * 100}
        assert len({file.stat().st_ino for file in files}) == (1 if linking else 3)


@pytest.mark.parametrize(
    "first", ["/etc/passwd", "../x", "step0/rank0/later.pt", "step0/rank0", "step0/rank0/self.pt", "", "a\nb", "C:/x"]
)
def test_a_link_to_anything_but_a_file_before_it_is_refused(tmp_path: Path, first: str) -> None:
    path = _hard_linked(tmp_path / "x.tgz", [("step0/rank0/self.pt", first)])
    layout = open_dump(path, tmp_path / "work")
    assert [problem.kind for problem in layout.problems] == ["refused"]
    assert "link to no file before it" in layout.problems[0].message


def test_linked_files_count_as_files_and_bytes(tmp_path: Path) -> None:
    many = [(f"step0/rank0/dump_tensor_data/{n}.pt", "step0/rank0/dump_tensor_data/a.pt") for n in range(200)]
    path = _hard_linked(tmp_path / "x.tgz", many)
    assert open_dump(path, tmp_path / "work").problems == []
    for limits in (Limits(bytes=230_000), Limits(entries=150)):  # the stream alone has less
        with pytest.raises(LimitError):
            open_dump(path, tmp_path / "less", limits=limits)
    assert not list((tmp_path / "less").iterdir())


def test_links_and_encrypted_entries_in_a_zip_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("step0/rank0/link")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr(GOOD, DUMP)
        archive.writestr("step0/rank0/secret", b"x")
    data = bytearray(path.read_bytes())
    for mark, flag in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.rfind(mark) + flag] |= 1
    path.write_bytes(data)
    layout = open_dump(path, tmp_path / "work")
    assert [problem.kind for problem in layout.problems] == ["refused", "refused"]
    assert "encrypted" in layout.problems[1].message


@both
def test_an_archive_that_unpacks_to_too_much_leaves_nothing_behind(tmp_path: Path, make: Maker) -> None:
    path = make(tmp_path, [(GOOD, DUMP), ("big", b"\0" * 100_000)])
    with pytest.raises(LimitError, match="50000 bytes"):
        open_dump(path, tmp_path / "work", limits=Limits(bytes=50_000))
    assert left(tmp_path / "work") == []


@pytest.mark.parametrize("mode", ["zip", "w:gz", "w:xz"])
def test_a_bomb_is_stopped_by_its_ratio(tmp_path: Path, mode: str) -> None:
    entries = [(GOOD, DUMP), ("bomb", b"\0" * 3_000_000)]
    path = make_zip(tmp_path, entries) if mode == "zip" else make_tar(tmp_path, entries, mode)
    with pytest.raises(LimitError, match="100 times"):
        open_dump(path, tmp_path / "work", limits=Limits(ratio=100, free=1000))
    assert left(tmp_path / "work") == []


@both
def test_too_many_entries_are_a_limit(tmp_path: Path, make: Maker) -> None:
    path = make(tmp_path, [(f"f{number}", b"") for number in range(50)])
    with pytest.raises(LimitError, match="40 entries"):
        open_dump(path, tmp_path / "work", limits=Limits(entries=40))
    assert left(tmp_path / "work") == []


def test_a_refused_entry_counts_its_bytes_too(tmp_path: Path) -> None:
    path = make_tar(tmp_path, [("../bomb", b"\0" * 3_000_000), (GOOD, DUMP)], "w:gz")
    with pytest.raises(LimitError):
        open_dump(path, tmp_path / "work", limits=Limits(ratio=10, free=1000))


def test_a_tar_header_that_claims_gigabytes_is_stopped(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 31
    path = tmp_path / "x.tar"
    with path.open("wb") as out:
        out.write(info.tobuf(tarfile.USTAR_FORMAT))
        out.truncate(1 << 31)
    with pytest.raises(LimitError, match="header"):
        open_dump(path, tmp_path / "work")
    assert left(tmp_path / "work") == []


@both
@pytest.mark.parametrize("part", [0.2, 0.5, 0.7])
def test_a_cut_archive_is_read_as_far_as_it_goes_or_refused(tmp_path: Path, make: Maker, part: float) -> None:
    path = make(tmp_path, [(GOOD, DUMP), ("step0/rank1/dump.json", os.urandom(50_000))])
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    try:
        layout = open_dump(path, tmp_path / "work")
    except UnreadableError:
        assert make is make_zip  # its directory is at the end
        assert left(tmp_path / "work") == []
    else:
        assert "truncated" in [problem.kind for problem in layout.problems]
        assert layout.ranks[0].rank == 0


def test_a_damaged_zip_entry_does_not_spoil_the_others(tmp_path: Path) -> None:
    path = make_zip(tmp_path, [("step0/rank0/bad", os.urandom(5000)), (GOOD, DUMP)])
    data = bytearray(path.read_bytes())
    data[2000] ^= 0xFF
    path.write_bytes(data)
    layout = open_dump(path, tmp_path / "work")
    assert [problem.kind for problem in layout.problems] == ["unreadable"]
    assert len(layout.ranks) == 1


@both
def test_an_archive_without_a_dump_leaves_nothing_behind(tmp_path: Path, make: Maker) -> None:
    with pytest.raises(UnreadableError):
        open_dump(make(tmp_path, [("readme", b"hello")]), tmp_path / "work")
    assert left(tmp_path / "work") == []


def test_times_of_files_are_kept_so_that_the_newest_run_is_known(tmp_path: Path) -> None:
    path = make_zip(tmp_path, [(GOOD, DUMP)])
    layout: DumpIndex = open_dump(path, tmp_path / "work")
    assert os.stat(layout.ranks[0].dump_json).st_mtime == 1714979290


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=400),
    st.sampled_from([b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"", b"x" * 257 + b"ustar"]),
)
def test_no_bytes_make_it_fail_otherwise(tmp_path_factory: pytest.TempPathFactory, junk: bytes, head: bytes) -> None:
    folder = tmp_path_factory.mktemp("junk")
    path = folder / "x"
    path.write_bytes(head + junk)
    with pytest.raises(DumpscopeError):
        open_dump(path, folder / "work")
    assert left(folder / "work") == []
