"""The files of a checkpoint: opened once, few at a time, and named as people see them."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from dumpscope.errors import Problem, TensorError
from dumpscope.readers.tensors.arrays import Bytes
from dumpscope.readers.tensors.mapped_file import read_bytes
from dumpscope.texts import say

OPEN_FILES: Final = 64
"""Files kept open at a time; a map that an array still uses stays open beside them."""
MAX_JSON: Final = 256 << 20
"""Bytes of an index file."""
MAX_FILES: Final = 20_000
"""Entries of a folder that are looked at."""


class Files:
    """Opens files below a folder. root: folder that no link may lead out of, "/" for a user with a shell."""

    def __init__(self, folder: Path, root: str = os.sep) -> None:
        self.folder = folder
        self.root = root
        self._open: OrderedDict[str, Bytes] = OrderedDict()

    def content(self, name: str) -> Bytes:
        """Content of a file, mapped where it is large. Raises TensorError that names the file."""
        found = self._open.get(name)
        if found is None:
            try:
                found = read_bytes(self.folder / name, root=self.root)
            except TensorError as error:
                error.where = error.where or name
                raise
            self._open[name] = found
            while len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)
        self._open.move_to_end(name)
        return found

    def names(self) -> list[str]:
        """Files and folders directly below, in order. Raises TensorError where there are more than MAX_FILES."""
        found: list[str] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) > MAX_FILES:
                    raise TensorError(
                        say("checkpoints.too_many_files", count=f"{MAX_FILES:,}"),
                        kind="refused",
                        hint=say("checkpoints.name_checkpoint_itself"),
                        where=str(self.folder),
                    )
        return sorted(found)

    def document(self, name: str) -> dict[str, Any]:
        """A JSON object in a file. Raises TensorError."""
        content = self.content(name)
        if len(content) > MAX_JSON:
            raise damaged(name, say("checkpoints.index_too_large", count=f"{MAX_JSON:,}"))
        return parse_object(bytes(content[: len(content)]), name)


def parse_object(text: bytes, where: str) -> dict[str, Any]:
    """A JSON object whose keys are all different. Raises TensorError, also for nesting that no checkpoint has."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError(say("checkpoints.key_twice"))
        return found

    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise damaged(where, say("checkpoints.no_json", reason=str(error)[:200])) from error
    if not isinstance(value, dict):
        raise damaged(where, say("checkpoints.no_json_object"))
    return value


def damaged(where: str, what: str, *, kind: str = "damaged") -> TensorError:
    return TensorError(what, kind=kind, hint=say("checkpoints.save_or_copy_again"), where=where)


def problem_of(error: TensorError, where: str = "") -> Problem:
    """An error as a problem in a list."""
    message = say("error.with_hint", what=error.detail, hint=error.hint) if error.hint else error.detail
    return Problem(loc=error.where or where, kind=error.kind, message=message)


def is_plain_name(name: str) -> bool:
    """Whether a name that a file gives is one of a file in the same folder."""
    return bool(name) and name not in (".", "..") and not set(name) & {"/", "\\", "\0"} and len(name) <= 255
