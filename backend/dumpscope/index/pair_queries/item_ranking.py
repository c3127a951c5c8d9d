"""Item pairs of a unit by their error, worst first; those of the last units asked for stay in memory.

To sort the items of a common operator takes a database as long as reading a tenth of the unit, for every page anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import Connection

from dumpscope.domain.records import Float64, Int8, Int32, Int64
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store import tables
from dumpscope.index.store.database import fetch_columns
from dumpscope.index.store.recent import Recent

KEPT: Final = 4
"""Units kept; one of 100 000 calls takes some 7 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRanking:
    """item: numbers of the item pairs, worst first, of equals the first one; severity, verdict, node: of the items in that order
    label: of each node pair, the id of its API's text, -1 without"""

    item: Int32
    severity: Float64
    verdict: Int8
    node: Int32
    label: Int64

    def nodes_of(self, labels: Sequence[int]) -> Int64:
        """Numbers of the node pairs with these labels."""
        return np.flatnonzero(np.isin(self.label, np.array(labels, np.int64)))

    def page(
        self, verdicts: list[int], nodes: Int64 | None, after: tuple[float, int] | None, limit: int
    ) -> tuple[list[tuple[float, int]], bool, int]:
        """(severity, number) of up to `limit` items behind `after`, whether more follow, and how many there are in all.

        nodes: only of these node pairs, None for all; verdicts: only with these, empty for all
        """
        rows = self._chosen(verdicts, nodes)
        first = 0
        if after is not None:
            severity, number = after
            behind = (self.severity[rows] < severity) | ((self.severity[rows] == severity) & (self.item[rows] > number))
            first = int(np.argmax(behind)) if behind.any() else len(rows)
        shown = rows[first : first + limit]
        found = list(zip(self.severity[shown].tolist(), self.item[shown].tolist(), strict=True))
        return found, first + limit < len(rows), len(rows)

    def in_order(
        self, verdicts: list[int], nodes: Int64 | None, after: int | None, limit: int
    ) -> tuple[list[int], bool, int]:
        """The same by number: numbers of up to `limit` items behind the number `after`, whether more follow, how many in all."""
        numbers = np.sort(self.item[self._chosen(verdicts, nodes)])
        first = 0 if after is None else int(np.searchsorted(numbers, after, side="right"))
        return numbers[first : first + limit].tolist(), first + limit < len(numbers), len(numbers)

    def _chosen(self, verdicts: list[int], nodes: Int64 | None) -> Int64:
        """Rows with these verdicts (any where empty) of these node pairs (all where None)."""
        chosen = np.ones(len(self.item), bool)
        if verdicts:
            chosen &= np.isin(self.verdict, verdicts)
        if nodes is not None:
            wanted = np.zeros(int(self.node.max(initial=-1)) + 1, bool)
            wanted[nodes[nodes < len(wanted)]] = True
            chosen &= wanted[self.node]
        return np.flatnonzero(chosen)


_RECENT: Final[Recent[tuple[str, str, int], ItemRanking]] = Recent(KEPT)


def item_ranking(connection: Connection, unit: StoredUnit) -> ItemRanking:
    """Read once per judgement of a comparison that is done."""
    key = None if unit.stamp is None else (str(connection.engine.url), unit.stamp, unit.id)
    return _RECENT.get(key, lambda: _load(connection, unit))


def _load(connection: Connection, unit: StoredUnit) -> ItemRanking:
    first, last = tables.key_range(unit.id)
    columns = fetch_columns(
        connection, f"SELECT id, severity, verdict, node FROM item_pair WHERE id BETWEEN {first} AND {last} ORDER BY id"
    )
    named = fetch_columns(
        connection, f"SELECT COALESCE(label, -1) FROM node_pair WHERE id BETWEEN {first} AND {last} ORDER BY id"
    )
    keys, severities, verdicts, nodes = columns or [[], [], [], []]
    severity = np.array(severities, np.float64)
    order = np.argsort(-severity, kind="stable")
    return ItemRanking(
        item=(np.array(keys, np.int64) & tables.NUMBER_MASK).astype(np.int32)[order],
        severity=severity[order],
        verdict=np.array(verdicts, np.int8)[order],
        node=np.array(nodes, np.int32)[order],
        label=np.array(named[0] if named else [], np.int64),
    )
