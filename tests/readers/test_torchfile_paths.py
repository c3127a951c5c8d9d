"""Only regular files inside the dump are opened."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from dumpscope.readers.tensors import torch_file

from .pickles import failure, good


def test_what_is_not_a_regular_file_is_refused_without_opening_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.pt")
    (tmp_path / "folder.pt").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.pt"))
        for path in (
            tmp_path / "fifo.pt",
            tmp_path / "folder.pt",
            tmp_path / "s.pt",
            Path("/dev/zero"),
            Path("/dev/full"),
        ):
            assert failure(path).kind == "refused"  # opening the FIFO would block for ever


def test_a_missing_file_and_an_impossible_name_are_no_crash(tmp_path: Path) -> None:
    assert failure(tmp_path / "none.pt").kind == "missing"
    assert failure(tmp_path / ("n" * 300)).kind == "unreadable"
    assert failure(tmp_path / "a\0b").kind == "unreadable"
    assert failure(good(tmp_path / "a.pt") / "b").kind == "unreadable"


def test_a_symlink_is_followed_only_inside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    (root / "inner").mkdir(parents=True)
    good(root / "inner" / "real.pt")
    good(tmp_path / "outside.pt")
    (root / "good.pt").symlink_to(root / "inner" / "real.pt")
    (root / "bad.pt").symlink_to(tmp_path / "outside.pt")
    (root / "folder").symlink_to(tmp_path)
    (root / "loop.pt").symlink_to(root / "loop.pt")
    assert torch_file.load(root / "good.pt", root=root).shape == (2, 2)
    assert torch_file.load(root / "inner" / "real.pt", root=root).shape == (2, 2)
    assert torch_file.load(root / "inner" / ".." / "inner" / "real.pt", root=root).shape == (2, 2)
    for bad in ("bad.pt", "folder/outside.pt", "../outside.pt", "inner/../../outside.pt"):
        assert failure(root / bad, root=root).kind == "refused"
    failure(root / "loop.pt", root=root)
    assert failure(tmp_path / "outside.pt", root=root).kind == "refused"
    assert failure(root / "good.pt").kind == "refused"  # no root given: no symlink at all


def test_a_root_that_is_itself_a_symlink_holds_its_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    good(tmp_path / "real" / "a.pt")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert torch_file.load(tmp_path / "link" / "a.pt", root=tmp_path / "link").shape == (2, 2)
    assert torch_file.load(tmp_path / "link" / "a.pt", root=tmp_path / "real").shape == (2, 2)
