"""What is no dump says what it is and what to do, wherever it is named."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from hypothesis import given, strategies as st

from dumpscope.errors import ForeignError, UnreadableError
from dumpscope.readers import open_dump
from dumpscope.readers.discover import discover
from dumpscope.readers.file_type import KINDS, recognise


def zipped(*entries: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def array() -> bytes:
    packed = io.BytesIO()
    np.save(packed, np.zeros(3))
    return packed.getvalue()


NOISE = os.urandom(5000)
FILES = {
    "notes.txt": ("text", b"hello \xe4\xbd\xa0\xe5\xa5\xbd\n" * 400),
    "cut.zip": ("cut", zipped(("run/dump.json", NOISE))[:3000]),
    "x.rar": ("rar", b"Rar!\x1a\x07\x01\0" + NOISE),
    "x.7z": ("7z", b"7z\xbc\xaf\x27\x1c" + NOISE),
    "x.tar.zst": ("zstd", b"\x28\xb5\x2f\xfd" + NOISE),
    "notes.gz": ("compressed", gzip.compress(b"hello " * 500)),
    "cut.tar.gz": ("cut", tarred("run/dump.json", NOISE)[:300]),
    "weight.pt": ("tensor", zipped(("weight/data.pkl", b"1"), ("weight/version", b"3"))),
    "weight.npy": ("tensor", array()),
    "result.db": ("result", b"SQLite format 3\0" + NOISE),
    "list.json": ("json", b'[{"a": 1}]'),
    "rank0.monitor": ("monitor", b"dumpscope monitor 1\n" + NOISE),
    "grad_reduced_0-9.csv": ("monitor", b"vpp_stage,name,step,norm\n0,w,0,1.5\n"),
    "empty": ("empty", b""),
    "core": ("binary", b"\x7fELF\0" + NOISE),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("alone", [True, False])
def test_a_file_that_is_no_dump_says_what_it_is_and_what_to_do(tmp_path: Path, name: str, alone: bool) -> None:
    kind, content = FILES[name]
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / name).write_bytes(content)
    if name.endswith(".gz") and not alone:
        kind = "archive"  # it is unpacked only where it is named itself
    with pytest.raises(ForeignError) as raised:
        open_dump(folder / name if alone else folder, tmp_path / "work")
    assert raised.value.kind == kind
    assert raised.value.hint
    assert name in str(raised.value)
    assert raised.value.body()["kind"] == kind
    assert kind in KINDS
    assert not (tmp_path / "work").exists() or list((tmp_path / "work").iterdir()) == []


def test_a_table_that_was_exported_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_bytes(zipped(("xl/worksheets/sheet1.xml", b"<a/>"), ("[Content_Types].xml", b"")))
    with pytest.raises(ForeignError, match="is a document, no dump"):
        open_dump(tmp_path / "table.xlsx", tmp_path / "work")


def test_a_result_table_says_how_it_is_opened_whatever_its_form(dumps: Path, tmp_path: Path) -> None:
    rows = list(csv.reader((dumps / "peer_results/stat_fault/compare_result.csv").open(encoding="utf-8-sig")))
    with (tmp_path / "table.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "table.xlsx")
    for name in ("table.csv", "table.xlsx"):
        with pytest.raises(ForeignError, match=r"is a result table .*`dumpscope compare FILE` alone") as raised:
            open_dump(tmp_path / name, tmp_path / "work")
        assert raised.value.kind == "table"


def test_a_folder_of_files_of_one_kind_names_one_of_them(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ForeignError, match=r"holds no dump: 0\.png is an image"):
        discover(tmp_path)


def test_a_folder_of_results_says_how_a_result_is_opened(tmp_path: Path) -> None:
    (tmp_path / "result.db").write_bytes(FILES["result.db"][1])
    (tmp_path / "compare_result.csv").write_text("NPU Name,Bench Name\n")
    with pytest.raises(ForeignError, match=r"holds no dump: result\.db is .*dumpscope serve"):
        discover(tmp_path)


def test_a_mixture_or_a_link_is_only_said_to_hold_no_dump(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.npy").write_bytes(array())
    with pytest.raises(UnreadableError, match="holds no dump") as raised:
        discover(tmp_path)
    assert not isinstance(raised.value, ForeignError)
    (tmp_path / "b.npy").unlink()
    (tmp_path / "a.txt").rename(tmp_path.parent / "outside.txt")
    (tmp_path / "a.txt").symlink_to(tmp_path.parent / "outside.txt")
    with pytest.raises(UnreadableError, match="holds no dump") as raised:
        discover(tmp_path)
    assert not isinstance(raised.value, ForeignError)


@given(st.binary(max_size=600))
def test_every_file_is_something(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    assert recognise(str(path)).word in KINDS
