"""Which calls a mode of the switch keeps. Entries may have the spelling of any generation, and may be prefixes.

list       names that begin with an entry; `Tensor_permute_1` is call 1 and not call 10
range      from the first name that begins with scope[0] to the end of scope[1], each time scope[0] occurs
stack      all, or as list with one entry, or as range with two
acl        as list, with one entry
api_list   2.3: the operator's name is an entry; later: the name contains an entry, ignoring case
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dumpscope_capture.calls.selection import Outcome, Selection
from dumpscope_capture.config import Config
from dumpscope_capture.ptdbg.generations import Spelling
from dumpscope_format.naming import parse

_ITEM: Final = re.compile(r"(?<=forward|ackward)[._](?:input|output|stack_info)\b.*", re.DOTALL)
_ENDS_IN_NUMBER: Final = re.compile(r"[._]\d+$")


class ScopeEntry:
    """One name of a scope."""

    def __init__(self, text: str) -> None:
        self.text = _ITEM.sub("", text)
        self._whole = _ENDS_IN_NUMBER.search(self.text) is not None

    @property
    def directed(self) -> bool:
        return "forward" in self.text or "backward" in self.text

    def matches(self, names: Sequence[str]) -> bool:
        """Whether one of the spellings of a call's name begins with this. A number at the end matches only itself."""
        return any(self._begins(name) for name in names)

    def _begins(self, name: str) -> bool:
        rest = name[len(self.text) :]
        return name.startswith(self.text) and not (self._whole and rest[:1].isdigit())


class ModeSelection(Selection):
    """The filters of one switch mode.

    mode, scope, api_list: as `set_dump_switch` takes them; config: data_mode; exact: api_list names operators
    spellings: with and without dots; one of them is that of the files
    idle: keep nothing for now
    """

    def __init__(
        self,
        config: Config,
        *,
        mode: str,
        scope: Sequence[str],
        api_list: Sequence[str],
        spellings: Sequence[Spelling],
        exact: bool,
    ) -> None:
        super().__init__(config, low_risk=(), core=())
        self._spellings = tuple(spellings)
        self._entries = tuple(ScopeEntry(text) for text in scope)
        self._words = frozenset(word.lower() for word in api_list) if mode == "api_list" else frozenset()
        self._exact = exact
        self._ranged = mode in ("range", "stack") and len(self._entries) == 2
        self._open = False
        self.idle = False

    def reset(self) -> None:
        super().reset()
        self._open = False

    def module(self, name: str, *, listed: bool = False) -> Outcome:
        self._spellings_of(name)  # if modules are counted together, those not kept count too
        return self._judge(name)

    def call(self, name: str, prefix: str, api: str, *, custom: bool, listed: bool = False) -> Outcome:
        return self._judge(name)

    def follows(self, name: str) -> bool:
        if self._ranged:
            return any("backward" in entry.text for entry in self._entries)
        return self._is_kept(name)

    def _judge(self, name: str) -> Outcome:
        if self.idle:
            return "drop"
        if self._is_within(self._spellings_of(name)) if self._ranged else self._is_kept(name):
            return "record"
        return "link" if ".forward" in name and self.follows(name.replace(".forward", ".backward")) else "drop"

    def _is_kept(self, name: str) -> bool:
        if self._words:
            return self._is_named(name)
        if not self._entries:
            return True
        names = self._spellings_of(name)
        return any(entry.matches(names) for entry in self._entries)

    def _spellings_of(self, name: str) -> list[str]:
        return [name, *(spelling.node(name) for spelling in self._spellings)]

    def _is_named(self, name: str) -> bool:
        if self._exact:
            return parse(name).label.rpartition(".")[2].lower() in self._words
        return any(word in name.lower() for word in self._words)

    def _is_within(self, names: Sequence[str]) -> bool:
        first, last = self._entries
        backward = "backward" in names[0].rsplit(".", 2)[-2:]
        if first.matches(names) and (first.directed or not backward):
            self._open = True
        inside = self._open
        if last.matches(names) and (last.directed or not backward):
            self._open = False
        return inside
