"""One row of a result: an item pair with everything known about it, whatever the format it is written in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dumpscope.domain.facts import CLASS_WORDS, METHOD_WORDS, TENSOR_METRICS, Class, Method, Outcome, Verdict
from dumpscope.domain.records import ROLE_WORDS, STATISTICS, Kind, RankDump, State, item_name
from dumpscope.domain.result import Unit

_T = TypeVar("_T")

Number = float | int | str | bool | None
"""A stored number; text where a non-tensor is compared; None where there is none. nan and infinities are floats."""

Four = tuple[Number, Number, Number, Number]

NOTHING: Final[Four] = (None, None, None, None)
_INTEGERS: Final = ("int", "uint", "short", "long", "torch.int", "torch.uint", "torch.short", "torch.long")
IN_SHAPE: Final = ("torch.Size", "slice")
"""Types whose value stands in the shape column."""
_PLAIN: Final = ("int", "float", "bool", "str")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCells:
    """One side of a row as msprobe shows it. dtype, shape: None for a null record.

    stats: Max, Min, Mean, Norm; for a scalar its value four times
    hash: recorded hash of a tensor, or None
    data_name: tensor file, or None
    """

    name: str
    dtype: str | None
    shape: str | None
    requires_grad: bool | None
    stats: Four
    hash: str | None
    data_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRow:
    """One item pair.

    node, golden_node: names of the calls, None on the side that has none
    stack: frames, innermost first, in the first row of a node that has one; else None
    diff, rel: per statistic, target - golden and abs(diff / golden); None where a side lacks it
    tensor: in the order of TENSOR_METRICS; counts are None where not known
    rule, message: why our verdict is what it is; result, errors: what msprobe's own rules say
    """

    step: int
    rank: int
    node: str | None
    golden_node: str | None
    role: str
    target: SideCells | None
    golden: SideCells | None
    match: str
    confidence: float
    outcome: Outcome
    diff: Four
    rel: Four
    tensor: tuple[float | None, ...]
    elements: int | None
    unequal: int | None
    nonfinite_target: int | None
    nonfinite_golden: int | None
    nonfinite_disagree: int | None
    verdict: Verdict
    rule: str
    score: float | None
    message: str
    cls: str
    result: str
    errors: tuple[str, ...]
    stack: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one step and rank. stacks: the target has call stacks, so the table has a column for them."""

    step: int
    rank: int
    mode: str
    stacks: bool
    rows: Iterable[ExportRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerColumns:
    """Result and Err_message per item pair, by msprobe's own rules."""

    result: Sequence[str]
    errors: Sequence[tuple[str, ...]]


def side_cells(
    *,
    name: str,
    kind: Kind,
    type_name: str,
    dtype: str | None,
    shape: Sequence[int] | None,
    requires_grad: bool | None,
    stats: Four,
    digest: str | None,
    value: str | None,
    data_name: str | None,
) -> SideCells:
    """Cells of one leaf. stats: as stored (see `stored`); value: JSON text of a non-tensor's value."""
    if kind is Kind.TENSOR:
        return SideCells(
            name=name,
            dtype=dtype or type_name,
            shape=None if shape is None else str(list(shape)),
            requires_grad=requires_grad,
            stats=stats,
            hash=digest,
            data_name=data_name,
        )
    held = _held(value)
    if kind is Kind.NONE:
        dtype_cell, shape_cell, cells = None, None, NOTHING
    elif type_name in IN_SHAPE:
        dtype_cell, shape_cell, cells = type_name, str(held), NOTHING
    else:
        native = type(held).__name__
        dtype_cell, shape_cell = (f"<class '{native}'>" if native in _PLAIN else type_name), "[]"
        cell = held if isinstance(held, bool | int | float | str) or held is None else str(held)
        cells = (cell, cell, cell, cell)
    return SideCells(
        name=name, dtype=dtype_cell, shape=shape_cell, requires_grad=None, stats=cells, hash=digest, data_name=data_name
    )


def _held(value: str | None) -> Any:
    if value is None:
        return None
    try:
        return json.loads(value)
    except ValueError:
        return value


def stored(value: float, state: int, dtype: str | None, wide: int | None = None) -> Number:
    """A stored statistic as it was before it became a float64: exact integers, truth values, infinities, or None."""
    if state == State.FINITE:
        if wide is not None:
            return wide
        if dtype is None or not float(value).is_integer():
            return value
        if dtype.endswith("bool"):
            return bool(value)
        return int(value) if dtype.startswith(_INTEGERS) else value
    return _UNUSUAL[state]


_UNUSUAL: Final[dict[int, float | None]] = {
    State.ABSENT: None, State.NAN: math.nan, State.POS_INF: math.inf, State.NEG_INF: -math.inf,
}  # fmt: skip


def table_from_unit(
    unit: Unit,
    *,
    message: Callable[[int], str] = lambda item: "",
    rule: Callable[[int], str] = lambda code: "",
    peer: PeerColumns | None = None,
) -> Table:
    """Table over a unit in memory; see `rows_from_unit`."""
    return Table(
        step=unit.step,
        rank=unit.rank,
        mode=unit.mode,
        stacks=unit.target.ref.stack_json is not None,
        rows=rows_from_unit(unit, message=message, rule=rule, peer=peer),
    )


def rows_from_unit(
    unit: Unit,
    *,
    message: Callable[[int], str] = lambda item: "",
    rule: Callable[[int], str] = lambda code: "",
    peer: PeerColumns | None = None,
) -> Iterator[ExportRow]:
    """Rows of a unit in the order of its item pairs; node pairs without any item (structure dumps) give one bare row each.

    message: sentence for an item pair number; rule: word for a rule code; peer: msprobe's Result and Err_message, or our
    verdict in its words where they were not computed.
    """
    source = _Source(unit, message=message, rule=rule, peer=peer)
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

    def __init__(
        self, unit: Unit, *, message: Callable[[int], str], rule: Callable[[int], str], peer: PeerColumns | None
    ) -> None:
        self.unit, self.message, self.rule, self.peer = unit, message, rule, peer
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
        verdict = Verdict(self.verdict[item])
        elements, unequal, *nonfinite = (None if count < 0 else count for count in self.counts[item])
        message = self.message(item)
        result, errors = (
            (self.peer.result[item], self.peer.errors[item]) if self.peer else _in_peer_words(verdict, message)
        )
        one = self.sides[0].cells(target) if target >= 0 else None
        other = self.sides[1].cells(golden) if golden >= 0 else None
        outcome = Outcome(self.outcome[item])
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
            rule=self.rule(self.code[item]),
            score=None if score != score else score,  # noqa: PLR0124 - nan means: nothing was compared
            message=message,
            result=result,
            errors=errors,
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
        result, errors = _in_peer_words(verdict, "")
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
            result=result,
            errors=errors,
            stack=self._stack(pair),
        )

    def _call(self, pair: int) -> dict[str, Any]:
        target, golden = self.nodes[pair]
        return {
            "step": self.unit.step,
            "rank": self.unit.rank,
            "node": self.unit.target.nodes.names[target] if target >= 0 else None,
            "golden_node": self.unit.golden.nodes.names[golden] if golden >= 0 else None,
            "match": METHOD_WORDS[Method(self.method[pair])],
            "confidence": self.confidence[pair],
            "cls": CLASS_WORDS[Class(self.cls[pair])],
        }

    def _stack(self, pair: int) -> tuple[str, ...] | None:
        target, golden = self.nodes[pair]
        return self.sides[0].stack(target) if target >= 0 else self.sides[1].stack(golden)


def _bare_side(name: str) -> SideCells:
    return SideCells(name=name, dtype=None, shape=None, requires_grad=None, stats=NOTHING, hash=None, data_name=None)


def _unpack(value: float, state: int) -> float | None:
    return value if state == State.FINITE else _UNUSUAL[state]


def scalar_changes(target: Number, golden: Number) -> tuple[Four, Four]:
    """Difference and relative difference of two non-tensor values, four times as msprobe shows them; None for text."""
    if str(target) == str(golden):
        return (0, 0, 0, 0), (0, 0, 0, 0)
    if isinstance(target, bool | str | None) or isinstance(golden, bool | str | None):
        return NOTHING, NOTHING
    diff = target - golden
    rel = math.inf if golden == 0 else abs(diff / golden)
    return (diff, diff, diff, diff), (rel, rel, rel, rel)


def _in_peer_words(verdict: Verdict, message: str) -> tuple[str, tuple[str, ...]]:
    level = {Verdict.NO: "error", Verdict.WARNING: "warning"}.get(verdict, "pass")
    return level, () if level == "pass" else (f"{level}: {message}",)


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
            kind=Kind(self.kind[item]),
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


def metrics(row: ExportRow) -> dict[str, Number]:
    """Every number measured for a pair, by name; what does not apply is left out."""
    found: dict[str, Number] = {
        name: value for name, value in zip(TENSOR_METRICS, row.tensor, strict=True) if value is not None
    }
    for place, name in enumerate(STATISTICS):
        if row.diff[place] is not None:
            found[f"{name.lower()}_diff"] = row.diff[place]
        if row.rel[place] is not None:
            found[f"{name.lower()}_rel"] = row.rel[place]
    for name in ("elements", "unequal", "nonfinite_target", "nonfinite_golden", "nonfinite_disagree"):
        count = getattr(row, name)
        if count is not None:
            found[name] = count
    if row.score is not None:
        found["score"] = row.score
    return found
