"""What every answer is built of: numbers and times as they travel, pages, errors, problems, sentences, stack frames.

A model whose fields are a row's own is made by `model_validate(row)`; `Annotated` says where a field travels differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from dumpscope.export.stack_frames import SENT_FRAMES, read_frames
from dumpscope.texts import said_of

EXACT: Final = 2**53
"""Beyond it a browser rounds integers."""

PROBLEMS: Final = 200
"""Problems sent at once."""


def real(value: float | int | str | bool | None) -> float | int | str | None:
    """A number as it travels: see `Real`."""
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
    """A stack's texts as frames; frames stay."""
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
    error: str
    detail: str
    hint: str | None
    status: int
    kind: str | None = None
    said: list[Phrase] | None = None
    hint_said: list[Phrase] | None = None


class Page(Wire, Generic[Row]):
    """`next` is null on the last page; `prev` only appears where a list can be walked backwards; `start` is the place of
    the first item in the whole list, null where that would have to be counted."""

    items: list[Row]
    next: str | None
    total: int
    prev: str | None = None
    start: int | None = None


class Problem(Wire):
    """`records`: whole records that were read of a file that ends too early, null for other problems."""

    loc: str
    kind: str
    message: str
    records: int | None = None
    said: Phrase | None = None


class StackFrame(Wire):
    """One text of a call stack, in its order. `own`: the user's own code, not Python's or a framework's; `code`: the source
    line, empty where the dump has none. A text of an unknown form is `file` as a whole, `line` null."""

    file: str
    line: int | None
    function: str
    code: str
    own: bool


class Accepted(Wire):
    id: str
    job: str


def phrases_of(sentence: str | None) -> list[Phrase] | None:
    """The sentence as data, None where there is none behind it."""
    said = said_of(sentence)
    return None if said is None else [Phrase.model_validate(one) for one in said]


Problems = Annotated[list[Problem], BeforeValidator(first(PROBLEMS))]
Stack = Annotated[list[str], BeforeValidator(first(SENT_FRAMES))]
Frames = Annotated[list[StackFrame], BeforeValidator(_frames)]
FramesOfStack = Annotated[Frames, Field(validation_alias=AliasChoices("frames", "stack"))]
"""Frames of a row that holds their texts as `stack`."""
