"""Node pairs of a unit: the filtered, sorted, paged list of calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from dumpscope.domain.facts import CLASS_WORDS, LEFTOVER_WORDS, METHOD_WORDS, VERDICT_WORDS
from dumpscope.domain.search.terms import Words, parse
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.comparisons.distances import Standing, node_standing
from dumpscope.index.pair_queries.search.clauses import ABSORBED, absorbed, labels, search_clauses
from dumpscope.index.store import tables
from dumpscope.index.store.codec import number, score, storable
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import END, Page, Seek
from dumpscope.index.store.prepared import Prepared, number_named, some_keys
from dumpscope.index.store.texts import texts_by_id
from dumpscope.index.trees.trees import address, direction_word, find_pair, kind_word, shared_names
from dumpscope.texts import say

Sort = Literal["order", "-out_score", "-ratio", "-class", "name"]

KEYS: Final[dict[Sort, tuple[type, ...]]] = {
    "order": (int,), "-out_score": (float, int), "-ratio": (float, int), "-class": (int, int), "name": (str, int),
}  # fmt: skip
"""What the seek key of each sort order holds."""

_PAIR: Final = tables.node_pair.c
FALLING: Final[dict[str, Any]] = {"-out_score": _PAIR.severity, "-ratio": _PAIR.ratio, "-class": _PAIR.cls}
"""Columns of the sort orders that begin with the largest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """verdicts, classes, leftovers: words, any of them; api: an API's or a module class' name ("softmax", "Functional.softmax")
    q: a search (`domain.search.terms`), its words parts of either side's name (ASCII letters of either case)
    first, last: bounds of the order, inclusive"""

    verdicts: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    api: str = ""
    q: str = ""
    first: int | None = None
    last: int | None = None

    def __bool__(self) -> bool:
        bounded = self.first is not None or self.last is not None
        return bool(self.verdicts or self.classes or self.leftovers or self.api or self.q or bounded)

    @property
    def lasts(self) -> bool:
        """Whether it finds the same calls until the comparison is judged again: notes are written, and calls run alone, at any
        time. Raises UsageError for what is no search."""
        return not any(isinstance(term, Words) and term.key in ("note", "alone") for term in parse(self.q))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePairRow:
    """address: the name, or what names the golden's node where the target has one of the same name (see `trees.address`)
    leftover: why it has no partner (LEFTOVER_WORDS), None where it has one; beside: the node that this is told from

    order: place among the unit's node pairs, which is execution order; scores in units of their floor, errors relative;
    None where nothing was compared"""

    pair: int
    order: int
    name: str
    address: str
    golden_name: str | None
    match: str
    confidence: float
    kind: str
    direction: str
    api: str | None
    verdict: str
    cls: str
    in_score: float | None
    out_score: float | None
    in_error: float | None
    out_error: float | None
    entry: int
    items: int = field(default=0)
    leftover: str | None = None
    beside: str | None = None
    standing: Standing | None = None


def list_node_pairs(
    database: Database,
    unit: StoredUnit,
    *,
    filters: NodeFilter,
    sort: Sort = "order",
    seek: Seek | None = None,
    total: int | None = None,
    limit: int = 100,
) -> Page[NodePairRow]:
    """A page of node pairs; `total` spares counting again what an earlier page counted."""
    with database.read() as connection:
        where = conditions(connection, unit, filters)
        rows, beyond, behind = _fetch(connection, where, sort, seek, limit)
        more, before = (behind, beyond) if seek is not None and seek.back else (beyond, behind)
        count = _total(connection, unit, where, filters, total)
        start = 0 if seek is None else count - len(rows) if seek == END else None
        page = page_of(connection, rows, sort, more, before, count, start)
        return replace(page, back=seek is not None and seek.back)


def one_node_pair(connection: Connection, unit: StoredUnit, name: str) -> NodePairRow:
    """The pair of the node `name` (of either side); raises NotFoundError."""
    row = find_pair(connection, unit, name)
    return page_of(connection, [row], "order", more=False, before=False, total=1).rows[0]


def node_pair_rows(connection: Connection, unit: StoredUnit, numbers: Iterable[int]) -> dict[int, NodePairRow]:
    """Rows of these node pairs by number; unknown numbers are left out."""
    rows = rows_by_number(connection, unit, numbers)
    page = page_of(
        connection, [rows[pair] for pair in sorted(rows)], "order", more=False, before=False, total=len(rows)
    )
    return {row.pair: row for row in page.rows}


_SOME: Final = Prepared(select(tables.node_pair).where(_PAIR.id.in_(some_keys())))
_ITEMS: Final = Prepared(select(_PAIR.first_item, _PAIR.item_count).where(_PAIR.id == number_named("pair")))


def rows_by_number(connection: Connection, unit: StoredUnit, numbers: Iterable[int]) -> dict[int, Any]:
    """Database rows of these node pairs by number; unknown numbers are left out."""
    keys = [tables.key(unit.id, pair) for pair in sorted(set(numbers))]
    return {row.id & tables.NUMBER_MASK: row for row in _SOME.among(connection, keys)}


def node_pair_numbers(database: Database, unit: StoredUnit, filters: NodeFilter) -> list[int]:
    """Numbers of the node pairs that the filters let through, in order."""
    with database.read() as connection:
        found = select(_PAIR.id).where(*conditions(connection, unit, filters)).order_by(_PAIR.id)
        return [key & tables.NUMBER_MASK for key in connection.execute(found).scalars()]


def item_range(connection: Connection, unit: StoredUnit, node: int) -> tuple[int, int]:
    """First and last key of a node pair's items (last below first where it has none)."""
    base = tables.key(unit.id)
    row = _ITEMS.one(connection, pair=tables.key(unit.id, node))
    if row is None:
        raise NotFoundError(say("index.no_node_pair_step_rank_2", node=node))
    return base + row.first_item, base + row.first_item + row.item_count - 1


def holds_node(connection: Connection, unit: StoredUnit, name: str, *, golden: bool) -> bool:
    """Whether this side of the unit has a node of this name."""
    first, last = tables.key_range(unit.id)
    named = storable([name])[0]
    if golden:
        same = or_(_PAIR.golden_name == named, and_(_PAIR.golden_name.is_(None), _PAIR.name == named))
        side: ColumnElement[bool] = and_(_PAIR.golden.is_not(None), same)
    else:
        side = and_(_PAIR.target.is_not(None), _PAIR.name == named)
    found = select(_PAIR.id).where(_PAIR.id.between(first, last), side).limit(1)
    return connection.execute(found).scalar() is not None


def conditions(connection: Connection, unit: StoredUnit, filters: NodeFilter) -> list[ColumnElement[bool]]:
    """WHERE clauses over node_pair for one unit; raises UsageError for unknown words and for what is no search."""
    first, last = tables.key_range(unit.id)
    lowest = first if filters.first is None else first + max(filters.first, 0)
    highest = last if filters.last is None else min(first + filters.last, last)
    where: list[ColumnElement[bool]] = [_PAIR.id.between(lowest, highest)]
    if filters.verdicts:
        where.append(_PAIR.verdict.in_(word_codes(filters.verdicts, VERDICT_WORDS, "verdict")))
    if filters.classes:
        words = tuple(word for word in filters.classes if word != ABSORBED)
        named = _PAIR.cls.in_(word_codes(words, (*CLASS_WORDS, ABSORBED), "class"))
        where.append(or_(named, absorbed()) if ABSORBED in filters.classes else named)
    if filters.leftovers:
        where.append(_PAIR.leftover.in_(word_codes(filters.leftovers, LEFTOVER_WORDS, "leftover")))
    if filters.api:
        where.append(_PAIR.label.in_(labels((filters.api,))))
    return [*where, *search_clauses(connection, unit, filters.q)]


def check_filters(database: Database, unit: StoredUnit, filters: NodeFilter) -> None:
    """Raises UsageError for filters that mean nothing."""
    with database.read() as connection:
        conditions(connection, unit, filters)


def word_codes(words: tuple[str, ...], known: tuple[str | None, ...], what: str) -> list[int]:
    for word in words:
        if word not in known:
            raise UsageError(
                say("index.unknown", what=what, word=f"{word!r}"),
                hint=say("domain.known", names=", ".join(filter(None, known))),
            )
    return [known.index(word) for word in words]


def _select() -> Select[Any]:
    return select(tables.node_pair)


def seek_key(row: Any, sort: Sort) -> tuple[Any, ...]:
    """Key of a database row in a list of this order."""
    if sort == "order":
        return (row.id,)
    return (row.name if sort == "name" else getattr(row, FALLING[sort].name), row.id)


def _fetch(
    connection: Connection, where: list[ColumnElement[bool]], sort: Sort, seek: Seek | None, limit: int
) -> tuple[list[Any], bool, bool]:
    """(rows in list order, more rows lie beyond in the direction of the seek, rows lie on its other side)."""
    back = seek is not None and seek.back
    statement = _select().where(*where)
    if seek is not None and seek != END:
        seek.check(*KEYS[sort])
        statement = statement.where(beyond(sort, seek))
    ordering = [column.asc() if rising != back else column.desc() for column, rising in _columns(sort)]
    rows = list(connection.execute(statement.order_by(*ordering).limit(limit + 1)))
    more = len(rows) > limit
    rows = rows[:limit]
    if back:
        rows.reverse()
    return rows, more, seek is not None and seek != END


def _columns(sort: Sort) -> list[tuple[Any, bool]]:
    """What a list is sorted by: columns, and whether they rise."""
    if sort in FALLING:
        return [(FALLING[sort], False), (_PAIR.id, True)]
    return [(_PAIR.name, True), (_PAIR.id, True)] if sort == "name" else [(_PAIR.id, True)]


def beyond(sort: Sort, seek: Seek) -> ColumnElement[bool]:
    """That a row lies beyond the key in the direction of the seek."""
    columns = _columns(sort)
    steps = []
    for place, (column, rising) in enumerate(columns):
        value = seek.key[place]
        step = column > value if rising != seek.back else column < value
        steps.append(and_(*[columns[i][0] == seek.key[i] for i in range(place)], step))
    return or_(*steps)


def _total(
    connection: Connection,
    unit: StoredUnit,
    where: list[ColumnElement[bool]],
    filters: NodeFilter,
    known: int | None,
) -> int:
    if known is not None:
        return known
    if not filters:
        return unit.pairs
    return int(connection.execute(select(func.count()).select_from(tables.node_pair).where(*where)).scalar_one())


def page_of(
    connection: Connection,
    rows: list[Any],
    sort: Sort,
    more: bool,
    before: bool,
    total: int,
    start: int | None = None,
) -> Page[NodePairRow]:
    """The page of these database rows of one unit."""
    labels = texts_by_id(connection, (row.label for row in rows))
    names = _beside(connection, rows)
    shared = _shared(connection, rows)
    return Page(
        rows=[_row(row, labels, names, shared) for row in rows],
        keys=[seek_key(row, sort) for row in rows],
        more=more,
        before=before,
        total=total,
        start=start,
    )


_NAMES: Final = Prepared(select(_PAIR.id, _PAIR.name).where(_PAIR.id.in_(some_keys())))


def _beside(connection: Connection, rows: list[Any]) -> dict[int, str]:
    """Names by key of the node pairs that causes of these rows are told from."""
    return names_of(connection, {_beside_key(row) for row in rows if row.beside is not None})


def names_of(connection: Connection, keys: Iterable[int]) -> dict[int, str]:
    """Names of the node pairs with these keys, by key."""
    return {row.id: row.name for row in _NAMES.among(connection, sorted(keys))}


def _beside_key(row: Any) -> int:
    return int(row.id - (row.id & tables.NUMBER_MASK) + row.beside)


def _shared(connection: Connection, rows: list[Any]) -> set[str]:
    """Names of the golden's own nodes among rows of one unit that nodes of the target have too."""
    alone = {row.name for row in rows if row.target is None}
    return shared_names(connection, rows[0].id >> tables.KEY_BITS, alone) if alone else set()


def _row(row: Any, labels: dict[int, str], names: dict[int, str], shared: set[str]) -> NodePairRow:
    golden_name = row.golden_name
    if golden_name is None and row.golden is not None:
        golden_name = row.name
    return NodePairRow(
        pair=row.id & tables.NUMBER_MASK,
        order=row.id & tables.NUMBER_MASK,
        name=row.name,
        address=address(row.name, shared) if row.target is None else row.name,
        golden_name=golden_name,
        match=METHOD_WORDS[row.method],
        confidence=row.confidence,
        kind=kind_word(row.kind),
        direction=direction_word(row.direction),
        api=labels.get(row.label),
        verdict=VERDICT_WORDS[row.verdict],
        cls=CLASS_WORDS[row.cls],
        in_score=score(row.in_score),
        out_score=score(row.severity),
        in_error=number(row.in_error, row.error_states, 0),
        out_error=number(row.out_error, row.error_states, 1),
        entry=row.entry,
        items=row.item_count,
        leftover=LEFTOVER_WORDS[row.leftover or 0],
        standing=node_standing(row),
        beside=None if row.beside is None else names.get(_beside_key(row)),
    )
