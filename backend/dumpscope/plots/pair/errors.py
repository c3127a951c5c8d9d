"""Histogram of absolute and relative errors of one tensor pair, from the decade bins stored with its facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dumpscope.domain.facts import ERROR_BINS
from dumpscope.errors import UsageError
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import OUTPUT, TARGET, Figure, axis, layout
from dumpscope.texts import Phrase, phrase, say


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorHistogram:
    """labels, absolute, relative: one entry per bin (see ERROR_BINS: zero, below the first edge, then decades)."""

    labels: tuple[str, ...]
    absolute: tuple[int, ...]
    relative: tuple[int, ...]
    log: bool


def error_histogram_data(absolute: Sequence[int], relative: Sequence[int], *, log: bool = True) -> ErrorHistogram:
    """Histogram from stored counts; raises UsageError if they do not match ERROR_BINS."""
    wanted = len(ERROR_BINS) + 2
    if len(absolute) != wanted or len(relative) != wanted:
        raise UsageError(
            say("plots.error_histogram_has_bins_got", wanted=wanted, count=len(absolute), count2=len(relative))
        )
    return ErrorHistogram(
        labels=error_labels(), absolute=tuple(map(int, absolute)), relative=tuple(map(int, relative)), log=log
    )


def error_labels() -> tuple[str, ...]:
    """Labels of the stored bins: each but the first two is the decade that starts there."""
    edges = [f"1e{power}" for power in ERROR_BINS.tolist()]
    return ("0", f"<{edges[0]}", *edges[:-1], f"≥{edges[-1]}")


def error_histogram_figure(data: ErrorHistogram) -> Figure:
    """Plotly figure: two bars per decade."""
    return {
        "data": [
            _bars("absolute error", data.labels, data.absolute, TARGET),
            _bars("relative error", data.labels, data.relative, OUTPUT),
        ],
        "layout": layout(
            barmode="group",
            xaxis=axis("error from", type="category"),
            yaxis=axis("elements", type="log" if data.log else "linear"),
        ),
    }


def _bars(name: str, across: Sequence[str], up: Sequence[int], colour: str) -> dict[str, object]:
    return {"type": "bar", "name": name, "x": list(across), "y": list(up), "marker": {"color": colour}}


def error_histogram_phrases(data: ErrorHistogram) -> list[Phrase]:
    """The figure in words."""
    total = sum(data.absolute)
    if not total:
        return [phrase("errors.none")]
    parts = [phrase("errors.equal", equal=data.absolute[0], elements=total)]
    for word, counts in (("absolute", data.absolute), ("relative", data.relative)):
        filled = [place for place, count in enumerate(counts) if count and place]
        if filled:
            top = max(filled, key=lambda place: counts[place])
            where = {"largest": data.labels[filled[-1]], "bin": data.labels[top]}
            parts.append(phrase(f"errors.{word}", count=counts[top], **where))
    return parts


def error_histogram_table(data: ErrorHistogram) -> Table:
    """One row per bin."""
    return table(("error from", "absolute", "relative"), zip(data.labels, data.absolute, data.relative, strict=True))
