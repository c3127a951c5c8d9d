"""A source file that a call stack names: as the recorder kept it beside the dump, or as it is now below a mounted root.

Names of files come from dumps, so nothing here trusts them: a name only chooses among the regular .py files below a root.
"""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from dumpscope.errors import UnreadableError
from dumpscope.readers.regular_file import open_regular, refusal
from dumpscope_format.paths import inside
from dumpscope_format.source_files import SOURCE_FILES, SourceFile, find

SUFFIX: Final = ".py"
SIZE_LIMIT: Final = 2 << 20
"""Bytes of a file that is read below a root."""
DEPTH: Final = 64
"""Parts of a name that are looked at."""
CANDIDATES: Final = 8
"""Files of one name that are read, in search of the one that holds the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRoot:
    """folder: real path; prefix: what the files' names begin with on the machine that ran them, () for names of any beginning"""

    folder: str
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """path: real path of the file"""

    path: str
    text: str


def parse_root(text: str) -> SourceRoot:
    """A root from `FOLDER`, or from `PREFIX=FOLDER` for files whose names begin with PREFIX. Raises ValueError."""
    prefix, sign, folder = text.rpartition("=")
    if sign and not os.path.isdir(text):
        parts = _parts(prefix)
        if not parts:
            raise ValueError(text)
        return SourceRoot(folder=os.path.realpath(os.path.expanduser(folder)), prefix=parts)
    return SourceRoot(folder=os.path.realpath(os.path.expanduser(text)))


def recorded_file(folder: str, root: str, file: str) -> SourceFile | None:
    """What the recorder kept of a file in the rank folder `folder`; None where it keeps nothing about it.

    root: folder of the dump, which no link may leave
    """
    path = os.path.join(folder, SOURCE_FILES)
    if not os.path.lexists(path) or refusal(path, root) is not None:
        return None
    try:
        with open_regular(path) as stream:
            return find(io.BufferedReader(cast(io.FileIO, stream)), file)
    except (OSError, UnreadableError):
        return None


def read_below(roots: Sequence[SourceRoot], file: str, line: int | None = None, code: str = "") -> ReadFile | None:
    """The file below a root whose path ends like `file`, the longest such end first; None where there is none.

    Among several the first is taken that holds `code` at `line`, else the first that holds it anywhere, else the first.
    """
    best: tuple[int, ReadFile] | None = None
    for path, root in _candidates(roots, file):
        found = _read(path, root)
        if found is None:
            continue
        rank = _agreement(found.text, line, code)
        if best is None or rank > best[0]:
            best = rank, found
        if rank == _EXACT or not code:
            break
    return None if best is None else best[1]


_EXACT: Final = 2


def _agreement(text: str, line: int | None, code: str) -> int:
    lines = text.split("\n")
    if line is not None and 0 < line <= len(lines) and lines[line - 1].strip() == code:
        return _EXACT
    return int(any(one.strip() == code for one in lines))


def _candidates(roots: Sequence[SourceRoot], file: str) -> Iterator[tuple[str, str]]:
    """(path, folder of the root) of the existing files, the longest common end first."""
    parts = _parts(file)
    if not parts or ".." in parts or not parts[-1].endswith(SUFFIX):
        return
    ends: list[tuple[int, str, str]] = []
    for root in roots:
        if root.prefix:
            if parts[: len(root.prefix)] == root.prefix and len(parts) > len(root.prefix):
                ends.append((DEPTH + 1, os.path.join(root.folder, *parts[len(root.prefix) :]), root.folder))
            continue
        ends += [
            (length, os.path.join(root.folder, *parts[-length:]), root.folder)
            for length in range(min(len(parts), DEPTH), 0, -1)
        ]
    found = 0
    for _, path, folder in sorted(ends, key=lambda one: -one[0]):
        if os.path.isfile(path):
            yield path, folder
            found += 1
            if found == CANDIDATES:
                return


def _parts(path: str) -> tuple[str, ...]:
    """Folders and name of a path of any system, without its root."""
    if "\0" in path:
        return ()
    return tuple(part for part in re.split(r"[/\\]", re.sub(r"^[A-Za-z]:", "", path)) if part not in ("", "."))


def _read(path: str, folder: str) -> ReadFile | None:
    """A file, unless links lead out of `folder`, or it is none of Python's text, or too large."""
    real = os.path.realpath(path)
    if not inside(folder, real) or not real.endswith(SUFFIX):
        return None
    try:
        with open_regular(real) as stream:
            data = stream.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT or b"\0" in data:
            return None
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
    except (OSError, UnreadableError, SyntaxError, LookupError, UnicodeDecodeError):
        return None
    return ReadFile(path=real, text=text)
