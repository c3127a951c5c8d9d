"""Text logs as dumps: a lone one, or a folder with one for each rank (`rank_3_activations.log`)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

from dumpscope.domain.records import RankRef
from dumpscope.readers.formats import DumpFormat, Note, Place
from dumpscope.readers.regular_file import read_head, refusal
from dumpscope.texts import say
from dumpscope_format.paths import natural_key

ENDS: Final = (".log", ".txt", ".out")
FILE_LIMIT: Final = 4096
"""Files of a folder that are looked at."""
_RANK: Final = re.compile(r"(?:^|[._-])rank[._-]?([0-9]{1,6})(?![0-9])", re.IGNORECASE)

Looks = Callable[[bytes], bool]


def find_logs(one: DumpFormat, folder: str, root: str, note: Note, looks: Looks) -> list[RankRef]:
    """The logs of a folder (or the one file), one a rank by the number in their names."""
    if os.path.isfile(folder):
        return [_rank(one, folder, 0, _number(folder), note)]
    found: dict[int | None, str] = {}
    for path in _logs(folder, root, looks):
        number = _number(path)
        if number in found:
            note(path, "several_runs", say("readers.other_log_read", label=os.path.basename(found[number])))
        else:
            found[number] = path
    if len(found) > 1 and None in found:
        note(found.pop(None), "ignored", say("readers.log_without_rank"))
    return [_rank(one, path, 0, number, note) for number, path in found.items()]


def lone_log(one: DumpFormat, place: Place, looks: Looks) -> RankRef | None:
    """The log of a rank's or step's own folder; a folder that is none of these may hold several ranks (`find_logs`)."""
    if place.alone:
        return None
    paths = _logs(place.folder, place.root, looks)
    for path in paths[1:]:
        place.note(path, "several_runs", say("readers.other_log_read", label=os.path.basename(paths[0])))
    return one.rank_at(place, paths[0]) if paths else None


def _logs(folder: str, root: str, looks: Looks) -> list[str]:
    try:
        names = sorted((name for name in os.listdir(folder) if name.lower().endswith(ENDS)), key=natural_key)
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names[:FILE_LIMIT]]
    return [path for path in paths if refusal(path, root) is None and looks(read_head(path))]


def _rank(one: DumpFormat, path: str, step: int, rank: int | None, note: Note) -> RankRef:
    folder, label = os.path.split(path)
    return one.rank_at(
        Place(folder=folder, root=folder, step=step, rank=rank, label=label, note=note, alone=True), path
    )


def _number(path: str) -> int | None:
    found = _RANK.search(os.path.basename(path))
    return None if found is None else int(found[1])
