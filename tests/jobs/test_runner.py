"""Jobs are durable: cancelled, failed, interrupted and restarted ones end in the state a person expects."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from index.databases import KINDS, open_empty

from dumpscope.domain.job import Job
from dumpscope.errors import CancelledError, DumpscopeError, FullDiskError, UnreadableError
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.executors import lacks_workers, make_executor
from dumpscope.jobs.runner import Cancelled, Kind, Progress, RecentRate, Runner
from dumpscope.pipeline.tasks import fan_out
from dumpscope.pipeline.tasks.fan_out import ABORT, Work, spread
from jobs.traveling_tasks import count, die_first, fail_or_wait


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JobTable]:
    database = open_empty(request.param, tmp_path)
    yield JobTable(database)
    database.close()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def over(table: JobTable, job: Job) -> Job:
    until(lambda: table.get(job.id).over)
    return table.get(job.id)


class Steps:
    """A job kind that goes on until it is told to end or to stop."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.leave = threading.Event()

    def __call__(self, _job: Job, progress: Progress, cancelled: Cancelled) -> None:
        self.begun.release()
        done = 0.0
        while not self.leave.wait(0.02):
            done = min(done + 0.002, 0.9)  # slow enough to be still on its way when an estimate is due
            progress(done, "walking")
            if cancelled():
                raise CancelledError("cancelled")


def run(table: JobTable, kinds: dict[str, Kind], slots: int = 2) -> tuple[Runner, list[Job]]:
    ended: list[Job] = []
    runner = Runner(table, kinds, slots=slots, ended=ended.append)
    runner.start()
    return runner, ended


def test_a_job_runs_reports_and_ends(table: JobTable) -> None:
    def work(job: Job, progress: Progress, _cancelled: Cancelled) -> None:
        assert job.payload == {"path": "/p"}
        progress(0.5, "half way")

    runner, ended = run(table, {"ingest": work})
    job = over(table, runner.submit("ingest", "dump", {"path": "/p"}))
    runner.stop()
    assert (job.status, job.progress, job.error) == ("done", 1.0, None)
    assert job.started is not None
    assert job.finished is not None
    assert [one.id for one in ended] == [job.id]


def test_several_jobs_run_at_once_and_the_rest_wait(table: JobTable) -> None:
    steps = Steps()
    runner, _ended = run(table, {"compare": steps}, slots=2)
    jobs = [runner.submit("compare", f"c{number}") for number in range(3)]
    assert steps.begun.acquire(timeout=20)
    assert steps.begun.acquire(timeout=20)
    assert not steps.begun.acquire(timeout=0.2)
    assert table.get(jobs[2].id).status == "queued"
    steps.leave.set()
    assert {over(table, job).status for job in jobs} == {"done"}
    runner.stop()


def test_progress_grows_and_an_estimate_appears(table: JobTable) -> None:
    steps = Steps()
    runner, _ended = run(table, {"compare": steps})
    job = runner.submit("compare", "c")
    until(lambda: table.get(job.id).progress > 0.05)
    seen = table.get(job.id)
    assert seen.message == "walking"
    until(lambda: table.get(job.id).eta is not None)
    assert table.get(job.id).version > seen.version
    steps.leave.set()
    over(table, job)
    runner.stop()


def test_the_time_left_follows_the_rate_of_late() -> None:
    rate = RecentRate(0.0)
    assert rate.time_left(1.0, 0.3) is None, "too early"
    for second in range(2, 101):  # reading: slow
        rate.time_left(float(second), 0.3 + 0.002 * second)
    left = rate.time_left(101.0, 0.502)
    assert left == pytest.approx(0.498 / 0.002, rel=0.05)
    for second in range(102, 130):  # comparing: ten times as fast
        left = rate.time_left(float(second), min(0.99, 0.502 + 0.015 * (second - 101)))
    assert left == pytest.approx((1 - 0.922) / 0.015, rel=0.05)


def test_no_time_left_is_told_where_nothing_goes_on() -> None:
    rate = RecentRate(0.0)
    rate.time_left(5.0, 0.5)
    assert [rate.time_left(float(second), 0.5) for second in range(40, 50)] == [None] * 10


def test_a_job_that_begins_again_has_a_rate_of_its_own() -> None:
    rate = RecentRate(0.0)
    rate.time_left(10.0, 0.9)
    assert rate.time_left(20.0, 0.0) is None
    assert rate.time_left(30.0, 0.5) == pytest.approx(10.0)


def test_a_running_job_can_be_cancelled(table: JobTable) -> None:
    steps = Steps()
    runner, ended = run(table, {"compare": steps})
    job = runner.submit("compare", "c")
    assert steps.begun.acquire(timeout=20)
    runner.cancel(job.id)
    assert over(table, job).status == "cancelled"
    until(lambda: len(ended) == 1)
    runner.stop()


def test_a_queued_job_can_be_cancelled_and_never_starts(table: JobTable) -> None:
    steps = Steps()
    runner, ended = run(table, {"compare": steps}, slots=1)
    first, second = runner.submit("compare", "c"), runner.submit("compare", "d")
    assert steps.begun.acquire(timeout=20)
    assert runner.cancel(second.id).status == "cancelled"
    assert [job.id for job in ended] == [second.id]
    steps.leave.set()
    over(table, first)
    runner.stop()
    assert not steps.begun.acquire(blocking=False)


def test_a_failure_becomes_the_jobs_error_with_its_advice(table: JobTable) -> None:
    def work(_job: Job, _progress: Progress, _cancelled: Cancelled) -> None:
        raise UnreadableError("is no dump", where="/p", hint="name a dump root")

    runner, _ended = run(table, {"ingest": work})
    job = over(table, runner.submit("ingest", "dump"))
    runner.stop()
    assert job.status == "failed"
    error = dict(job.error or {})
    assert error.pop("said") == [{"id": "error.at", "values": {"where": "/p", "what": "is no dump"}}]
    assert error.pop("hint_said") is None
    assert error == {"error": "unreadable", "detail": "/p: is no dump", "hint": "name a dump root", "status": 422}


def test_a_bug_in_a_job_fails_that_job_and_the_next_one_runs(table: JobTable) -> None:
    def work(job: Job, _progress: Progress, _cancelled: Cancelled) -> None:
        if job.subject == "bad":
            raise ZeroDivisionError("by zero")

    runner, _ended = run(table, {"ingest": work}, slots=1)
    bad, good = runner.submit("ingest", "bad"), runner.submit("ingest", "good")
    assert over(table, bad).status == "failed"
    assert "ZeroDivisionError" in str(table.get(bad.id).error)
    assert over(table, good).status == "done"
    runner.stop()


@pytest.mark.parametrize("lost", ["finish", "ended"])
def test_the_end_of_a_job_that_cannot_be_stored_is_stored_later(
    table: JobTable, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes neither the work nor the end of the job; the slot goes on, and the end follows when there is room."""
    full = threading.Event()
    finish, ended = table.finish, []

    def write(*given: Any) -> None:
        if full.is_set():
            raise FullDiskError("the disk is full")
        (finish if lost == "finish" else ended.append)(*given)

    def work(job: Job, _progress: Progress, _cancelled: Cancelled) -> None:
        if job.subject == "large":
            full.set()
            raise OSError(errno.ENOSPC, "No space left on device", "/data/db")

    if lost == "finish":
        monkeypatch.setattr(table, "finish", write)
    runner = Runner(table, {"ingest": work}, slots=1, ended=ended.append if lost == "finish" else write)
    runner.start()
    large, small = runner.submit("ingest", "large"), runner.submit("ingest", "small")
    until(lambda: table.get(small.id).status == ("running" if lost == "finish" else "done"))
    assert ended == []
    full.clear()
    assert over(table, large).status == "failed"
    assert (table.get(large.id).error or {})["error"] == "full_disk"
    assert over(table, small).status == "done"
    until(lambda: sorted(job.subject for job in ended) == ["large", "small"])
    runner.stop()


def test_stopping_the_server_puts_running_jobs_back_and_the_next_start_finishes_them(table: JobTable) -> None:
    steps = Steps()
    runner, ended = run(table, {"compare": steps})
    job = runner.submit("compare", "c")
    assert steps.begun.acquire(timeout=20)
    runner.stop()
    assert table.get(job.id).status == "queued"
    assert ended == []
    steps.leave.set()
    again, _ended = run(table, {"compare": steps})
    assert over(table, job).status == "done"
    again.stop()


def test_a_job_put_back_is_not_stopped_by_what_stopped_it_before(table: JobTable) -> None:
    job = table.create("compare", "c", {})
    table.claim()
    table.report(job.id, ABORT, 0.0, "")
    table.change(job.id, status="queued")
    table.claim()
    assert table.reports(job.id) == {}


def test_jobs_that_a_crash_left_running_start_again(table: JobTable) -> None:
    crashed, unwanted = table.create("ingest", "a", {}), table.create("ingest", "b", {})
    table.claim()
    table.claim()
    table.cancel(unwanted.id)
    done: list[str] = []

    def work(job: Job, _progress: Progress, _cancelled: Cancelled) -> None:
        done.append(job.subject)

    runner, ended = run(table, {"ingest": work})
    assert over(table, crashed).status == "done"
    runner.stop()
    assert done == ["a"]
    assert table.get(unwanted.id).status == "cancelled"
    assert unwanted.id in [job.id for job in ended]


def test_a_second_server_leaves_the_first_ones_jobs_alone(table: JobTable) -> None:
    steps = Steps()
    runner, _ended = run(table, {"compare": steps}, slots=1)
    job = runner.submit("compare", "c")
    assert steps.begun.acquire(timeout=20)
    other = Database(database_of(table).url)
    second, _none = run(JobTable(other), {"compare": steps}, slots=1)
    shared = runner.submit("compare", "d")
    assert steps.begun.acquire(timeout=20), "the second server takes queued jobs"
    assert not steps.begun.acquire(timeout=0.3), "but none that runs elsewhere"
    steps.leave.set()
    assert {over(table, one).status for one in (job, shared)} == {"done"}
    second.stop()
    other.close()
    runner.stop()


def database_of(table: JobTable) -> Database:
    return table._database


def test_tasks_are_spread_and_their_results_keep_their_order(table: JobTable) -> None:
    said: list[float] = []
    with ThreadPoolExecutor(3) as pool:
        work = Work(database=database_of(table), executor=pool, job=table.create("compare", "c", {}).id)
        results = spread(
            work, count, [(3,), (90,), (5,)], progress=lambda done, _text: said.append(done), cancelled=lambda: False
        )
    assert results == [3, 90, 5]
    assert said == sorted(said), "progress never goes back"
    alone = spread(
        Work(database=database_of(table)),
        count,
        [(3,), (4,)],
        progress=lambda _done, _text: None,
        cancelled=lambda: False,
    )
    assert alone == [3, 4]


def test_one_failing_task_stops_the_others_and_its_error_is_the_jobs(table: JobTable) -> None:
    with ThreadPoolExecutor(2) as pool:
        work = Work(database=database_of(table), executor=pool, job=table.create("compare", "c", {}).id)
        with pytest.raises(UnreadableError, match="this task fails"):
            spread(
                work,
                fail_or_wait,
                [(False,), (True,)],
                progress=lambda _done, _text: None,
                cancelled=lambda: False,
            )


@pytest.mark.usefixtures("warm_workers")
def test_a_killed_worker_costs_its_task_and_a_task_that_always_kills_fails_alone(
    table: JobTable, tmp_path: Path
) -> None:
    executor = make_executor("processes:2")

    def spread_all(*markers: Path | None) -> list[int]:
        work = Work(database=database_of(table), executor=executor, job=table.create("compare", "c", {}).id)
        calls = [(marker,) for marker in markers]
        return spread(work, die_first, calls, progress=lambda _done, _text: None, cancelled=lambda: False)

    try:
        assert spread_all(None, tmp_path / "once", None, None) == [0, 1, 0, 0]
        with ThreadPoolExecutor(2) as jobs:
            deadly = jobs.submit(spread_all, tmp_path / "nowhere" / "always")
            healthy = jobs.submit(spread_all, *[None] * 20)
            with pytest.raises(DumpscopeError, match="worker process died"):
                deadly.result()
            assert healthy.result() == [0] * 20
    finally:
        executor.shutdown()


def test_cancelling_reaches_tasks_in_their_workers(table: JobTable) -> None:
    job = table.create("compare", "c", {})
    table.claim()
    with ThreadPoolExecutor(2) as pool:
        work = Work(database=database_of(table), executor=pool, job=job.id)
        threading.Timer(0.3, table.cancel, (job.id,)).start()
        began = time.monotonic()
        with pytest.raises(CancelledError):
            spread(
                work,
                count,
                [(3000,)] * 4,
                progress=lambda _done, _text: None,
                cancelled=lambda: table.stop_asked(job.id) != 0,
            )
    assert time.monotonic() - began < 10


def test_a_cluster_without_workers_waits_with_words_and_goes_on_when_one_comes(
    table: JobTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(fan_out, "WORKERS_SECONDS", 0.0)
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        executor = make_executor(cluster.scheduler_address)
        assert lacks_workers(executor)
        work = Work(database=database_of(table), executor=executor, job=table.create("compare", "c", {}).id)
        said: list[str] = []

        def progress(_done: float, message: str) -> None:
            said.append(message)

        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(spread, work, count, [(1,), (2,)], progress=progress, cancelled=lambda: False)
            until(lambda: any("waiting for a worker" in message for message in said))
            cluster.scale(1)
            assert made.result(60) == [1, 2]
        assert not lacks_workers(executor)
        cluster.scale(0)
        until(lambda: lacks_workers(executor))
        monkeypatch.setattr(fan_out, "PATIENCE_SECONDS", 0.2)
        with pytest.raises(DumpscopeError, match="no worker for"):
            spread(work, count, [(1,)], progress=progress, cancelled=lambda: False)
        executor.shutdown()
