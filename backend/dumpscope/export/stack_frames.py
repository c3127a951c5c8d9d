"""Call stack frames as dumps write them, and the one rule that decides which frames are the user's own code.

Command line, report and REST use it; REST sends the result to the browser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from dumpscope.texts import tell
from dumpscope_format.source_files import is_own

_FRAME: Final = re.compile(
    r"\s*File \"?(?P<file>.*?)\"?, line (?P<line>[0-9]{1,9}), in (?P<function>[^\n]*?),?\s*(?:\n\s*(?P<code>.*\S))?\s*$",
    re.S,
)
FRAME_LIMIT: Final = 4000
"""Characters of a frame that are matched: time is quadratic in them, and a dump may hold any text."""

SENT_FRAMES: Final = 200
"""Frames of one call stack that are sent at once."""

_MACHINERY: Final = re.compile(
    r"<frozen|[/\\]lib[/\\]python[0-9.]*[/\\](?!(?:site|dist)-packages)"
    r"|[/\\](?:torch|torch_npu|mindspore|accelerate|deepspeed|lightning|lightning_fabric|pytorch_lightning|dumpscope_capture|msprobe|ptdbg_ascend)[/\\]"
    r"|[/\\]megatron[/\\]core[/\\]",
    re.I,
)
"""Folders of what runs a model: torch, trainers, Python itself. A library of models is none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame. A text of another form is completely in `file`, and `line` is None.

    code: the source line, "" if the dump has none
    own: code of the user: outside Python's and the frameworks' folders
    """

    file: str
    line: int | None
    function: str
    code: str
    own: bool

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} in {self.function}"
        return f"{where}: {self.code}" if self.code else where


def parse_frame(text: str) -> Frame | None:
    """A frame from its text, None if the text has another form."""
    found = _FRAME.match(text[:FRAME_LIMIT])
    if found is None:
        return None
    return Frame(
        file=found["file"],
        line=int(found["line"]),
        function=found["function"].strip(),
        code=(found["code"] or "").strip(),
        own=is_own(found["file"]),
    )


def read_frames(stack: Sequence[str]) -> list[Frame]:
    """Every text of a stack as a frame, innermost first."""
    return [parse_frame(text) or _unknown_form(text) for text in stack]


def user_frame(stack: Sequence[str]) -> Frame | None:
    """Innermost frame of the user's own code: the line its author can change."""
    return next((frame for frame in map(parse_frame, stack) if frame is not None and frame.own), None)


def call_frame(stack: Sequence[str]) -> Frame | None:
    """Innermost frame that is neither torch's nor a framework's: the model's line that makes the call, in the user's code or in a
    library of models."""
    found = (frame for frame in map(parse_frame, stack) if frame is not None and not _MACHINERY.search(frame.file))
    return next(found, None) or user_frame(stack)


def call_text(stack: Sequence[str]) -> list[str]:
    """The text of `call_frame` as a stack of its own, empty where no frame tells."""
    frame = call_frame(stack)
    return [] if frame is None else [text for text in stack if parse_frame(text) == frame][:1]


def locate_call(stack: Sequence[str]) -> str:
    """`call_frame` as text for programs, "" where no frame tells."""
    frame = call_frame(stack)
    return "" if frame is None else str(frame)


def describe_call(stack: Sequence[str]) -> str:
    """Where a call was made, as text: the line of the model and, where a library holds it, the user's line that led there. ""
    where no frame tells."""
    inner, own = call_frame(stack), user_frame(stack)
    if inner is None:
        return ""
    if own is None or own == inner:
        return str(inner)
    return tell("export.call_from", inner=str(inner), own=f"{own.file}:{own.line}")


def frame_documents(stack: Sequence[str]) -> list[dict[str, Any]]:
    """The frames of a stack for JSON."""
    return [asdict(frame) for frame in read_frames(stack)]


def _unknown_form(text: str) -> Frame:
    shown = text[:FRAME_LIMIT].strip()
    return Frame(file=shown, line=None, function="", code="", own=is_own(shown))
