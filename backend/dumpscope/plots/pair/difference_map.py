"""Heat map of the difference of a tensor pair over two of its dimensions: which rows, tokens or channels differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Float64, Int64
from dumpscope.errors import UsageError
from dumpscope.plots.pair.pieces import row_pieces
from dumpscope.plots.pair.profiles import Profile, leading, magnitudes, profiles, runs, sized, telling_axes
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import LOST, SHADES, Figure, axis, colour_bar, layout, number, rounded
from dumpscope.texts import Phrase, phrase, say

ROWS: Final = 56
COLUMNS: Final = 80

Reduce = Literal["max", "rms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapWords:
    """What a map calls what its cells hold. most, rms: by reduction; lost: of a cell's elements that are not finite;
    columns: of the table, both"""

    most: str
    rms: str
    lost: str
    columns: tuple[str, str]


DIFFERENCES: Final = MapWords(
    most="largest difference",
    rms="rms difference",
    lost="%{y}, %{x}: %{customdata} not finite on one side<extra></extra>",
    columns=("difference", "not finite on one side"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceMap:
    """cells: largest or root mean square difference of the elements of each cell, shape (rows, columns); 0: all equal there
    lost: elements of each cell that are not finite on one side, or not finite in different ways; they are counted only here
    axes: dimension that goes down (None for a vector) and dimension that goes across
    down, across: index at which each row and column of cells starts, and the end
    profiles: one per dimension of the tensor
    """

    shape: tuple[int, ...]
    axes: tuple[int | None, int]
    reduce: Reduce
    log: bool
    cells: Float64
    lost: Int64
    down: Int64
    across: Int64
    profiles: tuple[Profile, ...]


def difference_map_data(
    target: NDArray[Any],
    golden: NDArray[Any],
    *,
    axes: Sequence[int] = (),
    reduce: Reduce = "max",
    log: bool = True,
    cells: tuple[int, int] = (ROWS, COLUMNS),
) -> DifferenceMap:
    """|target - golden| of two arrays of one shape over `axes`, reduced over all others; read twice in small pieces.

    axes: one or two dimensions, negative ones from the end; if left out, the ones that confine the difference most
    cells: most rows and columns; if a dimension is longer, a cell holds several indices
    Raises UsageError for different shapes and missing dimensions.
    """
    if target.shape != golden.shape:
        raise UsageError(
            say("plots.shapes_differ_there_no_common_map", shape=list(target.shape), shape2=list(golden.shape))
        )
    shape = sized(target.shape)
    found = profiles(target, golden)
    chosen = _axes(axes, len(shape)) or telling_axes(found)
    across_axis = chosen[-1]
    down_axis = chosen[0] if len(chosen) > 1 else None
    down = _edges(1 if down_axis is None else shape[down_axis], cells[0])
    across = _edges(shape[across_axis], cells[1])
    grid = _Grid(
        shape, down_axis, across_axis, down, across, scale=max(float(one.worst.max(initial=0)) for one in found)
    )
    for row, column, piece in row_pieces(target, golden):
        grid.add(row, column, piece.change())
    return DifferenceMap(
        shape=target.shape,
        axes=(down_axis, across_axis),
        reduce=reduce,
        log=log,
        cells=grid.worst if reduce == "max" else grid.rms(),
        lost=grid.lost,
        down=down,
        across=across,
        profiles=found,
    )


def _axes(axes: Sequence[int], dimensions: int) -> tuple[int, ...]:
    chosen = tuple(one + dimensions if one < 0 else one for one in axes)
    if len(chosen) > 2 or len(set(chosen)) < len(chosen) or not all(0 <= one < dimensions for one in chosen):
        raise UsageError(
            say("plots.tensor_has_no_dimensions", axes=list(axes)),
            hint=say("plots.name_one_two_counted_from_0", dimensions=dimensions),
        )
    return chosen


def _edges(size: int, most: int) -> Int64:
    count = max(1, min(size, most))
    return np.arange(count + 1) * size // count


class _Grid:
    """Cells, while pieces are added. scale: largest difference, so that no square overflows"""

    def __init__(
        self,
        shape: tuple[int, ...],
        down_axis: int | None,
        across_axis: int,
        down: Int64,
        across: Int64,
        *,
        scale: float,
    ) -> None:
        self._shape, self._scale = shape, scale or 1.0
        self._axes = [(across_axis, across, 1)]
        if down_axis is not None:
            self._axes.append((down_axis, down, len(across) - 1))
        self._cells = (len(down) - 1, len(across) - 1)
        rest = prod(shape) // max(1, prod(shape[one] for one, _, _ in self._axes))
        self._elements = np.outer(np.diff(down), np.diff(across)) * rest
        count = self._cells[0] * self._cells[1]
        self._worst, self._squares, self._lost = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)

    def add(self, row: int, column: int, change: Float64) -> None:
        width = min(self._shape[-1] - column, len(change))
        size, lost = (part.reshape(-1, width) for part in magnitudes(change))
        before = leading(self._shape, row, len(size))
        starts = np.zeros(1, dtype=np.int64)
        places = np.zeros((len(size), 1), dtype=np.int64)
        for dimension, edges, stride in self._axes:
            if dimension == len(self._shape) - 1:
                buckets = np.searchsorted(edges, np.arange(column, column + width), side="right") - 1
                starts = np.flatnonzero(np.diff(buckets, prepend=-1))
                places = places + buckets[starts] * stride
            else:
                buckets = np.searchsorted(edges, before[dimension], side="right") - 1
                places = places + (buckets * stride)[:, None]
        flat = np.broadcast_to(places, (len(size), len(starts))).reshape(-1)
        np.maximum.at(self._worst, flat, np.maximum.reduceat(size, starts, axis=1).reshape(-1))
        squares = np.add.reduceat(np.square(size / self._scale), starts, axis=1)
        np.add.at(self._squares, flat, squares.reshape(-1))
        if lost.any():
            np.add.at(self._lost, flat, np.add.reduceat(lost.astype(np.int64), starts, axis=1).reshape(-1))

    @property
    def worst(self) -> Float64:
        return self._worst.reshape(self._cells)

    @property
    def lost(self) -> Int64:
        return self._lost.reshape(self._cells)

    def rms(self) -> Float64:
        """Root mean square over the elements whose difference is finite."""
        finite = np.maximum(1, self._elements - self.lost)
        return np.sqrt(self._squares.reshape(self._cells) / finite) * self._scale


def difference_map_figure(data: DifferenceMap, words: MapWords = DIFFERENCES) -> Figure:
    """Plotly figure: index along each dimension, the first row on top, equal cells without colour, cells with NaN or infinity
    in their own colour."""
    differs = data.cells > 0
    with np.errstate(divide="ignore"):
        shown = np.log10(data.cells) if data.log else data.cells
    sides = {"x": (data.across - 0.5).tolist(), "y": (data.down - 0.5).tolist()}
    seen = shown[differs]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    if not data.log:
        low = 0.0
    elif high - low < 1:
        low = high - 1
    what = words.most if data.reduce == "max" else words.rms
    traces: list[dict[str, object]] = [
        {
            "type": "heatmap", "name": what, **sides,
            "z": [
                [value if there else None for value, there in zip(row, mask, strict=True)]
                for row, mask in zip(rounded(shown, 4), differs.tolist(), strict=True)
            ],
            "customdata": rounded(data.cells, 4), "colorscale": SHADES, "zmin": low, "zmax": high,
            "colorbar": colour_bar(what, _ticks(low, high)) if data.log else {**colour_bar(what, []), "tickmode": "auto"},
            "hovertemplate": "%{y}, %{x}: %{customdata}<extra></extra>", "hoverongaps": False,
        }
    ]  # fmt: skip
    if data.lost.any():
        traces.append({
            "type": "heatmap", "name": "not finite", **sides,
            "z": [[1 if count else None for count in row] for row in data.lost.tolist()], "customdata": data.lost.tolist(),
            "colorscale": [[0, LOST], [1, LOST]], "showscale": False, "hoverongaps": False,
            "hovertemplate": words.lost,
        })  # fmt: skip
    down, across = data.axes
    rows = int(data.down[-1])
    upright = {"showticklabels": False, "ticks": ""} if down is None else _whole(rows)
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis(f"dim {across}", range=[-0.5, int(data.across[-1]) - 0.5], **_whole(int(data.across[-1]))),
            yaxis=axis("" if down is None else f"dim {down}", range=[rows - 0.5, -0.5], **upright),
            meta={"axes": [across] if down is None else [down, across]},
        ),
    }


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    powers = range(int(np.ceil(low)), int(np.floor(high)) + 1)
    return [(float(power), f"1e{power}") for power in powers] or [(high, f"{10.0**high:.2g}")]


def _whole(size: int) -> dict[str, Any]:
    """About six ticks, at whole indices only."""
    rough = max(1, size // 6)
    step = 10 ** (len(str(rough)) - 1)
    step *= next(times for times in (1, 2, 5, 10) if step * times >= rough)
    return {"tick0": 0, "dtick": step, "zeroline": False}


def difference_map_phrases(data: DifferenceMap) -> list[Phrase]:
    """The figure in words: the indices that differ or differ most, in every dimension, shown or not."""
    if not prod(data.shape):
        return [phrase("values.empty")]
    worst = max(float(one.worst.max()) for one in data.profiles)
    lost = int(data.lost.sum())
    if worst == 0 and not lost:
        return [phrase("map.equal")]
    parts = []
    for one in data.profiles:
        what = [phrase(index_word(one.axis, len(data.shape)))]
        if one.only.size:
            parts.append(phrase("map.only", what=what, indices=runs(one.only), size=one.size, axis=one.axis))
        if one.outstanding.size:
            indices, most = runs(one.outstanding), number(float(one.worst[one.outstanding].max()))
            parts.append(
                phrase(
                    "map.outstanding",
                    what=what,
                    indices=indices,
                    size=one.size,
                    axis=one.axis,
                    most=most,
                    typical=number(one.typical),
                )
            )
    if not parts:
        parts.append(phrase("map.everywhere"))
    parts.append(phrase("map.largest", most=number(worst)))
    if lost:
        parts.append(phrase("map.lost", count=lost))
    return [*parts, *cells_phrases(data)]


def cells_phrases(data: DifferenceMap) -> list[Phrase]:
    """Which of the drawn dimensions have several indices in a cell."""
    sides = zip(data.axes, (data.down, data.across), strict=True)
    sizes = [(one, sized(data.shape)[one], len(edges) - 1) for one, edges in sides if one is not None]
    return [phrase("map.cells", axis=one, size=size, cells=cells) for one, size, cells in sizes if size > cells]


def index_word(number: int, dimensions: int) -> str:
    """Text id of what the indices of a dimension are called."""
    if dimensions != 2:
        return "map.indices"
    return "map.rows" if number == 0 else "map.columns"


def difference_map_table(data: DifferenceMap, words: MapWords = DIFFERENCES) -> Table:
    """One row per cell: its indices, its difference, and the number of its elements that are not finite on one side."""
    down, across = data.axes
    names = (["row"] if down is None else [f"dim {down} from", f"dim {down} to"]) + [
        f"dim {across} from",
        f"dim {across} to",
    ]
    rows = []
    for row, (above, below) in enumerate(zip(data.down.tolist(), data.down[1:].tolist(), strict=False)):
        place = [row] if down is None else [above, below - 1]
        for column, (left, right) in enumerate(zip(data.across.tolist(), data.across[1:].tolist(), strict=False)):
            cell = float(data.cells[row, column]), int(data.lost[row, column])
            rows.append([*place, left, right - 1, *cell])
    held, lost = words.columns
    return table([*names, f"{data.reduce} {held}", lost], rows)
