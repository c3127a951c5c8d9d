"""Heat map of the magnitudes of one tensor over two of its dimensions: the map of its difference from zero."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from numpy.typing import NDArray

from dumpscope.plots.pair.difference_map import (
    DifferenceMap,
    MapWords,
    Reduce,
    cells_phrases,
    difference_map_data,
    difference_map_figure,
    difference_map_table,
    index_word,
)
from dumpscope.plots.pair.pieces import zeros
from dumpscope.plots.pair.profiles import runs
from dumpscope.plots.table import Table
from dumpscope.plots.template import Figure, number
from dumpscope.texts import Phrase, phrase

VALUES: Final = MapWords(
    most="largest magnitude",
    rms="rms magnitude",
    lost="%{y}, %{x}: %{customdata} not finite<extra></extra>",
    columns=("magnitude", "not finite"),
)


def value_map_data(
    tensor: NDArray[Any], *, axes: Sequence[int] = (), reduce: Reduce = "max", log: bool = True
) -> DifferenceMap:
    """|tensor| over `axes`, reduced over all others; see `difference_map_data`. Cells that hold only zeros are 0."""
    return difference_map_data(tensor, zeros(tensor.shape), axes=axes, reduce=reduce, log=log)


def value_map_figure(data: DifferenceMap) -> Figure:
    """Plotly figure: cells of zeros without colour, cells with NaN or infinity in their own."""
    return difference_map_figure(data, VALUES)


def value_map_phrases(data: DifferenceMap) -> list[Phrase]:
    """The figure in words: the indices that alone hold anything but zero, or stand out, in every dimension."""
    if not prod(data.shape):
        return [phrase("tensor.empty")]
    largest = max(float(one.worst.max()) for one in data.profiles)
    lost = int(data.lost.sum())
    if largest == 0 and not lost:
        return [phrase("value_map.zero")]
    parts = [phrase("value_map.largest", most=number(largest))]
    for one in data.profiles:
        where: dict[str, Any] = {
            "what": [phrase(index_word(one.axis, len(data.shape)))],
            "size": one.size,
            "axis": one.axis,
        }
        if one.only.size:
            parts.append(phrase("value_map.only", indices=runs(one.only), **where))
        if one.outstanding.size:
            typical = number(one.typical)
            parts.append(phrase("value_map.outstanding", indices=runs(one.outstanding), typical=typical, **where))
    if lost:
        parts.append(phrase("value_map.lost", count=lost))
    return [*parts, *cells_phrases(data)]


def value_map_table(data: DifferenceMap) -> Table:
    """One row per cell: its indices, its magnitude, and the number of its elements that are not finite."""
    return difference_map_table(data, VALUES)
