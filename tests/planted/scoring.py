"""Compares planted pairs as the command line does, and holds the answer against the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.comparing import compare

from dumpscope.domain.facts import Origin
from planted.truth import accepted, reach

KIND = {
    "weight": "weight", "input": "input", "argument": "configuration", "structure": "structure", "nan": "overflow",
    "inf": "overflow",
}  # fmt: skip
"""Kind of origin that a cause should get; every other cause is a wrong computation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """outcome: right, later (a true origin stands behind a false one), wrong, silent
    reach: clear (must be found), hidden (does not show at the call that owns the kernel), faint (above the noise, below a
    floor), buried (within the noise, or nothing differs in this dump)
    found: of each planted fault that nothing but itself explains, whether it is among the origins
    """

    entry: dict[str, Any]
    truth: tuple[str, ...]
    outcome: str
    reach: str
    false: int
    origins: tuple[str, ...]
    kinds: tuple[str, ...]
    other_kind: bool
    found: tuple[bool, ...]
    evidence: tuple[str, ...] = field(repr=False)

    @property
    def counts(self) -> bool:
        """The fault rises above what the dump stored."""
        return self.reach in ("clear", "hidden")


def scored(out: Path, entry: dict[str, Any], swap: bool = False) -> Scored:
    """swap: the healthy run is the target."""
    sides = out / entry["target"] / "dump", out / entry["golden"] / "dump"
    answer, _ = compare(*(sides[::-1] if swap else sides))
    kind = KIND.get(entry["cause"], "computation") if entry["cause"] != "argument" or entry["seen"]["argument"] else ""
    several = [accepted(one) for one in _faults(entry)]
    apart = [reach(one, shows) == "clear" and shows for one, (_, shows) in zip(_faults(entry), several, strict=True)]
    truth = list(dict.fromkeys(name for names, _ in several for name in names))
    step = entry["seen"]["step"]
    right = [
        (origin.step == step or len(several) > 1) and origin.node in truth and entry["cause"] != "healthy"
        for origin in answer.origins
    ]
    false = sum(1 for o, good in zip(answer.origins, right, strict=True) if not good and not _excused(o, entry))
    return Scored(
        entry=entry, truth=tuple(truth), reach=reach(entry, several[0][1]), outcome=_outcome(right, truth, false),
        false=false,
        origins=tuple(f"{o.step}/{o.node}" if entry["steps"] > 1 else o.node for o in answer.origins),
        kinds=tuple(o.kind for o in answer.origins),
        other_kind=bool(kind and right and right[0] and answer.origins[0].kind != kind),
        found=tuple(
            any(origin.node in names for origin in answer.origins)
            for (names, _), alone in zip(several, apart, strict=True) if alone
        ),
        evidence=tuple(o.evidence for o in answer.origins),
    )  # fmt: skip


def _faults(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The entry as it were with each planted fault alone: what it shows, the node that owns its kernel, the noise there."""
    some = zip(
        entry["all_seen"], entry["owners"] or [""], entry["all_floors"] or [[]] * len(entry["all_seen"]), strict=True
    )
    return [entry | {"seen": seen, "owner": owner, "floors": floors} for seen, owner, floors in some]


def _excused(origin: Origin, entry: dict[str, Any]) -> bool:
    """An inserted call is a true difference of structure; so is another dtype one of configuration."""
    if entry.get("healthy") == "dtype" and origin.kind == "configuration":
        return True
    return origin.kind == "structure" and entry["insert"] is not None


def _outcome(right: list[bool], truth: list[str], false: int) -> str:
    if not truth:
        return "wrong" if false else "right"
    if not right:
        return "silent"
    if right[0]:
        return "right"
    return "later" if any(right) else "wrong"
