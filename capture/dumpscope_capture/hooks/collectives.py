"""Calls of torch.distributed, which no function mode sees: the functions are wrapped while a capture runs.

Buffers are written in place, so the results of a call are its arguments afterwards: after the call itself, or after `wait()` of
the work that an asynchronous call returned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import torch

from dumpscope_capture.calls.call import Call
from dumpscope_capture.calls.names import PREFIXES, Api, WrapList, attribute, expand, owners
from dumpscope_capture.hooks.functions import lay, lift
from dumpscope_capture.hooks.patches import Patches
from dumpscope_capture.record.recording import Recording

_CATEGORIES: Final = ("distributed", "npu_distributed", "mindspeed")
_FIRST: Final = frozenset((
    "recv", "irecv", "all_gather", "scatter", "reduce_scatter", "_reduce_scatter_base", "_all_gather_base", "all_to_all",
    "all_to_all_single", "all_gather_into_tensor", "reduce_scatter_tensor",
))  # fmt: skip
"""Calls whose first argument is only written to, so its old content is no input."""

_BUFFERS: Final = frozenset(
    ("tensor_list", "output_tensor_list", "output_tensor", "output", "output_tensors", "gather_list")
)


PENDING_LIMIT: Final = 32
"""Asynchronous calls without a wait from which on those that are done are recorded."""


class Collectives:
    """The wrapped functions, and the asynchronous calls that are not finished."""

    def __init__(self, wrap_list: WrapList, recording: Recording) -> None:
        self._wrap_list = wrap_list
        self._recording = recording
        self._patches = Patches()
        self._pending: dict[int, tuple[Any, Call, tuple[Any, ...], dict[str, Any]]] = {}

    def install(self) -> None:
        if self._patches:
            return
        made: dict[Any, Any] = {}
        for category in _CATEGORIES:
            for owner in owners(category):
                for name in expand(owner, self._wrap_list.names[category]):
                    self._wrap(owner, name, PREFIXES[category], made)
        work = getattr(torch.distributed, "Work", None) if torch.distributed.is_available() else None
        if work is not None:
            self._patches.put(work, "wait", self._wrap_wait(work.wait))

    def remove(self) -> None:
        self._patches.undo()

    def lift(self) -> None:
        """Take the wrappers away for a while."""
        self._patches.lift()

    def lay(self) -> None:
        """End of `lift`."""
        self._patches.lay()

    def settle(self) -> None:
        """The step ends: record the results of finished calls; those of others are left out."""
        working, self._pending = self._pending, {}
        for work, call, args, kwargs in working.values():
            with self._recording.errors.guard("a collective"):
                self._finish(call, args, kwargs, known=work.is_completed())

    def _settle_completed(self) -> None:
        """Record calls that are done although nobody has waited for them: they hold their buffers."""
        for key, (work, call, args, kwargs) in list(self._pending.items()):
            if work.is_completed() and self._pending.pop(key, None) is not None:
                with self._recording.errors.guard("a collective"):
                    self._finish(call, args, kwargs, known=True)

    def _wrap(self, owner: Any, dotted: str, prefix: str, made: dict[Any, Any]) -> None:
        head, _, name = dotted.rpartition(".")
        holder = attribute(owner, head) if head else owner
        function = getattr(holder, name, None) if holder is not None else None
        if not callable(function):
            return
        if function not in made:
            made[function] = wrap_call(
                function, Api(prefix=prefix, name=name, function=function), self._recording, self._complete
            )
        self._patches.put(holder, name, made[function])

    def _complete(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if call.api is not None and call.api.prefix == "MindSpeed":
            self._recording.end_call(call, result)
            return
        works = [one for one in (result if isinstance(result, list) else [result]) if hasattr(one, "is_completed")]
        if works and not all(work.is_completed() for work in works):
            self._pending[id(works[-1])] = (works[-1], call, args, kwargs)
            if len(self._pending) > PENDING_LIMIT:
                self._settle_completed()
        else:
            self._finish(call, args, kwargs, known=True)

    def _finish(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], *, known: bool) -> None:
        recording = self._recording
        if call.outcome == "drop":
            return
        written = [*args, *kwargs.values()]
        if call.api is not None and call.api.name == "isend" and written:
            written[0] = None
        recording.take_results(call, written if known else [None])

    def _wrap_wait(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        finish = self._finish_work

        @wraps(wait)
        def wait_and_finish(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = wait(work, *args, **kwargs)
            finish(work)
            return result

        return wait_and_finish

    def _finish_work(self, work: Any) -> None:
        found = self._pending.pop(id(work), None)
        if found is not None:
            _, call, args, kwargs = found
            with self._recording.errors.guard("a collective"):
                self._finish(call, args, kwargs, known=True)


def wrap_call(
    function: Callable[..., Any],
    api: Api,
    recording: Recording,
    complete: Callable[[Call, tuple[Any, ...], dict[str, Any], Any], None],
) -> Callable[..., Any]:
    """Wrap a function so that its outermost calls are recorded."""

    @wraps(function)
    def call_recorded(*args: Any, **kwargs: Any) -> Any:
        thread = recording.thread_state
        if not recording.active or thread.inside or recording.functions_off:
            return _run_without_modes(function, args, kwargs)
        call = None
        with recording.errors.guard("a call's arguments"):
            given, named = _without_buffers(api.name, args, kwargs) if api.prefix == "Distributed" else (args, kwargs)
            call = recording.begin_call(api, given, named, sys._getframe(1))
        thread.inside += 1
        try:
            result = _run_without_modes(function, args, kwargs)
        except BaseException:
            if call is not None:
                recording.fail_call(call)
            raise
        finally:
            thread.inside -= 1
        if call is not None:
            with recording.errors.guard("a call's results"):
                complete(call, args, kwargs, result)
        return result

    return call_recorded


def _run_without_modes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function with our function modes off this thread's stack. The thread of gloo keeps the stack that it finds, and drops
    it when the work is done, for which it needs the interpreter's lock; a process group that is destroyed meanwhile holds the
    lock and waits for that thread, for ever."""
    modes = lift()
    try:
        return function(*args, **kwargs)
    finally:
        lay(modes)


def _without_buffers(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with null for buffers that are only written to."""
    given = list(args)
    if name in _FIRST:
        if given:
            given[0] = None
        kwargs = {
            key: None if key in _BUFFERS or (key == "tensor" and name in ("recv", "irecv")) else value
            for key, value in kwargs.items()
        }
    elif name == "gather":
        given[1:2] = [None] if len(given) > 1 else []
        kwargs = {key: None if key == "gather_list" else value for key, value in kwargs.items()}
    return tuple(given), kwargs
