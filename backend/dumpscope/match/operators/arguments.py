"""Names and defaults of the arguments of torch's functions (`bench/argument_names.py` reads them from torch itself)."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

ABSENT: Final = object()
"""There is no default, or none that is known."""


def argument_name(label: str, path: str) -> str | None:
    """Name of an argument given by position. label: of its call, as "Torch.sum"; path: "1", or "1.0" inside a container"""
    place, _, _ = path.partition(".")
    names = _entry(label).get("names", ())
    return names[int(place)] if place.isdecimal() and int(place) < len(names) else None


def default_of(label: str, name: str) -> Any:
    """What a call takes where this argument is not given; ABSENT where that is not known."""
    return _entry(label).get("defaults", {}).get(name, ABSENT)


def _entry(label: str) -> dict[str, Any]:
    family, _, name = label.partition(".")
    table = _table()
    found = table.get(label) if family == "Functional" else None
    if found is None and family in ("Functional", "Torch", "Tensor", "VF"):
        found = table.get(name)
    return found or {}


@cache
def _table() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(
        (resources.files(__package__) / "argument_names.json").read_text("utf-8")
    )
    return found
