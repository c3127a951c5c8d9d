"""A part of the data flow that fits a screen: some calls around one, what passed between them, what came from nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from sqlalchemy import Connection

from dumpscope.analysis.neighbourhood import Hidden, Link, surround
from dumpscope.analysis.unit.case import RECEIVED
from dumpscope.analysis.unit.weight_items import WEIGHT_ARGUMENTS
from dumpscope.domain.facts import Verdict
from dumpscope.domain.records import Number
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.dataflow import Tensor, keys_of, source_on_other_rank, tensors, wires_of
from dumpscope.index.pair_queries.item_pairs import ItemPairRow, item_pair_rows
from dumpscope.index.pair_queries.node_pairs import NodePairRow, node_pair_rows, one_node_pair
from dumpscope.index.pair_queries.paths.links import UnitLinks, unit_links, way_from
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.trees.trees import place_names

LinkWord = Literal["received", "saved", "before"]
EndWord = Literal["weight", "not_dumped", "constant", "unstored", "golden_only", "sent"]

ROOM: Final = {1: 10, 2: 8, 3: 5}
"""Calls shown in each step, by the number of steps on each side: at most 33 in all, so that each can be read."""
ENDS: Final = 7
"""Tensors without a maker that are shown; of one call at most END_ITEMS are looked at."""
END_ITEMS: Final = 50
LONGEST_QUERY: Final = 480
"""Letters of a search; a route takes 500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """hop: steps before (negative) or after the call in the middle; module: name of the module around it, "" without one
    place: on the way from the origin, 0 is the origin; None beside the way"""

    node: NodePairRow
    hop: int
    module: str
    place: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What one call passed to another. maker, reader: node pairs; item: the worst of `items` tensors, None where the link is
    assumed; made: its name as the maker's output; error: relative, None where there is none; way: on the way"""

    maker: int
    reader: int
    word: LinkWord
    item: ItemPairRow | None
    items: int
    error: Number | None
    way: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Something that no shown call made. reader: node pair; node, rank: the call of another rank that sent it"""

    reader: int
    word: EndWord
    item: ItemPairRow | None
    items: int
    error: Number | None
    node: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """Calls of one step that found no room; query: a search that finds them"""

    hop: int
    count: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """From the first origin to the end of its difference: `length` calls; place: of the call in the middle, None beside it"""

    start: NodePairRow
    end: NodePairRow
    length: int
    place: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathView:
    middle: int
    hops: int
    boxes: list[Box]
    passages: list[Passage]
    ends: list[End]
    more: list[More]
    way: Way | None


def path_view(database: Database, unit: StoredUnit, name: str, *, hops: int, start: int | None) -> PathView:
    """start: node pair of the origin that the way begins at.

    Raises NotFoundError for an unknown node, ConflictError where the result was stored before data flow was kept."""
    known = unit_links(database, unit)
    calls, links = known.calls, known.links
    way = [] if start is None or start >= len(calls.names) else way_from(database, unit, start)
    with database.read() as connection:
        middle = one_node_pair(connection, unit, name)
        inside = known.inside(middle.pair)
        around = surround(calls, links, middle.pair, inside=inside, hops=hops, room=ROOM[hops], way=way)
        rows = node_pair_rows(connection, unit, [*around.hop, *way[:1], *way[-1:]])
        modules = _modules(connection, unit, known, around.hop)
        place = {pair: at for at, pair in enumerate(way)}
        source = source_on_other_rank(connection, unit, middle)
        sent = []
        if source is not None:
            name, rank = source.node.address, source.rank
            sent = [End(reader=middle.pair, word="sent", item=None, items=0, error=None, node=name, rank=rank)]
        return PathView(
            middle=middle.pair,
            hops=hops,
            boxes=[
                Box(node=rows[pair], hop=hop, module=modules.get(pair, ""), place=place.get(pair))
                for pair, hop in sorted(around.hop.items(), key=lambda one: (one[1], one[0]))
            ],
            passages=_passages(connection, unit, known, set(around.hop), middle.pair, inside, place),
            ends=[*sent, *_ends(connection, unit, known, rows, around.hop)],
            more=[More(hop=one.hop, count=len(one.calls), query=_query(one, calls.names)) for one in around.hidden],
            way=Way(start=rows[way[0]], end=rows[way[-1]], length=len(way), place=place.get(middle.pair))
            if way
            else None,
        )


def shown_error(item: ItemPairRow) -> Number | None:
    """The relative error that is shown of a pair: relative L2, else of Norm, else the larger of Max and Min."""
    found = item.metrics
    for name in ("rel_l2", "norm_rel"):
        if name in found:
            return found[name]
    ends = [found[name] for name in ("max_rel", "min_rel") if name in found]
    return max(ends, default=None, key=lambda value: float(value or 0))


def _passages(
    connection: Connection,
    unit: StoredUnit,
    known: UnitLinks,
    shown: set[int],
    middle: int,
    inside: set[int],
    place: dict[int, int],
) -> list[Passage]:
    """What passed between the shown calls; what calls inside the middle made counts as made by it."""
    links = known.links
    groups: dict[tuple[int, int], list[int]] = {}
    for reader in sorted(shown):
        rows = links.into(reader)
        for maker, row in zip(links.maker[rows].tolist(), rows.tolist(), strict=True):
            own = maker if maker in shown else middle if maker in inside and reader != middle else -1
            if own >= 0 and own != reader:
                groups.setdefault((own, reader), []).append(row)
    worst = {
        ends: max(rows, key=lambda row: (bool(links.differs[row]), float(links.severity[row])))
        for ends, rows in groups.items()
    }
    base = tables.key(unit.id)
    keys = [base + int(links.item[row]) for row in worst.values() if links.item[row] >= 0]
    items = {item.id: item for item in item_pair_rows(connection, unit, keys)}
    found = []
    for (maker, reader), row in worst.items():
        item = items.get(base + int(links.item[row])) if links.item[row] >= 0 else None
        kind = Link(int(links.kind[row]))
        on_way = maker in place and place.get(reader) == place[maker] + 1 and bool(links.differs[row])
        found.append(
            Passage(
                maker=maker,
                reader=reader,
                word=_LINK_WORDS[kind],
                item=item,
                items=len(groups[maker, reader]),
                error=None if item is None else shown_error(item),
                way=on_way,
            )
        )
    return found


_LINK_WORDS: Final[dict[Link, LinkWord]] = {
    Link.RECEIVED: "received", Link.SAVED: "saved", Link.BEFORE: "before",
}  # fmt: skip


def _ends(
    connection: Connection, unit: StoredUnit, known: UnitLinks, rows: dict[int, NodePairRow], hops: dict[int, int]
) -> list[End]:
    """Tensors that no dumped call made: all that the middle received; of calls before it those that differ, and one of each
    that received nothing else."""
    wires = wires_of(connection, unit)
    named = np.full(len(known.pair), -1, np.int32) if wires is None else wires.named
    found: list[tuple[int, Tensor]] = []
    for pair, _ in sorted(((pair, hop) for pair, hop in hops.items() if hop <= 0), key=lambda one: (-one[1], one[0])):
        linked = {int(item) for item in known.links.item[known.links.into(pair)]}
        keys = [key for key in keys_of(connection, unit, pair) if key & tables.NUMBER_MASK not in linked]
        found += [
            (pair, tensor)
            for tensor in tensors(connection, unit, keys[:END_ITEMS], named)
            if tensor.role in RECEIVED and (hops[pair] == 0 or not linked or tensor.verdict >= Verdict.WARNING)
        ]
    found = found[:END_ITEMS]
    items = {item.id: item for item in item_pair_rows(connection, unit, [tensor.key for _, tensor in found])}
    groups: dict[tuple[int, EndWord], list[Tensor]] = {}
    for pair, tensor in found:
        word: EndWord = "weight" if _is_weight(rows[pair], items[tensor.key]) else tensor.untold
        groups.setdefault((pair, word), []).append(tensor)
    ends = []
    for (pair, word), group in groups.items():
        worst = max(group, key=lambda tensor: (tensor.verdict >= Verdict.WARNING, tensor.severity))
        item = items[worst.key]
        ends.append(End(reader=pair, word=word, item=item, items=len(group), error=shown_error(item)))
    ends.sort(key=lambda end: (hops[end.reader] != 0, end.item is None or end.item.verdict not in ("no", "warning")))
    return ends[:ENDS]


def _is_weight(node: NodePairRow, item: ItemPairRow) -> bool:
    """A parameter of a module, or an argument in which its API takes one."""
    api = (node.api or "").rpartition(".")[2].lower()
    leaf = item.target or item.golden
    argument = "" if leaf is None else leaf.path.partition(".")[0]
    taken = item.role in ("input", "kwargs") and argument in WEIGHT_ARGUMENTS.get(api, ())
    return item.role == "parameters" or (taken and node.direction == "forward")


def _query(hidden: Hidden, names: Sequence[str]) -> str:
    """A search for what the shown calls received (`feeds:`) or passed on (`reads:`); with the calls that hide most, if not all
    fit."""
    key = "feeds" if hidden.hop < 0 else "reads"
    text = ""
    for call in hidden.beside:
        name = names[call]
        longer = f"{text or f'{key}:'}{',' if text else ''}" + (f'"{name}"' if set(name) & set(' ,"') else name)
        if text and len(longer) > LONGEST_QUERY:
            break
        text = longer
    return text


def _modules(connection: Connection, unit: StoredUnit, known: UnitLinks, pairs: Iterable[int]) -> dict[int, str]:
    """Names of the modules around these node pairs."""
    calls = known.calls
    above = {pair: int(calls.above[calls.entry[pair]]) for pair in pairs}
    keys = sorted({tables.key(unit.id, place) for place in above.values() if place >= 0})
    names = {key & tables.NUMBER_MASK: name for key, name in place_names(connection, unit, keys).items()}
    return {pair: names[place] for pair, place in above.items() if place in names}
