"""Dumps that bring about one state of a screen each, made from real ones by changing one thing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _changed(source: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    shutil.copytree(source, to)
    for file in to.rglob("dump.json"):
        dump = json.loads(file.read_text(encoding="utf-8"))
        change(dump["data"])
        file.write_text(json.dumps(dump), encoding="utf-8")
    return to


def other_inputs(source: Path, to: Path) -> Path:
    """The run received other token ids, and all that follows is another number."""

    def change(data: dict[str, Any]) -> None:
        for name, call in data.items():
            for part in ("input_args", "output", "input"):
                for item in (call.get(part) or [])[: 1 if part == "input_args" else None]:  # weights stay
                    if isinstance(item, dict) and "Norm" in item and "parameters_grad" not in name:
                        for word in ("Max", "Min", "Mean", "Norm"):
                            if isinstance(item[word], int | float):
                                item[word] *= 1.25

    return _changed(source, to, change)


def late(source: Path, to: Path, first: str, factor: float = 1.5) -> Path:
    """From the call `first` on every forward call received and made other numbers, and the one before it made none of them."""

    def change(data: dict[str, Any]) -> None:
        names = [name for name in data if ".forward" in name]
        for name in names[names.index(first) :]:
            for part in ("input_args", "output"):
                for item in data[name].get(part) or []:
                    if isinstance(item, dict) and isinstance(item.get("Norm"), int | float):
                        for word in ("Max", "Min", "Mean", "Norm"):
                            item[word] *= factor

    return _changed(source, to, change)


def cut_rank(source: Path, to: Path, rank: str = "rank1") -> Path:
    """The run was killed while this rank's dump.json was written."""
    shutil.copytree(source, to)
    (file,) = to.rglob(f"{rank}/dump.json")
    file.write_bytes(file.read_bytes()[:-3000])
    return to
