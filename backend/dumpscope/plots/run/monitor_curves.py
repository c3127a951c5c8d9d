"""Series of monitored runs over their steps: a line for each series and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.template import (
    DIFFERENCE,
    GOLDEN,
    INPUT,
    LOST,
    MARK,
    OUTPUT,
    TARGET,
    Figure,
    axis,
    layout,
    number,
    plain,
    rounded,
    shorten,
)
from dumpscope.texts import Phrase, phrase

COLOURS: Final = (TARGET, DIFFERENCE, OUTPUT, INPUT, LOST)
LOG_FROM: Final = 30.0
"""Largest over smallest number from which the axis is logarithmic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedCurve:
    """One series. run: what its run is called; golden: whether it is the run that is trusted; steps: ascending"""

    name: str
    run: str
    golden: bool
    steps: Int64
    values: Float64


def curves_figure(curves: Sequence[PlottedCurve], step: int | None = None) -> tuple[Figure | None, bool]:
    """Plotly figure, None where there is no number, and whether its axis is logarithmic. step: one to mark"""
    if not any(len(one.steps) for one in curves):
        return None, False
    known = np.concatenate([one.values[np.isfinite(one.values)] for one in curves])
    log = bool(known.size and known.min() > 0 and known.max() / known.min() > LOG_FROM)
    traces: list[dict[str, Any]] = []
    single = len({one.name for one in curves}) == 1
    places = {name: place for place, name in enumerate(dict.fromkeys(one.name for one in curves if not one.golden))}
    colour = TARGET
    for one in curves:
        if not one.golden:
            colour = COLOURS[places[one.name] % len(COLOURS)]
        label = one.run if single else f"{shorten(one.name, 40)} {one.run}".strip()
        traces += _traces(one, plain(label) or plain(one.name), GOLDEN if one.golden and single else colour, known)
    shapes: list[dict[str, Any]] = []
    if step is not None:
        line = {"color": MARK, "width": 1}
        shapes.append({"type": "line", "x0": step, "x1": step, "y0": 0, "y1": 1, "yref": "paper", "line": line})
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis("step"),
            yaxis=axis("", type="log" if log else "linear", exponentformat="e"),
            shapes=shapes,
            showlegend=len(traces) > 1,
        ),
    }, log


def _traces(one: PlottedCurve, label: str, colour: str, known: Float64) -> list[dict[str, Any]]:
    finite = np.isfinite(one.values)
    line: dict[str, Any] = {"color": colour, "width": 1.5}
    if one.golden:
        line["dash"] = "dot"
    values: list[float | None] = [
        value if sound else None for value, sound in zip(rounded(one.values), finite.tolist(), strict=True)
    ]
    found = [
        {
            "type": "scatter", "mode": "lines+markers" if len(values) == 1 else "lines", "name": label,
            "x": one.steps.tolist(), "y": values, "line": line, "connectgaps": False,
            "hovertemplate": "%{x}: %{y}",
        }
    ]  # fmt: skip
    if not finite.all():
        top = float(known.max()) if known.size else 1.0
        found.append(
            {
                "type": "scatter", "mode": "markers", "name": "not finite", "showlegend": False,
                "x": one.steps[~finite].tolist(), "y": [top] * int((~finite).sum()),
                "text": [str(value) for value in one.values[~finite].tolist()],
                "marker": {"symbol": "x", "color": colour, "size": 8}, "hovertemplate": "%{x}: %{text}",
            }
        )  # fmt: skip
    return found


def describe_curves(curves: Sequence[PlottedCurve]) -> list[Phrase]:
    """The curves in words: where each begins and ends, and between what it lies."""
    said = []
    for one in curves:
        finite = one.values[np.isfinite(one.values)]
        name = f"{one.name} ({one.run})" if one.run else one.name
        if not len(one.steps):
            said.append(phrase("monitor.curve_empty", name=name))
        elif not len(finite):
            said.append(phrase("monitor.curve_lost", name=name, first=int(one.steps[0]), last=int(one.steps[-1])))
        else:
            said.append(
                phrase(
                    "monitor.curve",
                    name=name, first=int(one.steps[0]), last=int(one.steps[-1]), start=number(float(one.values[0])),
                    end=number(float(one.values[-1])), low=number(float(finite.min())), high=number(float(finite.max())),
                )
            )  # fmt: skip
    return said
