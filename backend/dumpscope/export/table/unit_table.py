"""The table of a unit: one row per item pair, as series over row numbers; every format reads it block by block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import (
    CLASS_WORDS,
    COUNTS,
    LEFTOVER_WORDS,
    METHOD_WORDS,
    TENSOR_METRICS,
    Outcome,
    unmatched_sentence,
)
from dumpscope.domain.records import STATISTICS, Bool, Float64, Int8, Int32, Int64, State, UInt8, modules_around
from dumpscope.domain.result import Unit
from dumpscope.export.table.cells import Series, object_array
from dumpscope.export.table.messages import messages
from dumpscope.export.table.row_values import scalar_changes
from dumpscope.export.table.sides import SideTable
from dumpscope.metrics import all_metrics, derive_metrics
from dumpscope.texts import ENGLISH, current_language, english, rendered
from dumpscope.verdict import msprobe
from dumpscope.verdict.rules import VERDICT_RULES
from dumpscope.verdict.sentences import describe_verdict

BLOCK: Final = 8192
"""Rows per block of text."""
_STATES: Final = (None, None, float("nan"), float("inf"), float("-inf"))
"""Value of each State; FINITE has no fixed one."""


class Table:
    """Rows of one step and rank in the order of its item pairs; a call without items has a row in a structure comparison.

    stacks: the target has call stacks, so tables have a column for them; reference: distances from a reference were measured
    pair: node pair of each row; role: Role of its items, -1 for a call without items
    Series hold arrays, never the table: a reference cycle would keep its columns until the next garbage collection.
    """

    def __init__(self, unit: Unit, wanted: Bool | None = None) -> None:
        """wanted: which node pairs have rows, shape (node pairs,); all if left out"""
        self.step, self.rank, self.mode = unit.step, unit.rank, unit.mode
        self.reference = unit.item_opinions.standing is not None
        self.stacks = unit.target.ref.has_stacks
        self.unit = unit
        self.pair, self._item = _rows(unit, wanted)
        self._context = unit.context
        self._derived: dict[str, Float64] | None = None
        self.target = self._side(golden=False)
        self.golden = self._side(golden=True)
        facts, opinions = unit.facts, unit.item_opinions
        self._scalar, self._scalar_diff, self._scalar_rel = self._scalars()
        self.role = _behind(self._context.role, -1)[self._item]
        self.row_outcome = _behind(facts.outcome, Outcome.NO_DATA)[self._item]
        self.verdict = np.where(self._item >= 0, _behind(opinions.verdict, 0)[self._item], 0)
        bare = self._item < 0
        self.verdict[bare] = unit.node_opinions.verdict[self.pair[bare]]
        self.rule = self._by_item([*VERDICT_RULES, ""], _behind(opinions.rule, len(VERDICT_RULES)))
        self.match = self._by_pair(METHOD_WORDS, unit.pairs.method)
        self.cls = self._by_pair(CLASS_WORDS, unit.node_opinions.cls)
        self.leftover = self._by_pair(LEFTOVER_WORDS, unit.pairs.leftover)
        self.confidence = self._confidence()
        self.score = self._numbers(opinions.score, _score_states(opinions.score))
        self.result, self.errors = self._peer()
        self.stack = self._stacks()

    def __len__(self) -> int:
        return len(self.pair)

    def ruled(self, *rules: str) -> Bool:
        """Rows whose verdict comes from one of the given rules."""
        codes = [place for place, rule in enumerate(VERDICT_RULES) if rule in rules]
        found: Bool = np.isin(self.rule.codes(np.arange(len(self))), codes)
        return found

    def blocks(self) -> Iterator[Int64]:
        """Row numbers, a block at a time."""
        for start in range(0, len(self), BLOCK):
            yield np.arange(start, min(start + BLOCK, len(self)))

    def constant(self, value: Any) -> Series:
        """The same value in every row."""
        return Series(table=[value], codes=lambda rows: np.zeros(len(rows), np.int32))

    def coded(self, table: Any, codes: Any) -> Series:
        """Values by row. codes: one per row into `table`"""
        return Series(table=table, codes=lambda rows: codes[rows])

    def nodes(self, rows: Int64) -> list[str]:
        """The calls of the rows: the target's name if there is one, else the golden's."""
        both = zip(self.target.calls(rows), self.golden.calls(rows), strict=True)
        return [target or golden or "" for target, golden in both]

    def beside(self, rows: Int64) -> list[str | None]:
        """For calls without a partner: names of the calls that show the cause."""
        pairs, names = self.unit.pairs, (self.unit.target.nodes.names, self.unit.golden.nodes.names)
        besides = pairs.beside[self.pair[rows]]
        found: list[str | None] = [None] * len(rows)
        for place in np.flatnonzero(besides >= 0).tolist():
            target, golden = pairs.target[besides[place]], pairs.golden[besides[place]]
            found[place] = names[0][target] if target >= 0 else names[1][golden]
        return found

    def leftovers(self, rows: Int64) -> list[str]:
        """Why calls have no partner, one sentence each; nothing for calls with a partner."""
        codes = self.unit.pairs.leftover[self.pair[rows]].tolist()
        out = [""] * len(codes)
        if any(codes):
            for place, (code, beside) in enumerate(zip(codes, self.beside(rows), strict=True)):
                word = LEFTOVER_WORDS[code]
                if word is not None:
                    out[place] = english(unmatched_sentence(word, beside))
        return out

    def sentences(self, rows: Int64) -> list[str]:
        """`messages` in the language of this context, for the few rows of a report."""
        if current_language() == ENGLISH:
            return self.messages(rows)
        context, facts, opinions = self._context, self.unit.facts, self.unit.item_opinions
        return [
            rendered(describe_verdict(context, facts, opinions, item)) if item >= 0 else ""
            for item in self._item[rows].tolist()
        ]

    def messages(self, rows: Int64) -> list[str]:
        """Why each pair got its verdict; nothing for a call without items."""
        items = self._item[rows]
        (held,) = np.nonzero(items >= 0)
        out = object_array([""] * len(rows))
        out[held] = messages(self._context, self.unit.facts, self.unit.item_opinions, items[held])
        found: list[str] = out.tolist()
        return found

    def diff(self, place: int) -> Series:
        """target - golden of one statistic, None if a side does not have it."""
        return self._changes(self.unit.facts.diff, self.unit.facts.diff_state, place, self._scalar_diff)

    def rel(self, place: int) -> Series:
        """abs(diff / golden) of one statistic, None if a side does not have it."""
        return self._changes(self.unit.facts.rel, self.unit.facts.rel_state, place, self._scalar_rel)

    def metric(self, name: str) -> Series:
        """One of `all_metrics` by name, None if it does not apply or tensors were not read."""
        facts = self.unit.facts
        if name in TENSOR_METRICS:
            return self._numbers(facts.metric(name), facts.metric_state(name))
        if self._derived is None:
            self._derived = derive_metrics(self._context, facts)
        column = self._derived[name]
        return self._numbers(column, _score_states(column))

    def count(self, name: str) -> Series:
        """One of COUNTS, None if it is not known."""
        column = self.count_column(name)
        return Series(
            table=(None,),
            codes=lambda rows: np.where(column[rows] < 0, 0, -1).astype(np.int32),
            numbers=lambda rows: column[rows],
        )

    def count_column(self, name: str) -> Int64:
        """One of COUNTS for every row, -1 if it is not known."""
        found: Int64 = _behind(getattr(self.unit.facts, name), -1)[self._item]
        return found

    def present(self, *, golden: bool) -> Any:
        """Per row: whether it has an item or call of this side."""
        return (self.golden if golden else self.target).places(np.arange(len(self))) != -1

    def metrics(self) -> list[tuple[str, Series]]:
        """All measured numbers of a pair by name, in the order of the document; None if one does not apply."""
        listed = [(metric.name, self.metric(metric.name)) for metric in all_metrics()]
        of_tensors = dict(listed)
        for place, word in enumerate(map(str.lower, STATISTICS)):
            rel, name = self.rel(place), f"{word}_rel"
            if name in of_tensors:  # the metric from tensors is more exact
                rel = _unless(of_tensors[name], rel)
            listed += [(f"{word}_diff", self.diff(place)), (name, rel)]
        listed += [(name, self.count(name)) for name in COUNTS]
        return [*listed, ("score", self.score), *self.standing()]

    def standing(self) -> list[tuple[str, Series]]:
        """Both sides' distances from the reference and their ratio; nothing if the unit has no reference."""
        distances, standing = self.unit.facts.distances, self.unit.item_opinions.standing
        if distances is None or standing is None:
            return []
        rows = np.arange(len(standing.ratio))
        columns = (distances.target[rows, standing.measure], distances.golden[rows, standing.measure], standing.ratio)
        names = ("reference_target", "reference_golden", "reference_ratio")
        return [
            (name, self._numbers(column, _score_states(column))) for name, column in zip(names, columns, strict=True)
        ]

    def _side(self, *, golden: bool) -> SideTable:
        unit = self.unit
        items, nodes = (unit.items.golden, unit.pairs.golden) if golden else (unit.items.target, unit.pairs.target)
        pair = self.pair
        padded = _behind(items.astype(np.int64), -1)
        places = padded[self._item]
        bare = self._item < 0
        places[bare] = np.where(nodes[self.pair[bare]] >= 0, -2, -1)
        return SideTable(
            unit.golden if golden else unit.target,
            lambda rows: places[rows],
            lambda rows: nodes[pair[rows]].astype(np.int64),
        )

    def _confidence(self) -> Series:
        pair, confidence = self.pair, self.unit.pairs.confidence
        return Series(
            table=(),
            codes=lambda rows: np.full(len(rows), -1, np.int32),
            numbers=lambda rows: confidence[pair[rows]],
        )

    def _by_item(self, table: Any, codes: Any) -> Series:
        item = self._item
        return Series(table=table, codes=lambda rows: codes[item[rows]].astype(np.int32))

    def _by_pair(self, table: Any, codes: Int8) -> Series:
        pair = self.pair
        return Series(table=table, codes=lambda rows: codes[pair[rows]].astype(np.int32))

    def _numbers(self, values: Float64, states: Any) -> Series:
        held, states, item = _behind(values, 0.0), _behind(states, State.ABSENT), self._item

        def codes(rows: Int64) -> Int32:
            state = states[item[rows]].astype(np.int32)
            return np.where(state == State.FINITE, -1, state)

        return Series(table=_STATES, codes=codes, numbers=lambda rows: held[item[rows]])

    def _changes(self, values: Float64, states: UInt8, place: int, scalars: list[Any]) -> Series:
        plain = self._numbers(values[:, place], states[:, place])
        width, of_item, item = len(_STATES), self._scalar, self._item

        def codes(rows: Int64) -> Int32:
            scalar = of_item[item[rows]]
            return np.where(scalar >= 0, scalar + width, plain.codes(rows))

        return Series(table=[*_STATES, *scalars], codes=codes, numbers=plain.numbers)

    def _scalars(self) -> tuple[Int32, list[Any], list[Any]]:
        """Codes by item pair (-1: not two non-tensor values), and the differences of distinct pairs of values."""
        unit = self.unit
        items = unit.items
        codes = np.full(len(items) + 1, -1, np.int32)
        (rows,) = np.nonzero((unit.facts.outcome == Outcome.SCALAR) & (items.target >= 0) & (items.golden >= 0))
        if not len(rows):
            return codes, [], []
        one, other = (
            side.stat_codes(places[rows]) for side, places in ((self.target, items.target), (self.golden, items.golden))
        )
        width = int(other.max()) + 1
        found, codes[rows] = np.unique(one.astype(np.int64) * width + other, return_inverse=True)
        changes = [
            scalar_changes(self.target.stat_value(key // width), self.golden.stat_value(key % width)) for key in found.tolist()
        ]  # fmt: skip
        return codes, [diff for diff, _ in changes], [rel for _, rel in changes]

    def _peer(self) -> tuple[Series, Series]:
        """msprobe's own Result and messages of every row, for every policy of the unit."""
        context, facts = self._context, self.unit.facts
        levels = _behind(msprobe.find_levels(context, facts, self.mode), msprobe.PASS)[self._item]
        marks = msprobe.find_marks(context, facts, self.mode)
        bits = np.zeros(len(context) + 1, np.int64)
        for place, (_, where) in enumerate(marks):
            bits[:-1] |= where.astype(np.int64) << place
        bits = bits[self._item]
        alone = (self._item < 0) & ~(self.present(golden=False) & self.present(golden=True))
        levels[alone] = msprobe.WARNING
        bits[alone] = 1 << len(marks)
        found, codes = np.unique(bits, return_inverse=True)
        words = [msprobe.MESSAGES[code] for code, _ in marks] + ["warning: no partner"]
        listed = [[word for place, word in enumerate(words) if key >> place & 1] for key in found.tolist()]
        return self.coded(msprobe.WORDS, levels), self.coded(listed, codes)

    @cached_property
    def modules(self) -> Series:
        """Path and class of the module around each row's call, "" where there is none."""
        unit = self.unit
        words: dict[str, int] = {"": 0}
        codes = np.zeros(len(unit.pairs) + 1, np.int64)
        for dump, nodes in ((unit.golden, unit.pairs.golden), (unit.target, unit.pairs.target)):
            around = modules_around(dump)
            for pair, node in enumerate(nodes.tolist()):
                if node >= 0 and around[node]:
                    codes[pair] = words.setdefault(around[node], len(words))
        return self.coded(list(words), codes[self.pair])

    def _stacks(self) -> Series:
        """Frames, innermost first, in the first row of a call that has a stack; else None."""
        unit = self.unit
        first = np.diff(self.pair, prepend=-1) != 0
        codes = np.full(len(self), -1, np.int64)
        table: list[tuple[str, ...]] = []
        for dump, nodes in ((unit.golden, unit.pairs.golden), (unit.target, unit.pairs.target)):
            node = nodes[self.pair]
            here = first & (node >= 0)
            codes[here] = -1  # a target without a stack does not use the golden's
            held = dump.nodes.stack[node[here]]
            codes[np.flatnonzero(here)[held >= 0]] = held[held >= 0] + len(table)
            table += dump.nodes.stacks
        used, dense = np.unique(codes, return_inverse=True)
        return self.coded([None if code < 0 else table[code] for code in used.tolist()], dense)


def _rows(unit: Unit, wanted: Bool | None) -> tuple[Int64, Int64]:
    """Node pair and item pair of every row; -1 for the item of a call without items."""
    pair, item = unit.items.pair.astype(np.int64), np.arange(len(unit.items))
    if unit.mode == "structure":
        (alone,) = np.nonzero(np.bincount(pair, minlength=len(unit.pairs)) == 0)
        pair, item = np.concatenate([pair, alone]), np.concatenate([item, np.full(len(alone), -1)])
        order = np.argsort(pair, kind="stable")
        pair, item = pair[order], item[order]
    if wanted is None:
        return pair, item
    kept = wanted[pair]
    return pair[kept], item[kept]


def _score_states(score: Float64) -> UInt8:
    states = np.where(np.isnan(score), State.ABSENT, State.FINITE)
    return np.where(np.isinf(score), np.where(score > 0, State.POS_INF, State.NEG_INF), states).astype(np.uint8)


def _unless(known: Series, other: Series) -> Series:
    """The second series in rows where the first has nothing; absent in all others."""
    absent = int(State.ABSENT)
    return Series(
        table=other.table,
        codes=lambda rows: np.where(known.codes(rows) == absent, other.codes(rows), absent),
        numbers=other.numbers,
    )


def _behind(column: Any, last: Any) -> Any:
    """The column with one extra entry at the end, for item -1."""
    return np.concatenate([column, np.array([last], column.dtype)])
