"""What every call of a rank put out, as columns for figures that show all of them; the last ones stay in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.records import Bool, Direction, Float64, Int64, Kind, NodeKind, State
from dumpscope.index.dump_queries.outputs import OUTPUTS
from dumpscope.index.dumps.catalogue import StoredRank
from dumpscope.index.dumps.items import all_items, gone_rank
from dumpscope.index.store import tables
from dumpscope.index.store.codec import with_states
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.item_blocks import ItemColumns
from dumpscope.index.store.recent import Recent
from dumpscope.index.store.texts import texts_by_id

KEPT: Final = 4
"""Ranks kept; one of 100 000 calls takes some 14 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueColumns:
    """One entry per node, in file order.

    apis: name and direction of each API; api: number of each node's, -1 where it has none
    backward: the node is of the backward pass
    norm, largest: norm and largest magnitude of its first output tensor, nan where none was stored
    lost: a statistic of one of its output tensors is NaN or infinite
    """

    names: tuple[str, ...]
    apis: list[tuple[str, int]]
    api: Int64
    backward: Bool
    norm: Float64
    largest: Float64
    lost: Bool


_RECENT: Final[Recent[tuple[str, str | None, int], ValueColumns]] = Recent(KEPT)


def value_columns(database: Database, rank: StoredRank, stamp: str | None) -> ValueColumns:
    """Columns of a rank, read once. stamp: the job that read the dump, which tells apart an id that is used again

    Raises NotFoundError where the rank is being removed.
    """
    return _RECENT.get((database.url, stamp, rank.id), lambda: _load(database, rank))


def _load(database: Database, rank: StoredRank) -> ValueColumns:
    first, _last = tables.key_range(rank.id)
    with database.read() as connection:
        entries = fetch_columns(
            connection,
            "SELECT name, COALESCE(kind, -1), COALESCE(direction, -1), COALESCE(label, -1) FROM entry"
            f" WHERE id BETWEEN {first} AND {first + rank.nodes - 1} ORDER BY id",
        )
        items = all_items(connection, rank.id)
        names, kind, direction, label = entries or [[] for _ in range(4)]
        if len(names) != rank.nodes or len(items) != rank.items:
            raise gone_rank()
        codes = np.array(label, dtype=np.int64)
        ways = np.array(direction, dtype=np.int64)
        kinds, number = np.unique(np.where(codes < 0, -1, codes * 8 + ways), return_inverse=True)
        texts = texts_by_id(connection, {int(one) // 8 for one in kinds if one >= 0})
    nameless = int(np.count_nonzero(kinds < 0))  # 0 or 1: they come first
    norm, largest, lost = _outputs(items, rank.nodes)
    gradient = np.array(kind, dtype=np.int8) == NodeKind.GRADIENT
    return ValueColumns(
        names=tuple(names),
        apis=[(texts[int(one) // 8], int(one) % 8) for one in kinds[nameless:]],
        api=number - nameless,
        backward=(ways == Direction.BACKWARD) | gradient,
        norm=norm,
        largest=largest,
        lost=lost,
    )


def _outputs(items: ItemColumns, nodes: int) -> tuple[Float64, Float64, Bool]:
    """(norm and largest magnitude of each node's first output, whether any of its outputs is not finite)"""
    norm, largest = np.full(nodes, np.nan), np.full(nodes, np.nan)
    lost = np.zeros(nodes, dtype=np.bool_)
    rows = np.flatnonzero(np.isin(items.role, OUTPUTS) & (items.kind == Kind.TENSOR))
    node, states = items.node[rows], items.states[rows]
    values = with_states(items.stats[rows], states)
    bad = (states != State.ABSENT) & (states != State.FINITE)
    lost[node[bad.any(axis=1)]] = True
    whose, start = np.unique(node, return_index=True)
    norm[whose] = values[start, 3]
    largest[whose] = np.fmax(np.abs(values[start, 0]), np.abs(values[start, 1]))
    return norm, largest, lost
