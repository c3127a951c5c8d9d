"""The two leading figures as inline SVG, for reports that open offline and without a script.

Classes take their colours from the page (`currentColor` and CSS variables), so the same drawing serves dark and light.
"""

from __future__ import annotations

import math
from html import escape

import numpy as np

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.error_axis import Lanes
from dumpscope.plots.run.distribution import ApiDistribution, api_distribution_phrases
from dumpscope.plots.run.order import ErrorOrder, Mark, error_order_phrases
from dumpscope.plots.template import MARK, OUTPUT, TARGET, number
from dumpscope.texts import rendered, tell

WIDTH, HEIGHT = 960, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 14, 34


def error_order_svg(data: ErrorOrder) -> str:
    """Error of every node in call order; hovering over a point shows its node."""
    frame = _Frame(data.lanes, max(data.last, 1), LEFT)
    parts = [frame.scale(), frame.across(data.last), frame.floor(data.floor), frame.legend()]
    if data.backward is not None:
        parts.append(frame.upright(data.backward, "backward", "edge", HEIGHT - BOTTOM - 6))
    parts += [
        frame.line(data.inputs.order, data.inputs.error, TARGET),
        frame.line(data.outputs.order, data.outputs.error, OUTPUT),
        frame.points(data.outputs.order, data.outputs.error, data.outputs.names),
    ]
    parts += [frame.star(mark) for mark in data.origins]
    if data.selected is not None:
        parts.append(frame.upright(data.selected.order, data.selected.name, "mark"))
    return _wrap(rendered(error_order_phrases(data)), parts)


def api_distribution_svg(data: ApiDistribution) -> str:
    """Box over all calls at the left, calls in execution order at the right."""
    last = int(data.order.max()) if len(data.order) else 1
    frame = _Frame(data.lanes, max(last, 1), LEFT + 96)
    parts = [frame.scale(), frame.across(last), frame.floor(data.floor)]
    if data.quartiles is not None:
        parts.append(frame.box(data.quartiles))
    parts.append(frame.points(data.order, data.error, data.names))
    if data.current is not None and not np.isnan(data.current[1]):
        order, error, name = data.current
        parts.append(frame.star(Mark(order=order, input_error=np.nan, output_error=error, name=name)))
    return _wrap(rendered(api_distribution_phrases(data)), parts)


class _Frame:
    """Positions in one drawing. left: where the axis of the run starts."""

    def __init__(self, lanes: Lanes, last: int, left: int) -> None:
        self.lanes, self.last, self.left = lanes, last, left

    def x(self, order: Int64) -> Float64:
        return self.left + np.asarray(order) / self.last * (WIDTH - RIGHT - self.left)

    def y(self, error: Float64) -> Float64:
        return self.down(self.lanes.fraction(np.asarray(error)))

    def down(self, share: Float64) -> Float64:
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def scale(self) -> str:
        places = self.lanes.ticks()
        heights = self.down(self.lanes.height(np.asarray([place for place, _ in places])))
        parts = []
        for height, (_, label) in zip(heights, places, strict=True):
            parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'
                f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{escape(label)}</text>'
            )
        middle = (TOP + HEIGHT - BOTTOM) / 2
        measure = escape(tell("measure.score"))
        title = f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{measure}</text>'
        return "".join([*parts, title])

    def across(self, last: int) -> str:
        step = 10 ** max(0, math.floor(math.log10(max(last, 1) / 2)))
        ticks = np.arange(0, last + 1, step * max(1, round(last / step / 6)))
        marks = (
            f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick}</text>'
            for place, tick in zip(self.x(ticks), ticks.tolist(), strict=True)
        )
        middle = (self.left + WIDTH - RIGHT) / 2
        return (
            "".join(marks)
            + f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(tell("figure.place_in_run"))}</text>'
        )

    def floor(self, value: float | None) -> str:
        if not value:
            return ""
        height = float(self.y(np.asarray([value]))[0])
        return f'<line class="floor" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'

    def line(self, order: Int64, error: Float64, colour: str) -> str:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(self.x(order), self.y(error), strict=True))
        return f'<polyline fill="none" stroke="{colour}" stroke-width="1" points="{places}"/>'

    def points(self, order: Int64, error: Float64, names: tuple[str, ...]) -> str:
        places = zip(self.x(order), self.y(error), names, error.tolist(), strict=True)
        return "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{OUTPUT}">'
            f"<title>{escape(name)}: {number(value)}</title></circle>"
            for x, y, name, value in places
        )

    def star(self, mark: Mark) -> str:
        if np.isnan(mark.output_error):
            return ""
        x = float(self.x(np.asarray([mark.order]))[0])
        y = float(self.y(np.asarray([mark.output_error]))[0])
        return (
            f'<path d="M{x:.1f} {y - 8:.1f}l7 8l-7 8l-7 -8z" fill="{MARK}" stroke="#fff">'
            f"<title>{escape(mark.name)}: {number(mark.output_error)}</title></path>"
        )

    def legend(self) -> str:
        named = ((tell("role.input"), TARGET, 0), (tell("role.output"), OUTPUT, 70))
        return "".join(
            f'<circle cx="{WIDTH - 140 + shift}" cy="{HEIGHT - 8}" r="4" fill="{colour}"/>'
            f'<text x="{WIDTH - 132 + shift}" y="{HEIGHT - 4}">{word}</text>'
            for word, colour, shift in named
        )

    def upright(self, order: int, label: str, kind: str, height: float = TOP + 10) -> str:
        x = float(self.x(np.asarray([order]))[0])
        anchor, shift = ("end", -4) if 2 * order > self.last else ("start", 4)
        return (
            f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text x="{x + shift:.1f}" y="{height}" text-anchor="{anchor}">{escape(label)}</text>'
        )

    def box(self, quartiles: tuple[float, float, float, float, float]) -> str:
        low, first, middle, third, high = (float(y) for y in self.y(np.asarray(quartiles)))
        x, half = LEFT + 40, 18
        return (
            f'<g class="box"><line x1="{x}" x2="{x}" y1="{low:.1f}" y2="{high:.1f}"/>'
            f'<rect x="{x - half}" width="{2 * half}" y="{third:.1f}" height="{max(first - third, 1):.1f}"/>'
            f'<line x1="{x - half}" x2="{x + half}" y1="{middle:.1f}" y2="{middle:.1f}"/></g>'
        )


def _wrap(text: str, parts: list[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>{escape(text)}</title>{''.join(parts)}</svg>"
    )
