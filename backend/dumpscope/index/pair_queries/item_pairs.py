"""Item pairs of a unit: the filtered, sorted, paged list and single pairs, with both leaves and every number."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

import numpy as np
from sqlalchemy import ColumnElement, Connection, Join, Select, and_, func, or_, select, true
from sqlalchemy.ext.compiler import compiles

from dumpscope.domain.facts import METHOD_WORDS, TENSOR_METRICS, VERDICT_WORDS, TensorFacts
from dumpscope.domain.records import STATISTICS, Number
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.comparisons.distances import Standing, item_distances, item_standing
from dumpscope.index.comparisons.load_unit import COUNTS, tensor_facts
from dumpscope.index.dumps.leaves import Leaf, leaves
from dumpscope.index.pair_queries.dataflow import producers
from dumpscope.index.pair_queries.item_ranking import item_ranking
from dumpscope.index.pair_queries.item_sentences import Explained, explain
from dumpscope.index.pair_queries.list_positions import pair_numbers
from dumpscope.index.pair_queries.node_pairs import NodeFilter, conditions, item_range, word_codes
from dumpscope.index.pair_queries.search.clauses import labels
from dumpscope.index.store import tables
from dumpscope.index.store.codec import number, score
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page, Seek
from dumpscope.index.store.prepared import Prepared, number_named, some_keys
from dumpscope.texts import Phrase, english, say
from dumpscope.verdict.rules import VERDICT_RULES

Sort = Literal["order", "-score"]
_SEEK: Final[dict[Sort, tuple[type, ...]]] = {"order": (int,), "-score": (float, int)}
"""Of what the key of the last row seen consists."""


class _ItemsOfNodes(Join):
    """node_pair CROSS JOIN item_pair: keeps SQLite from walking all items and looking up the node of each."""

    inherit_cache = True

    def __init__(self) -> None:
        super().__init__(tables.node_pair, tables.item_pair, true())


@compiles(_ItemsOfNodes)
def _spell(join: Join, compiler: Any, **options: Any) -> str:
    left = compiler.process(join.left, **(options | {"asfrom": True}))
    right = compiler.process(join.right, **(options | {"asfrom": True}))
    return f"{left} CROSS JOIN {right}"


_ITEM: Final = tables.item_pair.c
_NODE: Final = tables.node_pair.c
_FACT: Final = tables.tensor_fact.c
_of_facts: Final = attrgetter(*(f"fact_{column.name}" for column in _FACT))
_DIFFERENCES: Final = [
    (f"{name.lower()}_{kind}", f"{kind}_{name.lower()}", offset + place)
    for place, name in enumerate(STATISTICS)
    for kind, offset in (("diff", 0), ("rel", len(STATISTICS)))
]
"""Of each difference of statistics its name, its column and the place of its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPairRow:
    """One item pair. id: its key, unique in the database; metrics: every measured number by name (docs/metrics.md)
    score: error in units of its floor, None where nothing was compared; detail: only where tensors were read
    producer: node whose call made the tensor (`flow`), None where nothing tells
    said: `message` as phrases"""

    id: int
    node: str
    target: Leaf | None
    golden: Leaf | None
    role: str
    match: str
    verdict: str
    rule: str
    score: float | None
    message: str
    said: list[Phrase]
    metrics: dict[str, Number]
    detail: TensorFacts | None
    producer: str | None
    standing: Standing | None = None


def list_item_pairs(
    database: Database,
    unit: StoredUnit,
    *,
    filters: NodeFilter,
    node: int | None = None,
    sort: Sort = "order",
    seek: Seek | None = None,
    total: int | None = None,
    limit: int = 100,
) -> Page[ItemPairRow]:
    """A page of item pairs; of `filters`, verdicts are the item's own and the others its node's. node: node pair number."""
    first, last = tables.key_range(unit.id)
    verdicts = word_codes(filters.verdicts, VERDICT_WORDS, "verdict")
    by_node = NodeFilter(api=filters.api, q=filters.q)
    if (sort == "-score" or verdicts) and node is None and unit.stamp is not None:
        return _from_memory(database, unit, verdicts, by_node, sort, seek, limit)
    with database.read() as connection:
        where: list[ColumnElement[bool]] = [_ITEM.id.between(first, last)]
        if verdicts:
            where.append(_ITEM.verdict.in_(verdicts))
        if node is not None:
            where.append(_ITEM.id.between(*item_range(connection, unit, node)))
        statement: Select[Any] = select(_ITEM.id, _ITEM.severity)
        if by_node:
            start = tables.key_at(unit.id, _NODE.first_item)
            where += [*conditions(connection, unit, by_node), _ITEM.id.between(start, start + _NODE.item_count - 1)]
            statement = statement.select_from(_ItemsOfNodes())
        statement = statement.where(*where)
        if seek is not None:
            statement = statement.where(_beyond(unit, seek, sort, joined=bool(by_node)))
        if sort == "order":
            ordered = statement.order_by(*([_NODE.id] if by_node else []), _ITEM.id)
        else:
            ordered = statement.order_by(_ITEM.severity.desc(), _ITEM.id)
        found = connection.execute(ordered.limit(limit + 1)).all()
        if total is None:
            total = _total(connection, unit, verdicts, by_node, node, where)
        rows = item_pair_rows(connection, unit, [row.id for row in found[:limit]])
        keys = [(row.id,) if sort == "order" else (row.severity, row.id) for row in found[:limit]]
    return Page(rows=rows, keys=keys, more=len(found) > limit, total=total)


def _from_memory(
    database: Database,
    unit: StoredUnit,
    verdicts: list[int],
    by_node: NodeFilter,
    sort: Sort,
    seek: Seek | None,
    limit: int,
) -> Page[ItemPairRow]:
    base = tables.key(unit.id)
    if seek is not None:
        seek.check(*_SEEK[sort])
    with database.read() as connection:
        ranking = item_ranking(connection, unit)
        nodes = None
        if by_node.q:
            where = conditions(connection, unit, by_node)
            nodes = np.array(pair_numbers(connection, database, unit, where, by_node, "order"), np.int64)
        elif by_node:
            nodes = ranking.nodes_of(connection.execute(labels((by_node.api,))).scalars().all())
        keys: list[tuple[Any, ...]]
        if sort == "order":
            behind = None if seek is None else int(seek.key[0]) - base
            numbers, more, total = ranking.in_order(verdicts, nodes, behind, limit)
            keys = [(base + number,) for number in numbers]
        else:
            after = None if seek is None else (float(seek.key[0]), int(seek.key[1]) - base)
            found, more, total = ranking.page(verdicts, nodes, after, limit)
            keys = [(severity, base + number) for severity, number in found]
        rows = item_pair_rows(connection, unit, [key[-1] for key in keys])
    return Page(rows=rows, keys=keys, more=more, total=total)


def get_item_pair(database: Database, unit: StoredUnit, key: int) -> ItemPairRow:
    """The item pair with this key; raises NotFoundError."""
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        rows = item_pair_rows(connection, unit, [key]) if first <= key <= last else []
    if not rows:
        raise NotFoundError(say("index.no_item_pair_comparison", key=key), hint=say("api.get_pairs_lists_them"))
    return rows[0]


def items_of_node(connection: Connection, unit: StoredUnit, node: int, *, limit: int) -> list[ItemPairRow]:
    """The first `limit` item pairs of a node pair."""
    first, last = item_range(connection, unit, node)
    return item_pair_rows(connection, unit, range(first, min(last + 1, first + limit)))


_SOME: Final = Prepared(
    select(
        tables.item_pair,
        _NODE.name,
        _NODE.method,
        tables.item_error.c.message.label("failure"),
        tables.item_error.c.said.label("failure_said"),
        *[column.label(f"fact_{column.name}") for column in _FACT],
    )
    .join(tables.node_pair, _NODE.id == number_named("unit") + _ITEM.node)
    .outerjoin(tables.tensor_fact, _FACT.id == _ITEM.id)
    .outerjoin(tables.item_error, tables.item_error.c.id == _ITEM.id)
    .where(_ITEM.id.in_(some_keys()))
)


def item_pair_rows(connection: Connection, unit: StoredUnit, keys: Any) -> list[ItemPairRow]:
    """Rows of these keys, in the order given; unknown keys are left out."""
    keys = list(keys)
    found = {row.id: row for row in _SOME.among(connection, keys, unit=tables.key(unit.id))}
    if not found:
        return []
    targets = leaves(connection, unit.target, [row.target for row in found.values() if row.target is not None])
    goldens = leaves(connection, unit.golden, [row.golden for row in found.values() if row.golden is not None])
    rows = [found[key] for key in keys if key in found]
    facts = [_facts(row) for row in rows]
    left = [None if row.target is None else targets[row.target] for row in rows]
    right = [None if row.golden is None else goldens[row.golden] for row in rows]
    far = item_distances(connection, [row.id for row in rows])
    explained = explain(rows, facts, left, right, [far.get(row.id) for row in rows])
    made = producers(connection, unit, [row.id for row in rows])
    return [
        _row(*parts, made.get(parts[0].id), item_standing(far.get(parts[0].id)))
        for parts in zip(rows, facts, left, right, explained, strict=True)
    ]


def _facts(row: Any) -> TensorFacts | None:
    if row.fact_id is None:
        return None
    return tensor_facts(_of_facts(row), -1 if row.elements is None else row.elements)


def _row(
    row: Any,
    facts: TensorFacts | None,
    target: Leaf | None,
    golden: Leaf | None,
    explained: Explained,
    producer: str | None,
    standing: Standing | None,
) -> ItemPairRow:
    side = target or golden
    return ItemPairRow(
        id=row.id,
        node=row.name,
        target=target,
        golden=golden,
        role=side.role if side else "",
        match=METHOD_WORDS[row.method],
        verdict=VERDICT_WORDS[row.verdict],
        rule=VERDICT_RULES[row.rule],
        score=score(row.severity),
        message=english(explained.said),
        said=explained.said,
        metrics=_metrics(row, facts, explained.derived),
        detail=facts if facts is not None and facts.abs_histogram else None,
        producer=producer,
        standing=standing,
    )


def _metrics(row: Any, facts: TensorFacts | None, derived: dict[str, float]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    if facts is not None:
        for name in TENSOR_METRICS:
            if (value := getattr(facts, name)) is not None:
                found[name] = value
        found |= derived
        for name in COUNTS:
            if (count := getattr(facts, name)) >= 0:
                found[name] = count
    for name, column, place in _DIFFERENCES:
        if (value := number(getattr(row, column), row.states, place)) is not None:
            found.setdefault(name, value)  # a tensor's own max_rel says more
    if row.elements is not None:
        found["elements"] = row.elements
    return found


def _beyond(unit: StoredUnit, seek: Seek, sort: Sort, *, joined: bool) -> ColumnElement[bool]:
    seek.check(*_SEEK[sort])
    if sort == "order":
        behind: ColumnElement[bool] = _ITEM.id > seek.key[0]
        if joined:  # lets the walk begin at the right node
            number = seek.key[0] - tables.key(unit.id)
            return and_(behind, _NODE.first_item + _NODE.item_count > number)
        return behind
    severity, key = seek.key
    return or_(_ITEM.severity < severity, and_(_ITEM.severity == severity, _ITEM.id > key))


def _total(
    connection: Connection,
    unit: StoredUnit,
    verdicts: list[int],
    by_node: NodeFilter,
    node: int | None,
    where: list[ColumnElement[bool]],
) -> int:
    """Items of the whole list, from sums kept with the nodes where the filters allow it."""
    if node is not None:
        source = _ItemsOfNodes() if by_node else tables.item_pair
        counted = select(func.count(_ITEM.id)).select_from(source).where(*where)
        return int(connection.execute(counted).scalar_one())
    if not by_node and not verdicts:
        return unit.items
    kept = (_NODE.yes, _NODE.na, _NODE.warning, _NODE.no)
    wanted: Any = _NODE.item_count if not verdicts else sum(kept[code] for code in sorted(set(verdicts)))
    summed = select(func.coalesce(func.sum(wanted), 0)).where(*conditions(connection, unit, by_node))
    return int(connection.execute(summed).scalar_one())
