"""What a look at a watched folder costs, and what it takes for a dump."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.job import Job
from dumpscope.domain.options import Options
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.index.dumps.watches import create_watch, get_watch
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.store.jobs import JobTable
from dumpscope.pipeline.server import watcher as looking
from dumpscope.pipeline.server.watcher import MOST, Watcher
from dumpscope.readers import glance

RANKS = 1000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(sqlite_url(tmp_path / "watch.db"))
    yield opened
    opened.close()


class Looks:
    """A watcher whose jobs nobody runs; jobs: what it asked for."""

    def __init__(self, database: Database, run: Path, settle: float) -> None:
        self.database = database
        self.jobs: list[dict[str, Any]] = []
        self.watch = create_watch(
            database,
            create_dump(database, name="run", path=str(run)),
            partner=None,
            side="target",
            options=Options(),
        ).id
        self._table = JobTable(database)
        self._watcher = Watcher(database, self._submit, roots=[run.parent], settle=settle)

    def _submit(self, kind: str, subject: str, payload: dict[str, Any]) -> Job:
        self.jobs.append(payload)
        job = self._table.create(kind, subject, payload)
        self._table.finish(job.id, "done")
        return job

    def look(self) -> None:
        self._watcher.look(asked=True)

    @property
    def condition(self) -> str:
        return get_watch(self.database, self.watch).seen.condition


def write_rank(folder: Path, name: str = "dump.json", text: str = '{"data": {}}') -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_a_look_at_a_thousand_ranks_asks_the_file_system_little(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "runs" / "run"
    for rank in range(RANKS):
        write_rank(run / "step0" / f"rank{rank}")
    asked = {"listed": 0, "stats": 0}
    seen: set[str] = set()
    scandir, stat, look_at = os.scandir, os.stat, glance.look_at

    def counted_scandir(path: Any) -> Any:
        asked["listed"] += 1
        return scandir(path)

    def counted_stat(path: Any, **given: Any) -> os.stat_result:
        asked["stats"] += 1
        return stat(path, **given)

    def noted_look(folder: str, before: Any = None) -> Any:
        seen.add(folder)
        return look_at(folder, before)

    monkeypatch.setattr(os, "scandir", counted_scandir)
    monkeypatch.setattr(os, "stat", counted_stat)
    monkeypatch.setattr(looking, "look_at", noted_look)
    looks = Looks(database, run, settle=1000.0)
    for round_ in range(1, RANKS // MOST + 2):
        asked.update(listed=0, stats=0)
        looks.look()
        assert asked["listed"] <= MOST + 20
        assert asked["stats"] <= 8 * MOST
        assert len(seen) == min(RANKS, round_ * MOST)
    assert looks.jobs == [], "nothing has settled yet"


def test_old_steps_are_listed_in_turn(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "run"
    for step in range(100):
        write_rank(run / f"step{step}" / "rank0")
    listed: list[int] = []
    list_places = glance.list_places

    def noted(folder: str, step: int) -> Any:
        listed.append(step)
        return list_places(folder, step)

    monkeypatch.setattr(looking, "list_places", noted)
    looks = Looks(database, run, settle=1e-6)
    looks.look()
    looks.look()
    listed.clear()
    looks.look()
    assert len(listed) <= looking.LISTED + 3
    for _ in range(100 // looking.LISTED + 1):
        looks.look()
    assert set(listed) == set(range(100))
    write_rank(run / "step7" / "rank1")  # a late rank of an old step
    for _ in range(100 // looking.LISTED + 3):
        looks.look()
    assert any(folder.endswith("step7/rank1") for job in looks.jobs for folder in job["folders"])


def test_a_step_folder_named_alone_keeps_its_number(database: Database, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "step3"
    write_rank(run / "rank0")
    looks = Looks(database, run, settle=1e-6)
    looks.look()
    looks.look()
    seen = get_watch(database, looks.watch).seen
    assert (seen.step, seen.whole) == (3, [3])
    assert looks.jobs == [{"steps": None, "folders": [str(run / "rank0")], "growing": False}]


def test_several_dumps_below_a_folder_are_said(database: Database, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "all"
    for name in ("one", "two"):
        write_rank(run / name / "step0" / "rank0")
    looks = Looks(database, run, settle=1e-6)
    looks.look()
    seen = get_watch(database, looks.watch).seen
    assert seen.condition == "unreadable"
    assert "holds 2 dumps" in (seen.why or "")
    assert seen.why_said


@pytest.mark.parametrize("junk", ["tensor.pt", ".dump.json.x7y"])
def test_a_folder_without_records_is_no_rank(database: Database, tmp_path: Path, junk: str) -> None:
    run = tmp_path / "runs" / "run"
    write_rank(run / "step0" / "rank0")
    (run / "step1" / "rank0" / "dump_tensor_data").mkdir(parents=True)
    write_rank(run / "step1" / "rank0" / "dump_tensor_data", junk)
    looks = Looks(database, run, settle=1e-6)
    looks.look()
    looks.look()
    assert looks.condition == "still"
    assert [job["steps"] for job in looks.jobs] == [[0]]
