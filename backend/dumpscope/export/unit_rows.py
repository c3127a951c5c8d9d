"""Rows of a unit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dumpscope.domain.context import Context, gather
from dumpscope.domain.facts import CLASS_WORDS, METHOD_WORDS, TENSOR_METRICS, Outcome, Verdict
from dumpscope.domain.records import ROLE_WORDS, Kind, RankDump, item_name
from dumpscope.domain.result import Unit
from dumpscope.export.rows import (
    FINITE,
    NOTHING,
    UNUSUAL,
    ExportRow,
    Four,
    SideCells,
    Table,
    scalar_changes,
    side_cells,
    stored,
)
from dumpscope.verdict import msprobe
from dumpscope.verdict.rules import RULES
from dumpscope.verdict.sentences import sentence

_T = TypeVar("_T")
_KINDS, _OUTCOMES, _VERDICTS = tuple(Kind), tuple(Outcome), tuple(Verdict)  # calling an enum costs ten times an index


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerColumns:
    """Result and Err_message per item pair, by msprobe's own rules."""

    result: Sequence[str]
    errors: Sequence[tuple[str, ...]]


def peer_columns(unit: Unit, context: Context | None = None) -> PeerColumns:
    """msprobe's own Result and Err_message of every item pair, whatever policy the unit was judged by."""
    context = context or gather(unit.target, unit.golden, unit.pairs, unit.items)
    levels = msprobe.levels(context, unit.facts, unit.mode)
    errors: list[tuple[str, ...]] = [()] * len(context)
    for code, where in msprobe.marks(context, unit.facts, unit.mode):
        for item in np.flatnonzero(where).tolist():
            errors[item] = (*errors[item], msprobe.MESSAGES[code])
    return PeerColumns(result=[msprobe.WORDS[level] for level in levels.tolist()], errors=errors)


def table_from_unit(
    unit: Unit,
    *,
    message: Callable[[int], str] | None = None,
    peer: PeerColumns | None = None,
) -> Table:
    """Table over a unit in memory; see `rows_from_unit`."""
    return Table(
        step=unit.step,
        rank=unit.rank,
        mode=unit.mode,
        stacks=unit.target.ref.stack_json is not None,
        rows=rows_from_unit(unit, message=message, peer=peer),
    )


def rows_from_unit(
    unit: Unit,
    *,
    message: Callable[[int], str] | None = None,
    peer: PeerColumns | None = None,
) -> Iterator[ExportRow]:
    """Rows of a unit in the order of its item pairs; node pairs without any item (structure dumps) give one bare row each.

    message: sentence for an item pair number, by default the one of its rule
    peer: msprobe's Result and Err_message, by default computed here
    """
    source = _Source(unit, message=message, peer=peer)
    item, total = 0, len(unit.items)
    owners = unit.items.pair.tolist()
    for pair in range(len(unit.pairs)):
        first = True
        while item < total and owners[item] == pair:
            yield source.row(pair, item, first=first)
            first = False
            item += 1
        if first and unit.mode == "structure":
            yield source.bare(pair)


class _Source:
    """Columns of a unit as plain lists: indexing numpy scalars one by one would cost ten times the rest."""

    def __init__(self, unit: Unit, *, message: Callable[[int], str] | None, peer: PeerColumns | None) -> None:
        context = gather(unit.target, unit.golden, unit.pairs, unit.items)
        self.unit, self.peer = unit, peer or peer_columns(unit, context)
        self.message = message or (lambda item: sentence(context, unit.facts, unit.item_opinions, item))
        self.sides = (_SideSource(unit.target), _SideSource(unit.golden))
        items, facts, opinions = unit.items, unit.facts, unit.item_opinions
        self.target, self.golden = items.target.tolist(), items.golden.tolist()
        self.outcome = facts.outcome.tolist()
        self.diff, self.diff_state = facts.diff.tolist(), facts.diff_state.tolist()
        self.rel, self.rel_state = facts.rel.tolist(), facts.rel_state.tolist()
        self.tensor, self.tensor_state = facts.tensor.tolist(), facts.tensor_state.tolist()
        self.counts = list(
            zip(
                facts.elements.tolist(),
                facts.unequal.tolist(),
                facts.nonfinite_target.tolist(),
                facts.nonfinite_golden.tolist(),
                facts.nonfinite_disagree.tolist(),
                strict=True,
            )
        )
        self.verdict, self.code, self.score = opinions.verdict.tolist(), opinions.rule.tolist(), opinions.score.tolist()
        pairs, nodes = unit.pairs, unit.node_opinions
        self.nodes = list(zip(pairs.target.tolist(), pairs.golden.tolist(), strict=True))
        self.method, self.confidence = pairs.method.tolist(), pairs.confidence.tolist()
        self.cls, self.node_verdict = nodes.cls.tolist(), nodes.verdict.tolist()

    def row(self, pair: int, item: int, *, first: bool) -> ExportRow:
        target, golden = self.target[item], self.golden[item]
        verdict = _VERDICTS[self.verdict[item]]
        elements, unequal, *nonfinite = (None if count < 0 else count for count in self.counts[item])
        one = self.sides[0].cells(target) if target >= 0 else None
        other = self.sides[1].cells(golden) if golden >= 0 else None
        outcome = _OUTCOMES[self.outcome[item]]
        diff, rel = self._changes(item, outcome, one, other)
        score = self.score[item]
        side, place = (self.sides[0], target) if target >= 0 else (self.sides[1], golden)
        return ExportRow(
            **self._call(pair),
            role=side.role(place),
            target=one,
            golden=other,
            outcome=outcome,
            diff=diff,
            rel=rel,
            tensor=tuple(map(_unpack, self.tensor[item], self.tensor_state[item])),
            elements=elements,
            unequal=unequal,
            nonfinite_target=nonfinite[0],
            nonfinite_golden=nonfinite[1],
            nonfinite_disagree=nonfinite[2],
            verdict=verdict,
            rule=RULES[self.code[item]].id,
            score=None if score != score else score,  # noqa: PLR0124 - nan means: nothing was compared
            message=self.message(item),
            result=self.peer.result[item],
            errors=self.peer.errors[item],
            stack=self._stack(pair) if first else None,
        )

    def _changes(
        self, item: int, outcome: Outcome, one: SideCells | None, other: SideCells | None
    ) -> tuple[Four, Four]:
        if outcome is Outcome.SCALAR and one is not None and other is not None:
            return scalar_changes(one.stats[0], other.stats[0])
        diff = tuple(map(_unpack, self.diff[item], self.diff_state[item]))
        rel = tuple(map(_unpack, self.rel[item], self.rel_state[item]))
        return (diff[0], diff[1], diff[2], diff[3]), (rel[0], rel[1], rel[2], rel[3])

    def bare(self, pair: int) -> ExportRow:
        """Row of a node pair without items."""
        verdict = Verdict(self.node_verdict[pair])
        target, golden = self.nodes[pair]
        outcome = Outcome.GOLDEN_ONLY if target < 0 else Outcome.TARGET_ONLY if golden < 0 else Outcome.NO_DATA
        return ExportRow(
            **self._call(pair),
            role="",
            target=None if target < 0 else _bare_side(self.unit.target.nodes.names[target]),
            golden=None if golden < 0 else _bare_side(self.unit.golden.nodes.names[golden]),
            outcome=outcome,
            diff=NOTHING,
            rel=NOTHING,
            tensor=(None,) * len(TENSOR_METRICS),
            elements=None,
            unequal=None,
            nonfinite_target=None,
            nonfinite_golden=None,
            nonfinite_disagree=None,
            verdict=verdict,
            rule="",
            score=None,
            message="",
            result="pass" if outcome is Outcome.NO_DATA else "warning",
            errors=() if outcome is Outcome.NO_DATA else ("warning: no partner",),
            stack=self._stack(pair),
        )

    def _call(self, pair: int) -> dict[str, Any]:
        target, golden = self.nodes[pair]
        return {
            "step": self.unit.step,
            "rank": self.unit.rank,
            "node": self.unit.target.nodes.names[target] if target >= 0 else None,
            "golden_node": self.unit.golden.nodes.names[golden] if golden >= 0 else None,
            "match": METHOD_WORDS[self.method[pair]],
            "confidence": self.confidence[pair],
            "cls": CLASS_WORDS[self.cls[pair]],
        }

    def _stack(self, pair: int) -> tuple[str, ...] | None:
        target, golden = self.nodes[pair]
        return self.sides[0].stack(target) if target >= 0 else self.sides[1].stack(golden)


def _bare_side(name: str) -> SideCells:
    return SideCells(name=name, dtype=None, shape=None, requires_grad=None, stats=NOTHING, hash=None, data_name=None)


class _SideSource:
    def __init__(self, dump: RankDump) -> None:
        self.dump = dump
        items = dump.items
        self.kind, self.types = items.kind.tolist(), items.type.tolist()
        self.dtype, self.shape = items.dtype.tolist(), items.shape.tolist()
        self.stats, self.state = items.stats.tolist(), items.stat_state.tolist()
        self.grad, self.hash = items.requires_grad.tolist(), items.hash.tolist()
        self.value, self.data_name = items.value.tolist(), items.data_name.tolist()
        self.roles = items.role.tolist()
        self.stacks = dump.nodes.stack.tolist()

    def cells(self, item: int) -> SideCells:
        items = self.dump.items
        dtype = _at(items.dtypes, self.dtype[item])
        type_name = _at(items.types, self.types[item]) or ""
        four = (
            stored(value, state, dtype, items.wide.get((item, place)) if items.wide else None)
            for place, (value, state) in enumerate(zip(self.stats[item], self.state[item], strict=True))
        )
        grad = self.grad[item]
        return side_cells(
            name=item_name(self.dump, item),
            kind=_KINDS[self.kind[item]],
            type_name=type_name,
            dtype=dtype,
            shape=_at(items.shapes, self.shape[item]),
            requires_grad=None if grad < 0 else bool(grad),
            stats=tuple(four),  # type: ignore[arg-type]
            digest=_at(items.hashes, self.hash[item]),
            value=_at(items.values, self.value[item]),
            data_name=_at(items.data_names, self.data_name[item]),
        )

    def role(self, item: int) -> str:
        return ROLE_WORDS[self.roles[item]]

    def stack(self, node: int) -> tuple[str, ...] | None:
        return _at(self.dump.nodes.stacks, self.stacks[node])


def _at(table: Sequence[_T], code: int) -> _T | None:
    return table[code] if code >= 0 else None


def _unpack(value: float, state: int) -> float | None:
    return value if state == FINITE else UNUSUAL[state]
