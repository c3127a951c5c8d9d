"""Error of one call over steps, one line per rank; over ranks if there is only one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.error_axis import Lanes, lanes
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import MARK, MEASURE, OUTPUT, TARGET, Figure, axis, error_phrase, layout, number
from dumpscope.texts import Phrase, phrase

RANKS = 12
POINTS = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOverRuns:
    """The units with the call, by step and then rank; error is nan if it was not compared.

    drawn: ranks with their own line: the worst ones and the current; every `stride`-th step has a point, and the worst
    current: selected (step, rank); ranks, steps: their total numbers
    """

    name: str
    step: Int64
    rank: Int64
    error: Float64
    drawn: tuple[int, ...]
    stride: int
    current: tuple[int, int]
    floor: float | None
    lanes: Lanes

    @property
    def steps(self) -> Int64:
        return np.unique(self.step)

    @property
    def ranks(self) -> Int64:
        return np.unique(self.rank)


def call_over_runs_data(
    name: str,
    step: Sequence[int] | Int64,
    rank: Sequence[int] | Int64,
    error: Sequence[float] | Float64,
    *,
    current: tuple[int, int],
    floor: float | None = 1.0,
    log: bool = True,
) -> CallOverRuns:
    """step, rank, error: one entry per unit of the comparison that holds the call."""
    steps, ranks = np.asarray(step, dtype=np.int64), np.asarray(rank, dtype=np.int64)
    errors = np.asarray(error, dtype=np.float64)
    walk = np.lexsort((ranks, steps))
    steps, ranks, errors = steps[walk], ranks[walk], errors[walk]
    worst = {one: float(np.max(np.nan_to_num(errors[ranks == one], nan=-1.0))) for one in np.unique(ranks).tolist()}
    first = sorted(worst, key=lambda one: (one != current[1], -worst[one], one))[:RANKS]
    return CallOverRuns(
        name=name,
        step=steps,
        rank=ranks,
        error=errors,
        drawn=tuple(sorted(first)),
        stride=max(1, -(-len(np.unique(steps)) * len(first) // POINTS)),
        current=current,
        floor=floor,
        lanes=lanes(errors, np.asarray([floor] if floor else []), log=log),
    )


def call_over_runs_figure(data: CallOverRuns) -> Figure:
    """Plotly figure: lines over steps, or points over ranks."""
    by_rank = len(data.steps) == 1
    traces: list[dict[str, object]] = []
    if by_rank:
        traces.append(_line("ranks", data.rank, data, np.ones(len(data.rank), dtype=np.bool_), TARGET))
    else:
        chosen = (data.steps[:: data.stride], data.step[np.nan_to_num(data.error, nan=-1.0).argmax()], data.current[0])
        points = np.isin(data.step, np.concatenate([np.atleast_1d(one) for one in chosen]))
        for one in data.drawn:
            colour = OUTPUT if one == data.current[1] else TARGET
            traces.append(_line(f"rank {one}", data.step, data, points & (data.rank == one), colour))
    here = (data.step == data.current[0]) & (data.rank == data.current[1]) & ~np.isnan(data.error)
    if here.any():
        traces.append({
            "type": "scatter", "mode": "markers", "name": "this call", "x": (data.rank if by_rank else data.step)[here].tolist(),
            "y": data.lanes.place(data.error[here]).tolist(), "text": [number(one) for one in data.error[here].tolist()],
            "marker": {"color": MARK, "size": 12, "symbol": "diamond", "line": {"width": 2, "color": "white"}},
            "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    shapes = []
    if data.floor:
        shapes.append({
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": data.floor, "y1": data.floor,
            "line": {"dash": "dot", "width": 1, "color": MARK},
        })  # fmt: skip
    ticks = {"tickformat": "d", "dtick": 1} if max(len(data.steps), len(data.ranks)) < 8 else {"tickformat": "d"}
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis("rank" if by_rank else "step", **ticks),
            yaxis=axis(MEASURE, **data.lanes.axis()),
            shapes=shapes,
        ),
    }


def _line(name: str, across: Int64, data: CallOverRuns, where: np.ndarray, colour: str) -> dict[str, object]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "x": across[where].tolist(),
        "y": data.lanes.place(data.error[where]).tolist(),
        "text": [
            f"step {step}, rank {rank}: {number(error)}"
            for step, rank, error in zip(
                data.step[where].tolist(), data.rank[where].tolist(), data.error[where].tolist(), strict=True
            )
        ],
        "line": {"width": 1, "color": colour}, "marker": {"size": 5, "color": colour},
        "hovertemplate": "%{text}<extra></extra>", "showlegend": name != "ranks",
    }  # fmt: skip


def call_over_runs_phrases(data: CallOverRuns) -> list[Phrase]:
    """The figure in words."""
    parts = [phrase("runs.all", name=data.name, steps=len(data.steps), ranks=len(data.ranks))]
    compared = ~np.isnan(data.error)
    if not compared.any():
        return [*parts, phrase("runs.none")]
    worst = int(np.nan_to_num(data.error, nan=-1.0).argmax())
    place = {"step": int(data.step[worst]), "rank": int(data.rank[worst])}
    parts.append(phrase("runs.worst", error=number(float(data.error[worst])), **place))
    if data.floor is not None:
        above = np.flatnonzero(compared & (data.error > data.floor))
        if above.size:
            first = {"step": int(data.step[above[0]]), "rank": int(data.rank[above[0]])}
            parts.append(phrase("runs.first", floor=number(data.floor), **first))
        else:
            parts.append(phrase("runs.no_first", floor=number(data.floor)))
    here = data.error[(data.step == data.current[0]) & (data.rank == data.current[1])]
    if here.size:
        step, rank = data.current
        parts.append(phrase("runs.current", step=step, rank=rank, error=[error_phrase(float(here[0]))]))
    if len(data.drawn) < len(data.ranks):
        parts.append(phrase("runs.left", drawn=len(data.drawn)))
    return parts


def call_over_runs_table(data: CallOverRuns) -> Table:
    """One row per step and rank."""
    rows = zip(data.step.tolist(), data.rank.tolist(), data.error.tolist(), strict=True)
    return table(("step", "rank", "error"), rows)
