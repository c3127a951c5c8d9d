"""One hop of data flow around a node pair: who made what it received, who received what it made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, Literal

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.analysis.unit.case import RECEIVED
from dumpscope.domain.facts import CLASS_WORDS, VERDICT_WORDS, Class, Verdict
from dumpscope.domain.records import Int32, Int64, Kind, State
from dumpscope.domain.unread.communication import PREFIX
from dumpscope.errors import ConflictError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dumps.items import gone_rank, some_items
from dumpscope.index.dumps.leaves import Leaf, leaves
from dumpscope.index.dumps.load_rank import stored_producers
from dumpscope.index.pair_queries.collectives import sender
from dumpscope.index.pair_queries.difference_sources import Source, find_source
from dumpscope.index.pair_queries.node_pairs import NodePairRow, item_range, names_of, node_pair_rows, one_node_pair
from dumpscope.index.store import tables
from dumpscope.index.store.codec import score, unpack_makers
from dumpscope.index.store.database import Database
from dumpscope.index.store.prepared import Prepared, number_named, some_keys
from dumpscope.index.store.recent import Recent
from dumpscope.texts import say

Untold = Literal["not_dumped", "constant", "unstored", "golden_only"]
"""Why nothing tells who made a tensor: no dumped call before it did (weights, data, masks, what was changed in place); it holds
one number throughout; neither statistics nor a hash were stored; the target does not have it."""

INPUTS: Final = 100
"""Most inputs listed of one node."""
CONSUMERS: Final = 50
"""Most consumers listed of one node."""
EXAMINED: Final = 1000
"""Consumers among which those that differ are looked for."""
OUTPUTS: Final = 300
"""Outputs of a producer among which the received tensor is looked for."""

Identity = tuple[object, ...]

KEPT: Final = 4
"""Units whose wires are kept; one of 100 000 calls takes some 8 MB."""

_PAIR: Final = tables.item_pair.c
_ITEMS: Final = Prepared(
    select(_PAIR.id, _PAIR.node, _PAIR.target, _PAIR.golden, _PAIR.verdict, _PAIR.severity)
    .where(_PAIR.id.in_(some_keys()))
    .order_by(_PAIR.id)
)
_MAKERS: Final = Prepared(select(tables.flow.c.makers).where(tables.flow.c.id == number_named("unit")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A tensor that a call received. pair: item pair key; producer: who made it, made: its name there (None: not told apart)
    untold: why there is no producer"""

    pair: int
    leaf: Leaf
    verdict: str
    score: float | None
    producer: NodePairRow | None
    made: str | None
    untold: Untold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A tensor that another call received from the node. made: its name as the node's output (None: not told apart)"""

    pair: int
    leaf: Leaf
    verdict: str
    score: float | None
    consumer: NodePairRow
    made: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFlow:
    """source: where what differs here came from, None where it begins here or nothing differs

    inputs: tensors received, of more than INPUTS the worst, in their own order; consumers: those that differ first, then in
    execution order, at most CONSUMERS"""

    node: NodePairRow
    inputs: list[Received]
    input_count: int
    consumers: list[Passed]
    consumer_count: int
    source: Source | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """Per item pair its node pair, and the node pair that made its tensor (-1: nothing tells); see `analysis.makers.Trace`.

    named: of each of the target's records the one that the dump names as its producer, -1 where it names none
    """

    pair: Int32
    received: Int32
    handed: Int32
    named: Int32

    def maker(self, key: int) -> int:
        number = key & tables.NUMBER_MASK
        return max(int(self.received[number]), int(self.handed[number]))

    def readers(self, node: int) -> Int64:
        """Item pairs that hold what a node put out; of a module what the calls inside it put out for it."""
        first, beyond = np.searchsorted(self.pair, (node, node + 1))
        makers = np.unique(np.append(self.handed[first:beyond], node))
        found: Int64 = np.flatnonzero(np.isin(self.received, makers[makers >= 0]) & (self.pair > node))
        return found


_RECENT: Final[Recent[tuple[str, str], Wires | None]] = Recent(KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One row of item_pair with the target's record (the golden's where there is no target).

    number: of the record; identity: the same for the same tensor, None where nothing tells (see `analysis.makers`)
    named: number of the record that the dump names as its producer, -1 where it names none
    """

    key: int
    node: int
    number: int
    golden_only: bool
    verdict: int
    severity: float
    role: int
    identity: Identity | None
    untold: Untold
    named: int

    def among(self, outputs: Sequence[Tensor]) -> Tensor | None:
        """The output that this is: the one named, else the first that stored the same."""
        same = [one for one in outputs if one.number == self.named and not one.golden_only] or [
            one for one in outputs if one.identity is not None and one.identity == self.identity
        ]
        return same[0] if same else None


def node_flow(database: Database, unit: StoredUnit, name: str) -> NodeFlow:
    """Raises NotFoundError for an unknown node, ConflictError where the result was stored before data flow was kept."""
    with database.read() as connection:
        node = one_node_pair(connection, unit, name)
        wires = wires_of(connection, unit)
        if wires is None:
            raise ConflictError(
                say("index.result_stored_by_older_version_without"),
                hint=say("index.judge_again_set_policy_once_more"),
            )
        named = wires.named
        own = tensors(connection, unit, keys_of(connection, unit, node.pair), named)
        inputs = [tensor for tensor in own if tensor.role in RECEIVED]
        inputs.sort(key=lambda tensor: (-tensor.verdict, -tensor.severity))
        differing = [tensor for tensor in inputs if tensor.verdict in (Verdict.NO, Verdict.WARNING)]
        readers = wires.readers(node.pair)
        outputs = [tensor for tensor in own if tensor.role not in RECEIVED]
        return NodeFlow(
            node=node,
            inputs=_inputs(connection, unit, sorted(inputs[:INPUTS], key=lambda tensor: tensor.key), wires, named),
            input_count=len(inputs),
            consumers=_consumers(connection, unit, readers[:EXAMINED] + tables.key(unit.id), outputs, named),
            consumer_count=len(readers),
            source=source_on_other_rank(connection, unit, node)
            or find_source(
                connection,
                unit,
                node,
                makers=[maker for tensor in differing if (maker := wires.maker(tensor.key)) >= 0],
                inside=[maker for tensor in outputs if (maker := wires.maker(tensor.key)) >= 0],
                received_difference=bool(differing),
            ),
        )


def source_on_other_rank(connection: Connection, unit: StoredUnit, node: NodePairRow) -> Source | None:
    """What a communication call received from another rank, where its own inputs agree."""
    if node.cls in (CLASS_WORDS[Class.ORIGIN], CLASS_WORDS[Class.NONFINITE]) or not node.name.startswith(PREFIX):
        return None
    found = sender(connection, unit, node.pair)
    if found is None:
        return None
    other, pair = found
    rows = node_pair_rows(connection, other, [pair])
    return Source(node=rows[pair], way="sent", rank=other.rank) if pair in rows else None


def producers(connection: Connection, unit: StoredUnit, keys: Sequence[int]) -> dict[int, str]:
    """Item pair key -> name of the node that made its tensor; those of which nothing tells it are left out."""
    wires = wires_of(connection, unit)
    if wires is None:
        return {}
    makers = {key: wires.maker(key) for key in keys}
    names = names_of(connection, {tables.key(unit.id, maker) for maker in makers.values() if maker >= 0})
    return {key: names[tables.key(unit.id, maker)] for key, maker in makers.items() if maker >= 0}


def wires_of(connection: Connection, unit: StoredUnit) -> Wires | None:
    """Read once per judgement of a comparison that is done; None where the result was stored before data flow was kept."""
    key = None if unit.stamp is None else (str(connection.engine.url), f"{unit.stamp}:{unit.id}")

    def load() -> Wires | None:
        packed = _MAKERS.value(connection, unit=tables.key(unit.id))
        if packed is None:
            return None
        pair, received, handed = unpack_makers(bytes(packed))
        known = stored_producers(connection, unit.target)
        named = np.full(len(pair), -1, np.int32) if known is None else known[0]
        return Wires(pair=pair, received=received, handed=handed, named=named)

    return _RECENT.get(key, load)


def _inputs(
    connection: Connection, unit: StoredUnit, inputs: list[Tensor], wires: Wires, named: Int32
) -> list[Received]:
    makers = {tensor.key: wires.maker(tensor.key) for tensor in inputs}
    nodes = node_pair_rows(connection, unit, (maker for maker in makers.values() if maker >= 0))
    keys = [key for maker in nodes for key in keys_of(connection, unit, maker)[-OUTPUTS:]]
    outputs: dict[int, list[Tensor]] = {}
    for tensor in tensors(connection, unit, keys, named):
        if tensor.role not in RECEIVED:
            outputs.setdefault(tensor.node, []).append(tensor)
    theirs = {tensor.key: tensor.among(outputs.get(makers[tensor.key], ())) for tensor in inputs}
    records = _leaves(connection, unit, [*inputs, *(tensor for tensor in theirs.values() if tensor is not None)])
    found = []
    for tensor in inputs:
        producer, source = nodes.get(makers[tensor.key]), theirs[tensor.key]
        found.append(
            Received(
                pair=tensor.key,
                leaf=records[tensor.key],
                verdict=VERDICT_WORDS[tensor.verdict],
                score=score(tensor.severity),
                producer=producer,
                made=records[source.key].name if source is not None else None,
                untold=tensor.untold if producer is None else None,
            )
        )
    return found


def _consumers(
    connection: Connection, unit: StoredUnit, keys: Int64, outputs: list[Tensor], named: Int32
) -> list[Passed]:
    readers = tensors(connection, unit, keys.tolist(), named)
    nodes = node_pair_rows(connection, unit, (tensor.node for tensor in readers))
    readers.sort(key=lambda tensor: (nodes[tensor.node].verdict not in ("no", "warning"), tensor.key))
    shown = readers[:CONSUMERS]
    theirs = {tensor.key: tensor.among(outputs) for tensor in shown}
    records = _leaves(connection, unit, [*shown, *(tensor for tensor in theirs.values() if tensor is not None)])
    return [
        Passed(
            pair=tensor.key,
            leaf=records[tensor.key],
            verdict=VERDICT_WORDS[tensor.verdict],
            score=score(tensor.severity),
            consumer=nodes[tensor.node],
            made=records[source.key].name if (source := theirs[tensor.key]) is not None else None,
        )
        for tensor in shown
    ]


def keys_of(connection: Connection, unit: StoredUnit, node: int) -> range:
    """Keys of the item pairs of a node pair."""
    first, last = item_range(connection, unit, node)
    return range(first, last + 1)


def tensors(connection: Connection, unit: StoredUnit, keys: Sequence[int], named: Int32) -> list[Tensor]:
    """The tensors among these item pairs, by key. named: producer of each of the target's records that the dump names"""
    rows = _ITEMS.among(connection, keys)
    records = {
        False: _Records(connection, unit.target, [row.target for row in rows if row.target is not None]),
        True: _Records(connection, unit.golden, [row.golden for row in rows if row.target is None]),
    }
    found = []
    for row in rows:
        alone = row.target is None
        number = row.golden if alone else row.target
        role, kind = records[alone].place(number)
        if kind != Kind.TENSOR:
            continue
        identity, untold = (None, "golden_only") if alone else records[alone].identity(number)
        found.append(
            Tensor(
                key=row.id,
                node=row.node,
                number=number,
                golden_only=alone,
                verdict=row.verdict,
                severity=row.severity,
                role=role,
                identity=identity,
                untold=untold,
                named=-1 if alone else int(named[number]),
            )
        )
    return found


class _Records:
    """Some records of a rank, by number."""

    def __init__(self, connection: Connection, rank: int, numbers: Sequence[int]) -> None:
        self._items = some_items(connection, rank, numbers)
        self._row = {number: row for row, number in enumerate(self._items.number.tolist())}
        if len(self._row) < len(set(numbers)):
            raise gone_rank()

    def place(self, number: int) -> tuple[int, int]:
        """Role and kind."""
        row = self._row[number]
        return int(self._items.role[row]), int(self._items.kind[row])

    def identity(self, number: int) -> tuple[Identity | None, Untold]:
        """What a tensor is known again by, and why it is known by nothing where it is not."""
        items, row = self._items, self._row[number]
        shape, hashed = items.shape.at(row), items.hash.at(row)
        size = None if shape is None else prod(json.loads(shape))
        states, numbers = items.states[row].tolist(), items.stats[row].tolist()
        if not any(states):
            return (None, "unstored") if hashed is None else ((hashed, size), "not_dumped")
        if states[0] == states[1] == State.FINITE and numbers[0] == numbers[1]:
            return None, "constant"
        return (*states, size, *numbers), "not_dumped"


def _leaves(connection: Connection, unit: StoredUnit, tensors: Sequence[Tensor]) -> dict[int, Leaf]:
    """Item pair key -> the record, decoded."""
    found: dict[int, Leaf] = {}
    for rank, alone in ((unit.target, False), (unit.golden, True)):
        mine = [tensor for tensor in tensors if tensor.golden_only == alone]
        records = leaves(connection, rank, (tensor.number for tensor in mine))
        found.update((tensor.key, records[tensor.number]) for tensor in mine)
    return found
