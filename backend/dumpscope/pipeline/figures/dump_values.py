"""Values of one tensor of a dump, around one element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dumpscope.errors import TensorError
from dumpscope.index.dump_queries.outputs import get_record
from dumpscope.index.dumps.catalogue import StoredRank
from dumpscope.index.store.database import Database
from dumpscope.pipeline.figures.dump_figures import not_dumped
from dumpscope.pipeline.figures.pair_tensors import load_record, why_unreadable
from dumpscope.plots.pair.pieces import zeros
from dumpscope.plots.pair.window import Box, Landmarks, Window, landmarks, starting_point, window, worst_within
from dumpscope.readers.tensors.arrays import LoadedTensor
from dumpscope.texts import Phrase, phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPeek:
    """item: name of the record; tensor: None where it was not dumped
    window: None where there is nothing to look at, `said` tells why; its values are those of the target, without a golden
    landmarks: only of an opening: worst is the largest magnitude, first the first that is not zero
    """

    item: str
    tensor: LoadedTensor | None
    window: Window | None
    landmarks: Landmarks | None
    said: list[Phrase]


def peek_of_dump(
    database: Database,
    rank: StoredRank,
    item: int,
    *,
    at: Sequence[int] | None,
    within: Box | None = None,
    axes: Sequence[int],
    rows: int,
    columns: int,
) -> TensorPeek:
    """Values around the element `at`; without one around the largest or first not finite one of the part `within`, or of all.

    Raises NotFoundError for an unknown record, UsageError for an element or dimensions that are not there.
    """
    record = get_record(database, rank, item)

    def nothing(why: Phrase, tensor: LoadedTensor | None = None) -> TensorPeek:
        return TensorPeek(item=record.name, tensor=tensor, window=None, landmarks=None, said=[why])

    if record.shape is None:
        return nothing(phrase("figure.not_tensor"))
    try:
        tensor = load_record(database, rank.id, record)
        if tensor is None:
            return nothing(not_dumped(record))
        if not tensor.array.size:
            return nothing(phrase("tensor.empty"), tensor)
        found = None
        if at is None and within:
            at = worst_within(tensor.array, zeros(tensor.shape), within)
        elif at is None:
            found = landmarks(tensor.array, zeros(tensor.shape))
        if at is None:
            at = starting_point(tensor.shape, found)
        seen = window(tensor.array, None, at, axes=axes, rows=rows, columns=columns)
    except TensorError as error:
        return nothing(why_unreadable(error))
    down, across = seen.axes
    row = 0 if down is None else seen.at[down] - seen.row
    value = seen.values[row][seen.at[across] - seen.column].target or ""
    said = [phrase("peek.value", index=", ".join(map(str, seen.at)), value=value)]
    return TensorPeek(item=record.name, tensor=tensor, window=seen, landmarks=found, said=said)
