"""Where work runs: threads, processes or a dask cluster, all behind `concurrent.futures.Executor`."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context, parent_process
from typing import Any, Final, ParamSpec, TypeVar

from dumpscope.errors import UsageError
from dumpscope.gc_tuning import collect_rarely
from dumpscope.texts import say

P = ParamSpec("P")
T = TypeVar("T")

FORMS = say("jobs.processes_n_threads_n_tcp_host")


WARM_SECONDS: Final = 2.0
"""Time after which the first workers of a new server start: one that ends at once needs none."""
WARM_WORKERS: Final = 2


def make_executor(spec: str, *, modules: Sequence[str] = ()) -> Executor:
    """Executor for `processes:N`, `threads:N` (N may be left out: one per core) or a dask scheduler's `tcp://host:port`.

    modules: what processes import before there is work

    Raises UsageError for anything else, for a cluster that cannot be reached and where dask is not installed.
    """
    kind, _colon, rest = spec.partition(":")
    if kind in ("processes", "threads"):
        workers = _workers(spec, rest)
        return (
            Processes(workers, modules)
            if kind == "processes"
            else ThreadPoolExecutor(workers, thread_name_prefix="work")
        )
    if kind in ("tcp", "tls"):
        return _cluster(spec)
    raise UsageError(say("jobs.unknown_executor", spec=f"{spec!r}"), hint=say("jobs.use", forms=FORMS))


class Processes(Executor):
    """A process pool that outlives its workers. One killed (out of memory, say) fails the work of all, which can be done again
    `alone`: each by a worker of its own, one after another, so that a task that kills its worker fails nothing else.

    Workers start by spawn, never by fork: a fork of a process with threads may inherit a lock that nobody releases. So they
    import what they need, which takes longer than a small task: see `warm_up`.
    """

    def __init__(self, workers: int, modules: Sequence[str] = ()) -> None:
        self.workers = workers
        self._modules = tuple(modules)
        self._lock = threading.Lock()
        self._pool = self._fresh(workers)
        self._alone = ThreadPoolExecutor(1, thread_name_prefix="alone")

    def warm_up(self) -> None:
        """Start workers for the two sides of a comparison in a moment, so that the first one finds them ready."""
        timer = threading.Timer(WARM_SECONDS, self._start)
        timer.name, timer.daemon = "warm-up", True
        timer.start()

    def _start(self) -> None:
        with suppress(RuntimeError, OSError):  # it was shut down meanwhile, or there is no room for a process
            for _ in range(min(self.workers, WARM_WORKERS)):
                self.submit(os.getpid)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with self._lock:
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._fresh(self.workers)
                return self._pool.submit(fn, *args, **kwargs)

    def alone(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Like `submit`, in a worker that does nothing else."""
        return self._alone.submit(self._run_alone, fn, *args, **kwargs)

    def _run_alone(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._fresh(1) as pool:
            return pool.submit(fn, *args, **kwargs).result()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)
        self._alone.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _fresh(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_begin_worker, initargs=(self._modules,)
        )


def _begin_worker(modules: Sequence[str]) -> None:
    """Ctrl-C belongs to the server, and a worker whose server was killed must not go on writing beside the next one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    for module in modules:
        import_module(module)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _workers(spec: str, count: str) -> int:
    if not count:
        return os.cpu_count() or 1
    if not count.isdecimal() or not 1 <= int(count) <= 1024:
        raise UsageError(
            say("jobs.executor_not_number_workers", spec=f"{spec!r}", count=f"{count!r}"),
            hint=say("jobs.use", forms=FORMS),
        )
    return int(count)


def _cluster(spec: str) -> Executor:
    try:
        distributed: Any = import_module("distributed")  # an extra
    except ImportError as error:
        raise UsageError(say("jobs.dask_not_installed"), hint=say("jobs.pip_install_dumpscope_cluster")) from error
    try:
        client = distributed.Client(spec, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            say("jobs.dask_scheduler_cannot_reached", spec=spec, error=error), hint=say("jobs.running")
        ) from error
    return Cluster(client)


class Cluster(Executor):
    """A dask cluster. Work that is sent while it has no worker waits for one: see `lacks_workers`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor: Executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return Fetched(self._executor.submit(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait and not cancel_futures)  # without waiting, dask cancels what is open
        self._client.close()

    def has_worker(self) -> bool:
        """Whether the scheduler answers and knows a worker."""
        try:
            return bool(self._client.scheduler_info(n_workers=1)["workers"])
        except (OSError, TimeoutError, AttributeError, KeyError):  # the scheduler has gone
            return False


class Fetched(Future[T]):
    """A task of a cluster that lets go of it when its result is here. The cluster keeps what somebody holds on to, on the worker
    that made it: when that worker dies, all that it ever did would be done again."""

    def __init__(self, there: Future[T]) -> None:
        super().__init__()
        self._there: Future[T] | None = there
        there.add_done_callback(self._take)

    def cancel(self) -> bool:
        there = self._there
        if there is not None:
            there.cancel()  # comes back through `_take`
        return self.cancelled()

    def _take(self, there: Future[T]) -> None:
        self._there = None
        if there.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := there.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(there.result())


def lacks_workers(executor: Executor) -> bool:
    """Whether nothing can run at the moment: a cluster without workers."""
    return isinstance(executor, Cluster) and not executor.has_worker()
