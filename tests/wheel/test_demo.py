"""The two dumps that ship with the package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from warm_python import warm_python

from dumpscope.demo import unpack
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover, read_rank


def only_rank(folder: Path) -> RankDump:
    return read_rank(discover(folder / "step0").ranks[0])


def test_the_bundled_dumps_are_whole_and_name_no_machine(tmp_path: Path) -> None:
    for folder in unpack(tmp_path / "not" / "there" / "yet"):
        dump = only_rank(folder)
        assert dump.problems == []
        assert not dump.tree.inferred
        assert dump.header.data_dir is not None
        assert all((Path(dump.header.data_dir) / name).is_file() for name in dump.items.data_names)
        frames = [frame for stack in dump.nodes.stacks for frame in stack]
        assert any("dumpscope_capture/demo.py" in frame for frame in frames)
        paths = {frame.split(",")[0] for frame in frames}
        assert all(path.startswith(("File /usr/lib/python3/", "File /home/user/", "File <")) for path in paths)


def test_the_demo_training_gives_the_bundled_dumps_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    subprocess.run([warm_python(), "-m", "dumpscope_capture.demo", str(tmp_path / "new")], check=True, timeout=120)
    for folder in unpack(tmp_path / "old"):
        fresh = tmp_path / "new" / folder.name
        old, new = only_rank(folder), only_rank(fresh)
        assert old.nodes.names == new.nodes.names
        assert old.items.data_names == new.items.data_names
        outcome = compare_layouts(
            discover(fresh / "step0"), discover(folder / "step0"), Options(), paths=(str(fresh), str(folder))
        )
        assert outcome.answer.counts.no == 0
        assert outcome.answer.origins == []


def test_unpacking_again_repairs_what_was_cut_off_and_keeps_the_rest(tmp_path: Path) -> None:
    target, _ = unpack(tmp_path)
    (whole, cut, *_) = sorted(path for path in target.rglob("*") if path.is_file())
    before = cut.read_bytes()
    cut.write_bytes(before[: len(before) // 2])
    written = whole.stat().st_mtime_ns
    unpack(tmp_path)
    assert cut.read_bytes() == before
    assert whole.stat().st_mtime_ns == written
