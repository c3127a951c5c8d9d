"""The request for a figure, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dumpscope.plots.pair.difference_map import Reduce
from dumpscope.plots.run.values import Measure
from dumpscope.plots.table import Table
from dumpscope.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRequest:
    """The request for a figure. node: name of either side; pair: key of an item pair

    log: logarithmic or linear counts or axes, None for what suits the figure
    ecdf: a histogram shows the share of elements up to each value instead of counts
    axes, reduce: of a difference map: the dimensions it shows (none for those that tell most), and how others are reduced
    item, measure: of a figure of one dump: number of a record, and what of outputs is shown (None: what was recorded)
    """

    node: str | None = None
    pair: int | None = None
    log: bool | None = None
    axes: tuple[int, ...] = ()
    reduce: Reduce = "max"
    ecdf: bool = False
    item: int | None = None
    measure: Measure | None = None

    def by_log(self, usual: bool) -> bool:
        """Whether to draw on a logarithmic scale; `usual` where the request leaves it open."""
        return usual if self.log is None else self.log


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureResult:
    """figure: plotly JSON, None where there is nothing to draw; said: the same in words, or why there is none
    table: the numbers behind the figure, svg: a drawing without a script, made when asked for; log: how it was drawn"""

    figure: dict[str, Any] | None
    said: list[Phrase]
    table: Callable[[], Table] | None = None
    svg: Callable[[], str] | None = None
    log: bool = False


def no_figure(why: Phrase) -> FigureResult:
    return FigureResult(figure=None, said=[why])
