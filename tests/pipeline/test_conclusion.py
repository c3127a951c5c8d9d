"""Concluding unit by unit from the database finds what concluding over all of them in memory finds."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.job import PROVISIONAL_MARK, Job
from dumpscope.domain.options import Options
from dumpscope.domain.result import Unit
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import ComparisonRow, create_comparison, get_comparison, stored_units
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare import server_tasks
from dumpscope.pipeline.compare.on_server import rejudge, run_comparison
from dumpscope.pipeline.server.ingest import ingest_dump
from dumpscope.pipeline.server.job_kinds import record_end
from dumpscope.pipeline.tasks.fan_out import Work
from pipeline.comparing import compare

QUIET: dict[str, Any] = {"progress": lambda _done, _message: None, "cancelled": lambda: False}


def stored_comparison(tmp_path: Path, target: Path, golden: Path) -> tuple[Work, str]:
    work = Work(database=Database.open(sqlite_url(tmp_path / "index.db")))
    ids = []
    for side in (target, golden):
        ids.append(create_dump(work.database, name=side.name, path=str(side)))
        ingest_dump(work, ids[-1], str(side), tmp_path, **QUIET)
    comparison = create_comparison(work.database, name="c", target=ids[0], golden=ids[1], options=Options())
    return work, comparison


@pytest.mark.parametrize("pair", ["target_fault", "dist2_stat_fault"])
def test_the_stored_answer_is_the_answer_in_memory(tmp_path: Path, dumps: Path, pair: str) -> None:
    golden = dumps / ("dist2_stat_golden" if pair.startswith("dist2") else "golden")
    answer, units = compare(dumps / pair, golden)
    assert len(units) > 1
    work, comparison = stored_comparison(tmp_path, dumps / pair, golden)
    run_comparison(work, comparison, **QUIET)
    for policy in (None, "msprobe", "default"):
        if policy is not None:
            rejudge(work, comparison, policy, **QUIET)
        if policy == "msprobe":
            continue
        found = get_comparison(work.database, comparison).answer
        assert found is not None
        assert (found.origins, found.counts, found.settings) == (answer.origins, answer.counts, answer.settings)
        assert found.first_no == answer.first_no
        for place, unit in zip(stored_units(work.database, comparison), units, strict=True):
            np.testing.assert_array_equal(load_unit(work.database, place.id).node_opinions.cls, unit.node_opinions.cls)
    work.database.close()


def test_one_unit_is_in_memory_at_a_time(tmp_path: Path, dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, comparison = stored_comparison(tmp_path, dumps / "target_fault", dumps / "golden")
    held: list[weakref.ref[Any]] = []

    def watched(*arguments: Any) -> Unit:
        assert not [one for one in held if one() is not None], "the unit before is still held"
        unit = load_unit(*arguments)
        held.append(weakref.ref(unit.facts.diff))
        return unit

    monkeypatch.setattr(server_tasks, "load_unit", watched)
    run_comparison(work, comparison, **QUIET)
    rejudge(work, comparison, "ptdbg", **QUIET)
    assert len(held) >= 4, "both steps are loaded to conclude and again to judge"
    work.database.close()


def test_a_comparison_of_one_rank_is_seen_to_move_before_it_is_measured(tmp_path: Path, dumps: Path) -> None:
    work, comparison = stored_comparison(tmp_path, dumps / "stat_fault", dumps / "stat_golden")
    seen: list[tuple[float, str]] = []
    run_comparison(work, comparison, progress=lambda *said: seen.append(said), cancelled=lambda: False)
    assert seen == sorted(seen, key=lambda said: said[0])
    assert [text.split()[0].rstrip(";") for _, text in seen] == [
        "loading",
        "loading",
        "comparing",
        "looking",
        "storing",
    ]
    assert len({done for done, _ in seen}) == len(seen)
    found = get_comparison(work.database, comparison).answer
    assert found is not None
    assert seen[-1][1] == f"storing{PROVISIONAL_MARK}{found.origins[0].node}", "the cause is told before it is stored"
    work.database.close()


def test_judging_again_that_broke_off_half_way_says_so_and_can_be_repeated(
    tmp_path: Path, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, comparison = stored_comparison(tmp_path, dumps / "target_fault", dumps / "golden")
    run_comparison(work, comparison, **QUIET)
    before = get_comparison(work.database, comparison)
    job = Job(
        **{**dict.fromkeys(Job.__dataclass_fields__), "kind": "rejudge", "subject": comparison, "status": "failed"}
    )

    def settled() -> ComparisonRow:
        record_end(work.database, replace(job, error=UsageError("broken").body()))
        return get_comparison(work.database, comparison)

    assert settled().status == "done", "nothing was changed yet"
    genuine, calls = server_tasks.update_opinions, 0

    def failing(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("the disk is gone")
        genuine(*arguments)

    monkeypatch.setattr(server_tasks, "update_opinions", failing)
    with pytest.raises(OSError, match="gone"):
        rejudge(work, comparison, "msprobe", **QUIET)
    broken = settled()
    assert (broken.status, broken.options.policy) == ("failed", "default")
    assert "judge it again" in (broken.error or {})["hint"]
    rejudge(work, comparison, "default", **QUIET)
    assert replace(get_comparison(work.database, comparison), answer=None) == replace(before, answer=None)
    work.database.close()


def test_a_gradient_of_which_nothing_was_compared_shows_no_error(dumps: Path) -> None:
    _, units = compare(dumps / "cfg_structure", dumps / "stat_golden")
    for unit in units:
        assert np.isnan(unit.node_opinions.in_score).all()
        assert np.isnan(unit.node_opinions.out_score).all()
