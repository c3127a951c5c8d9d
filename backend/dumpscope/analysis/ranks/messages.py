"""What one rank sent to the others and received from them, read from the arguments of its communication calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any, Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.domain.facts import Verdict
from dumpscope.domain.records import Direction, Int64, Kind, Role
from dumpscope.domain.unread.communication import (
    DEFAULT_ROOT,
    FROM_ROOT,
    GROUP_TYPE,
    OPERATION_TYPE,
    PREFIX,
    RECEIVING,
    SENDING,
    TO_ROOT,
)

SEND: Final = "send"
RECEIVE: Final = "receive"

_PEER: Final = {SEND: ("1", "dst"), RECEIVE: ("1", "src")}

Group = tuple[int, ...] | str | None
"""Global ranks of a group, its id where only that was stored, None for the group of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """What went one way in a message. verdict: worst of its tensors, NA where none was judged; score: worst, nan likewise
    bad: it differs by more than this pair of runs excuses"""

    verdict: int
    score: float
    bad: bool

    @property
    def agrees(self) -> bool:
        """As the user reads it in the table: its verdict is Yes."""
        return not self.bad and self.verdict == Verdict.YES


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One rank's part in one communication; a batched call has one per operation.

    api: "all_reduce"; "send" or "receive" between two ranks, whatever the call is named
    peer: the other rank, or the one that a directed collective starts or ends at; None where there is none or it is unknown.
        in_group: it counts inside the group
    given, taken: None where what lies in the buffer means nothing (a broadcast reads its source alone)
    other_size: ranks of the golden's group, where there are more or fewer of them; 0 else
    """

    pair: int
    name: str
    api: str
    group: Group
    peer: int | None
    in_group: bool
    tag: int
    given: Half | None
    taken: Half | None
    other_size: int = 0


def read_messages(case: Case, rank: int) -> list[Message]:
    """Communication calls of this rank in order, as the target made them."""
    columns = case.columns
    found: list[Message] = []
    for pair in np.flatnonzero(case.pairs.target >= 0).tolist():
        if columns.labels[pair].startswith(PREFIX) and columns.direction[pair] == Direction.FORWARD:
            found += _Reader(case, pair, rank).read()
    return found


@lru_cache(maxsize=4096)
def _shared(group: tuple[int, ...]) -> tuple[int, ...]:
    """One object for equal groups: every communication of every rank names a thousand ranks."""
    return group


class _Reader:
    """One call."""

    def __init__(self, case: Case, pair: int, rank: int) -> None:
        self.case, self.pair, self.rank = case, pair, rank
        self.rows = case.items_of(pair)
        self.rows = self.rows[case.context.target[self.rows] >= 0]
        items = case.target.items
        self.paths = [items.paths[items.path[item]] for item in case.context.target[self.rows].tolist()]
        self.output = case.context.role[self.rows] == Role.OUTPUT
        self.tensor = case.context.kind[self.rows] == Kind.TENSOR

    def read(self) -> list[Message]:
        api = self.case.columns.labels[self.pair].rpartition(".")[2]
        operations = self._read_operations()
        if operations:
            return [self._operation(path, value) for path, value in operations]
        group = self._read_group()
        if api in SENDING or api in RECEIVING:
            way = SEND if api in SENDING else RECEIVE
            peer, in_group = self._rank_of(_PEER[way])
            tag = self._value("3", "tag")
            return [self._message(way, group, peer, in_group, tag if isinstance(tag, int) else 0)]
        root, in_group = self._rank_of(FROM_ROOT.get(api) or TO_ROOT.get(api) or ("", ""))
        if root is None and api in DEFAULT_ROOT:
            root = 0  # the default of these
        return [self._message(api, group, root, in_group, 0)]

    def _message(self, api: str, group: Group, peer: int | None, in_group: bool, tag: int) -> Message:
        at_root = self._is_here(peer, group, in_group)
        gives = api == SEND or (api not in FROM_ROOT and api != RECEIVE) or (api in FROM_ROOT and at_root)
        takes = api == RECEIVE or (api not in TO_ROOT and api not in FROM_ROOT and api != SEND)
        takes |= (api in FROM_ROOT and not at_root) or (api in TO_ROOT and at_root)
        return self._make(
            api, group, peer, in_group, tag,
            given=self._half(self.rows[~self.output & self.tensor]) if gives else None,
            taken=self._half(self.rows[self.output & self.tensor]) if takes else None,
        )  # fmt: skip

    def _operation(self, path: str, value: dict[str, Any]) -> Message:
        """One operation of a batch; the path of its tensor begins with its own."""
        mine = np.array([one.startswith(f"{path}.") for one in self.paths], bool) & self.tensor
        way = SEND if value.get("op") in SENDING else RECEIVE
        peer, tag, group = value.get("peer"), value.get("tag"), value.get("group_id")
        return self._make(
            way,
            group if isinstance(group, str) else None,
            peer if isinstance(peer, int) else None,
            False,
            tag if isinstance(tag, int) else 0,
            given=self._half(self.rows[mine & ~self.output]) if way == SEND else None,
            taken=self._half(self.rows[mine & self.output]) if way == RECEIVE else None,
        )

    def _make(
        self, api: str, group: Group, peer: int | None, in_group: bool, tag: int, given: Half | None, taken: Half | None
    ) -> Message:
        return Message(
            pair=self.pair, name=intern(self.case.columns.names[self.pair]), api=api, group=group, peer=peer, in_group=in_group,
            tag=tag, given=given, taken=taken, other_size=self._read_other_size(group),
        )  # fmt: skip

    def _is_here(self, peer: int | None, group: Group, in_group: bool) -> bool:
        if not in_group or peer is None:
            return peer == self.rank
        members = group if isinstance(group, tuple) else ()
        return (members[peer] if 0 <= peer < len(members) else peer) == self.rank

    def _half(self, rows: Int64) -> Half:
        verdicts, scores = self.case.opinions.verdict[rows], self.case.opinions.score[rows]
        judged = [int(verdict) for verdict in verdicts.tolist() if verdict != Verdict.NA]
        known = scores[~np.isnan(scores)]
        worst = float(known.max()) if len(known) else float("nan")
        return Half(
            verdict=max(judged, default=int(Verdict.NA)),
            score=worst,
            bad=bool(worst > self.case.columns.threshold[self.pair]),
        )

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _read_operations(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (path, value)
            for row, path in self._arguments()
            if self._type(row) == OPERATION_TYPE and isinstance(value := self._value_of(row), dict)
        ]

    def _read_other_size(self, group: Group) -> int:
        """Ranks of the golden's group where it has more or fewer, 0 else."""
        case = self.case
        rows = case.items_of(self.pair)
        rows = rows[case.context.golden[rows] >= 0]
        for item in case.context.golden[rows].tolist():
            items = case.golden.items
            if items.types[int(items.type[item])] != GROUP_TYPE or items.value[item] < 0:
                continue
            value = json.loads(items.values[int(items.value[item])])
            ranks = value.get("group_ranks") if isinstance(value, dict) else None
            if isinstance(ranks, list) and isinstance(group, tuple) and len(ranks) != len(group):
                return len(ranks)
        return 0

    def _read_group(self) -> Group:
        for row, _ in self._arguments():
            value = self._value_of(row) if self._type(row) == GROUP_TYPE else None
            if isinstance(value, dict):
                ranks = value.get("group_ranks")
                if isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks):
                    return _shared(tuple(ranks))
                return value["group_id"] if isinstance(value.get("group_id"), str) else None
        return None

    def _rank_of(self, place: tuple[str, str]) -> tuple[int | None, bool]:
        """A rank given by position or keyword, and whether it counts inside the group (`group_src`)."""
        position, word = place
        value = self._value(position, word)
        if isinstance(value, int):
            return value, False
        value = self._value("", f"group_{word}")
        return (value, True) if isinstance(value, int) else (None, False)

    def _value(self, position: str, word: str) -> Any:
        for row, path in self._arguments():
            if path == (word if self.case.context.role[row] == Role.KWARG else position):
                return self._value_of(row)
        return None

    def _arguments(self) -> list[tuple[int, str]]:
        rows = self.rows.tolist()
        return [(row, path) for row, path, out in zip(rows, self.paths, self.output.tolist(), strict=True) if not out]

    def _type(self, row: int) -> str:
        items = self.case.target.items
        return items.types[int(items.type[self.case.context.target[row]])]

    def _value_of(self, row: int) -> Any:
        items = self.case.target.items
        code = int(items.value[self.case.context.target[row]])
        return json.loads(items.values[code]) if code >= 0 else None
