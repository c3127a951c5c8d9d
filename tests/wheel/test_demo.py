"""The two dumps that ship with the package."""

from __future__ import annotations

from filecmp import dircmp
from pathlib import Path

from dumpscope.demo import unpack


def assert_same(ours: Path, theirs: Path) -> None:
    """Every file of both folders is there on both sides with the same bytes."""
    compared = dircmp(ours, theirs, ignore=[])
    assert compared.left_only == []
    assert compared.right_only == []
    assert compared.common_files or compared.common_dirs
    for name in compared.common_files:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes()
    for name in compared.common_dirs:
        assert_same(ours / name, theirs / name)


def test_the_bundled_dumps_are_the_real_ones_byte_for_byte(dumps: Path, tmp_path: Path) -> None:
    target, golden = unpack(tmp_path / "not" / "there" / "yet")
    assert_same(target / "step0", dumps / "target_fault" / "step0")
    assert_same(golden / "step0", dumps / "golden" / "step0")


def test_unpacking_again_repairs_what_was_cut_off_and_keeps_the_rest(tmp_path: Path) -> None:
    target, _ = unpack(tmp_path)
    (whole, cut, *_) = sorted(path for path in target.rglob("*") if path.is_file())
    before = cut.read_bytes()
    cut.write_bytes(before[: len(before) // 2])
    written = whole.stat().st_mtime_ns
    unpack(tmp_path)
    assert cut.read_bytes() == before
    assert whole.stat().st_mtime_ns == written
