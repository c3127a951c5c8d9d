"""Common parts of all figures: colours, layout, and how numbers and names are written.

Figures are plain dictionaries in plotly's JSON form. Backgrounds are transparent and greys are medium, so that one
figure reads on a light and on a dark page; the page may override `layout.font.color`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dumpscope.domain.records import Float64
from dumpscope.texts import Phrase, phrase, template

Figure = dict[str, Any]

MEASURE: Final = template("measure.score")
"""Name of an axis of errors."""

TARGET: Final = "#0072b2"
GOLDEN: Final = "#e69f00"
DIFFERENCE: Final = "#009e73"
INPUT: Final = "#56b4e9"
OUTPUT: Final = "#d55e00"
MARK: Final = "#cc2b6f"
GREY: Final = "#868e96"
LOST: Final = "#8b48cc"
CLEAR: Final = "rgba(0,0,0,0)"
GRID: Final = "rgba(134,142,150,0.25)"

SHADES: Final = [[0, "#f3d9a4"], [0.35, "#e79a4d"], [0.7, "#c0453f"], [1, "#6d1a53"]]
"""Colours for few to many, small to large; every shade is visible on a light and on a dark page."""


def axis(title: str, **more: Any) -> dict[str, Any]:
    """One axis in the style of all figures."""
    house = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GREY, "automargin": True}
    return {"title": {"text": title}, **house, **more}


def layout(**more: Any) -> dict[str, Any]:
    """Layout in the style of all figures; `more` adds axes, shapes and annotations."""
    return {
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"color": GREY, "size": 12},
        "margin": {"l": 56, "r": 16, "t": 28, "b": 44},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "uirevision": "keep",
        **more,
    }


def colour_bar(title: str, ticks: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """Thin legend of a heat map. ticks: drawn positions and their labels"""
    stride = max(1, math.ceil(len(ticks) / 6))
    shown = list(ticks)[::stride]
    return {
        "title": {"text": title, "side": "right"}, "thickness": 8, "outlinewidth": 0, "len": 1,
        "tickmode": "array", "tickvals": [place for place, _ in shown], "ticktext": [label for _, label in shown],
    }  # fmt: skip


def number(value: float | None) -> str:
    """A number for people: four significant digits, `nan`, `inf`, or `none`."""
    if value is None:
        return "none"
    if not math.isfinite(value):
        return str(float(value))
    if float(value).is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def rounded(values: Float64, digits: int = 6) -> list[Any]:
    """Numbers for a figure with as many digits as can be seen; nested like the array."""
    if values.ndim > 1:
        return [rounded(row, digits) for row in values]
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def error_phrase(error: float) -> Phrase:
    """An error inside a sentence; nan means not compared."""
    return phrase("measure.none") if math.isnan(error) else phrase("measure.value", value=number(error))


def shorten(name: str, limit: int = 48) -> str:
    """A name cut in the middle to at most `limit` characters, because both ends of a node name are important."""
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head]}…{name[len(name) - (limit - 1 - head) :]}"


def plain(text: str) -> str:
    """Text for a figure: plotly reads a little markup in labels, and names come from files."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def labels(names: Sequence[str], errors: Float64, limit: int = 44) -> list[str]:
    """Hover texts of points: the node and its exact error."""
    pairs = zip(names, errors.tolist(), strict=True)
    return [f"{plain(shorten(name, limit))}: {number(error)}" for name, error in pairs]
