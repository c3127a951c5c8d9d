"""When a folder that somebody still writes into may be read: the rule for "whole", and what a watch has seen.

Only changes count, and the time between our own looks: the clock of a file system may be wrong, and its times serve as marks that
are equal or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

State = Literal["closed", "written", "journal", "cut"]
"""closed: its recorder says that it is complete; journal: our recorder still adds to it, or was killed; cut: its last file ends
in the middle; written: anything else"""

PATIENCE: Final[Mapping[State, float]] = {"closed": 0.0, "written": 1.0, "journal": 6.0, "cut": 12.0}
"""Settle times for which a rank must not change to be whole: a long kernel may hold up a journal, a slow disk a file."""

Condition = Literal["waiting", "looking", "growing", "still", "ended", "gone", "outside", "unreadable"]
"""waiting: no dump there yet; looking: not known yet whether it grows; growing: a step is being written; ended: its recorder
closed the newest step; still: nothing changes"""


@dataclass(frozen=True, slots=True)
class Place:
    """Folder of one rank of one step, by names alone."""

    step: int
    label: str
    folder: str


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look saw of a place. stamp: another one where a record file was written, added or removed"""

    stamp: str
    state: State


@dataclass(slots=True)
class _Kept:
    place: Place
    found: float
    sight: Sight | None = None
    since: float = 0.0
    looked: float = -1.0
    changed: bool = False


class Places:
    """The places of one dump over many looks. Times are seconds of any clock that only goes forward."""

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._kept: dict[str, _Kept] = {}
        self._begun = False

    def find(self, now: float, steps: Iterable[int], places: Iterable[Place]) -> None:
        """Take in a listing. steps: those whose folders were listed; the places of other steps stay as they were"""
        listed = set(steps)
        found = {place.folder: place for place in places}
        for folder in [one.place.folder for one in self._kept.values() if one.place.step in listed]:
            if folder not in found:
                del self._kept[folder]
        for folder, place in found.items():
            if folder not in self._kept:
                self._kept[folder] = _Kept(place, now, changed=self._begun)
        self._begun = True

    def see(self, now: float, folder: str, sight: Sight | None) -> None:
        """Take in a look at one place; None: it holds no record yet."""
        kept = self._kept.get(folder)
        if kept is None:
            return
        if sight != kept.sight:
            kept.changed = kept.changed or kept.looked >= 0
            kept.sight, kept.since = sight, now
        kept.looked = now

    def due(self, most: int) -> list[Place]:
        """At most `most` places to look at next: new ones, then those that are not whole, each the longest unseen first."""
        order = sorted(self._kept.values(), key=lambda one: (one.looked >= 0 and self._is_whole(one), one.looked))
        return [one.place for one in order[:most]]

    def sight(self, folder: str) -> Sight | None:
        kept = self._kept.get(folder)
        return kept.sight if kept else None

    @property
    def places(self) -> list[Place]:
        return [one.place for one in self._kept.values()]

    @property
    def newest(self) -> int | None:
        """The last step of which there is a record."""
        return max((one.place.step for one in self._kept.values() if one.sight is not None), default=None)

    def whole_steps(self, now: float) -> set[int]:
        """Steps whose ranks are all whole, and that got no further rank for a settle time. A folder without a record is none."""
        latest: dict[int, float] = {}
        partial: set[int] = set()
        for one in self._kept.values():
            step = one.place.step
            if one.looked < 0:
                partial.add(step)
            elif one.sight is None:
                continue
            elif not self._is_whole(one):
                partial.add(step)
            latest[step] = max(latest.get(step, one.found), one.found)
        return {step for step, found in latest.items() if step not in partial and now - found >= self._settle}

    def has_changed(self, step: int) -> bool:
        """Whether the step, or a rank of it, appeared or changed between two looks."""
        return any(one.changed for one in self._kept.values() if one.place.step == step)

    def is_examining(self) -> bool:
        """Whether ranks that were there from the beginning have not been looked at for long enough to be whole."""
        return any(
            one.looked < 0
            or (not one.changed and one.sight is not None and one.sight.state == "written" and not self._is_whole(one))
            for one in self._kept.values()
        )

    def is_restless(self, now: float) -> bool:
        """Whether something changed so lately that a look is worth while."""
        return any(
            one.looked < 0 or now - max(one.found, one.since) < (1 + _patience(one.sight)) * self._settle
            for one in self._kept.values()
        )

    def _is_whole(self, one: _Kept) -> bool:
        return one.sight is not None and one.looked - one.since >= _patience(one.sight) * self._settle


def _patience(sight: Sight | None) -> float:
    return PATIENCE["cut" if sight is None else sight.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a watch saw last, as it is stored and sent.

    since: when the condition began, by the server's clock, seconds since the epoch
    step: the newest; calls: recorded in it so far, if a journal tells; whole: steps that are whole
    why: what makes the folder unreadable, why_said: its phrases
    """

    condition: Condition = "waiting"
    since: float = 0.0
    step: int | None = None
    calls: int | None = None
    whole: list[int] = field(default_factory=list)
    why: str | None = None
    why_said: list[dict[str, Any]] | None = None

    def then(self, condition: Condition, now: float, **changed: Any) -> Seen:
        """The next one; `since` stays while the condition does."""
        since = self.since if condition == self.condition else now
        return replace(self, condition=condition, since=since, **{"why": None, "why_said": None, **changed})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Seen:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


def next_wait(wait: float, settle: float, *, restless: bool) -> float:
    """Seconds to the next look: a fifth of the settle time while something happens, then twice as long each time, at most thrice
    the settle time."""
    quick = settle / 5
    return quick if restless else min(max(wait * 2, quick), settle * 3)
