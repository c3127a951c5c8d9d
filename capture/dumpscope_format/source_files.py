"""The user's source files beside a dump: one file of JSON lines in each rank folder, written as a file is first seen.

    {"file": "/train/model.py", "changed": false, "text": "..."}        a file as Python had it
    {"file": "/train/huge.py", "left_out": "too_large"}                 a file that was seen and is not here, and why

Only files of the user's own are written: those that no framework and no Python brought. All steps of a process share one file
(hard links), so it may name files that a step does not use. A line that is not whole is the end of a killed run.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import Any, BinaryIO, Final

from dumpscope_format.older_python import dataclass

SOURCE_FILES: Final = "source.jsonl"

FILE_LIMIT: Final = 512 << 10
"""Characters of one file; a longer one is left out."""

TOTAL_LIMIT: Final = 4 << 20
"""Characters of all files of a process."""

LINE_LIMIT: Final = 8 * FILE_LIMIT
"""Bytes of one line that are read; a character takes at most six, and two where it is one of a pair."""

TOO_LARGE: Final = "too_large"
"""The file is longer than FILE_LIMIT."""

TOO_MANY: Final = "too_many"
"""TOTAL_LIMIT was used up."""

NO_TEXT: Final = "no_text"
"""Python had no text: code that was made by a program, or a file that was deleted or cannot be decoded."""

REASONS: Final = (TOO_LARGE, TOO_MANY, NO_TEXT)

_LIBRARY: Final = re.compile(
    r"site-packages|dist-packages|[/\\]lib[/\\]python|<frozen|[/\\](?:torch|torch_npu|megatron[/\\]core|deepspeed)[/\\]",
    re.I,
)

_PLACE: Final = re.compile(r"File \"?(?P<file>.*?)\"?, line [0-9]{1,9}, in ", re.S)


def is_own(path: str) -> bool:
    """Whether a file of a call stack is the user's own: outside Python's and the frameworks' folders."""
    return _LIBRARY.search(path) is None


def file_of(frame: str) -> str | None:
    """The file that a frame of a call stack names, None for a text of another form."""
    found = _PLACE.match(frame)
    return None if found is None else found["file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """text: None if the file was left out, `left_out` says why; changed: on disk after the program had loaded it"""

    file: str
    text: str | None = None
    changed: bool = False
    left_out: str = field(default="")


def written(source: SourceFile) -> bytes:
    """The line of a file."""
    document: dict[str, Any] = {"file": source.file}
    if source.text is None:
        document["left_out"] = source.left_out
    else:
        document.update(changed=source.changed, text=source.text)
    return json.dumps(document).encode("ascii") + b"\n"


def find(stream: BinaryIO, file: str) -> SourceFile | None:
    """The file of this name, None where no whole line is about it. Damaged lines are no lines."""
    head = json.dumps({"file": file})[:-1].encode("ascii")
    while line := stream.readline(LINE_LIMIT):
        if line.startswith(head) and line.endswith(b"\n"):
            found = _read(line, file)
            if found is not None:
                return found
    return None


def _read(line: bytes, file: str) -> SourceFile | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if document.get("file") != file:  # a longer name begins alike
        return None
    text, reason = document.get("text"), document.get("left_out")
    if isinstance(text, str):
        return SourceFile(file=file, text=text, changed=document.get("changed") is True)
    return SourceFile(file=file, left_out=reason if reason in REASONS else NO_TEXT)
