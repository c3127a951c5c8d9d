"""Calls to look at beside the origins: what made an error much larger, and what one side alone did.

An origin is proved, a suspect only stands out. So suspects never change a verdict; they are the order in which to look on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from dumpscope.analysis.rules.computation import find_unjudged
from dumpscope.analysis.rules.evidence import SATURATED
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.unit.calls import module_of, stack_of
from dumpscope.analysis.unit.case import Case
from dumpscope.domain.facts import Class, Suspect, SuspectKind
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int64, NodeKind
from dumpscope.domain.suspects import EACH, RUNS
from dumpscope.texts import Phrase, english, phrase

PlaceOf = Callable[[Sequence[str]], list[str]]

STEEP: Final = 3.0
"""How many times an error must grow at a call for it to stand out among those that pass it on."""


def find_suspects(
    case: Case, cls: Int8, errors: Float64, findings: Sequence[Finding], *, rank: int, place_of: PlaceOf
) -> list[Suspect]:
    """Suspects of a unit, also those that are origins as yet, since another rank or step may explain them.

    cls: classes before any cause is marked; errors: (nodes, 2) as shown, of inputs and outputs, -1 where nothing was compared
    place_of: picks the frame of a call stack that made the call, as a list of at most one
    """
    more = len(findings)
    times = growth(errors, case.columns.in_score, case.columns.out_score)
    leaf = case.columns.leaf & (case.columns.kind == NodeKind.API)
    amplifiers = _steepest(np.flatnonzero(cls == Class.AMPLIFIER), times, EACH + more)
    with np.errstate(invalid="ignore"):
        steep = np.flatnonzero((cls == Class.PROPAGATED) & leaf & (times >= STEEP) & (case.columns.out_score > 1))
    kinds: list[tuple[SuspectKind, Iterable[int]]] = [
        ("amplifier", amplifiers),
        ("steep", _steepest(steep, times, EACH + more)),
    ]

    def suspect(kind: SuspectKind, pair: int, said: Phrase, **rest: float | int | None) -> Suspect:
        target, golden = int(case.pairs.target[pair]), int(case.pairs.golden[pair])
        return Suspect(
            kind=kind,
            step=case.history.step,
            rank=rank,
            node=case.columns.names[pair],
            pair=pair,
            why=english([said]),
            why_said=[said],
            module=module_of(case.target, target) or module_of(case.golden, golden),
            stack=place_of(stack_of(case.target, target) or stack_of(case.golden, golden)),
            **rest,  # type: ignore[arg-type]
        )

    found = [
        suspect(kind, pair, _describe_growth(kind, float(times[pair])), times=_known(float(times[pair])))
        for kind, pairs in kinds
        for pair in pairs
    ]
    named = {pair for one in findings if one.kind == "structure" for pair in (one.pair, *one.group)}
    for first, count in _runs(case, cls == Class.STRUCTURAL, named):
        side = "side.target" if case.pairs.target[first] >= 0 else "side.golden"
        found.append(
            suspect("structure", first, phrase("suspect.structure", count=count, side=[phrase(side)]), count=count)
        )
    blind = find_blind(case, findings)
    if blind is not None:
        first, count = blind
        found.append(
            suspect("blind", first, phrase("suspect.blind", count=count, node=case.columns.names[first]), count=count)
        )
    return found


def growth(errors: Float64, in_score: Float64, out_score: Float64) -> Float64:
    """By node the error of its output divided by that of its input, each as it is shown: relative, or in floors where there is no
    relative one; nan where one is not known, not finite or 0."""
    times = np.full(len(errors), np.nan)
    relative = (errors >= 0).all(axis=1)
    floors = ~relative & (errors < 0).any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        times[relative] = errors[relative, 1] / errors[relative, 0]
        times[floors] = out_score[floors] / in_score[floors]
    times[~np.isfinite(times)] = np.nan
    return times


def find_blind(case: Case, findings: Iterable[Finding]) -> tuple[int, int] | None:
    """The first call that made NaN or infinity, and the number of calls behind it that received one on one side only."""
    births = [one.pair for one in findings if one.kind == "overflow" and one.variant != SATURATED]
    if not births:
        return None
    first = min(births)
    count = int(find_unjudged(case, first).sum())
    return (first, count) if count else None


def _steepest(pairs: Int64, times: Float64, most: int) -> list[int]:
    """Those whose error grew most, the earlier of equals first; where that is not known last."""
    order = np.lexsort((pairs, -np.nan_to_num(times[pairs], nan=-1.0)))
    kept: list[int] = pairs[order[:most]].tolist()
    return kept


def _describe_growth(kind: SuspectKind, times: float) -> Phrase:
    if not np.isfinite(times):
        return phrase("suspect.amplifier_unknown")
    return phrase(f"suspect.{kind}", times=format_times(times))


def format_times(times: float) -> str:
    """With three digits, whole from a hundred on."""
    return f"{times:.3g}" if times < 100 else f"{times:.0f}"


def _known(times: float) -> float | None:
    return times if np.isfinite(times) else None


def _runs(case: Case, structural: Bool, named: set[int]) -> list[tuple[int, int]]:
    """First call and length of the first runs of calls that one side makes alone. Those that an origin names are left out, and so
    are modules around such calls and backward calls of such calls."""
    columns = case.columns
    names = {columns.names[pair].removesuffix(".forward") for pair in np.flatnonzero(structural).tolist()}
    found: list[tuple[int, int]] = []
    before, side = -2, None
    for pair in np.flatnonzero(structural & (columns.kind == NodeKind.API)).tolist():
        own = bool(case.pairs.target[pair] >= 0)
        backward = columns.direction[pair] == Direction.BACKWARD
        if pair in named or (backward and columns.names[pair].removesuffix(".backward") in names):
            continue
        if pair == before + 1 and own == side:
            first, count = found[-1]
            found[-1] = (first, count + 1)
        elif len(found) == RUNS:
            break
        else:
            found.append((pair, 1))
        before, side = pair, own
    return found
