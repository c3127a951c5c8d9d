"""Common parts of all replies: numbers and times, pages, errors, problems, sentences, stack frames.

A model with the same fields as a row is made by `model_validate(row)`; `Annotated` converts a field that is sent in another form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from dumpscope.export.stack_frames import SENT_FRAMES, locate_call, read_frames
from dumpscope.texts import said_of

EXACT: Final = 2**53
"""Browsers round larger integers."""

PROBLEMS: Final = 200
"""Problems sent at once."""


def real(value: float | int | str | bool | None) -> float | int | str | None:
    """A number in the form in which it is sent: see `Real`."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) <= EXACT else _digits(value)
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # past Python's limit for decimal digits
        return hex(value)


def moment(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(value: float | str | None) -> str | None:
    return value if value is None or isinstance(value, str) else moment(value)


def first(limit: int) -> Callable[[Sequence[Any]], list[Any]]:
    """Cuts a list to `limit` entries."""
    return lambda values: list(values[:limit])


def _frames(stack: Sequence[Any]) -> list[Any]:
    """Convert a stack's texts to frames; frames are not changed."""
    return list(stack) if stack and not isinstance(stack[0], str) else list(read_frames(stack[:SENT_FRAMES]))


Real = Annotated[
    int | float | str | None,
    BeforeValidator(real),
    Field(
        description='A number; "nan", "inf" or "-inf"; an integer above 2^53 as decimal text; null where there is none.'
    ),
]
Moment = Annotated[str, BeforeValidator(_time)]
MomentOrNone = Annotated[str | None, BeforeValidator(_time)]
DumpId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,64}$")]
VerdictWord = Literal["yes", "n/a", "warning", "no"]
Row = TypeVar("Row")


class Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True, populate_by_name=True)


class Phrase(Wire):
    """A sentence as data: id of its template (docs/rest.md), and a count, written number, name or enumeration per placeholder."""

    id: str
    values: dict[str, int | str | list[Phrase]]


class Error(Wire):
    """A problem of RFC 9457; `type` and `title` only appear in the reply of a request, not in the error of a job."""

    error: str
    detail: str
    hint: str | None
    status: int
    kind: str | None = None
    said: list[Phrase] | None = None
    hint_said: list[Phrase] | None = None
    type: str | None = None
    title: str | None = None


class Page(Wire, Generic[Row]):
    """`next` is null on the last page; `prev` only appears if a list can be read backwards; `start` is the position of
    the first item in the whole list, null if it would have to be counted."""

    items: list[Row]
    next: str | None
    total: int
    prev: str | None = None
    start: int | None = None


class Problem(Wire):
    """`records`: number of whole records read from a file that ends too early, null for other problems."""

    loc: str
    kind: str
    message: str
    records: int | None = None
    said: Phrase | None = None


class StackFrame(Wire):
    """One text of a call stack, in its order. `own`: the user's own code, not Python's or a framework's; `code`: the source
    line, empty if the dump has none. A text of an unknown form is completely in `file`, and `line` is null."""

    file: str
    line: int | None
    function: str
    code: str
    own: bool


class Accepted(Wire):
    id: str
    job: str


def phrases_of(sentence: str | None) -> list[Phrase] | None:
    """The sentence as data, None if it has no phrase."""
    said = said_of(sentence)
    return None if said is None else [Phrase.model_validate(one) for one in said]


def _called_at(stack: object) -> object:
    return locate_call(stack) if isinstance(stack, (list, tuple)) else stack


Problems = Annotated[list[Problem], BeforeValidator(first(PROBLEMS))]
Stack = Annotated[list[str], BeforeValidator(first(SENT_FRAMES))]
Frames = Annotated[list[StackFrame], BeforeValidator(_frames)]
FramesOfStack = Annotated[Frames, Field(validation_alias=AliasChoices("frames", "stack"))]
"""Frames from the texts in the `stack` of a row."""
CalledAt = Annotated[str, BeforeValidator(_called_at), Field(validation_alias=AliasChoices("called_at", "stack"))]
"""The line that made the call, from the same."""
