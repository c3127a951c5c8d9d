"""Dumps that a folder on the server may hold, by the names of files and folders alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dumpscope.errors import UnreadableError
from dumpscope.readers.formats import formats
from dumpscope.readers.result_tables.files import names_table
from dumpscope.texts import say
from dumpscope_format.paths import inside, is_single, natural_key, rank_number, step_number

ENTRY_LIMIT: Final = 20_000
"""Entries of one folder that are looked at."""
GLANCE: Final = 200
"""Entries of a folder that are looked at to tell whether it is a dump."""
ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A folder to look into, or a file that can be read as a dump or as a comparison."""

    name: str
    kind: Literal["folder", "archive", "file"]


def offers(folder: str, roots: Sequence[str]) -> tuple[list[Offer], bool]:
    """(folders, then archives and dump files, in natural order; whether there were more entries than are looked at)

    Left out: hidden entries, links that leave every root, names with control characters or not in UTF-8. Raises UnreadableError.
    """
    try:
        with os.scandir(folder) as entries:
            listed = [entry for _, entry in zip(range(ENTRY_LIMIT), entries, strict=False)]
            more = next(entries, None) is not None
    except OSError as error:
        raise UnreadableError(say("readers.cannot_listed", reason=error.strerror), where=folder) from error
    found = [offer for entry in listed if (offer := _offer(entry, roots)) is not None]
    return sorted(found, key=lambda offer: (offer.kind != "folder", natural_key(offer.name))), more


def looks_like_dump(folder: str) -> bool:
    """Its first entries are a dump's: dump files, or folders of steps or ranks. It may turn out to be none."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(GLANCE), entries, strict=False):
                name = entry.name
                if any(one.marks_folder(name) for one in formats()) and _is(entry, folder=False):
                    return True
                numbered = step_number(name) is not None or rank_number(name) is not None
                if (numbered or is_single(name)) and _is(entry, folder=True):
                    return True
    except OSError:
        return False
    return False


def _offer(entry: os.DirEntry[str], roots: Sequence[str]) -> Offer | None:
    name = entry.name
    if name.startswith(".") or any(ord(letter) < 32 or "\ud800" <= letter <= "\udfff" for letter in name):
        return None
    if entry.is_symlink() and not any(inside(root, entry.path) for root in roots):
        return None
    if _is(entry, folder=True):
        return Offer(name=name, kind="folder")
    if name.lower().endswith(ARCHIVES) and _is(entry, folder=False):
        return Offer(name=name, kind="archive")
    if (names_table(name) or any(one.names_file(name) for one in formats())) and _is(entry, folder=False):
        return Offer(name=name, kind="file")
    return None


def _is(entry: os.DirEntry[str], *, folder: bool) -> bool:
    try:
        return entry.is_dir() if folder else entry.is_file()
    except OSError:
        return False
