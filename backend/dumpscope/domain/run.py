"""How a rank was run and dumped, as its own run.json says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Values are texts; a missing name means that the dump does not tell it.

    versions: of libraries; settings: of the dump, defaults filled in; numerics: switches that change how numbers are computed
    seeds: of random numbers; environment: variables that choose kernels; devices: those in use, the processor first
    notes: what was recorded in another way than usual, by kind (`dumpscope_format.run.NOTE_KINDS`): names that it concerns
    unrecorded: functions that were called in this step and are no nodes, and how often
    """

    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    numerics: dict[str, str] = field(default_factory=dict)
    seeds: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    unrecorded: dict[str, int] = field(default_factory=dict)

    @property
    def accelerators(self) -> list[str]:
        """Devices other than the processor."""
        return [name for name in self.devices if not name.startswith("cpu")]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Inverse of `asdict` and JSON; keys of a later version are left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})
