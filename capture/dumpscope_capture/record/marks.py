"""Marks: small files in a shared folder by which ranks learn of each other's step without a message of their own.

A mark is there as a whole or not at all. Those that lie in the folder before a run begins are an earlier run's.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


class Marks:
    """The marks of one kind in a folder: this process's own, and those that other ranks leave.

    kind: beginning of the names, `trigger-`; name: of this process, `rank3`
    """

    def __init__(self, folder: Path, kind: str, name: str) -> None:
        self._folder = folder
        self._kind = kind
        self._name = name
        self._earlier: dict[str, int] = {}

    @property
    def own(self) -> Path:
        """The mark of this process."""
        return self._folder / f"{self._kind}{self._name}.json"

    def forget_earlier(self) -> None:
        """Remove what an earlier run of this process's name left, and pass over the marks of others that are there."""
        if self.own.exists():
            self.own.unlink()
        for path in self._folder.glob(f"{self._kind}*.json"):
            with suppress(OSError):  # its own rank removes it just now
                self._earlier[path.name] = path.stat().st_mtime_ns

    def leave(self, document: Mapping[str, Any]) -> None:
        """Leave a mark, with the name of this process and the time, in place of an earlier one."""
        whole = {**document, "process": self._name, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=f".{self._kind}")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(whole, out, indent=1)
        os.replace(temporary, self.own)

    def of_others(self) -> list[dict[str, Any]]:
        """The marks of other ranks, those of before too; what cannot be read is passed over until it can."""
        found = []
        for path in sorted(self._folder.glob(f"{self._kind}rank*.json")):
            try:
                if path == self.own or path.stat().st_mtime_ns == self._earlier.get(path.name):
                    continue
                document = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(document, dict):
                found.append(document)
        return found
