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


def many_ranks(usual: Path, odd: Path, to: Path, count: int, strays: int) -> Path:
    """A dump of one step and `count` ranks that are all the same, but for the rank `strays`."""
    for rank in range(count):
        (one,) = ((odd if rank == strays else usual) / "step0").iterdir()
        shutil.copytree(one, to / "step0" / f"rank{rank}")
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


def died(source: Path, to: Path, last: str) -> Path:
    """The run raised after the call `last` and was recorded up to it."""

    def change(data: dict[str, Any]) -> None:
        names = list(data)
        for name in names[names.index(last) + 1 :]:
            del data[name]

    return _changed(source, to, change)


def renamed(source: Path, to: Path, names: dict[str, str]) -> Path:
    """Calls have other names."""

    def change(data: dict[str, Any]) -> None:
        old = list(data.items())
        data.clear()
        data.update((names.get(name, name), call) for name, call in old)

    _changed(source, to, change)
    for file in (*to.rglob("stack.json"), *to.rglob("construct.json")):
        text = file.read_text(encoding="utf-8")
        for name, other in names.items():
            text = text.replace(json.dumps(name), json.dumps(other))
        file.write_text(text, encoding="utf-8")
    return to


def special(source: Path, to: Path, call: str) -> Path:
    """The first output of a call holds infinities and NaN, and has no mean; a whole number above 2^53 is its last argument."""

    def change(data: dict[str, Any]) -> None:
        data[call]["output"][0] |= {"Max": float("inf"), "Min": float("-inf"), "Mean": None, "Norm": float("nan")}
        data[call]["input_args"].append({"type": "int", "value": 2**53 + 1})

    return _changed(source, to, change)


def in_micro_steps(source: Path, to: Path) -> Path:
    """The second half of the calls belongs to another micro-step, as construct.json of Megatron's runs says."""
    shutil.copytree(source, to)
    for file in to.rglob("construct.json"):
        links = json.loads(file.read_text(encoding="utf-8"))
        half = len(links) // 2
        marked = {name: [above, int(place >= half)] for place, (name, above) in enumerate(links.items())}
        file.write_text(json.dumps(marked), encoding="utf-8")
    return to
