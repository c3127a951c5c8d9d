"""The answer of a comparison as text: first the cause, then where the difference appears, then the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dumpscope.domain.coverage import AGREES, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.domain.joined import Joined
from dumpscope.domain.result import Answer, Side
from dumpscope.domain.suspects import list_suspects
from dumpscope.export.report import coverage_sentences, headline, say_confidence, settings_sentences, unjudged_sentence
from dumpscope.export.stack_frames import describe_call
from dumpscope.export.words import list_numbers, number, plural
from dumpscope.texts import on_ranks, tell, translate, word

_ORIGINS: Final = 5
_SUSPECTS: Final = 3
_PROBLEMS: Final = 10
_UNITS: Final = 8
_COLOURS: Final = {AGREES: "green", DIVERGED: "red", NOT_FULLY_JUDGED: "yellow"}
_METRICS: Final = ("cosine", "max_abs", "max_rel", "rel_l2", "max_ulp", "norm_rel", "mean_rel", "nonfinite_disagree")


Style = Callable[[str, str], str]
"""Gives a text the look of a name: bold, green, red or yellow."""


def _plain(text: str, _style: str) -> str:
    return text


def answer_lines(answer: Answer, places: Sequence[tuple[int, int]], styled: Style = _plain) -> Iterator[str]:
    """Everything that a person needs without opening a file, in the language of this context. Names from dumps may hold
    control characters. places: all compared (step, rank)"""
    yield styled(headline(answer), _COLOURS[answer.outcome])
    for place, origin in enumerate(answer.origins[:_ORIGINS], start=1):
        yield ""
        yield (
            tell(
                "cli.confidence_step",
                place=place,
                styled=styled(origin.node, "bold"),
                kind=word("kind", "unseen_loss" if origin.unseen_loss else origin.kind),
                confidence=say_confidence(origin),
                step=origin.step,
                on_ranks=on_ranks(origin.rank, origin.ranks),
            )
        )
        yield f"   {translate(origin.evidence, origin.evidence_said)}"
        if origin.explains:
            yield "   " + tell("cli.explains", differences=plural(origin.explains, "further difference"))
        if origin.module:
            yield "   " + tell("cli.in_module", module=origin.module)
        yield from _tell_call(origin.stack)
        if origin.advice:
            yield "   " + tell("cli.what_do", advice=translate(origin.advice, origin.advice_said))
    if len(answer.origins) > _ORIGINS:
        yield "   " + tell("cli.more_json_lists_all", count=len(answer.origins) - _ORIGINS)
    yield from _tell_suspects(answer)
    yield from _tell_golden_off(answer, styled)
    yield ""
    yield from _tell_first(answer)
    counts = answer.counts
    yield (
        tell(
            "cli.no_warning_yes_not_comparable_only",
            nodes=plural(counts.nodes, "node"),
            items=plural(counts.items, "item"),
            no=counts.no,
            warning=counts.warning,
            yes=counts.yes,
            not_comparable=counts.not_comparable,
            unmatched_target=counts.unmatched_target,
            unmatched_golden=counts.unmatched_golden,
            unreadable=counts.unreadable,
        )
    )
    for sentence in coverage_sentences(answer):
        yield f"   {sentence}"
    unjudged = unjudged_sentence(answer)
    if unjudged:
        yield styled(unjudged, "yellow")
    yield tell("cli.mode_policy", mode=word("mode", answer.mode), policy=answer.policy, units=_units(places))
    for name, side in (("target", answer.target), ("golden", answer.golden)):
        yield f"{tell(f'side.{name}')}: {_side(side)}"
    if answer.reference is not None:
        third = answer.reference
        yield tell("cli.reference", side=_side(third.side))
        yield (
            "   "
            + tell(
                "cli.farther_from_target_golden_alike_not",
                items=plural(third.target_farther, "item"),
                golden_farther=third.golden_farther,
                alike=third.alike,
                not_measured=third.not_measured,
            )
        )
    if answer.joined is not None:
        yield from _tell_joined(answer.joined)
    for sentence in settings_sentences(answer):
        yield styled(tell("cli.note", sentence=sentence), "yellow")
    for problem in answer.problems[:_PROBLEMS]:
        yield styled(tell("cli.problem", kind=problem.kind, loc=problem.loc, message=problem.message), "yellow")
    if len(answer.problems) > _PROBLEMS:
        yield tell("cli.more_problems_json_lists_all", count=len(answer.problems) - _PROBLEMS)


def _tell_suspects(answer: Answer) -> Iterator[str]:
    """Where else to look, if there is not one cause to look at."""
    if len(answer.origins) == 1:
        return
    calls = [one for one in list_suspects(answer) if one.kind in ("amplifier", "steep", "structure")][:_SUSPECTS]
    if calls:
        yield ""
        yield tell("cli.suspects")
    for one in calls:
        where = tell("cli.suspect", node=one.node, step=one.step, rank=one.rank)
        yield f"   {where} {translate(one.why, one.why_said)}"


def _tell_call(stack: Sequence[str]) -> Iterator[str]:
    where = describe_call(stack)
    if where:
        yield "   " + tell("cli.called", frame=where)


def _tell_joined(joined: Joined) -> Iterator[str]:
    for unit in joined.units[:_UNITS]:
        target, golden = (_ranks(side.ranks) for side in (unit.target, unit.golden))
        yield (
            tell(
                "cli.joined_step_rank_target_against_golden",
                step=unit.step,
                rank=unit.rank,
                target=target,
                golden=golden,
            )
        )
        left = unit.target.collectives + unit.golden.collectives
        if left:
            yield "   " + tell("cli.joined_left_out", calls=plural(left, "call"))
    if len(joined.units) > _UNITS:
        yield "   " + tell("cli.more_json_lists_all", count=len(joined.units) - _UNITS)


def _ranks(ranks: list[list[list[int]]]) -> str:
    """Shards joined by +, stages by an arrow, replicas by &."""
    return " & ".join(" -> ".join("+".join(map(str, stage)) for stage in replica) for replica in ranks)


def _tell_golden_off(answer: Answer, styled: Style) -> Iterator[str]:
    found = [] if answer.reference is None else answer.reference.golden_off
    for one in found[:_ORIGINS]:
        yield ""
        yield tell("cli.golden_one_off_step_rank", styled=styled(one.node, "bold"), step=one.step, rank=one.rank)
        yield (
            "   "
            + tell(
                "cli.times_far_from_reference_target_golden",
                number=number(one.ratio),
                number2=number(one.golden),
                number3=number(one.target),
            )
        )
        yield from _tell_call(one.stack)
    if len(found) > _ORIGINS:
        yield "   " + tell("cli.more_json_lists_all", count=len(found) - _ORIGINS)


def _tell_first(answer: Answer) -> Iterator[str]:
    first = answer.first_no
    if first is None:
        return
    shown = [f"{name} {number(first.metrics[name])}" for name in _METRICS if name in first.metrics]
    yield tell("cli.first_no_step_rank", item=first.item, step=first.step, rank=first.rank)
    yield f"   {translate(first.reason, first.reason_said)}"
    if shown:
        yield f"   {', '.join(shown)}"


def _units(places: Sequence[tuple[int, int]]) -> str:
    if len(places) < 2:
        return ""
    steps, ranks = (set(numbers) for numbers in zip(*places, strict=True))
    return tell("cli.and", steps=plural(len(steps), "step"), ranks=plural(len(ranks), "rank"))


def _side(side: Side) -> str:
    return tell(
        "cli.task_level_steps_ranks",
        path=side.path,
        framework=side.framework or tell("cli.unknown_framework"),
        task=side.task or "?",
        level=side.level or "?",
        listed=list_numbers(side.steps),
        listed2=list_numbers(side.ranks),
    )
