"""Ranks that stray: a number that the other ranks agree about, and one of them has not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

import numpy as np

from dumpscope.analysis.monitor.divergence import distances
from dumpscope.domain.monitor.findings import StrayRank
from dumpscope.domain.monitor.tables import Bool, Float64, MetricTable

FEWEST: Final = 3
"""Ranks from which one can be called odd."""
TIMES: Final = 20.0
"""How much farther from the median of the ranks than the farthest other one."""
FLOOR: Final = 1e-5


def find_stray_ranks(tables: Mapping[int, MetricTable], statistic: str = "norm") -> list[StrayRank]:
    """The odd ranks of a metric, by step. tables: of one metric, by rank; steps and names that all have are compared"""
    if len(tables) < FEWEST:
        return []
    ranks = sorted(tables)
    steps = reduce(np.intersect1d, [tables[rank].steps for rank in ranks])
    places = {rank: {name: place for place, name in enumerate(tables[rank].names)} for rank in ranks}
    names = [name for name in tables[ranks[0]].names if all(name in places[rank] for rank in ranks)]
    if not len(steps) or not names:
        return []
    cube: Float64 = np.full((len(ranks), len(steps), len(names)), np.nan)
    measured: Bool = np.zeros(cube.shape, dtype=np.bool_)
    for place, rank in enumerate(ranks):
        column = tables[rank].column(statistic)
        if column is None:
            return []
        columns = [places[rank][name] for name in names]
        rows_of = np.searchsorted(tables[rank].steps, steps)
        cube[place] = column[rows_of][:, columns]
        measured[place] = tables[rank].measured(statistic)[rows_of][:, columns]
    usual = _median(cube)
    away = distances(cube, np.broadcast_to(usual, cube.shape))
    away[:, np.isnan(usual)] = 0.0
    away[~measured] = 0.0  # an expert without tokens has no gradient there: nothing that could stray
    ordered = np.sort(away, axis=0)
    odd = (ordered[-1] > FLOOR) & (ordered[-1] > TIMES * ordered[-2])
    which = np.argmax(away, axis=0)
    found = []
    for place, rank in enumerate(ranks):
        own = odd & (which == place)
        rows = np.flatnonzero(own.any(axis=1))
        if not len(rows):
            continue
        row = int(rows[0])
        column_at = int(np.argmax(np.where(own[row], away[place, row], -1.0)))
        found.append(
            StrayRank(
                rank=rank,
                metric=tables[rank].metric,
                name=names[column_at],
                step=int(steps[row]),
                series=int(own[row].sum()),
                steps=len(rows),
                value=float(cube[place, row, column_at]),
                usual=float(usual[row, column_at]),
            )
        )
    return sorted(found, key=lambda one: (one.step, -one.series, one.rank))


def _median(cube: Float64) -> Float64:
    """Median over the ranks, NaN where fewer than half of them have a finite number."""
    enough = np.isfinite(cube).sum(axis=0) * 2 > len(cube)
    out = np.full(cube.shape[1:], np.nan)
    if enough.any():
        finite = np.where(np.isfinite(cube), cube, np.nan)
        out[enough] = np.nanmedian(finite[:, enough], axis=0)
    return out
