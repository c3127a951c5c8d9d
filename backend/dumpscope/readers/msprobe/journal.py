"""A run that was killed leaves a journal instead of dump.json: its whole records as the files they would have become."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import BinaryIO, Final

from dumpscope.readers.regular_file import open_regular
from dumpscope_format import journal

IN_MEMORY: Final = 8 << 20


class Replayed:
    """dump.json, stack.json and construct.json of a journal, each as a stream to read once.

    Raises UnreadableError where the journal cannot be opened. damaged: bytes behind its last whole record
    """

    def __init__(self, path: str) -> None:
        with open_regular(path) as stream:
            self.contents = journal.replay_stream(stream)
        self.path = path
        self.nodes = len(self.contents.places)
        self.damaged = self.contents.damaged

    @property
    def debug(self) -> bool:
        """Whether it would have become debug.json."""
        return self.contents.header.get("level") == "debug"

    def dump(self) -> BinaryIO:
        with open_regular(self.path) as stream:
            return _spooled(lambda out: self.contents.write_dump(out, stream.fileno()))

    def stack(self) -> BinaryIO:
        return _spooled(self.contents.write_stack)

    def construct(self) -> BinaryIO:
        return _spooled(self.contents.write_construct)


def is_journal(path: str) -> bool:
    return os.path.basename(path) == journal.JOURNAL


def _spooled(write: Callable[[BinaryIO], None]) -> BinaryIO:
    """What `write` gives, in memory or past `IN_MEMORY` bytes in an unnamed temporary file, ready to be read."""
    stream: BinaryIO = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115
    write(stream)
    stream.seek(0)
    return stream
