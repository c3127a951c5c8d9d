"""Where a difference came from, one step back: the edges along which `analysis.makers.Flow` reaches forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, or_, select

from dumpscope.domain.facts import CLASS_WORDS, Class
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.node_pairs import NodePairRow, node_pair_rows
from dumpscope.index.store import tables
from dumpscope.index.store.prepared import Prepared, number_named, text_named
from dumpscope_format.naming import parse, twin

Way = Literal["received", "inside", "saved", "before", "sent"]
"""How a difference came: from another rank that sent it; in a tensor that a dumped call
made; made by a call inside the module; in what the forward call saved
for this backward call; from the last call before that differs, since nothing tells who made what differs here (of a module that
is the last one inside it)."""

_DIRTY: Final = (Class.PROPAGATED, Class.AMPLIFIER, Class.NONFINITE, Class.ORIGIN)
_PAIR: Final = tables.node_pair.c
_BETWEEN: Final = _PAIR.id.between(number_named("first"), number_named("last"))
_NAMED: Final = Prepared(select(_PAIR.id).where(_PAIR.name == text_named("name"), _BETWEEN).limit(1))
_DIFFERING: Final = Prepared(
    select(_PAIR.id)
    .where(_BETWEEN, or_(*(_PAIR.cls == int(code) for code in _DIRTY)), _PAIR.golden.is_not(None))
    .order_by(_PAIR.id.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The node pair that the difference came from; it always stands before, so that following sources ends.

    rank: of the node where it is another one"""

    node: NodePairRow
    way: Way
    rank: int | None = None


def find_source(
    connection: Connection,
    unit: StoredUnit,
    node: NodePairRow,
    *,
    makers: Sequence[int],
    inside: Sequence[int],
    received_difference: bool,
) -> Source | None:
    """None for a node that does not differ, and for one where the difference begins.

    makers: node pairs that made what it received and what differs, the worst first; inside: that made what it put out, where
    it is a module; received_dirt: something it received differs
    """
    if not differs(node):
        return None
    candidates: list[tuple[int | None, Way]] = [(maker, "received") for maker in makers[:1]]
    if node.cls != CLASS_WORDS[Class.ORIGIN] and node.cls != CLASS_WORDS[Class.NONFINITE]:
        candidates += [(maker, "inside") for maker in sorted(inside, reverse=True)]
        candidates.append((_forward(connection, unit, node.name), "saved"))
        if received_difference or node.kind == "gradient" or node.cls == CLASS_WORDS[Class.CONTAINS]:
            candidates.append((_differing_before(connection, unit, node.pair), "before"))
    rows = node_pair_rows(connection, unit, (pair for pair, _ in candidates if pair is not None))
    for pair, way in candidates:
        if pair is not None and (way == "received" or differs(rows[pair])):
            return Source(node=rows[pair], way=way)
    return None


def differs(node: NodePairRow) -> bool:
    return node.verdict in ("no", "warning") or node.cls in {CLASS_WORDS[code] for code in _DIRTY}


def _forward(connection: Connection, unit: StoredUnit, name: str) -> int | None:
    """The forward call of a backward call."""
    forward = twin(name) if parse(name).direction == "backward" else None
    if forward is None:
        return None
    first, last = tables.key_range(unit.id)
    return _number(_NAMED.value(connection, name=forward, first=first, last=last))


def _differing_before(connection: Connection, unit: StoredUnit, pair: int) -> int | None:
    first, _ = tables.key_range(unit.id)
    return _number(_DIFFERING.value(connection, first=first, last=first + pair - 1))


def _number(key: Any) -> int | None:
    return None if key is None else int(key) & tables.NUMBER_MASK
