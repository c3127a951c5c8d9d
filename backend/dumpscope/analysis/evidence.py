"""Findings in words: evidence with its numbers, advice, confidence and stack."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.dataflow import Reach
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.forward import forward_of
from dumpscope.analysis.node_columns import Story, frames
from dumpscope.analysis.rules.arguments import value_of
from dumpscope.analysis.rules.computation import saturated
from dumpscope.analysis.rules.drift import measure_drift
from dumpscope.domain.facts import TENSOR_METRICS, Origin, Outcome
from dumpscope.domain.limits import LIMITS, at_limit, limits
from dumpscope.domain.records import STATISTICS, Direction, Int32, Items, Kind, RankDump, Role, State, item_name
from dumpscope.texts import Phrase, english, phrase

PATH: Final = 40
"""Nodes of a path that are named: the first and the last of a longer one."""


def describe_finding(case: Case, finding: Finding, reach: Reach, *, step: int, rank: int, mode: str) -> Origin:
    """The contract's origin entry of a finding."""
    story = case.story
    backward = story.direction[finding.pair] == Direction.BACKWARD
    evidence, next_step = _evidence(case, finding), [phrase(f"advice.{_advice(finding, backward=backward)}")]
    return Origin(
        step=step,
        rank=rank,
        node=story.names[finding.pair],
        kind=finding.kind,
        confidence=round(_confidence(case, finding, mode), 2),
        evidence=english(evidence),
        advice=english(next_step),
        stack=frames(case.target, int(case.pairs.target[finding.pair]))
        or frames(case.golden, int(case.pairs.golden[finding.pair])),
        explains=reach.nodes,
        path=[story.names[pair] for pair in _shortened(reach.path)],
        pair=finding.pair,
        evidence_said=evidence,
        advice_said=next_step,
    )


def _advice(finding: Finding, *, backward: bool) -> str:
    """Which advice a finding gets: that of the special case it is, or of its kind."""
    special = (("random", finding.random), ("ties", finding.ties), ("saturated", finding.saturated))
    if finding.blame:
        return f"weight_{finding.blame}"
    for word, holds in special:
        if holds:
            return word
    if finding.kind == "overflow" and backward:
        return "overflow_backward"
    if finding.kind == "computation" and (finding.hidden or backward):
        return "hidden" if finding.hidden else "backward"
    return finding.kind


def _shortened(path: list[int]) -> list[int]:
    return path if len(path) <= PATH else path[: PATH // 2] + path[-PATH // 2 :]


def _confidence(case: Case, finding: Finding, mode: str) -> float:
    """Lower with statistics only, a guessed match, a source that was not dumped, unmatched calls and a score near the floor.

    Where most calls have no partner that they should have, what is first among the few that met need not be first at all."""
    story = case.story
    confidence = 0.95 if mode == "tensor" else 0.85
    if story.extra.mean() > 0.5:
        confidence *= 0.5
    if finding.kind == "structure" and not finding.items:
        return 0.4
    if not story.alone[finding.pair]:
        confidence *= float(case.pairs.confidence[finding.pair])
    if finding.hidden or finding.faint:
        confidence *= 0.5
    if finding.rule == "O-4":
        confidence *= 0.9
    if finding.rule == "O-7":
        confidence *= 0.6
    if finding.ties:
        confidence *= 0.5
    if finding.rule == "O-1":
        out = float(story.out_score[finding.pair])
        if math.isnan(float(story.in_score[finding.pair])) or len(_blind(case, finding.pair)):
            confidence *= 0.7
        if not story.quiet and out < 3:
            confidence *= 0.7
        alone = np.flatnonzero(story.alone[: finding.pair])
        if len(alone) and finding.pair - alone[-1] < 5:
            confidence *= 0.8
    return confidence


def _evidence(case: Case, finding: Finding) -> list[Phrase]:
    story = case.story
    more = [phrase("origin.more", count=len(finding.group))] if finding.group else []
    shown = [_difference(case, row) for row in finding.items[:2]]
    if finding.kind == "weight":
        return [phrase("origin.weight", weight=finding.weight), *_blame(finding), *shown, *more]
    if finding.rule == "O-3":
        word = "origin.argument_faint" if finding.faint else "origin.argument"
        return [phrase(word, arguments=_arguments(case, finding)), *more]
    if finding.rule == "O-5":
        return _structure(case, finding, shown)
    if finding.rule == "O-4" and not finding.hidden:
        return [phrase("origin.input"), *shown, *more]
    if finding.rule == "O-4":
        return [_hidden(case, finding.pair), *_born(case, finding), *shown]
    if finding.rule == "O-6":
        return [phrase("origin.module"), *shown]
    if finding.rule == "O-7":
        return [_drift(story), *shown]
    word = "origin.overflow" if finding.kind == "overflow" and not finding.saturated else "origin.computation"
    if story.direction[finding.pair] == Direction.BACKWARD:
        word += "_backward"
    blind = [_place(case, row) for row in _blind(case, finding.pair)]
    hidden = [phrase("origin.blind", places=", ".join(blind[:5]))] if blind else []
    special = [phrase("origin.ties")] if finding.ties else [*_clipped(case, finding), *_born(case, finding)]
    return [phrase(word, inputs=[_inputs(case, finding.pair)]), *special, *shown, *hidden]


def _born(case: Case, finding: Finding) -> list[Phrase]:
    """Of a NaN or infinity in the backward pass: the forward call behind it, where that holds none on either side."""
    if finding.kind != "overflow" or finding.saturated:
        return []
    name = ""
    for dump, nodes in ((case.golden, case.pairs.golden), (case.target, case.pairs.target)):
        node = int(nodes[finding.pair])
        forward = forward_of(dump.nodes, node) if node >= 0 else -1
        states = dump.items.stat_state[dump.items.node == forward][:, :2]
        if forward < 0 or (states > State.FINITE).any():
            return []
        name = dump.nodes.names[forward]
    return [phrase("origin.born_backward", forward=name)]


def _clipped(case: Case, finding: Finding) -> list[Phrase]:
    """Where a result stands at the limit of its dtype."""
    if not finding.saturated:
        return []
    rows = np.array(finding.items, np.int64)
    row = int(rows[saturated(case, rows)][0])
    context = case.context
    code = context.t_dtype[[row]]
    at_target = any(
        one[0] for one in at_limit(context.t_stats[[row]], context.t_state[[row]], limits(context.dtypes)[code])
    )
    dtype = context.dtypes[int(code[0] if at_target else context.g_dtype[row])]
    said = [phrase("side.target" if at_target else "side.golden")]
    return [phrase("origin.saturated", side=said, place=_place(case, row), dtype=dtype, limit=f"{LIMITS[dtype]:.6g}")]


def _blame(finding: Finding) -> list[Phrase]:
    """Which part of the step before made a weight different; nothing for weights that were loaded so."""
    if not finding.blame:
        return []
    named = {"gradient": finding.gradient} if finding.blame == "backward" else {}
    return [phrase(f"origin.weight_{finding.blame}", before=finding.before, **named)]


def _hidden(case: Case, pair: int) -> Phrase:
    """The call that ended last before `pair`: what it did beyond its own record is among the suspects."""
    leaf = np.flatnonzero(case.story.leaf[:pair])
    if not len(leaf):
        return phrase("origin.hidden")
    return phrase("origin.hidden_after", before=case.story.names[int(leaf[-1])])


def _drift(story: Story) -> Phrase:
    drift = measure_drift(story)
    assert drift is not None
    return phrase(
        "origin.accumulated",
        first=story.names[drift.first],
        last=story.names[drift.last],
        calls=drift.calls,
        low=f"{story.out_score[drift.first]:.2g}",
        high=f"{story.out_score[drift.last]:.2g}",
    )


def _inputs(case: Case, pair: int) -> Phrase:
    rows = case.inputs_of(pair)
    scores = case.opinions.score[rows]
    compared = int((~np.isnan(scores)).sum())
    if not compared:
        return phrase("inputs.none")
    worst = float(np.nanmax(scores))
    if (
        worst == 0 and (case.facts.equal[rows[scores == 0]] < 0).any()
    ):  # the golden's own error, see `reference.of_target`
        return phrase("inputs.as_near", count=compared)
    if worst == 0:
        return phrase("inputs.equal", count=compared) if compared > 1 else phrase("inputs.equal_one")
    return phrase("inputs.agree", count=compared, worst=f"{worst:.2g}")


def _blind(case: Case, pair: int) -> list[int]:
    """Inputs of which only Max and Min were there to compare, as msprobe keeps of integers, masks and float64."""
    context = case.context
    rows = case.inputs_of(pair)
    stored = (context.t_state[rows] != State.ABSENT) & (context.g_state[rows] != State.ABSENT)
    extremes = stored[:, :2].all(axis=1) & ~stored[:, 2:].any(axis=1) & (context.elements[rows] > 2)
    otherwise = (case.facts.unequal[rows] >= 0) | (case.target.items.hash[context.target[rows]] >= 0)
    found: list[int] = rows[extremes & ~otherwise].tolist()
    return found


def _place(case: Case, row: int) -> str:
    """An item's name within its call, as "output.0"."""
    name = item_name(case.target, int(case.context.target[row])) if case.context.target[row] >= 0 else "?"
    return name[len(case.story.names[case.context.pair[row]]) + 1 :] or name


def _difference(case: Case, row: int) -> Phrase:
    """One item's numbers in a sentence."""
    place = _place(case, row)
    facts = case.facts
    if facts.outcome[row] == Outcome.SHAPE:
        shapes = (_shape(side.items, int(items[row])) for side, items in _sides(case))
        return phrase("shown.shapes", place=place, **dict(zip(("target", "golden"), shapes, strict=True)))
    if facts.outcome[row] == Outcome.KIND:
        _, items = next(one for one in _sides(case) if one[0].items.kind[one[1][row]] == Kind.TENSOR)
        word = "side.target" if items is case.context.target else "side.golden"
        return phrase("shown.kinds", place=place, side=[phrase(word)])
    if facts.nonfinite_disagree[row] > 0:
        return phrase("shown.nonfinite", place=place, count=int(facts.nonfinite_disagree[row]))
    if facts.unequal[row] >= 0:
        worst = facts.details[row].worst_index if row in facts.details else None
        numbers = {"rel_l2": _number(facts, row, "rel_l2"), "largest": _number(facts, row, "max_abs")}
        counts = {"unequal": int(facts.unequal[row]), "elements": int(facts.elements[row])}
        if worst is None:
            return phrase("shown.tensor", place=place, **counts, **numbers)
        return phrase("shown.tensor_at", place=place, **counts, **numbers, index=str(list(worst)))
    parts = []
    for column, word in enumerate(STATISTICS):
        t_state, g_state = case.context.t_state[row, column], case.context.g_state[row, column]
        if State.ABSENT in (t_state, g_state):
            continue
        left, right = case.context.t_stats[row, column], case.context.g_stats[row, column]
        t, g = _stat(left, t_state), _stat(right, g_state)
        if t == g and t_state == g_state == State.FINITE and left != right:  # in the last digits
            t, g = f"{left:.9g}", f"{right:.9g}"
        if t != g:
            parts.append(phrase("part.changed", name=word, target=t, golden=g))
    return phrase("shown.statistics", place=place, parts=parts) if parts else phrase("shown.hashes", place=place)


def _sides(case: Case) -> tuple[tuple[RankDump, Int32], tuple[RankDump, Int32]]:
    return (case.target, case.context.target), (case.golden, case.context.golden)


def _shape(items: Items, item: int) -> str:
    return str(list(items.shapes[items.shape[item]]))


def _number(facts: object, row: int, metric: str) -> str:
    column = TENSOR_METRICS.index(metric)
    state = facts.tensor_state[row, column]  # type: ignore[attr-defined]
    return _stat(facts.tensor[row, column], state) if state != State.ABSENT else "unknown"  # type: ignore[attr-defined]


def _stat(value: float, state: int) -> str:
    if state == State.FINITE:
        return f"{value:.6g}"
    return {State.NAN: "NaN", State.POS_INF: "+inf", State.NEG_INF: "-inf"}.get(State(state), "absent")


def _arguments(case: Case, finding: Finding) -> list[Phrase]:
    out = []
    for row in finding.items[:3]:
        item, side = case.context.target[row], case.target.items
        if item < 0:
            item, side = case.context.golden[row], case.golden.items
        word = "argument.kwarg" if case.context.role[row] == Role.KWARG else "argument.place"
        left, right = value_of(case, row, target=True), value_of(case, row, target=False)
        out.append(phrase(word, name=side.paths[side.path[item]], target=left, golden=right))
    return out


def _structure(case: Case, finding: Finding, shown: list[Phrase]) -> list[Phrase]:
    pairs = (finding.pair, *finding.group)
    target = [pair for pair in pairs if case.pairs.target[pair] >= 0]
    golden = [pair for pair in pairs if case.pairs.target[pair] < 0]
    calls = [_calls(case, "target", target)] if target else []
    calls += [_calls(case, "golden", golden)] if golden else []
    if finding.items:
        return [*calls, phrase("origin.follows"), *shown]
    story = case.story
    if np.isnan(case.opinions.score).all():
        return calls
    with np.errstate(invalid="ignore"):
        dirty = bool((np.fmax(story.out_score, story.own_in) > story.threshold).any())
    return [*calls, phrase("origin.some_differ" if dirty else "origin.all_agree")]


def _calls(case: Case, side: str, pairs: list[int]) -> Phrase:
    """The calls that only this side made, the first five by name."""
    names = [case.story.names[pair] for pair in pairs]
    listed = phrase("origin.names", names=", ".join(names[:5]))
    if len(names) > 5:
        listed = phrase("origin.names_more", names=", ".join(names[:5]), count=len(names) - 5)
    only = [phrase(f"side.{side}")]
    if len(names) == 1:
        return phrase("origin.structure_one", side=only, names=[listed])
    return phrase("origin.structure", count=len(names), side=only, names=[listed])
