"""Findings in words: evidence with its numbers, advice, confidence and stack."""

from __future__ import annotations

import math

import numpy as np

from dumpscope.analysis.advice import ADVICE
from dumpscope.analysis.arguments import value_of
from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.story import frames
from dumpscope.domain.facts import TENSOR_METRICS, Origin
from dumpscope.domain.records import STATISTICS, Direction, Role, State, item_name


def describe_finding(case: Case, finding: Finding, *, step: int, rank: int, mode: str) -> Origin:
    """The contract's origin entry of a finding."""
    story = case.story
    backward = story.direction[finding.pair] == Direction.BACKWARD
    advice = finding.kind
    if finding.random:
        advice = "random"
    elif finding.kind == "computation" and backward:
        advice = "backward"
    return Origin(
        step=step,
        rank=rank,
        node=story.names[finding.pair],
        kind=finding.kind,
        confidence=round(_confidence(case, finding, mode), 2),
        evidence=_evidence(case, finding),
        advice=ADVICE[advice],
        stack=frames(case.target, int(case.pairs.target[finding.pair]))
        or frames(case.golden, int(case.pairs.golden[finding.pair])),
        pair=finding.pair,
    )


def _confidence(case: Case, finding: Finding, mode: str) -> float:
    """Lower with statistics only, a guessed match, a source that was not dumped, unmatched calls and a score near the floor."""
    story = case.story
    confidence = 0.95 if mode == "tensor" else 0.85
    if finding.kind == "structure" and not finding.items:
        return 0.4
    if not story.alone[finding.pair]:
        confidence *= float(case.pairs.confidence[finding.pair])
    if finding.hidden or finding.faint:
        confidence *= 0.5
    if finding.rule == "O-4":
        confidence *= 0.9
    if finding.rule == "O-1":
        out = float(story.out_score[finding.pair])
        if math.isnan(float(story.in_score[finding.pair])):
            confidence *= 0.7
        if not story.quiet and out < 3:
            confidence *= 0.7
        alone = np.flatnonzero(story.alone[: finding.pair])
        if len(alone) and finding.pair - alone[-1] < 5:
            confidence *= 0.8
    return confidence


def _evidence(case: Case, finding: Finding) -> str:
    story = case.story
    more = f" The same is seen in {len(finding.group)} more places." if finding.group else ""
    shown = " ".join(_difference(case, row) for row in finding.items[:2])
    if finding.kind == "weight":
        return f"The weight {finding.weight} differs before any operator used it. {shown}{more}"
    if finding.rule == "O-3":
        effect = "what follows differs" if finding.faint else "its output differs"
        return f"Called with another argument: {_arguments(case, finding)}, and {effect}.{more}"
    if finding.rule == "O-5":
        return _structure(case, finding, shown)
    if finding.rule == "O-4" and not finding.hidden:
        return f"This input differs and no dumped operator before it produced it. {shown}{more}"
    if finding.rule == "O-4":
        return f"First visible difference; its cause was not dumped{_before(case, finding.pair)}. {shown}"
    if finding.rule == "O-6":
        return (
            "The inputs of this module agree and its output does not, and no dumped call inside it is at fault: "
            f"the cause is in code of its own that was not dumped. {shown}"
        )
    clean = _clean_inputs(case, finding.pair)
    saved = ""
    if story.direction[finding.pair] == Direction.BACKWARD:
        saved = " and its forward agrees"
    if finding.kind == "overflow":
        return f"{clean}{saved}, the output holds NaN or infinity that the golden does not. {shown}"
    return f"{clean}{saved}, the output does not. {shown}"


def _before(case: Case, pair: int) -> str:
    """The call that ended last before `pair`: what it did beyond its own record is among the suspects."""
    leaf = np.flatnonzero(case.story.leaf[:pair])
    return f" and lies in or after {case.story.names[int(leaf[-1])]}" if len(leaf) else ""


def _clean_inputs(case: Case, pair: int) -> str:
    rows = case.inputs_of(pair)
    scores = case.opinions.score[rows]
    compared = int((~np.isnan(scores)).sum())
    if not compared:
        return "It has no comparable input"
    worst = float(np.nanmax(scores))
    if worst == 0:
        return f"All {compared} inputs are equal" if compared > 1 else "The input is equal"
    return f"All {compared} inputs agree (worst {worst:.2g} of the floor)"


def _difference(case: Case, row: int) -> str:
    """One item's numbers in a sentence."""
    name = item_name(case.target, int(case.context.target[row])) if case.context.target[row] >= 0 else "?"
    place = name[len(case.story.names[case.context.pair[row]]) + 1 :] or name
    facts = case.facts
    if facts.nonfinite_disagree[row] > 0:
        return f"{place}: {facts.nonfinite_disagree[row]} non-finite positions disagree."
    if facts.unequal[row] >= 0:
        worst = facts.details[row].worst_index if row in facts.details else None
        l2 = _number(facts, row, "rel_l2")
        largest = _number(facts, row, "max_abs")
        at = f" at {list(worst)}" if worst is not None else ""
        return f"{place}: {facts.unequal[row]} of {facts.elements[row]} elements differ, relative L2 {l2}, largest {largest}{at}."
    parts = []
    for column, word in enumerate(STATISTICS):
        t_state, g_state = case.context.t_state[row, column], case.context.g_state[row, column]
        if State.ABSENT in (t_state, g_state):
            continue
        t, g = _stat(case.context.t_stats[row, column], t_state), _stat(case.context.g_stats[row, column], g_state)
        if t != g:
            parts.append(f"{word} {t} against {g}")
    if parts:
        return f"{place}: {', '.join(parts)}."
    return f"{place}: the hashes differ."


def _number(facts: object, row: int, metric: str) -> str:
    column = TENSOR_METRICS.index(metric)
    state = facts.tensor_state[row, column]  # type: ignore[attr-defined]
    return _stat(facts.tensor[row, column], state) if state != State.ABSENT else "unknown"  # type: ignore[attr-defined]


def _stat(value: float, state: int) -> str:
    if state == State.FINITE:
        return f"{value:.6g}"
    return {State.NAN: "NaN", State.POS_INF: "+inf", State.NEG_INF: "-inf"}.get(State(state), "absent")


def _arguments(case: Case, finding: Finding) -> str:
    out = []
    for row in finding.items[:3]:
        item, side = case.context.target[row], case.target.items
        if item < 0:
            item, side = case.context.golden[row], case.golden.items
        path = side.paths[side.path[item]]
        word = path if case.context.role[row] == Role.KWARG else f"argument {path}"
        left, right = value_of(case, row, target=True), value_of(case, row, target=False)
        out.append(f"{word} is {left} in the target and {right} in the golden")
    return "; ".join(out)


def _structure(case: Case, finding: Finding, shown: str) -> str:
    side = "target" if case.pairs.target[finding.pair] >= 0 else "golden"
    names = [case.story.names[p] for p in (finding.pair, *finding.group)]
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    calls = "call exists" if len(names) == 1 else "calls exist"
    if not finding.items:
        story = case.story
        with np.errstate(invalid="ignore"):
            dirty = bool((np.fmax(story.out_score, story.own_in) > story.threshold).any())
        after = (
            "Some values differ, none by enough to name a cause"
            if dirty
            else "All values agree once the calls are aligned"
        )
        return f"{len(names)} {calls} only in the {side}: {listed}. {after}."
    return f"{len(names)} {calls} only in the {side}: {listed}. What follows receives data that differs. {shown}"
