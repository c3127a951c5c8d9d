"""Figures of a stored comparison: rows of the index and tensor files in, plotly figure, words and table out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dumpscope.domain.result import Answer
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import StoredUnit, get_comparison
from dumpscope.index.store.database import Database
from dumpscope.pipeline.figures import pair_figures, run_figures
from dumpscope.pipeline.figures.request import FigureRequest, FigureResult
from dumpscope.texts import say

FIGURES: Final[dict[str, Callable[[Database, StoredUnit, Answer | None, FigureRequest], FigureResult]]] = {
    "histogram": pair_figures.histogram,
    "pair-density": pair_figures.density,
    "difference-map": pair_figures.difference_map,
    "error-histogram": pair_figures.error_histogram,
    "api-distribution": run_figures.api_distribution,
    "api-errors": run_figures.all_apis,
    "error-order": run_figures.error_order,
}

OVER_RUNS: Final = "call-runs"
NAMES: Final = (*FIGURES, OVER_RUNS)


def draw(database: Database, comparison_id: str, unit: StoredUnit, name: str, wanted: FigureRequest) -> FigureResult:
    """The figure `name`; raises NotFoundError for an unknown name, node or pair, UsageError where a node is needed."""
    if name not in NAMES:
        raise NotFoundError(
            say("pipeline.no_figure", name=f"{name!r}"), hint=say("domain.known", names=", ".join(NAMES))
        )
    if name == OVER_RUNS:
        return run_figures.over_runs(database, unit, wanted, comparison_id)
    return FIGURES[name](database, unit, get_comparison(database, comparison_id).answer, wanted)
