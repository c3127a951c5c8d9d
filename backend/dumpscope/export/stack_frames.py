"""Call stack frames as dumps write them, split into what a reader wants first and the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FRAME: Final = re.compile(
    r"\s*File \"?(?P<file>.*?)\"?, line (?P<line>[0-9]{1,9}), in (?P<function>[^\n]*?),?\s*(?:\n\s*(?P<code>.*\S))?\s*$",
    re.S,
)
FRAME_LIMIT: Final = 4000
"""Characters of a frame that are looked at: matching takes time quadratic in them, and a dump may hold anything."""

_LIBRARY: Final = re.compile(
    r"site-packages|dist-packages|[/\\]lib[/\\]python\d|<frozen|[/\\](?:torch|torch_npu|megatron[/\\]core|deepspeed)[/\\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame; `code` is the source line, "" where the dump has none."""

    file: str
    line: int
    function: str
    code: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} in {self.function}"
        return f"{where}: {self.code}" if self.code else where


def parse_frame(frame: str) -> Frame | None:
    """A frame from its text, None where the text has another form."""
    found = _FRAME.match(frame[:FRAME_LIMIT])
    if found is None:
        return None
    return Frame(
        file=found["file"],
        line=int(found["line"]),
        function=found["function"].strip(),
        code=(found["code"] or "").strip(),
    )


def user_frame(stack: Sequence[str]) -> Frame | None:
    """Innermost frame outside Python's and the framework's own folders: the line its author can change."""
    for text in stack:
        frame = parse_frame(text)
        if frame is not None and not _LIBRARY.search(frame.file):
            return frame
    return None
