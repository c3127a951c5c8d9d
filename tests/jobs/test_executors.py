"""Every kind of executor runs the same work, and one that loses a worker goes on."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool

import pytest

from dumpscope.errors import UsageError
from dumpscope.jobs.executors import make_executor


@pytest.mark.parametrize("spec", ["threads:2", "processes:1"])
def test_threads_and_processes_give_the_same_answer(spec: str) -> None:
    executor = make_executor(spec)
    try:
        assert list(executor.map(abs, range(-3, 3))) == [3, 2, 1, 0, 1, 2]
    finally:
        executor.shutdown()


def test_a_pool_whose_worker_died_serves_the_next_task() -> None:
    executor = make_executor("processes:1")
    try:
        with pytest.raises(BrokenProcessPool):
            executor.submit(os._exit, 3).result(60)
        assert executor.submit(abs, -5).result(60) == 5
    finally:
        executor.shutdown()


@pytest.mark.parametrize("spec", ["", "fibers:2", "processes:0", "processes:many", "threads:-1", "threads:99999"])
def test_a_specification_that_makes_no_sense_is_refused_with_the_forms_that_do(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_executor(spec)
    assert "processes:N" in (caught.value.hint or "")


def test_a_cluster_that_does_not_answer_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")

    def unreachable(*_args: object, **_options: object) -> None:
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", unreachable)
    with pytest.raises(UsageError, match="cannot be reached"):
        make_executor("tcp://127.0.0.1:1")
