"""Children of a module tree's row, of a dump and of a comparison, and the way to a node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Select, Table, and_, func, literal, or_, select

from dumpscope.domain.facts import CLASS_WORDS, LEFTOVER_WORDS, METHOD_WORDS, VERDICT_WORDS
from dumpscope.domain.records import Direction, NodeKind
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dumps.catalogue import StoredRank
from dumpscope.index.store import tables
from dumpscope.index.store.codec import score, storable
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import END, Page, Seek
from dumpscope.index.store.prepared import Prepared, number_named, some_keys, some_texts, text_named
from dumpscope.texts import say
from dumpscope_format import naming

KIND_WORDS = {NodeKind.API: "api", NodeKind.MODULE: "module", NodeKind.GRADIENT: "gradient", NodeKind.DEBUG: "debug"}
GOLDEN: Final = "golden:"
"""Before a name: the golden's node is meant, where the target has one of the same name that is not its partner."""
DIRECTION_WORDS = {Direction.FORWARD: "forward", Direction.BACKWARD: "backward", Direction.NONE: "none"}
_KINDS: Final = {
    int(kind): KIND_WORDS.get(kind, "other") for kind in NodeKind
}  # an enumeration's members are slow to make
_DIRECTIONS: Final = {int(direction): word for direction, word in DIRECTION_WORDS.items()}


_PLACE: Final = tables.place.c
_PAIR: Final = tables.node_pair.c
_ENTRY: Final = tables.entry.c
_PLACES_BELOW: Final = Prepared(select(func.count()).where(_PLACE.parent == number_named("parent")))
_ENTRIES_BELOW: Final = Prepared(select(func.count()).where(_ENTRY.parent == number_named("parent")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRow:
    """One row of a module tree. Counts are node pairs of the whole subtree; a dump's tree counts its nodes in `nodes`.

    address: what names the row alone, see `address`
    match, confidence, leftover, out_score: see `NodePairRow`, None where the row is no node pair
    """

    entry: int
    name: str
    address: str
    label: str
    parent: int | None
    order: int
    kind: str
    direction: str
    children: int
    nodes: int
    verdict: str | None
    cls: str | None
    no: int = 0
    warning: int = 0
    yes: int = 0
    na: int = 0
    origin: int = 0
    match: str | None = None
    confidence: float | None = None
    leftover: str | None = None
    out_score: float | None = None

    @property
    def counts(self) -> TreeRow | None:
        """The row itself where it counts verdicts, None in a dump's tree."""
        return None if self.verdict is None else self


def dump_tree(
    database: Database,
    rank: StoredRank,
    *,
    parent: int | None = None,
    seek: Seek | None = None,
    around: int | None = None,
    limit: int = 100,
) -> Page[TreeRow]:
    """Children of entry `parent` (None: the top) in time order, from `seek` on or around the child `around`."""
    above = -rank.id if parent is None else tables.key(rank.id, parent)
    with database.read() as connection:
        path = module_path(connection, rank.id, parent)
        part = children(
            connection, tables.entry, select(tables.entry), above, rank.id, seek=seek, around=around, limit=limit
        )
        total = _ENTRIES_BELOW.value(connection, parent=above)
    return part.page([entry_row(row, parent, path) for row in part.rows], total)


def entry_row(row: Any, parent: int | None, path: str) -> TreeRow:
    """A dump's tree row of a database row. path: of the module that it stands below"""
    return TreeRow(
        entry=row.id & tables.NUMBER_MASK,
        name=row.name,
        address=row.name,
        label=label(row.name, path),
        parent=parent,
        order=row.seq,
        kind=kind_word(row.kind),
        direction=direction_word(row.direction),
        children=row.children,
        nodes=row.size,
        verdict=None,
        cls=None,
    )


def comparison_tree(
    database: Database,
    unit: StoredUnit,
    *,
    parent: int | None = None,
    seek: Seek | None = None,
    around: int | None = None,
    limit: int = 100,
) -> Page[TreeRow]:
    """Children of place `parent` (None: the top) in time order, from `seek` on or around the child `around`."""
    above = -unit.id if parent is None else tables.key(unit.id, parent)
    with database.read() as connection:
        path = naming_path(place_name(connection, unit.id, parent))
        part = children(
            connection, tables.place, select_places(unit), above, unit.id, seek=seek, around=around, limit=limit
        )
        total = _PLACES_BELOW.value(connection, parent=above)
        shared = shared_among(connection, unit.id, part.rows)
    return part.page([place_row(row, parent, path, shared) for row in part.rows], total)


def select_places(unit: StoredUnit) -> Select[Any]:
    """Places of a unit with what their node pairs say."""
    return _select_places(literal(tables.key(unit.id), BigInteger))


def _select_places(first: ColumnElement[int]) -> Select[Any]:
    """first: key of the unit's first node pair"""
    return select(
        tables.place,
        _PAIR.name.label("own"),
        _PAIR.target,
        *(_PAIR.kind, _PAIR.direction, _PAIR.verdict, _PAIR.cls, _PAIR.method, _PAIR.confidence, _PAIR.leftover),
        _PAIR.severity,
    ).outerjoin(tables.node_pair, _PAIR.id == first + _PLACE.pair)


_SOME_PLACES: Final = Prepared(_select_places(number_named("unit")).where(_PLACE.id.in_(some_keys())))


def place_names(connection: Connection, unit: StoredUnit, keys: Sequence[int]) -> dict[int, str]:
    """Names of these places by key."""
    found = _SOME_PLACES.among(connection, keys, unit=tables.key(unit.id))
    return {row.id: str(row.own if row.name is None else row.name) for row in found}


def shared_among(connection: Connection, unit_id: int, rows: Sequence[Any]) -> set[str]:
    """Which names of the golden's own nodes among these places nodes of the target have too."""
    return shared_names(connection, unit_id, {row.own for row in rows if row.pair is not None and row.target is None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some children of one parent: their database rows, whether others lie on either side, how many stand before, and whether
    they were read towards the first"""

    rows: list[Any]
    before: bool
    more: bool
    start: int | None
    back: bool = False

    def page(self, rows: list[TreeRow], total: int) -> Page[TreeRow]:
        keys = [(row.order,) for row in rows]
        start = self.start if self.more else total - len(rows)
        return Page(rows=rows, keys=keys, more=self.more, before=self.before, total=total, start=start, back=self.back)


def children(
    connection: Connection,
    table: Table,
    statement: Select[Any],
    above: int,
    owner: int,
    *,
    seek: Seek | None = None,
    around: int | None = None,
    limit: int,
) -> Part:
    """Some rows of `statement` over `table` whose parent has the key `above`; raises NotFoundError where `around` is none."""
    seq = table.c.seq
    statement = statement.where(table.c.parent == above)
    if around is not None:
        here = select(seq).where(table.c.id == tables.key(owner, around), table.c.parent == above)
        middle = connection.execute(here).scalar()
        if middle is None:
            raise NotFoundError(
                say("index.no_tree_row_there", around=around), hint=say("index.ask_reveal_rows_way_node")
            )
        half = limit // 2
        above_it = list(connection.execute(statement.where(seq < middle).order_by(seq.desc()).limit(half)))[::-1]
        below = list(connection.execute(statement.where(seq >= middle).order_by(seq).limit(limit - len(above_it) + 1)))
        preceding = select(func.count()).where(table.c.parent == above, seq < middle)
        start = connection.execute(preceding).scalar_one() - len(above_it)
        rows = [*above_it, *below][:limit]
        return Part(rows=rows, before=start > 0, more=len(above_it) + len(below) > limit, start=start)
    if seek is not None and seek != END:
        seek.check(int)
        statement = statement.where(seq < seek.key[0] if seek.back else seq > seek.key[0])
    back = seek is not None and seek.back
    found = list(connection.execute(statement.order_by(seq.desc() if back else seq).limit(limit + 1)))
    beyond, rows = len(found) > limit, found[:limit]
    if back:
        return Part(rows=rows[::-1], before=beyond, more=seek != END, start=None, back=True)
    return Part(rows=rows, before=seek is not None, more=beyond, start=0 if seek is None else None)


def place_row(row: Any, parent: int | None, path: str, shared: Collection[str]) -> TreeRow:
    """A comparison's tree row of a row of `select_places`. path: of the module that it stands below"""
    name = row.name if row.pair is None else row.own
    return TreeRow(
        entry=row.id & tables.NUMBER_MASK,
        name=name,
        address=address(name, shared) if row.pair is not None and row.target is None else name,
        label=label(name, path),
        parent=parent,
        order=row.seq,
        kind=kind_word(row.kind),
        direction=direction_word(row.direction if row.pair is not None else _virtual_direction(name)),
        children=row.children,
        nodes=row.yes + row.na + row.warning + row.no,
        verdict=VERDICT_WORDS[row.verdict] if row.pair is not None else _rolled_up(row),
        cls=CLASS_WORDS[row.cls] if row.pair is not None else None,
        no=row.no,
        warning=row.warning,
        yes=row.yes,
        na=row.na,
        origin=row.origin,
        match=METHOD_WORDS[row.method] if row.pair is not None else None,
        confidence=row.confidence,
        leftover=LEFTOVER_WORDS[row.leftover or 0],
        out_score=score(row.severity) if row.pair is not None else None,
    )


def _rolled_up(row: Any) -> str:
    """Verdict of a virtual row: the worst below it; n/a only where nothing below was judged."""
    return "no" if row.no else "warning" if row.warning else "yes" if row.yes else "n/a"


def dump_reveal(database: Database, rank: StoredRank, name: str) -> list[int]:
    """Entries from the top down to the node `name`; raises NotFoundError."""
    with database.read() as connection:
        return dump_way(connection, rank, name)


def dump_way(connection: Connection, rank: StoredRank, name: str) -> list[int]:
    """As `dump_reveal`."""
    entry = tables.entry.c
    first, last = tables.key_range(rank.id)
    name = storable([name])[0]
    found = connection.execute(
        select(entry.id).where(entry.name == name, entry.id.between(first, last)).order_by(entry.id).limit(1)
    ).scalar()
    if found is None:
        raise NotFoundError(say("index.no_node_step_rank", name=f"{name!r}"), hint=say("index.get_nodes_q_searches"))
    return ancestors(connection, tables.entry, found)


def comparison_reveal(database: Database, unit: StoredUnit, name: str) -> list[int]:
    """Places from the top down to the node `name` (of either side); raises NotFoundError."""
    with database.read() as connection:
        return comparison_way(connection, unit, name)


def comparison_way(connection: Connection, unit: StoredUnit, name: str) -> list[int]:
    """As `comparison_reveal`."""
    row = find_pair(connection, unit, name)
    return ancestors(connection, tables.place, tables.key(unit.id, row.entry))


def ancestors(connection: Connection, table: Table, key: int) -> list[int]:
    """Entry numbers from the top down to the row `key`, itself last."""
    return [number & tables.NUMBER_MASK for number in _WAYS[table.name].column(connection, row=key)]


def _way(table: Table) -> Prepared:
    """Keys from the top down to a row."""
    own = table.c.id == number_named("row")
    first = select(table.c.id, table.c.parent, literal(0, Integer).label("height")).where(own)
    way = first.cte("way", recursive=True)
    above = select(table.c.id, table.c.parent, way.c.height + 1).join(way, table.c.id == way.c.parent)
    way = way.union_all(above)
    return Prepared(select(way.c.id).order_by(way.c.height.desc()))


_WAYS: Final = {table.name: _way(table) for table in (tables.place, tables.entry)}


def find_pair(connection: Connection, unit: StoredUnit, name: str) -> Any:
    """Row of the node pair whose target or golden node has this name, or that an `address` names; raises NotFoundError."""
    first, last = tables.key_range(unit.id)
    name = storable([name])[0]
    asked = [(_NAMED, name), (_GOLDEN_NAMED, name), (_ON_GOLDEN, name.removeprefix(GOLDEN))]
    for statement, text in asked if name.startswith(GOLDEN) else asked[:2]:
        found = statement.one(connection, name=text, first=first, last=last)
        if found is not None:
            return found
    raise NotFoundError(say("index.no_node_step_rank", name=f"{name!r}"), hint=say("index.get_nodes_q_searches"))


def _pair_where(named: ColumnElement[bool]) -> Prepared:
    return Prepared(
        select(tables.node_pair)
        .where(named, _PAIR.id.between(number_named("first"), number_named("last")))
        .order_by(_PAIR.target.is_(None), _PAIR.id)  # where both sides have one and they are no pair: the target's
        .limit(1)
    )


_NAMED: Final = _pair_where(_PAIR.name == text_named("name"))
_GOLDEN_NAMED: Final = _pair_where(_PAIR.golden_name == text_named("name"))
_ON_GOLDEN: Final = _pair_where(
    or_(
        _PAIR.golden_name == text_named("name"),
        and_(_PAIR.golden_name.is_(None), _PAIR.name == text_named("name"), _PAIR.golden.is_not(None)),
    )
)


_SHARED: Final = Prepared(
    select(_PAIR.name).where(
        _PAIR.name.in_(some_texts()),
        _PAIR.target.is_not(None),
        _PAIR.id.between(number_named("first"), number_named("last")),
    )
)


def shared_names(connection: Connection, unit_id: int, names: Collection[str]) -> set[str]:
    """Which of these names of golden nodes without a partner a node of the target has too."""
    first, last = tables.key_range(unit_id)
    return {row.name for row in _SHARED.among(connection, sorted(names), first=first, last=last)}


def address(name: str, shared: Collection[str]) -> str:
    """What names a golden node without a partner alone. shared: as `shared_names` tells"""
    return f"{GOLDEN}{name}" if name in shared else name


def label(name: str, above: str) -> str:
    """Short text of a row below a module with the path `above`: "attn (Attention)", "Functional.softmax.1"."""
    parts = naming.parse(name)
    if parts.kind == "api":
        return f"{parts.label}.{parts.index}"
    if parts.kind in ("module", "gradient"):
        path, _dot, cls = parts.label.rpartition(".")
        short = path.removeprefix(f"{above}.") if above and path.startswith(f"{above}.") else path
        if parts.kind == "gradient":
            return f"{short or cls} parameters_grad"
        again = f" #{parts.index}" if parts.index > 0 else ""
        return f"{short} ({cls}){again}" if short else f"{cls}{again}"
    return name


def naming_path(name: str) -> str:
    """Dotted path of a module's node name, "" for everything else."""
    parts = naming.parse(name)
    return parts.label.rpartition(".")[0] if parts.kind == "module" else ""


def kind_word(kind: int | None) -> str:
    return "virtual" if kind is None else _KINDS.get(kind, "other")


def direction_word(direction: int | None) -> str:
    return "none" if direction is None else _DIRECTIONS.get(direction, "none")


def _virtual_direction(name: str) -> int:
    word = naming.parse(name).direction
    return {"forward": Direction.FORWARD, "backward": Direction.BACKWARD}.get(word, Direction.NONE)


_ENTRY_NAME: Final = Prepared(select(_ENTRY.name).where(_ENTRY.id == number_named("entry")))
_PLACE_NAME: Final = Prepared(
    select(_PLACE.name, _PAIR.name.label("own"))
    .outerjoin(tables.node_pair, _PAIR.id == number_named("unit") + _PLACE.pair)
    .where(_PLACE.id == number_named("place"))
)


def module_path(connection: Connection, rank: int, parent: int | None) -> str:
    """Dotted path of a dump's tree row, "" for what is no module; raises NotFoundError."""
    if parent is None:
        return ""
    name = _ENTRY_NAME.value(connection, entry=tables.key(rank, parent))
    if name is None:
        raise NotFoundError(say("index.no_tree_row", parent=parent), hint=say("index.ask_top_level_without_parent"))
    return naming_path(name)


def place_name(connection: Connection, unit: int, entry: int | None) -> str:
    """Name of a comparison's place, "" above the top; raises NotFoundError."""
    if entry is None:
        return ""
    found = _PLACE_NAME.one(connection, unit=tables.key(unit), place=tables.key(unit, entry))
    if found is None:
        raise NotFoundError(say("index.no_tree_row_2", entry=entry), hint=say("index.ask_top_level_without_parent"))
    return str(found.own if found.name is None else found.name)
