"""Sentences that the evidence of several rules has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dumpscope.analysis.rules.rule import HIDDEN, Finding
from dumpscope.analysis.unit.calls import forward_of
from dumpscope.analysis.unit.case import Case
from dumpscope.domain.facts import TENSOR_METRICS, Facts, Outcome
from dumpscope.domain.records import STATISTICS, Direction, Int32, Items, Kind, RankDump, State, item_name
from dumpscope.domain.stored_counts import list_other_counts, stores_counts
from dumpscope.match.operators.operations import moves_data
from dumpscope.texts import Phrase, phrase
from dumpscope_format.naming import parse

SATURATED: Final = "saturated"
"""Variant of an overflow: a result stands at the limit of its dtype on one side only."""
NEED_TENSORS: Final = ("computation", "backward")
"""Kinds whose advice is to run the call alone, which needs its tensors."""
_SHOWN: Final = 2
_NAMED: Final = 6


def describe_items(case: Case, rows: Sequence[int], pair: int | None = None) -> list[Phrase]:
    """The first item pairs that show a finding.

    pair: node pair that the sentences before speak of; items of another call are named with their call. None: they are its own
    """
    return [describe_item(case, row, pair) for row in rows[:_SHOWN]]


def count_group(finding: Finding) -> list[Phrase]:
    """How many further nodes the same cause has."""
    return [phrase("origin.more", count=len(finding.group))] if finding.group else []


def is_backward(case: Case, finding: Finding) -> bool:
    return bool(case.columns.direction[finding.pair] == Direction.BACKWARD)


def advise_by_kind(case: Case, finding: Finding) -> list[Phrase]:
    """The advice of a finding's kind, of its backward pass, or of a cause that was not dumped."""
    word = finding.kind
    if finding.kind == "overflow" and is_backward(case, finding):
        word = "overflow_backward"
    elif finding.kind == "computation" and finding.hidden:
        return [_advise_hidden(case, finding.pair)]
    elif finding.kind == "computation" and case.columns.sequence:
        return [phrase("advice.between")]
    elif finding.kind == "computation" and is_backward(case, finding):
        word = "backward"
    if word in NEED_TENSORS and not has_tensors(case, finding.pair):
        return [phrase(f"advice.{word}_to_dump", node=case.columns.names[finding.pair])]
    return [phrase(f"advice.{word}")]


def has_tensors(case: Case, pair: int) -> bool:
    """The target's dump holds the tensors that the call received, so it can be run alone."""
    rows = case.inputs_of(pair)
    rows = rows[(case.context.target[rows] >= 0) & (case.context.kind[rows] == Kind.TENSOR)]
    names = case.target.items.data_name[case.context.target[rows]]
    return bool(len(rows) and (names >= 0).all() and case.target.header.data_dir)


def _advise_hidden(case: Case, pair: int) -> Phrase:
    """How to have the cause recorded: calls that were seen and left out are named, those that compute first, and among them those
    that ran before the call."""
    runs = [dump.header.run for dump in (case.target, case.golden)]
    counted = {name for run in runs if run is not None for name in run.unrecorded}
    ordered = [name for name in _named_before(case, pair) if not moves_data(name)]
    ordered += sorted(counted, key=lambda name: (moves_data(name), name))
    if not ordered:
        return phrase(f"advice.{HIDDEN}")
    more = len(ordered) - _NAMED
    listed = ", ".join(ordered[:_NAMED]) + (f" (+{more})" if more > 0 else "")
    return phrase("advice.hidden_calls", names=listed)


def _named_before(case: Case, pair: int) -> list[str]:
    """Calls before a pair, in its pass, of which a dump has the name alone (construct.json): each once, nearest first."""
    for dump, nodes in ((case.target, case.pairs.target), (case.golden, case.pairs.golden)):
        node, tree = int(nodes[pair]), dump.tree
        if node < 0:
            continue
        bare = np.arange(len(dump.nodes), len(tree))
        bare = bare[tree.order[bare] < tree.order[node]]
        named = [parse(tree.names[entry]) for entry in bare[np.argsort(-tree.order[bare])].tolist()]
        way = parse(dump.nodes.names[node]).direction
        found = dict.fromkeys(name.label for name in named if name.kind == "api" and name.direction == way)
        if found:
            return list(found)
    return []


def describe_birth(case: Case, finding: Finding) -> list[Phrase]:
    """For a NaN or infinity in the backward pass: names its forward call, if that holds none on either side."""
    if finding.kind != "overflow" or finding.variant == SATURATED:
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


def describe_item(case: Case, row: int, pair: int | None = None) -> Phrase:
    """How the two sides of an item pair differ, with its numbers. pair: as for `describe_items`"""
    place, own = name_in_call(case, row), int(case.context.pair[row])
    if pair is not None and own != pair:
        place = f"{case.columns.names[own]}.{place}"
    facts = case.facts
    if facts.outcome[row] == Outcome.SHAPE:
        shapes = (_shape(side.items, int(items[row])) for side, items in _sides(case))
        return phrase("shown.shapes", place=place, **dict(zip(("target", "golden"), shapes, strict=True)))
    if facts.outcome[row] == Outcome.KIND:
        _, items = next(one for one in _sides(case) if one[0].items.kind[one[1][row]] == Kind.TENSOR)
        word = "side.target" if items is case.context.target else "side.golden"
        return phrase("shown.kinds", place=place, side=[phrase(word)])
    if facts.nonfinite_disagree[row] > 0 and facts.unequal[row] >= 0:
        return phrase("shown.nonfinite", place=place, count=int(facts.nonfinite_disagree[row]))
    if facts.unequal[row] >= 0:
        worst = facts.details[row].worst_index if row in facts.details else None
        numbers = {"rel_l2": _format_metric(facts, row, "rel_l2"), "largest": _format_metric(facts, row, "max_abs")}
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
        t, g = _format(left, t_state), _format(right, g_state)
        if t == g and t_state == g_state == State.FINITE and left != right:  # in the last digits
            t, g = f"{left:.9g}", f"{right:.9g}"
        if t != g:
            parts.append(phrase("part.changed", name=word, target=t, golden=g))
    parts += _describe_counts(case, row)
    if parts:
        return phrase("shown.statistics", place=place, parts=parts)
    hashed = all(items.items.hash[numbers[row]] >= 0 for items, numbers in _sides(case))
    return phrase("shown.hashes" if hashed else "shown.digits", place=place)


def _describe_counts(case: Case, row: int) -> list[Phrase]:
    """Of how many elements the two sides counted another number: zeros, NaN, infinities."""
    sides = case.target.items, case.golden.items
    if not all(map(stores_counts, sides)):
        return []
    return [
        phrase("part.counted", name=[phrase(f"counted.{word}")], target=target, golden=golden)
        for word, target, golden in list_other_counts(
            *sides, int(case.context.target[row]), int(case.context.golden[row])
        )
    ]


def name_in_call(case: Case, row: int) -> str:
    """An item's name within its call, as "output.0"."""
    name = item_name(case.target, int(case.context.target[row])) if case.context.target[row] >= 0 else "?"
    return name[len(case.columns.names[case.context.pair[row]]) + 1 :] or name


def _sides(case: Case) -> tuple[tuple[RankDump, Int32], tuple[RankDump, Int32]]:
    return (case.target, case.context.target), (case.golden, case.context.golden)


def _shape(items: Items, item: int) -> str:
    return str(list(items.shapes[items.shape[item]]))


def _format_metric(facts: Facts, row: int, metric: str) -> str:
    column = TENSOR_METRICS.index(metric)
    state = facts.tensor_state[row, column]
    return _format(facts.tensor[row, column], state) if state != State.ABSENT else "unknown"


def _format(value: float, state: int) -> str:
    if state == State.FINITE:
        return f"{value:.6g}"
    return {State.NAN: "NaN", State.POS_INF: "+inf", State.NEG_INF: "-inf"}.get(State(state), "absent")
