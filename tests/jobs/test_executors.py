"""Every kind of executor runs the same work, and one that loses a worker goes on."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import weakref
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psutil
import pytest

from dumpscope.errors import UsageError
from dumpscope.jobs.executors import Fetched, make_executor


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


SERVER = """
import os, time
from dumpscope.jobs.executors import Fetched, make_executor
if __name__ == "__main__":
    executor = make_executor("processes:1")
    print(executor.submit(os.getpid).result(), flush=True)
    executor.submit(time.sleep, 600)
    time.sleep(600)
"""


def test_workers_end_with_a_server_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        worker = int(server.stdout.readline())
        assert alive(worker)
        server.kill()
    deadline = time.monotonic() + 20
    while alive(worker):
        assert time.monotonic() < deadline, "the worker goes on without its server"
        time.sleep(0.05)


READY = """
import multiprocessing, sys, time
from dumpscope.jobs import executors
if __name__ == "__main__":
    executors.WARM_SECONDS = 0.0
    executor = executors.make_executor("processes:2", modules=["colorsys"])
    assert "colorsys" not in sys.modules
    executor.warm_up()
    while len(executor._pool._processes) < 2:
        time.sleep(0.02)
    print(executor.submit(eval, "'colorsys' in __import__('sys').modules").result(), flush=True)
    executor.shutdown()
"""


def test_workers_have_imported_what_they_need_before_there_is_work(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(READY)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr


def alive(process: int) -> bool:
    return psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE


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


def test_a_dask_cluster_runs_the_same_work() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        executor = make_executor(cluster.scheduler_address)
        try:
            assert list(executor.map(abs, range(-2, 1))) == [2, 1, 0]
        finally:
            executor.shutdown()


def test_a_cluster_may_forget_a_task_whose_result_is_here() -> None:
    there: Future[int] = Future()
    known = weakref.ref(there)
    here = Fetched(there)
    assert not here.done()
    there.set_result(7)
    del there
    gc.collect()
    assert here.result() == 7
    assert known() is None, "what somebody holds on to is done again when its worker dies"


def test_a_task_of_a_cluster_can_be_cancelled_and_fails_with_its_own_error() -> None:
    there: Future[int] = Future()
    here = Fetched(there)
    assert here.cancel()
    assert there.cancelled()
    assert wait([here], timeout=1).done == {here}
    failing: Future[int] = Future()
    failed = Fetched(failing)
    failing.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.result()
