"""A look at a dump that is still being written: where its ranks lie and whether their files changed. No record is read."""

from __future__ import annotations

import os
from typing import Final

import orjson

from dumpscope.domain.watching import Place, Sight, State
from dumpscope.errors import UnreadableError
from dumpscope.readers.regular_file import open_regular
from dumpscope_format.journal import JOURNAL, count_nodes, is_flushed
from dumpscope_format.paths import (
    CONSTRUCT_JSON,
    DEBUG_JSON,
    DUMP_JSON,
    RUN_JSON,
    STACK_JSON,
    is_single,
    natural_key,
    rank_number,
    step_number,
)

ENTRIES: Final = 20_000
"""Entries of one folder that are looked at."""
FILES: Final = 32
"""Files of one folder of a rank whose size and time are looked at; of more files only the number counts."""
TAIL: Final = 64
RUN_LIMIT: Final = 4 << 20


def list_steps(root: str) -> dict[int, str] | None:
    """Number and folder of each step of a dump, None where its ranks lie in no folders of steps. Raises OSError."""
    found = {step: path for name, path in _folders(root) if (step := step_number(name)) is not None}
    return found or None


def list_places(folder: str, step: int) -> list[Place]:
    """The folders of ranks in the folder of a step, by names alone: ranks, else a run's without ranks, else the folder itself.

    Nothing where the folder cannot be listed, as while it is being removed.
    """
    try:
        entries = _folders(folder)
        places = _ranks(entries, step)
        others = [path for name, path in entries if not name.startswith(".")]
        if not places and len(others) == 1:  # ptdbg's guide puts the tag below the step
            places = _ranks(_folders(others[0]), step)
    except OSError:
        return []
    return places or [Place(step, "", folder)]


def look_at(folder: str, before: Sight | None = None) -> Sight | None:
    """The state of a rank's folder, None where it holds no record yet. before: what the last look saw, so that files that did not
    change since are not opened again."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for _, entry in zip(range(ENTRIES), entries, strict=False)
                if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return None
    if not names:
        return None
    marks = [f"{len(names)}"]
    own = {DUMP_JSON, DEBUG_JSON, JOURNAL, STACK_JSON, CONSTRUCT_JSON, RUN_JSON}
    chosen = [name for name in names if name in own] or names[:FILES]
    for name in chosen:
        try:
            status = os.stat(os.path.join(folder, name), follow_symlinks=False)
        except OSError:
            continue  # removed meanwhile, as a journal when its step ends
        marks.append(f"{name}:{status.st_size}:{status.st_mtime_ns}")
    if own & set(names) == {RUN_JSON}:
        return None  # a recorder that has just begun
    stamp = ";".join(marks)
    if before is not None and before.stamp == stamp:
        return before
    return Sight(stamp, _state(folder, set(names)))


def count_calls(folder: str, start: int) -> tuple[int, int]:
    """Calls that the journal of a rank holds from the offset `start` on, and the offset to go on from."""
    return count_nodes(os.path.join(folder, JOURNAL), start)


def _state(folder: str, names: set[str]) -> State:
    if JOURNAL in names and not is_flushed(os.path.join(folder, JOURNAL)):
        return "journal"
    main = next((name for name in (DUMP_JSON, DEBUG_JSON) if name in names), None)
    if main is not None and not _ends(os.path.join(folder, main)):
        return "cut"
    if JOURNAL in names:
        return "journal"  # open: its recorder may go on with this step
    return "closed" if main is not None and RUN_JSON in names and _says_closed(folder) else "written"


def _ends(path: str) -> bool:
    """Whether the last sign of a JSON file closes an object."""
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - TAIL))
            return stream.read(TAIL).rstrip().endswith(b"}")
    except (OSError, UnreadableError):
        return False


def _says_closed(folder: str) -> bool:
    try:
        with open_regular(os.path.join(folder, RUN_JSON)) as stream:
            document = orjson.loads(stream.read(RUN_LIMIT))
    except (OSError, ValueError, UnreadableError):
        return False
    return isinstance(document, dict) and document.get("ended") == "closed"


def _ranks(entries: list[tuple[str, str]], step: int) -> list[Place]:
    ranks = [Place(step, name, path) for name, path in entries if rank_number(name) is not None]
    return ranks or [Place(step, name, path) for name, path in entries if is_single(name)]


def _folders(folder: str) -> list[tuple[str, str]]:
    """Names and paths of the folders in a folder, links left out, in natural order. Raises OSError."""
    with os.scandir(folder) as entries:
        found = [
            (entry.name, entry.path)
            for _, entry in zip(range(ENTRIES), entries, strict=False)
            if entry.is_dir(follow_symlinks=False)
        ]
    return sorted(found, key=lambda one: natural_key(one[0]))
