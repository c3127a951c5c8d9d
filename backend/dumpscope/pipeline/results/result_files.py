"""Opens result files as copies; the files themselves are never changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dumpscope.errors import FullDiskError, UsageError, full_disk
from dumpscope.index.comparisons.catalogue import list_comparisons
from dumpscope.index.comparisons.transfer import copy_comparison, remove_unfinished
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.store.upgrade import newest
from dumpscope.texts import say

NAME: Final = "result.db"
"""Of the file that `dumpscope compare -o DIR` writes."""

_MAGIC: Final = b"SQLite format 3\0"
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A result file that was copied. comparisons: their ids in the copy, newest first; older: made by an older dumpscope"""

    file: Path
    comparisons: list[str]
    older: bool


def open_copies(results: Sequence[Path], file: Path) -> list[Opened]:
    """Copy result files (or the one in each folder) into one database, made at `file`, its tables brought up to date there.

    Raises UsageError for a file that is no result file, is empty, or was made by a newer dumpscope; DumpscopeError where the disk
    is full.
    """
    found = [find_result(result) for result in results]
    first = _open_copy(found[0], file)
    opened = [first]
    if len(found) > 1:
        part = file.with_name("part.db")
        database = Database.open(sqlite_url(file))
        try:
            for result in found[1:]:
                opened.append(_add(result, part, database))
        finally:
            database.close()
    return opened


def find_result(path: Path) -> Path:
    """The file that is meant; raises UsageError where there is none."""
    file = path / NAME if path.is_dir() else path
    hint = say("pipeline.dumpscope_compare_o_dir_writes_one")
    if not file.exists():
        why = say("pipeline.folder_holds_no", name=NAME) if path.is_dir() else say("api.nothing_there")
        raise UsageError(why, where=str(path), hint=say("pipeline.or_open_dumps", hint=hint) if path.is_dir() else hint)
    if not file.is_file():
        raise UsageError(say("pipeline.no_file"), where=str(file), hint=hint)
    with _one_line_errors(file), file.open("rb") as stream:
        magic = stream.read(len(_MAGIC))
    if magic != _MAGIC:
        raise UsageError(say("pipeline.no_result_file"), where=str(file), hint=hint)
    return file


def _add(result: Path, part: Path, database: Database) -> Opened:
    """A further file, its comparisons copied one by one beside those that are there."""
    opened = _open_copy(result, part)
    source = Database(sqlite_url(part))
    try:
        ids = [copy_comparison(source, comparison, database) for comparison in opened.comparisons]
    finally:
        source.close()
        for rest in part.parent.glob(f"{part.name}*"):
            rest.unlink()
    return Opened(file=result, comparisons=ids, older=opened.older)


def _open_copy(result: Path, file: Path) -> Opened:
    _copy(result, file)
    database = Database(sqlite_url(file))
    try:
        try:
            was = database.version()
        except UsageError as error:
            raise UsageError(error.detail, where=str(result), hint=error.hint) from error
        if was is None:
            raise UsageError(say("pipeline.sqlite_file_but_no_result_dumpscope"), where=str(result))
        try:
            Database.open(database.url).close()
        except UsageError as error:
            raise UsageError(
                error.detail, where=str(result), hint=say("pipeline.open_dumpscope_made_newer_one")
            ) from error
        remove_unfinished(database)
        try:
            ids = [row.id for _, row in list_comparisons(database, limit=1_000_000)]
        except (KeyError, TypeError, ValueError) as error:  # its answer has what we do not know
            raise UsageError(
                say("pipeline.made_by_newer_dumpscope"), where=str(result), hint=say("pipeline.open_one")
            ) from error
    finally:
        database.close()
    if not ids:
        raise UsageError(say("pipeline.holds_no_finished_comparison"), where=str(result))
    return Opened(file=result, comparisons=ids, older=was != newest())


def _copy(result: Path, file: Path) -> None:
    """Copy the file and, where it is open or was not closed, its write-ahead log."""
    beside = result.with_name(f"{result.name}-wal"), file.with_name(f"{file.name}-wal")
    for _ in range(_ATTEMPTS):
        before = _state(result), _state(beside[0])
        with _one_line_errors(result):
            shutil.copyfile(result, file)
            beside[1].unlink(missing_ok=True)
            if before[1] is not None and before[1][0]:
                shutil.copyfile(*beside)
        if before == (_state(result), _state(beside[0])):
            return
    raise UsageError(
        say("pipeline.being_written"), where=str(result), hint=say("pipeline.wait_until_whoever_writes_has_ended")
    )


def _state(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


@contextmanager
def _one_line_errors(result: Path) -> Iterator[None]:
    """Turns errors of the system into one line about the result file, or about disk space for its copy."""
    try:
        yield
    except OSError as error:
        words = error.strerror or str(error)
        if full_disk(error) is not None:
            hint = say("pipeline.let_tmpdir_name_folder_room")
            raise FullDiskError(say("pipeline.no_room_copy", words=words), where=str(result), hint=hint) from error
        raise UsageError(say("pipeline.cannot_copied", words=words), where=str(result)) from error
