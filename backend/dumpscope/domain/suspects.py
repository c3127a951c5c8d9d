"""The calls of an answer to look at, in order: its origins, then what else stands out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from dumpscope.domain.facts import Origin, Suspect
from dumpscope.domain.result import Answer
from dumpscope.texts import english

ROWS: Final = 10
"""Most suspects listed of one step and rank, origins among them."""
EACH: Final = 3
"""Most suspects of one kind beside the origins."""
RUNS: Final = 2
"""Most runs of calls that only one side made."""
KEPT: Final = 1000
"""Suspects kept of all steps and ranks."""
SETTINGS: Final = 2
"""Most differences in settings that are listed."""
_SETTINGS_FIRST: Final = ("setting.dtypes",)


def keep_suspects(found: Iterable[Suspect], origins: Collection[tuple[int, int, int]]) -> list[Suspect]:
    """The suspects that are no origins, of each step and rank the most telling. origins: step, rank and pair of each"""
    kept: list[Suspect] = []
    seen: dict[tuple[int, int, str], int] = {}
    for one in found:
        place = (one.step, one.rank, one.kind)
        most = 1 if one.kind == "blind" else RUNS if one.kind == "structure" else EACH
        if one.kind != "blind" and (one.step, one.rank, one.pair) in origins:
            continue
        if seen.get(place, 0) < most:
            seen[place] = seen.get(place, 0) + 1
            kept.append(one)
    return kept[:KEPT]


def list_suspects(answer: Answer, unit: tuple[int, int] | None = None) -> list[Suspect]:
    """What to look at, in order: origins of all steps and ranks, those behind another one last; then what stands out in this step
    and rank (None: in all), then settings. Empty where no call stands out."""
    origins = [_of_origin(one) for one in answer.origins]
    others = [one for one in answer.suspects if one.kind != "blind" and unit in (None, (one.step, one.rank))]
    calls = [one for one in origins if one.kind == "origin"] + [one for one in origins if one.kind == "second"] + others
    if not calls or not answer.diverged:
        return []
    rows = [*calls, *_settings(answer)]
    return rows if unit is None else rows[:ROWS]


def blind_of(answer: Answer, unit: tuple[int, int]) -> Suspect | None:
    """The call of a step and rank behind which nothing can be judged."""
    return next((one for one in answer.suspects if one.kind == "blind" and (one.step, one.rank) == unit), None)


def _of_origin(origin: Origin) -> Suspect:
    said = list(origin.evidence_said[:1])
    return Suspect(
        kind="second" if origin.second else "origin",
        step=origin.step,
        rank=origin.rank,
        node=origin.node,
        pair=origin.pair,
        why=english(said) if said else origin.evidence,
        why_said=said,
        count=1 + len(origin.group),
        module=origin.module,
        stack=origin.stack,
    )


def _settings(answer: Answer) -> Iterator[Suspect]:
    """Differences in settings, dtypes first. An answer of an older version has no phrases, and none of these."""
    said = sorted(answer.settings_said, key=lambda one: one["id"] not in _SETTINGS_FIRST)
    for one in said[:SETTINGS]:
        yield Suspect(kind="setting", step=-1, rank=-1, node="", pair=-1, why=english([one]), why_said=[one])
