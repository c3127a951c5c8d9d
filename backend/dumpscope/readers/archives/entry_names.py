"""When two names from outside mean one file: on some file systems upper and lower case, or two Unicode forms, are the same."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

from dumpscope.texts import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """Names that a file system takes for the same. case: `W` and `w`; forms: `é` as one character or as `e` and an accent"""

    case: bool
    forms: bool

    def key(self, name: str) -> str:
        """Equal for names of one file."""
        if name.isascii():
            return name.lower() if self.case else name
        if self.case:
            name = (normalize("NFD", name) if self.forms else name).casefold()
        return normalize("NFC", name) if self.forms else name

    @property
    def words(self) -> str:
        """What counts as equal, in brackets behind a clash; "" where nothing does."""
        same = " and ".join(
            [*(["upper and lower case"] if self.case else []), *(["Unicode forms"] if self.forms else [])]
        )
        return say("readers.count_equal_disk", same=same) if same else ""


FOLDED: Final = Folding(case=True, forms=True)
PLAIN: Final = Folding(case=False, forms=False)


def probe(folder: str | os.PathLike[str], exists: Callable[[str], bool] = os.path.lexists) -> Folding:
    """What the file system of `folder` does, seen on a file that is there for a moment; FOLDED where none can be made."""
    name = f".probe-\u00e9-{secrets.token_hex(8)}"
    path = os.path.join(folder, name)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except (OSError, UnicodeError):
        return FOLDED
    try:
        return Folding(
            case=exists(os.path.join(folder, name.replace("probe", "PROBE"))),
            forms=exists(os.path.join(folder, normalize("NFD", name))),
        )
    finally:
        with suppress(OSError):
            os.unlink(path)
