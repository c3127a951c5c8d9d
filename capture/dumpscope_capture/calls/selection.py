"""Which nodes are recorded: by scope, list, risk level and data mode."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from dumpscope_capture.config import Config
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
    """The filters of one run. Ask in the order of calls: the scope begins and ends at certain names."""

    def __init__(self, config: Config, *, low_risk: Collection[str], core: Collection[str]) -> None:
        self.sides = sides(config.data_mode)
        self._scope = config.scope
        self._list = config.list
        self._low = frozenset(low_risk) if config.risk_level == "FOCUS" else frozenset()
        self._core = frozenset(core) if config.risk_level == "CORE" else None
        self._by_risk = not config.scope and not config.list
        self._mix = config.level == "mix"
        self.inside = not config.scope
        self._listed: list[str] = []

    def reset(self) -> None:
        """A new step begins."""
        self.inside = not self._scope
        self._listed.clear()

    def begin_module(self, name: str) -> None:
        if self._scope and name == self._scope[0]:
            self.inside = True
        if self._mix and any(part in name for part in self._list):
            self._listed.append(name)

    def end_module(self, name: str) -> None:
        """A module ends; its own node has been judged before."""
        if self._scope and name == self._scope[1]:
            self.inside = False
        if name in self._listed:
            self._listed.remove(name)

    def module(self, name: str) -> Outcome:
        """Judge a module's node."""
        return "record" if self.inside and (not self._list or self._is_listed(name)) else "drop"

    def call(self, name: str, prefix: str, api: str, *, custom: bool) -> Outcome:
        """Judge a function's node. api: last segment of its name; custom: the program registered it, at any risk level."""
        if self._scope and name == self._scope[0]:
            self.inside = True
        inside = self.inside
        if self._scope and name == self._scope[1]:
            self.inside = False
        if not inside or (self._list and not self._is_listed(name)):
            return "drop"
        if self._by_risk and not custom and not self._is_risky(prefix, api):
            return "link"
        return "record"

    def follows(self, name: str) -> bool:
        """Whether gradients are read for a call whose forward is not recorded. name: of its backward"""
        return False

    def _is_listed(self, name: str) -> bool:
        return bool(self._listed) or any(part in name for part in self._list)

    def _is_risky(self, prefix: str, api: str) -> bool:
        if self._core is not None:
            return api in self._core or prefix in LOUD_PREFIXES
        return api not in self._low
