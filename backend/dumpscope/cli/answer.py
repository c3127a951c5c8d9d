"""Prints the answer of a comparison: the cause first, then where it shows, then the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dumpscope.cli.printing import line, listed, number, plural, styled
from dumpscope.domain.joined import Joined
from dumpscope.domain.numbering import on_ranks
from dumpscope.domain.result import Answer, Side
from dumpscope.export.report import headline
from dumpscope.export.stack_frames import user_frame

_ORIGINS: Final = 5
_PROBLEMS: Final = 10
_UNITS: Final = 8
_METRICS: Final = ("cosine", "max_abs", "max_rel", "rel_l2", "max_ulp", "norm_rel", "mean_rel", "nonfinite_disagree")


def print_answer(answer: Answer, places: Sequence[tuple[int, int]]) -> None:
    """Print everything a person needs to go on without opening a file. places: step and rank of all that was compared"""
    bad = bool(answer.origins or answer.first_no or answer.compared_nothing)
    line(styled(headline(answer), "red" if bad else "green"))
    for place, origin in enumerate(answer.origins[:_ORIGINS], start=1):
        line()
        line(
            f"{place}. {styled(origin.node, 'bold')}  {origin.kind}, confidence {origin.confidence:.0%},"
            f" step {origin.step} {on_ranks(origin.rank, origin.ranks)}"
        )
        line(f"   {origin.evidence}")
        if origin.explains:
            line(f"   explains {plural(origin.explains, 'further difference')}")
        frame = user_frame(origin.stack)
        if frame is not None:
            line(f"   called at {frame}")
        if origin.advice:
            line(f"   what to do: {origin.advice}")
    if len(answer.origins) > _ORIGINS:
        line(f"   and {len(answer.origins) - _ORIGINS} more (--json lists all)")
    _print_golden_off(answer)
    line()
    _print_first(answer)
    counts = answer.counts
    line(
        f"{plural(counts.nodes, 'node')}, {plural(counts.items, 'item')}: {counts.no} no, {counts.warning} warning,"
        f" {counts.yes} yes, {counts.not_comparable} not comparable, {counts.unmatched_target} only in target,"
        f" {counts.unmatched_golden} only in golden, {counts.unreadable} unreadable"
    )
    line(f"mode {answer.mode}, policy {answer.policy}{_units(places)}")
    for word, side in (("target", answer.target), ("golden", answer.golden)):
        line(f"{word}: {_side(side)}")
    if answer.reference is not None:
        third = answer.reference
        line(f"reference: {_side(third.side)}")
        line(
            f"   farther from it: target at {plural(third.target_farther, 'item')}, golden at {third.golden_farther},"
            f" alike {third.alike}, not measured {third.not_measured}"
        )
    if answer.joined is not None:
        _print_joined(answer.joined)
    for sentence in answer.settings:
        line(styled(f"note: {sentence}", "yellow"))
    for problem in answer.problems[:_PROBLEMS]:
        line(styled(f"problem: {problem.kind} at {problem.loc}: {problem.message}", "yellow"))
    if len(answer.problems) > _PROBLEMS:
        line(f"and {len(answer.problems) - _PROBLEMS} more problems (--json lists all)")


def _print_joined(joined: Joined) -> None:
    for unit in joined.units[:_UNITS]:
        target, golden = (_ranks(side.ranks) for side in (unit.target, unit.golden))
        line(f"joined: step {unit.step} rank {unit.rank} is target {target} against golden {golden}")
    if len(joined.units) > _UNITS:
        line(f"   and {len(joined.units) - _UNITS} more (--json lists all)")


def _ranks(ranks: list[list[list[int]]]) -> str:
    """Shards joined by +, stages by an arrow, replicas by &."""
    return " & ".join(" -> ".join("+".join(map(str, stage)) for stage in replica) for replica in ranks)


def _print_golden_off(answer: Answer) -> None:
    found = [] if answer.reference is None else answer.reference.golden_off
    for one in found[:_ORIGINS]:
        line()
        line(f"Golden is the one that is off at {styled(one.node, 'bold')}, step {one.step} rank {one.rank}")
        line(
            f"   {number(one.ratio)} times as far from the reference as the target"
            f" (golden {number(one.golden)}, target {number(one.target)})"
        )
        frame = user_frame(one.stack)
        if frame is not None:
            line(f"   called at {frame}")
    if len(found) > _ORIGINS:
        line(f"   and {len(found) - _ORIGINS} more (--json lists all)")


def _print_first(answer: Answer) -> None:
    first = answer.first_no
    if first is None:
        return
    shown = [f"{name} {number(first.metrics[name])}" for name in _METRICS if name in first.metrics]
    line(f"first No: {first.item} (step {first.step} rank {first.rank})")
    line(f"   {first.reason}")
    if shown:
        line(f"   {', '.join(shown)}")


def _units(places: Sequence[tuple[int, int]]) -> str:
    if len(places) < 2:
        return ""
    steps, ranks = (set(numbers) for numbers in zip(*places, strict=True))
    return f", {plural(len(steps), 'step')} and {plural(len(ranks), 'rank')}"


def _side(side: Side) -> str:
    return (
        f"{side.path} ({side.framework or 'unknown framework'}, task {side.task or '?'}, level {side.level or '?'},"
        f" steps {listed(side.steps)}, ranks {listed(side.ranks)})"
    )
