"""Text logs as dumps: a lone one, or a folder with one for each rank (`rank_3_activations.log`)."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
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


class LogFormat(DumpFormat):
    """A tool that writes a text file for each rank. A subclass must have a name, looks_like_log and read_rank."""

    @staticmethod
    @abstractmethod
    def looks_like_log(head: bytes) -> bool:
        """Whether a file that begins so is one."""

    def find_ranks(self, folder: str, root: str, note: Note) -> list[RankRef]:
        found: dict[int | None, str] = {}
        for path in _logs(folder, root, self.looks_like_log):
            number = _number(path)
            if number in found:
                note(path, "several_runs", say("readers.other_log_read", label=os.path.basename(found[number])))
            else:
                found[number] = path
        if len(found) > 1 and None in found:
            note(found.pop(None), "ignored", say("readers.log_without_rank"))
        return [_rank(self, path, number, note) for number, path in found.items()]

    def find_rank(self, place: Place) -> RankRef | None:
        """The log of a rank's or step's own folder; a folder that is none of these may hold several ranks (`find_ranks`)."""
        if place.alone:
            return None
        paths = _logs(place.folder, place.root, self.looks_like_log)
        for path in paths[1:]:
            place.note(path, "several_runs", say("readers.other_log_read", label=os.path.basename(paths[0])))
        return self.rank_at(place, paths[0]) if paths else None

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        return _rank(self, path, _number(path), note) if self.looks_like_log(head) else None


def _logs(folder: str, root: str, looks: Looks) -> list[str]:
    try:
        names = sorted((name for name in os.listdir(folder) if name.lower().endswith(ENDS)), key=natural_key)
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names[:FILE_LIMIT]]
    return [path for path in paths if refusal(path, root) is None and looks(read_head(path))]


def _rank(one: DumpFormat, path: str, rank: int | None, note: Note) -> RankRef:
    folder, label = os.path.split(path)
    return one.rank_at(Place(folder=folder, root=folder, step=0, rank=rank, label=label, note=note, alone=True), path)


def _number(path: str) -> int | None:
    found = _RANK.search(os.path.basename(path))
    return None if found is None else int(found[1])
