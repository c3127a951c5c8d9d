"""What routes of figures share: parameters, the reply, the table."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Query, Response

from dumpscope.api.downloads import attachment
from dumpscope.api.models.base import Phrase, Wire
from dumpscope.api.replies import StrictJSON
from dumpscope.errors import NotFoundError
from dumpscope.export.document import wire
from dumpscope.export.number_csv import plain_csv
from dumpscope.pipeline.figures.request import FigureResult
from dumpscope.plots.pair.window import Box
from dumpscope.texts import english

NUMBERS: Final = r"^\d{1,18}(,\d{1,18}){0,63}$"
WITHIN: Final = r"^[0-9]+:[0-9]+-[0-9]+(,[0-9]+:[0-9]+-[0-9]+)*$"

Within = Annotated[
    str | None,
    Query(
        pattern=WITHIN,
        max_length=2000,
        description="Without `at`: the worst element of a part, as `0:4-8,2:0-16` (dimension:start-stop).",
    ),
]
Axes = Annotated[
    str | None, Query(pattern=NUMBERS, description="One or two dimensions, as `0,2`: the one that goes down first.")
]
At = Annotated[
    str | None, Query(pattern=NUMBERS, description="Index of an element, as `3,5`; the worst when left out.")
]
Log = Annotated[bool | None, Query(description="Logarithmic counts or axes; what suits the figure when left out.")]
Lines = Annotated[int, Query(ge=1, le=21)]


class Figure(Wire):
    """`log`: whether the figure has a logarithmic scale."""

    figure: dict[str, Any] | None
    log: bool
    text: str
    missing: str | None
    said: list[Phrase]


TABLE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The numbers behind the figure.", "content": {"text/csv": {}}}
}


def indices(text: str | None) -> tuple[int, ...] | None:
    """`3,5` as numbers."""
    return None if text is None else tuple(map(int, text.split(",")))


def box_of(text: str | None) -> Box | None:
    """`0:4-8` as a part of a tensor."""
    if text is None:
        return None
    parts = [part.replace("-", ":").split(":") for part in text.split(",")]
    return {int(dimension): (int(start), int(stop)) for dimension, start, stop in parts}


def figure_reply(drawn: FigureResult) -> Response:
    """The figure, or why there is nothing to draw."""
    text = english(drawn.said)
    words = {"text": "", "missing": text} if drawn.figure is None else {"text": text, "missing": None}
    return StrictJSON({"figure": wire(drawn.figure), "log": drawn.log, **words, "said": drawn.said})


def table_reply(drawn: FigureResult, name: str) -> Response:
    """The numbers of a figure in a file `name`; raises NotFoundError if there is nothing to draw."""
    if drawn.figure is None or drawn.table is None:
        raise NotFoundError(english(drawn.said))
    found = drawn.table()
    headers = {"Content-Disposition": attachment(name, "csv")}
    return Response(plain_csv(found.columns, found.rows), headers=headers, media_type="text/csv; charset=utf-8")
