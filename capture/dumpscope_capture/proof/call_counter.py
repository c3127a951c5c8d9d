"""Names of calls where no capture runs: the same counters as a recording's, and nothing recorded.

Its function mode is installed in the thread that asked for it, and removed while a capture's mode sees the same calls, so that
each call has the name that a dump would give it. The counters start at 0 with the first user and with every step of the debugger.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from dumpscope_capture.calls import observers
from dumpscope_capture.calls.call import Call, ThreadState
from dumpscope_capture.calls.graph_makers import graph_maker
from dumpscope_capture.calls.names import Api, Table, every_call
from dumpscope_capture.calls.numbers import Numbers
from dumpscope_capture.config import CUSTOM_NAMESPACES
from dumpscope_capture.context import HookErrors
from dumpscope_capture.hooks import functions
from dumpscope_capture.hooks.compiled import EagerMode
from dumpscope_capture.hooks.fast_paths import FastPathHooks
from dumpscope_capture.hooks.functions import FunctionMode
from dumpscope_format.naming import api_name
from dumpscope_format.saved_call import bare

NAME_LIMIT: Final = 1_000_000
"""Names of calls that are remembered."""


class CallNames:
    """Observes the calls of a run: their names in order of the first call, and how often each was called."""

    def __init__(self) -> None:
        self.met: dict[str, int] = {}

    def begin(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        name = bare(call.name)
        if name in self.met or len(self.met) < NAME_LIMIT:
            self.met[name] = self.met.get(name, 0) + 1

    def end(self, call: Call, result: Any) -> None:
        """Nothing to do."""

    def note_exception(self, error: BaseException) -> None:
        """Nothing to do."""

    def report(self) -> dict[str, Any]:
        return {"calls": self.met}


class CallCounter:
    """Counts calls while it has users. Takes the place of a recording for a function mode."""

    def __init__(self) -> None:
        self.errors = HookErrors()
        self.thread_state = ThreadState()
        self.functions_off = False
        self._users = 0
        self._captures = 0
        self._numbers = Numbers()
        self._lock = threading.RLock()
        self._mode: FunctionMode | None = None
        self._thread = 0
        self._table: Table | None = None
        self._eager = EagerMode()
        self._fast = FastPathHooks(self.errors)

    @property
    def active(self) -> bool:
        return self._mode is not None and graph_maker() is None

    # -- on and off ----------------------------------------------------------------------------------------------------

    def retain(self) -> None:
        """One more user, in this thread."""
        with self._lock:
            if self._users == 0:
                self._numbers.reset()
            self._users += 1
            self._settle()

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            self._settle()

    def step_aside(self) -> None:
        """A capture begins to see calls."""
        with self._lock:
            self._captures += 1
            self._settle()

    def take_over(self) -> None:
        """A capture no longer sees calls."""
        with self._lock:
            self._captures -= 1
            self._settle()

    def reset(self) -> None:
        """A step ends: numbers start at 0 again."""
        self._numbers.reset()

    def forget(self) -> None:
        """In a forked child: take the function mode out of the thread again, and count nothing."""
        self._lock = threading.RLock()
        self._users = 0
        mode, self._mode = self._mode, None
        if mode is not None:
            self._fast.remove()
            functions.leave(mode)

    def _settle(self) -> None:
        wanted = self._users > 0 and self._captures == 0
        if wanted and self._mode is None:
            self._table = self._table or Table(every_call(), namespaces=CUSTOM_NAMESPACES)
            self._mode = FunctionMode(self._table, self)
            self._thread = threading.get_ident()
            functions.enter(self._mode)
            self._fast.install()
            self._eager.begin()
        elif not wanted and self._mode is not None:
            mode, self._mode = self._mode, None
            self._fast.remove()
            functions.leave(mode)
            self._eager.end()

    # -- calls, as for a recording -------------------------------------------------------------------------------------

    def begin_call(self, api: Api, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> Call:
        number = self._numbers.next(api.label, frame)
        call = Call(api_name(api.prefix, api.name, number.shown, "forward"), "drop", None, number)
        call.api = api
        for observer in observers.OBSERVERS:
            with self.errors.guard("a call's arguments"):
                observer.begin(call, args, kwargs, frame)
        return call

    def run(self, call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return observers.run(call, function, args, kwargs)

    def end_call(self, call: Call, result: Any) -> None:
        for observer in observers.OBSERVERS:
            with self.errors.guard("a call's results"):
                observer.end(call, result)

    def note_uninitialised(self, result: Any) -> None:
        """No value is recorded here."""

    def stop_call(self, call: Call) -> None:
        """Activation checkpointing stopped the call; it keeps its number."""

    def note_exception(self, error: BaseException) -> None:
        for observer in observers.OBSERVERS:
            with self.errors.guard("an exception"):
                observer.note_exception(error)

    def fail_call(self, call: Call) -> None:
        """A call raised: the next one of its name takes its number."""
        if call.number is not None:
            self._numbers.give_back(call.number)


CALL_COUNTER: Final = CallCounter()
"""The call counter of the process."""


def _after_fork() -> None:
    """In forked children, such as data loader workers, calls are not counted, saved or run differently."""
    CALL_COUNTER.forget()
    observers.OBSERVERS.clear()
    observers.RUNNERS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
