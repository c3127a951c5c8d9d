"""The item pair of a figure, and its tensors, read from the files of both sides."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from dumpscope.errors import TensorError, UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dumps.leaves import Leaf
from dumpscope.index.dumps.load_rank import tensor_folder
from dumpscope.index.pair_queries.item_pairs import ItemPairRow, get_item_pair, items_of_node
from dumpscope.index.pair_queries.node_pairs import one_node_pair
from dumpscope.index.store.database import Database
from dumpscope.readers.tensors import tensor_file
from dumpscope.readers.tensors.arrays import LoadedTensor
from dumpscope.texts import Phrase, as_value, phrase, say

CANDIDATES: Final = 100
"""Item pairs of a node among which the one to show is looked for."""

BUDGET: Final = 4 << 30
"""Bytes of a tensor that is still drawn. Files are mapped and read in pieces: memory stays small whatever the size."""


NOT_HERE: Final = "not_here"
"""Kind of the TensorError that tells of a dump elsewhere: removed, or another machine's."""


def item_of(
    database: Database, unit: StoredUnit, node: str | None, pair: int | None, usable: Callable[[ItemPairRow], Any]
) -> ItemPairRow | None:
    """The pair asked for, or of a node's pairs the usable one with the largest score (outputs before inputs at equal score).

    None for a node without items. Raises UsageError where neither is named, NotFoundError where it is not there.
    """
    if pair is not None:
        return get_item_pair(database, unit, pair)
    if node is None:
        raise UsageError(say("pipeline.figure_about_one_pair_items"), hint=say("pipeline.add_pair_id_node_name"))
    with database.read() as connection:
        found = one_node_pair(connection, unit, node)
        rows = items_of_node(connection, unit, found.pair, limit=CANDIDATES)
    fit = [row for row in rows if usable(row)]
    if not fit:
        return rows[0] if rows else None
    return max(fit, key=lambda row: (-1.0 if row.score is None else row.score, row.role == "output"))


def has_file(leaf: Leaf | None) -> bool:
    return leaf is not None and leaf.data_name is not None


def load_sides(
    database: Database, unit: StoredUnit, row: ItemPairRow
) -> tuple[LoadedTensor | None, LoadedTensor | None]:
    """Tensor of target and golden, None where no file was dumped. Raises TensorError where one cannot be read.

    Two that were compared over a view between them have the target's shape, both.
    """
    target, golden = load_record(database, unit.target, row.target), load_record(database, unit.golden, row.golden)
    if row.detail is None or target is None or golden is None or target.array.size != golden.array.size:
        return target, golden
    return target, replace(golden, shape=target.shape, array=golden.array.reshape(target.shape))


def load_record(database: Database, rank: int, leaf: Leaf | None) -> LoadedTensor | None:
    """Tensor of a record of a stored rank, None where no file was dumped. Raises TensorError where it cannot be read."""
    if leaf is None or leaf.data_name is None:
        return None
    folder = tensor_folder(database, rank)
    if folder is None:
        return None
    if not os.path.isdir(folder):
        raise TensorError(say("pipeline.folder_not_machine"), kind=NOT_HERE, where=folder)
    return tensor_file.load(os.path.join(folder, leaf.data_name), root=folder, budget=BUDGET)


def why_unreadable(error: TensorError) -> Phrase:
    """Why a tensor that was dumped cannot be looked at."""
    if error.kind == NOT_HERE:
        return phrase("figure.not_here", path=error.where or "")
    return phrase("figure.unreadable", error=as_value(error))


def why_missing(row: ItemPairRow | None, node: str | None) -> Phrase:
    """Why there are no two tensors to look at, and which setting of a dump would bring them."""
    if row is None:
        return phrase("figure.no_items")
    if row.target is None or row.golden is None:
        side = "golden" if row.target is None else "target"
        return phrase("figure.one_side", side=[phrase(f"side.{side}")])
    return phrase("figure.no_tensors", node=row.node or node or "")
