"""Units that wait on disk: the same answer and files, the memory of one of them, nothing left behind."""

from __future__ import annotations

import gc
import shutil
import weakref
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import pytest

from dumpscope.cli.commands.compare import Request, run
from dumpscope.domain.options import Options
from dumpscope.domain.result import Unit
from dumpscope.errors import DumpscopeError
from dumpscope.pipeline.compare import in_process
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.readers import discover

PAIR = ("dist2_stat_fault", "dist2_stat_golden")


def compared(dumps: Path, jobs: int) -> Outcome:
    target, golden = (discover(dumps / name) for name in PAIR)
    return compare_layouts(target, golden, Options(), paths=PAIR, jobs=jobs)


def files(dumps: Path, folder: Path, jobs: int) -> dict[str, bytes]:
    """What the command line writes, but for the database."""
    run(
        Request(
            target=dumps / PAIR[0], golden=dumps / PAIR[1], output=folder, formats=("csv", "json", "html"), jobs=jobs
        )
    )
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".db"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_ranks_that_wait_on_disk_give_the_same_answer_and_files(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    near = compared(dumps, jobs)
    written = files(dumps, tmp_path / "near", jobs)
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    get_temp_dir()  # multiprocessing's own, one for all pools, which stays
    monkeypatch.setattr(in_process, "WORTH", 0)
    monkeypatch.setattr("tempfile.tempdir", str(waiting))
    far = compared(dumps, jobs)
    assert len(list(waiting.rglob("step*_rank*"))) == 2
    assert far.answer == near.answer
    assert near.answer.origins
    assert written.keys() == {
        "compare_result_step0_rank0.csv",
        "compare_result_step0_rank1.csv",
        "export.json",
        "report.html",
    }
    assert files(dumps, tmp_path / "far", jobs) == written
    del far
    gc.collect()
    assert not list(waiting.iterdir())


def test_of_many_ranks_no_more_than_three_are_in_memory(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side in PAIR:
        for rank in range(8):
            source = dumps / side / "step0" / "rank0"
            shutil.copytree(source, tmp_path / side / "step0" / f"rank{rank}", copy_function=shutil.copyfile)
    monkeypatch.setattr(in_process, "WORTH", 0)
    loaded: list[weakref.ref[Any]] = []
    most = 0
    load = UnitStore.__getitem__

    def counted(self: UnitStore, place: int) -> Unit:
        nonlocal most
        unit = load(self, place)
        loaded.append(weakref.ref(unit.facts.outcome))
        gc.collect()
        most = max(most, sum(reference() is not None for reference in loaded))
        return unit

    monkeypatch.setattr(UnitStore, "__getitem__", counted)
    gc.collect()
    gc.freeze()  # so that each collection looks at what came since, not at all that other tests left
    files(tmp_path, tmp_path / "results", 1)
    assert len(loaded) > 8
    assert most <= 3


def test_no_room_for_a_rank_is_said_with_the_folder_and_the_remedy(
    dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "WORTH", 0)
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    with pytest.raises(DumpscopeError, match=r"/proc: not enough temporary disk space for the results.*TMPDIR"):
        compared(dumps, 1)
