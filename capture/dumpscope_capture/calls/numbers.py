"""Numbers of the calls of a step: by label, from 0, in the order of the calls.

Activation checkpointing makes calls again. Such a call gets the number of its first time plus a million (`AGAIN`) for each time
that it was made again, so that the numbers of all other calls are those of a run without checkpointing:

    first pass       Functional.linear.7.forward   Functional.relu.3.forward
    backward pass    Functional.linear.1000007.forward   Functional.relu.1000003.forward   Functional.relu.3.backward

A checkpointed part is told by the frames of the code that checkpoints: torch's, DeepSpeed's and Megatron's. When it first runs,
the counters are kept; when it runs again, it counts from there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import torch

from dumpscope_format.naming import AGAIN, UNSEEN

FILES: Final = (
    os.path.join("utils", "checkpoint.py"),
    os.path.join("activation_checkpointing", "checkpointing.py"),
    os.path.join("tensor_parallel", "random.py"),
)
"""Files of torch, DeepSpeed and Megatron that run a checkpointed part again."""


class Part:
    """A checkpointed part of the program. counted: counters when it began; parent: the node around it then

    again: counters of the time that it runs again now; run: that time, the number of the backward pass
    """

    __slots__ = ("again", "counted", "parent", "run")

    def __init__(self, counted: dict[str, int], parent: str | None) -> None:
        self.counted = counted
        self.parent = parent
        self.again: dict[str, int] = {}
        self.run: int | None = None


class Number(NamedTuple):
    """Number of one call. shown: as in its name; counters, label, place: where it was counted; part: in which it is made again"""

    shown: int
    label: str
    place: int
    counters: dict[str, int]
    part: Part | None = None
    again: bool = False


class Numbers:
    """Counts the calls of a step. Safe for threads.

    plain: a call that is made again gets the next number, as in msprobe
    """

    def __init__(self, *, plain: bool = False) -> None:
        self.plain = plain
        self._lock = threading.RLock()
        self._counters: dict[str, int] = {}
        self._unseen: dict[str, int] = {}
        self._parts: weakref.WeakKeyDictionary[Any, Part] = weakref.WeakKeyDictionary()
        self._times: dict[tuple[str, int], int] = {}

    def reset(self) -> None:
        """A new step begins."""
        with self._lock:
            self._counters.clear()
            self._unseen.clear()
            self._parts.clear()
            self._times.clear()

    def so_far(self) -> dict[str, int]:
        """Number of calls by label, without those made again."""
        with self._lock:
            return dict(self._counters)

    def continue_from(self, counted: Mapping[str, int]) -> None:
        """Continue the numbers of another recording of the same step."""
        with self._lock:
            self._counters.update(counted)

    def next(self, label: str, frame: FrameType | None, parent: Callable[[], str | None] | None = None) -> Number:
        """Number of a call. frame: that makes it; parent: the node around it, asked where a checkpointed part begins"""
        with self._lock:
            part, counters = (None, self._counters) if self.plain else self._find(frame, parent)
            again = counters is not self._counters
            place = counters.get(label, UNSEEN if counters is self._unseen else 0)
            counters[label] = place + 1
            if not again:
                return Number(place, label, place, counters)
            times = self._times[label, place] = self._times.get((label, place), 0) + 1
            return Number(place + times * AGAIN, label, place, counters, part, again=True)

    def give_back(self, number: Number) -> None:
        """A call raised: the next one of its label takes its number."""
        with self._lock:
            if number.counters.get(number.label) != number.place + 1:
                return
            number.counters[number.label] = number.place
            if number.again:
                self._times[number.label, number.place] -= 1

    def _find(
        self, frame: FrameType | None, parent: Callable[[], str | None] | None
    ) -> tuple[Part | None, dict[str, int]]:
        """The part that is run again around a frame, and the counters that count there."""
        begun: list[Any] = []
        counters, part, elsewhere = self._counters, None, False
        while frame is not None:
            code = frame.f_code
            known = _KINDS.get(id(code))
            if known is None:
                known = _KINDS[id(code)] = (code, _kind(code))
            kind = known[1]
            if kind:
                owner, again = _owner(kind, frame)
                if again and owner is not None:
                    part = self._parts.get(owner)
                    counters = self._unseen if part is None else _counters_of(part)
                    break
                if owner is not None:
                    begun.append(owner)
                elsewhere = elsewhere or (again and not begun)
            frame = frame.f_back
        else:
            if elsewhere and torch._C._current_graph_task_id() != -1:
                counters = self._unseen
        for owner in reversed(begun):
            if owner not in self._parts:
                self._parts[owner] = Part(dict(counters), None if parent is None else parent())
        return part, counters


def _counters_of(part: Part) -> dict[str, int]:
    """Counters of a part that runs again: each time from where it began first."""
    run = torch._C._current_graph_task_id()
    if part.run != run:
        part.run, part.again = run, dict(part.counted)
    return part.again


_KINDS: Final[dict[int, tuple[CodeType, str]]] = {}
"""What a function does, by the id of its code, which is faster to look up than the code."""


def _kind(code: CodeType) -> str:
    """What a function of a checkpointing file does with the part: "first", "generator", "context", "hook", "object", or
    "elsewhere" where it is not known which part it runs again."""
    if not code.co_filename.endswith(FILES):
        return ""
    names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    if code.co_name in ("forward", "backward") and code.co_varnames[:1] == ("ctx",):
        return "first" if code.co_name == "forward" else "context"
    if code.co_name == "checkpoint" and "gen" in names:
        return "generator"
    if code.co_name == "unpack_hook":
        return "hook" if "frame" in names else ""
    if code.co_name == "_recompute":
        return "object"
    return "" if code.co_filename.endswith(FILES[0]) else "elsewhere"


def _owner(kind: str, frame: FrameType) -> tuple[Any, bool]:
    """What stands for the part in a frame, None where it is not there, and whether the part runs again."""
    local = frame.f_locals
    if kind == "generator":
        inner = getattr(local.get("gen"), "gi_frame", None)
        return (None if inner is None else inner.f_locals.get("new_frame")), False
    if kind == "hook":
        return local.get("frame"), True
    if kind == "object":
        return getattr(local.get("self"), "ctx", None), True
    return (local.get("ctx"), kind == "context") if kind != "elsewhere" else (None, True)
