"""Removes what a server that crashed has left behind, before the next one begins."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dumpscope.errors import ConflictError
from dumpscope.index.checkpoints.catalogue import change_checkpoint_diff, stranded_checkpoint_diffs
from dumpscope.index.comparisons.catalogue import change_comparison, stranded_comparisons
from dumpscope.index.dumps.catalogue import change_dump, delete_dump, has_dump, stranded_dumps
from dumpscope.index.monitors.catalogue import change_monitor, stranded_monitors
from dumpscope.index.store.database import Database
from dumpscope.index.store.owners import sweep
from dumpscope.texts import say

if os.name == "posix":
    import fcntl

_GONE: Final = ".gone-"
"""Prefix of the name of a folder that is being removed."""
_GOING: Final = ".going-"
"""Prefix of the name of an empty file that says: this folder goes as soon as its dump is gone."""


EXPORTS: Final = "export-"
"""Beginning of the name of a folder in which a file is written that is then sent."""


def remove_crash_remains(database: Database, uploads: Path, unpacked: Path, prechecks: Path, data: Path) -> None:
    """Remove half-written ranks, results and exports and cut-off uploads; requests that were never queued end as failed.

    uploads, unpacked, prechecks: one folder per uploaded dump, per opened archive, per dump with results of prechecks
    data: where exports are written. Folders without a dump stay if nobody began to remove them: they may be another database's.
    Nothing where another live server leads: the work may be its own.
    """
    if not database.lead():
        return
    sweep(database)
    error = ConflictError(say("pipeline.server_ended_before_begun"), hint=say("index.start_again")).body()
    for dump in stranded_dumps(database):
        folder = uploads / dump.id
        if not dump.owned:
            change_dump(database, dump.id, status="failed", error=error)
        elif Path(dump.path).is_relative_to(uploads) and not is_folder_held(folder):
            delete_dump(database, dump.id)
            remove_folder(folder)
    for comparison in stranded_comparisons(database):
        change_comparison(database, comparison, status="failed", error=error)
    for diff in stranded_checkpoint_diffs(database):
        change_checkpoint_diff(database, diff, status="failed", error=error)
    for monitor in stranded_monitors(database):
        change_monitor(database, monitor, status="failed", error=error)
    places = uploads, unpacked, prechecks
    for mark in (one for place in places for one in place.glob(f"{_GOING}*")):
        name = mark.name.removeprefix(_GOING)
        if not has_dump(database, name):
            remove_folder(mark.with_name(name))
        mark.unlink(missing_ok=True)
    for folder in (*(one for place in places for one in place.glob(f"{_GONE}*")), *data.glob(f"{EXPORTS}*")):
        if not is_folder_held(folder):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def removing_folders(*folders: Path) -> Iterator[None]:
    """Remove a dump's folders after the block, which removes the dump. Where the process dies in between, the next start does."""
    there = [folder for folder in folders if folder.is_dir()]
    marks = [folder.with_name(_GOING + folder.name) for folder in there]
    try:
        for mark in marks:
            with suppress(OSError):  # a full disk
                mark.touch()
        yield
        for folder in there:
            remove_folder(folder)
    finally:
        for mark in marks:
            with suppress(OSError):
                mark.unlink(missing_ok=True)


@contextmanager
def export_folder(data: Path) -> Iterator[Path]:
    """A folder for one export, gone with the block; `remove_crash_remains` finds those of a server that died."""
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=EXPORTS, dir=data, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with hold_folder(folder):
            yield folder


def remove_folder(folder: Path) -> None:
    """Remove a dump's folder, if there; one half removed is no longer a dump's."""
    gone = folder.with_name(_GONE + folder.name)
    try:
        folder.rename(gone)
    except OSError:
        gone = folder
    shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a folder that is being filled, so that it is not removed as a remain of a crash; the lock ends with the process."""
    if os.name != "posix":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_folder_held(folder: Path) -> bool:
    """Whether a live process is filling it."""
    if os.name != "posix":
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
