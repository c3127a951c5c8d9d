"""Open regular files only, so that a pipe or device inside a dump cannot make a read wait."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Final

from dumpscope.errors import UnreadableError
from dumpscope.texts import say
from dumpscope_format.paths import inside

HEAD: Final = 64 << 10
"""Bytes read to recognise a file."""


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading; a FIFO, device or folder is refused without waiting on it. Raises UnreadableError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(say("readers.cannot_opened", reason=error.strerror), where=path) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadableError(say("readers.not_regular_file"), where=path)
    return os.fdopen(handle, "rb", buffering=0)


def read_head(path: str) -> bytes:
    """First 64 kB of a regular file, b"" where it cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read(HEAD)
    except (UnreadableError, OSError):
        return b""


def refusal(path: str, root: str) -> str | None:
    """Why a file of a dump in `root` is not read: "is a link out of the dump"...; None where it may be."""
    if os.path.islink(path) and not inside(root, path):
        return say("readers.link_out_dump")
    try:
        return None if stat.S_ISREG(os.stat(path).st_mode) else say("readers.not_regular_file")
    except OSError as error:
        return say("readers.cannot_opened_2", reason=error.strerror)
