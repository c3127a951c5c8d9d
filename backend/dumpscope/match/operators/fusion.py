"""Fused calls: one call on one side, a run of calls on the other. Found by a rule or by the boundary, compared at the boundary.

The boundary: the inputs that the run receives from outside (no call of the run made them), and the output of its last call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dumpscope.domain.records import NodeKind, Role
from dumpscope.match.gaps import Gap, computing, find_gaps
from dumpscope.match.matching import Matching
from dumpscope.match.operators.boundary import (
    Found,
    Value,
    drop_multiples,
    drop_strangers,
    note,
    pair_values,
    received_by,
    same_numbers,
    values,
)
from dumpscope.match.operators.fusion_rules import Rule, run_ends
from dumpscope.match.operators.operations import is_region, moves_data, operation
from dumpscope.match.sides import Side, is_call, takes_same

MASKING: Final = ("add", "masked_fill", "where")
"""Operations by which a run adds a mask or a bias."""
OWN: Final = 0.9
"""Confidence of a pair found by a user's rule."""
BUILT_IN: Final = 0.8
PROPOSED: Final = 0.6
"""Confidence of a pair found by its boundary only."""
UNSEEN: Final = 0.8
"""Factor if no input or no output of the boundary could be paired."""


def find_fusions(matching: Matching, rules: Iterable[Rule]) -> None:
    """Find fused calls in the gaps between matched calls, and fuse their backward calls too."""
    gaps = list(find_gaps(matching))
    if _fuse_around(matching, gaps, rules):
        gaps = list(find_gaps(matching))
    for gap in gaps:
        for on_target in (False, True):
            _fuse_gap(matching, gap, rules, on_target=on_target)


def _fuse_around(matching: Matching, gaps: Iterable[Gap], rules: Iterable[Rule]) -> bool:
    """Fuse runs in whose midst a call was paired by its name alone: it takes other numbers than its partner, the calls around it
    are free, and the other side has one free call that does the same as the whole run. Returns whether there was one.

    A library may make the mask of a fused attention with the operation that hides scores in the other form.
    """
    names = frozenset(name for rule in rules for name in rule.fused) if gaps else frozenset()
    waiting = {gap.parent for gap in gaps if any(_waits(matching, gap, names, on_target=way) for way in (False, True))}
    target, golden, partner = matching.target, matching.golden, matching.partner
    loose = {
        t
        for parent in waiting
        for t in target.children.get(parent, ())
        if t in partner and target.kind[t] == NodeKind.API and not moves_data(target.label[t])
        if is_call(target, t) and not takes_same(target, golden, t, partner[t])
    }
    before = len(matching.fusions)
    for gap in list(find_gaps(matching, loose)) if loose else []:
        for on_target in (False, True):
            _fuse_loose(matching, gap, rules, loose, on_target=on_target)
    return len(matching.fusions) > before


def _waits(matching: Matching, gap: Gap, names: frozenset[str], *, on_target: bool) -> list[int]:
    """Free calls of a gap that a rule knows as fused ones. on_target: the runs are the target's"""
    side, entries, free = (
        (matching.golden, gap.golden, matching.free_golden)
        if on_target
        else (matching.target, gap.target, matching.free_target)
    )
    return [entry for entry in computing(side, entries) if free(entry) and operation(side.label[entry]) in names]


def _fuse_loose(matching: Matching, gap: Gap, rules: Iterable[Rule], loose: set[int], *, on_target: bool) -> None:
    """Fuse the runs of a gap that hold calls of loose pairs, and take these calls from their partners.

    loose: target entries; on_target: the runs are the target's
    """
    single_side, run_side = (matching.golden, matching.target) if on_target else (matching.target, matching.golden)
    held = {t if on_target else matching.partner[t]: t for t in loose if t in matching.partner}
    free = matching.free_target if on_target else matching.free_golden
    calls = [entry for entry in (gap.target if on_target else gap.golden) if entry in held or free(entry)]
    names = frozenset(name for rule in rules for name in rule.fused)
    for single in _waits(matching, gap, names, on_target=on_target):
        found, confidence = _by_rule(single_side, run_side, single, calls, rules)
        if found is None:
            continue
        cores = computing(run_side, list(found.inner))
        calls = calls[calls.index(cores[-1]) + 1 :]
        taken = [held[entry] for entry in cores if entry in held]
        if not taken or cores[0] in held or cores[-1] in held:
            continue
        for t in taken:
            matching.unpair(t, None)
        _note_with_backward(matching, found, confidence, on_target=on_target)


def _note_with_backward(matching: Matching, found: Found, confidence: float, *, on_target: bool) -> None:
    if not found.inputs or not found.outputs:
        confidence *= UNSEEN
    note(matching, found, confidence, on_target=on_target, holders=True)
    fuse_backward(matching, found, confidence, on_target=on_target)


def _fuse_gap(matching: Matching, gap: Gap, rules: Iterable[Rule], *, on_target: bool) -> None:
    """on_target: the runs are the target's."""
    single_side, run_side = (matching.golden, matching.target) if on_target else (matching.target, matching.golden)
    singles, calls = (gap.golden, gap.target) if on_target else (gap.target, gap.golden)
    free_single, free_run = (
        (matching.free_golden, matching.free_target) if on_target else (matching.free_target, matching.free_golden)
    )
    cores = [entry for entry in computing(single_side, singles) if free_single(entry)]
    calls = [entry for entry in calls if free_run(entry)]
    start = 0
    for single in cores:
        rest = calls[start:]
        found, confidence = _by_rule(single_side, run_side, single, rest, rules)
        if found is None and len(cores) == 1:
            found, confidence = _proposed(single_side, run_side, single, rest), PROPOSED
        elif found is None and is_region(single_side.label[single]):
            found, confidence = _of_region(single_side, run_side, single, rest), PROPOSED
        if found is None:
            continue
        start += rest.index(max(found.inner, key=rest.index)) + 1
        _note_with_backward(matching, found, confidence, on_target=on_target)


def _by_rule(
    single_side: Side, run_side: Side, single: int, calls: Sequence[int], rules: Iterable[Rule]
) -> tuple[Found | None, float]:
    name = operation(single_side.label[single])
    wanted = [rule for rule in rules if name in rule.fused]
    cores = computing(run_side, list(calls)) if wanted else []
    words = [operation(run_side.label[entry]) for entry in cores]
    for first in range(len(cores)):
        ends = {(end, rule.own) for rule in wanted for run in rule.runs for end in run_ends(run, words, first)}
        tries = [
            (found, own)
            for end, own in sorted(ends, reverse=True)
            if (found := _boundary(single_side, run_side, single, cores[first:end], calls)) is not None
        ]
        if tries:
            found, own = max(tries, key=lambda one: (one[0].outputs, one[0].same, one[0].inputs))
            return found, OWN if own else BUILT_IN
    return None, 0.0


def _proposed(single_side: Side, run_side: Side, single: int, calls: Sequence[int]) -> Found | None:
    """Pair the one free call of a side with all free calls of the other if inputs agree in numbers and the output in shape."""
    cores = computing(run_side, list(calls))
    region = is_region(single_side.label[single])
    if single_side.kind[single] != NodeKind.API or len(cores) < (1 if region else 2):
        return None
    found = _boundary(single_side, run_side, single, cores, calls)
    if found is None or not found.agree or not found.outputs:
        return None
    return found if not region or _has_functions(run_side, cores) else None


def _of_region(single_side: Side, run_side: Side, single: int, calls: Sequence[int]) -> Found | None:
    """Pair one of several regions of compiled code with the calls up to the first that has the region's result."""
    made = values(single_side, single, Role.OUTPUT)
    cores = computing(run_side, list(calls))
    for number, entry in enumerate(cores if made and _has_functions(run_side, cores) else []):
        if any(same_numbers(made[0], value) for value in values(run_side, entry, Role.OUTPUT)):
            found = _boundary(single_side, run_side, single, cores[: number + 1], calls)
            return found if found is not None and found.agree and found.same else None
    return None


def _has_functions(side: Side, cores: Sequence[int]) -> bool:
    """Whether functions were recorded. If not, a region's result is that of no module, but of the functions behind the last."""
    return any(side.kind[entry] == NodeKind.API for entry in cores)


def _boundary(
    single_side: Side, run_side: Side, single: int, cores: Sequence[int], calls: Sequence[int]
) -> Found | None:
    """The run with the calls around it that only move data; None if its output has another number of elements."""
    made = values(single_side, single, Role.OUTPUT)
    places = {entry: place for place, entry in enumerate(calls)}
    begin, stop = places[cores[0]], places[cores[-1]] + 1
    while begin and _may_join_run(run_side, calls[begin - 1]):
        begin -= 1
    behind = stop
    while behind < len(calls) and _may_join_run(run_side, calls[behind]):
        behind += 1
    ends = [calls[place] for place in (stop - 1, *range(stop, behind))]
    out = made[0] if made else None
    pairs: list[tuple[int, int]] = []
    same = False
    end = cores[-1]
    last = values(run_side, end, Role.OUTPUT)
    if out is not None and last:
        if all(out.size != value.size for value in last):
            return None
        for entry in ends:
            fitting = [value for value in values(run_side, entry, Role.OUTPUT) if value.shape == out.shape]
            if fitting:
                end = entry
                pairs, same = [(out.item, fitting[0].item)], same_numbers(out, fitting[0])
                break
    inner = tuple(calls[begin : places[end] + 1])
    received = values(single_side, single, Role.INPUT, Role.KWARG)
    needed = received_by(run_side, [entry for entry in inner if entry < run_side.dumped])
    inputs, agree = pair_values(received, needed)
    if same:
        inputs = drop_multiples(inputs, received, needed)
    # A fused call takes as one what the run adds to its scores one by one.
    if same or sum(operation(run_side.label[entry]) in MASKING for entry in cores) > 1:
        inputs = drop_strangers(inputs, received, needed)
    return Found(
        single=single,
        inner=inner,
        end=end,
        items=(*inputs, *pairs),
        inputs=len(inputs),
        agree=agree,
        outputs=len(pairs),
        same=same,
    )


def _may_join_run(side: Side, entry: int) -> bool:
    """Whether a call may belong to any run next to it (it only moves data)."""
    return side.kind[entry] == NodeKind.API and moves_data(side.label[entry])


def fuse_backward(matching: Matching, found: Found, confidence: float, *, on_target: bool) -> None:
    """Pair the backward of the fused call with that of the run: the gradient that arrives, and those that leave.

    If several calls of the run use an input, its gradient is a sum that no call holds: it cannot be compared.
    """
    single_side, run_side = (matching.golden, matching.target) if on_target else (matching.target, matching.golden)
    single = single_side.backward(found.single)
    backward = [(entry, back) for entry in found.inner if (back := run_side.backward(entry)) is not None]
    if single is None or not backward:
        return
    inner = tuple(back for _, back in reversed(backward))
    arriving = _first(values(single_side, single, Role.INPUT)), _first(values(run_side, inner[0], Role.INPUT))
    pairs = []
    if arriving[0] is not None and arriving[1] is not None and arriving[0].shape == arriving[1].shape:
        pairs.append((arriving[0].item, arriving[1].item))
    pairs += _leaving(single_side, run_side, found, single, dict(backward))
    note(
        matching,
        Found(
            single=single, inner=inner, end=inner[-1], items=tuple(pairs), inputs=1, agree=True, outputs=1, same=True
        ),
        confidence,
        on_target=on_target,
        holders=False,
    )


def _leaving(
    single_side: Side, run_side: Side, found: Found, single: int, backward: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Pairs of gradients of inputs."""
    place_of = {value.item: number for value, number in _numbered(single_side, found.single)}
    gradients = _by_number(single_side, single)
    uses: dict[object, list[tuple[int, str]]] = {}
    owner: dict[int, object] = {}
    for entry in found.inner:
        for value, number in _numbered(run_side, entry):
            uses.setdefault(value.mark, []).append((entry, number))
            owner[value.item] = value.mark
    for one, other in found.items:
        users = uses.get(owner.get(other), [])
        mine = gradients.get(place_of.get(one, ""))
        if mine is None or len(users) != 1 or users[0][0] not in backward:
            continue
        entry, number = users[0]
        theirs = _by_number(run_side, backward[entry]).get(number)
        if theirs is not None and theirs.shape == mine.shape:
            yield mine.item, theirs.item


def _numbered(side: Side, entry: int) -> Iterator[tuple[Value, str]]:
    """Tensors that a call receives, and the number of the gradient of each: tensors that can have one are counted. A region of
    compiled code has a gradient at the place of each argument."""
    region = is_region(side.label[entry])
    count = 0
    for value in values(side, entry, Role.INPUT):
        path = side.dump.items.paths[value.path]
        yield value, path if region else str(count) if value.real else ""
        count += value.real


def _by_number(side: Side, entry: int) -> dict[str, Value]:
    """Gradients that leave a backward call, by their number."""
    return {side.dump.items.paths[value.path]: value for value in values(side, entry, Role.OUTPUT)}


def _first(found: list[Value]) -> Value | None:
    return found[0] if found else None
