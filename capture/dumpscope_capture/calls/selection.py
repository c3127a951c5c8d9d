"""Which nodes are recorded: by scope, list, risk level and data mode."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from dumpscope_capture.config import Config
from dumpscope_format.naming import first_index
from dumpscope_format.older_python import dataclass

Outcome = Literal["record", "link", "drop"]
"""record: into dump.json; link: into construct.json only; drop: nothing."""

LOUD_PREFIXES = ("NPU", "Distributed", "MindSpeed", "Triton")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What data_mode keeps."""

    forward: bool
    backward: bool
    input: bool
    output: bool


def sides(words: Collection[str]) -> Sides:
    """Directions and sides of data_mode. If it names no direction, both are kept; the same for input and output."""
    every = "all" in words
    directions = every or not {"forward", "backward"} & set(words)
    ends = every or not {"input", "output"} & set(words)
    return Sides(
        forward=directions or "forward" in words,
        backward=directions or "backward" in words,
        input=ends or "input" in words,
        output=ends or "output" in words,
    )


class Selection:
    """The filters of one run. Ask in the order of calls: the scope begins and ends at certain names.

    A scope ends as in msprobe: a function and, at level mix, a module that its last name names are the last node, without what
    runs inside; at L0 the last module ends with all that it holds.

    before: a module is open with whose backward the scope begins
    """

    def __init__(self, config: Config, *, low_risk: Collection[str], core: Collection[str]) -> None:
        self.sides = sides(config.data_mode)
        self._scope = config.scope
        self._list = config.list
        self._low = frozenset(low_risk) if config.risk_level == "FOCUS" else frozenset()
        self._core = frozenset(core) if config.risk_level == "CORE" else None
        self._by_risk = not config.scope and not config.list
        self._mix = config.level == "mix"
        self._closes_whole = config.level == "L0"
        self.inside = not config.scope
        self._listed: list[str] = []
        self._followed: list[str] = []
        self.before = False

    @property
    def ordered(self) -> bool:
        """Whether the answer depends on when it is asked: a scope is set."""
        return bool(self._scope)

    @property
    def named(self) -> bool:
        """Whether nodes are chosen by name: a list is set."""
        return bool(self._list)

    def reset(self) -> None:
        """A new step begins."""
        self.inside = not self._scope
        self._listed.clear()
        self._followed.clear()
        self.before = False

    def begin_module(self, name: str) -> None:
        """A module's forward begins. At level mix a list that names it, or its backward, means all that runs inside, too."""
        self._begin_scope(name)
        if self._scope and backward_name(name) == self._scope[0]:
            self.before = True
        if self._mix and self._list:
            if self._names(name):
                self._listed.append(name)
            if self._names(backward_name(name)):
                self._followed.append(name)

    def begin_backward(self, name: str) -> None:
        """A module's backward begins."""
        self._begin_scope(name)

    def end_module(self, name: str) -> None:
        """A module's forward or backward ends; its own node has been judged before."""
        if self._scope and name == self._scope[1]:
            self.inside = False
        if self.before and backward_name(name) == self._scope[0]:
            self.before = False
        for names in (self._listed, self._followed):
            if name in names:
                names.remove(name)

    def module(self, name: str, *, listed: bool = False) -> Outcome:
        """Judge a module's node. listed: the list names what it runs in."""
        inside = self._pass(name, closes=not self._closes_whole)
        if inside and (not self._list or listed or self._is_listed(name)):
            return "record"
        return self._unless_followed(name)

    def ends_inside(self, name: str) -> bool:
        """Whether a module that began before the scope ends inside it: its results are recorded."""
        return bool(self._scope) and self.inside and (not self._list or self._is_listed(name))

    def call(self, name: str, prefix: str, api: str, *, custom: bool, listed: bool = False) -> Outcome:
        """Judge a function's node. api: last segment of its name; custom: the program registered it, at any risk level;
        listed: the list names what it runs in."""
        inside = self._pass(name, closes=True)
        if not inside or (self._list and not listed and not self._is_listed(name)):
            return self._unless_followed(name)
        if self._by_risk and not custom and not self._is_risky(prefix, api):
            return "link"
        return "record"

    def follows(self, name: str) -> bool:
        """Whether gradients are read for a call whose forward is not recorded. name: of its backward"""
        if self._list:
            return bool(self._followed) or self._names(name)
        return bool(self._scope)

    def may_begin(self, name: str) -> bool:
        """Whether a module's backward that begins now may be recorded at its end."""
        return self.inside or not self._scope or is_backward(self._scope[0])

    def _begin_scope(self, name: str) -> None:
        if self._scope and name == self._scope[0]:
            self.inside = True

    def _pass(self, name: str, *, closes: bool) -> bool:
        """Whether a node lies in the scope, which may begin or end with it."""
        self._begin_scope(name)
        inside = self.inside
        if closes and self._scope and name == self._scope[1]:
            self.inside = False
        return inside

    def _unless_followed(self, name: str) -> Outcome:
        return "link" if not is_backward(name) and self.follows(backward_name(name)) else "drop"

    def _names(self, name: str) -> bool:
        return any(part in name for part in self._list)

    def _is_listed(self, name: str) -> bool:
        return bool(self._listed) or self._names(name)

    def _is_risky(self, prefix: str, api: str) -> bool:
        if self._core is not None:
            return api in self._core or prefix in LOUD_PREFIXES
        return api not in self._low


def is_backward(name: str) -> bool:
    """Whether a node's name says that it is a backward: of a function (at its end) or a module (before its number)."""
    return name.endswith(".backward") or name.rpartition(".")[0].endswith(".backward")


def backward_name(name: str) -> str:
    """Name of the backward of a forward node, which is that of its first time; of a backward, the same."""
    if is_backward(name):
        return name
    if name.endswith(".forward"):
        head, _, number = name[: -len(".forward")].rpartition(".")
        return f"{head}.{first_index(int(number))}.backward" if number.isdecimal() else f"{head}.{number}.backward"
    head, _, number = name.rpartition(".forward.")
    return f"{head}.backward.{first_index(int(number))}" if number.isdecimal() else f"{head}.backward.{number}"
