"""The user's files that stand in the call stacks of a run, written beside its dump when each is first seen.

    call_stack (context) --first frame of a file--> its text as linecache has it
    StepSink --a new call stack--> SourceFiles.add --> a line in source.jsonl of the step's folder

Each file is written once: the next step's folder gets a link. Every line is one unbuffered write, so it survives the end of the
process. Nothing here raises: what fails is told once in the log, and no more is written.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dumpscope_format.source_files import (
    FILE_LIMIT,
    NO_TEXT,
    SOURCE_FILES,
    TOO_LARGE,
    TOO_MANY,
    TOTAL_LIMIT,
    SourceFile,
    file_of,
    is_own,
    written,
)

SWITCH: Final = "DUMPSCOPE_SOURCE_FILES"
"""Variable that switches them off, whatever the configuration says: 0, false, off or no."""

log = logging.getLogger("dumpscope")


def are_wanted() -> bool:
    """Whether the environment allows them."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("0", "false", "off", "no")


class SourceFiles:
    """The files of one recorder, over all of its steps. Not safe for threads: its sink holds a lock.

    text_of: (text, changed on disk since it was loaded) of a file that a call stack named; None where there is none
    """

    def __init__(self, text_of: Callable[[str], tuple[str, bool] | None]) -> None:
        self._text_of = text_of
        self._frames: set[str] = set()
        self._files: set[str] = set()
        self._lines: list[bytes] = []
        self._length = 0
        self._path = ""
        self._failed = False

    def begin(self, folder: Path) -> None:
        """A step begins in this folder: what was written for the steps before is here too."""
        before, self._path = self._path, os.path.join(folder, SOURCE_FILES)
        if not self._lines:
            return
        try:
            if os.path.lexists(self._path):
                os.unlink(self._path)
            self._link(before)
        except OSError as error:
            self._fail(error)

    def moved(self, folder: Path) -> None:
        """The folder of the step has another name."""
        self._path = os.path.join(folder, SOURCE_FILES)

    def add(self, stack: tuple[str, ...]) -> None:
        """Write the files of a call stack that are not there yet."""
        for frame in stack:
            if frame not in self._frames:
                self._frames.add(frame)
                file = file_of(frame)
                if file is not None and file not in self._files and is_own(file):
                    self._files.add(file)
                    self._write(self._source(file))

    def _source(self, file: str) -> SourceFile:
        found = self._text_of(file)
        if found is None:
            return SourceFile(file=file, left_out=NO_TEXT)
        text, changed = found
        if len(text) > FILE_LIMIT:
            return SourceFile(file=file, left_out=TOO_LARGE)
        if self._length + len(text) > TOTAL_LIMIT:
            return SourceFile(file=file, left_out=TOO_MANY)
        self._length += len(text)
        return SourceFile(file=file, text=text, changed=changed)

    def _write(self, source: SourceFile) -> None:
        if self._failed:
            return
        line = written(source)
        try:
            if not self._lines and os.path.lexists(self._path):
                os.unlink(self._path)  # of an earlier run, and perhaps with other names
            _append(self._path, line)
            self._lines.append(line)
        except OSError as error:
            self._fail(error)

    def _link(self, before: str) -> None:
        try:
            os.link(before, self._path)
        except OSError:  # another disk, a disk without links, or the step before is deleted
            _append(self._path, b"".join(self._lines))

    def _fail(self, error: OSError) -> None:
        self._failed = True
        log.warning(
            "dumpscope: %s cannot be written, so no more of the program's source is kept: %s", self._path, error
        )


def _append(path: str, data: bytes) -> None:
    """Raises OSError; the file may then end in a part of a line, which no reader takes for one."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)
