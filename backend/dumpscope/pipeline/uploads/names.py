"""Which names a file of an upload may have: they come from outside and become paths."""

from __future__ import annotations

import re
from typing import Final

from dumpscope.readers.archives.entry_names import Folding
from dumpscope.texts import say

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_DEPTH: Final = 16
_PART_BYTES: Final = 255
_BYTES: Final = 2000


class Names:
    """Names of one upload that are taken. folding: which of them the file system it comes to takes for one"""

    def __init__(self, folding: Folding) -> None:
        self._key = folding.key
        self._clash = say("pipeline.another_file_upload_has_name", words=folding.words)
        self._taken: dict[str, str] = {}
        self._folders: set[str] = set()

    def taken(self, name: str) -> bool:
        """This very name was claimed before."""
        return self._taken.get(self._key(name)) == name

    def claim(self, name: str) -> str | None:
        """Take the name; or the sentence that says why no file of this name is written."""
        reason = refusal(name)
        if reason is not None:
            return reason
        parts = name.split("/")
        own = self._key(name)
        above = [self._key("/".join(parts[:depth])) for depth in range(1, len(parts))]
        if own in self._taken or own in self._folders or any(folder in self._taken for folder in above):
            return self._clash
        self._taken[own] = name
        self._folders.update(above)
        return None


def refusal(name: str) -> str | None:
    """Why a name is dangerous or too long, None for a plain relative path with "/" between its parts."""
    parts = name.split("/")
    if not name or any(part in ("", ".") for part in parts):
        return say("pipeline.name_empty_absolute_not_shortest_form")
    if ".." in parts:
        return say("pipeline.name_climbs_out_upload")
    if "\\" in name or _DRIVE.match(name):
        return say("pipeline.name_absolute_windows_path")
    if any(ord(letter) < 32 or letter == "\ufffd" for letter in name):
        return say("pipeline.name_holds_control_characters_not_utf")
    long = len(name.encode("utf-8", "replace")) > _BYTES
    if long or len(parts) > _DEPTH or any(len(part.encode("utf-8", "replace")) > _PART_BYTES for part in parts):
        return say("pipeline.name_too_long_too_deep")
    return None
