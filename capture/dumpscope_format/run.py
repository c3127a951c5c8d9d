"""What run.json says of a run: the groups that a comparison looks at, and the settings that are not named in it."""

from __future__ import annotations

from typing import Final

GROUPS: Final = ("versions", "settings", "numerics", "seeds", "environment")
"""Keys of run.json that hold an object of names and plain values."""

DEVICES: Final = "devices"
"""Key of run.json that holds a list of texts, the processor first."""

SETTINGS: Final[dict[str, str | list[str]]] = {
    "precision": "low", "risk_level": "FOCUS", "backward": "own", "data_mode": ["all"], "scope": [], "list": [],
}  # fmt: skip
"""Settings that change what a dump holds, with the value of those that `settings` (or a config.json) leaves out."""
