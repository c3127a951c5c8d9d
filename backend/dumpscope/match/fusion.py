"""One call on one side, a run of calls on the other: found by rule or by its boundary, compared at the boundary.

The boundary is what the run receives from outside (its inputs that no call of the run made) and what its last call makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dumpscope.domain.records import Kind, NodeKind, Role, State
from dumpscope.match.fusion_rules import Rule, run_ends
from dumpscope.match.gaps import Gap, below, computing, find_gaps
from dumpscope.match.matching import Fusion, Matching
from dumpscope.match.operations import moves_data, operation
from dumpscope.match.sides import Side, close

OWN: Final = 0.9
"""Confidence of a pair by a rule of the user's."""
BUILT_IN: Final = 0.8
PROPOSED: Final = 0.6
"""Confidence of a pair that only its boundary proposes."""
UNSEEN: Final = 0.8
"""Factor where no input or no output of the boundary could be paired."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of a call.

    path: code of its place; numbers: its statistics; mark: what tells it from others (statistics and size, or hash)
    """

    item: int
    path: int
    shape: tuple[int, ...]
    size: int
    numbers: tuple[float, ...]
    mark: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A fused call, its run (all calls, those that move data included) and the call that ends it."""

    single: int
    inner: tuple[int, ...]
    end: int
    items: tuple[tuple[int, int], ...]  # (item of the fused call, item of the run)
    inputs: int
    agree: bool  # the paired inputs hold the same numbers
    outputs: int
    same: bool  # the paired outputs hold the same numbers


def find_fusions(matching: Matching, rules: Sequence[Rule]) -> None:
    """Fuse what the gaps between matched calls hold, and the backward calls of what was fused."""
    for gap in list(find_gaps(matching)):
        for on_target in (False, True):
            _fuse_gap(matching, gap, rules, on_target=on_target)


def _fuse_gap(matching: Matching, gap: Gap, rules: Sequence[Rule], *, on_target: bool) -> None:
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
        if found is None:
            continue
        start += rest.index(max(found.inner, key=rest.index)) + 1
        if not found.inputs or not found.outputs:
            confidence *= UNSEEN
        _note(matching, found, confidence, on_target=on_target, holders=True)
        _fuse_backward(matching, found, confidence, on_target=on_target)


def _by_rule(
    single_side: Side, run_side: Side, single: int, calls: Sequence[int], rules: Sequence[Rule]
) -> tuple[_Found | None, float]:
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


def _proposed(single_side: Side, run_side: Side, single: int, calls: Sequence[int]) -> _Found | None:
    """The one extra call here beside all extra calls there, where inputs agree in numbers and the output in shape."""
    cores = computing(run_side, list(calls))
    if single_side.kind[single] != NodeKind.API or len(cores) < 2:
        return None
    found = _boundary(single_side, run_side, single, cores, calls)
    return found if found is not None and found.agree and found.outputs else None


def _boundary(
    single_side: Side, run_side: Side, single: int, cores: Sequence[int], calls: Sequence[int]
) -> _Found | None:
    """The run with the calls around it that only move data; None where it makes another number of elements."""
    made = values(single_side, single, Role.OUTPUT)
    places = {entry: place for place, entry in enumerate(calls)}
    begin, stop = places[cores[0]], places[cores[-1]] + 1
    while begin and _loose(run_side, calls[begin - 1]):
        begin -= 1
    behind = stop
    while behind < len(calls) and _loose(run_side, calls[behind]):
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
                pairs, same = [(out.item, fitting[0].item)], _same(out, fitting[0])
                break
    inner = tuple(calls[begin : places[end] + 1])
    received = values(single_side, single, Role.INPUT, Role.KWARG)
    needed = _needed(run_side, [entry for entry in inner if entry < run_side.dumped])
    inputs, agree = _pair_values(received, needed)
    return _Found(
        single=single,
        inner=inner,
        end=end,
        items=(*inputs, *pairs),
        inputs=len(inputs),
        agree=agree,
        outputs=len(pairs),
        same=same,
    )


def _loose(side: Side, entry: int) -> bool:
    """A call of the run's side that may belong to any run next to it."""
    return side.kind[entry] == NodeKind.API and moves_data(side.label[entry])


def values(side: Side, entry: int, *roles: Role) -> list[Value]:
    """Tensors of a dumped call in these roles, in order."""
    items = side.dump.items
    found = []
    for item in range(side.first_item[entry], side.first_item[entry + 1]) if entry < side.dumped else ():
        if items.kind[item] != Kind.TENSOR or items.role[item] not in roles:
            continue
        code = int(items.shape[item])
        shape = items.shapes[code] if code >= 0 else ()
        size = 1
        for length in shape:
            size *= length
        states = items.stat_state[item].tolist()
        numbers: tuple[float, ...] = ()
        if any(state != State.ABSENT for state in states):
            row = items.stats[item].tolist()
            numbers = tuple(x if s == State.FINITE else -float(s) for x, s in zip(row, states, strict=True))
        digest = int(items.hash[item])
        mark = (size, numbers) if numbers else items.hashes[digest] if digest >= 0 else None
        found.append(Value(item, int(items.path[item]), shape, size, numbers, mark))
    return found


def _needed(side: Side, inner: Sequence[int]) -> list[Value]:
    """What the run receives from outside, each tensor once."""
    known: set[object] = set()
    needed = []
    for number, entry in enumerate(inner):
        for value in values(side, entry, Role.INPUT, Role.KWARG):
            if value.mark is None and number:
                continue  # nothing tells whether the run made it
            if value.mark is not None:
                if value.mark in known:
                    continue
                known.add(value.mark)
            needed.append(value)
        known |= {value.mark for value in values(side, entry, Role.OUTPUT)} - {None}
    return needed


def _pair_values(received: list[Value], needed: list[Value]) -> tuple[list[tuple[int, int]], bool]:
    """Item pairs of equal shape: those that agree in numbers, then the first with the first, then what has no rival.

    Also whether the first input, or every one that could be paired, agrees.
    """
    pairs: dict[int, int] = {}
    agreeing = 0
    for i, one in enumerate(received):
        for j, other in enumerate(needed):
            if j not in pairs.values() and one.shape == other.shape and _same(one, other):
                pairs[i] = j
                agreeing += 1
                break
    if received and needed and 0 not in pairs and 0 not in pairs.values() and received[0].shape == needed[0].shape:
        pairs[0] = 0
    for i, one in enumerate(received):
        rivals = [k for k, x in enumerate(received) if k not in pairs and x.shape == one.shape]
        fitting = [j for j, x in enumerate(needed) if j not in pairs.values() and x.shape == one.shape]
        if rivals == [i] and len(fitting) == 1:
            pairs[i] = fitting[0]
    items = [(received[i].item, needed[j].item) for i, j in sorted(pairs.items())]
    return items, agreeing > 0 and agreeing == len(pairs)


def _same(one: Value, other: Value) -> bool:
    if one.numbers and other.numbers:
        return close(one.numbers, other.numbers)
    return one.mark is not None and one.mark == other.mark


def _note(matching: Matching, found: _Found, confidence: float, *, on_target: bool, holders: bool) -> None:
    """holders: set the modules aside, too, that hold nothing else."""
    sides = (matching.target, matching.free_target), (matching.golden, matching.free_golden)
    run, single = sides if on_target else sides[::-1]
    matching.fuse(
        Fusion(
            target=found.end if on_target else found.single,
            golden=found.single if on_target else found.end,
            inner=(*found.inner, *(_holders(run[0], found.inner, run[1]) if holders else ())),
            around=tuple(_holders(single[0], (found.single,), single[1])) if holders else (),
            on_target=on_target,
            items=tuple(pair[::-1] if on_target else pair for pair in found.items),
            confidence=confidence,
        )
    )


def _holders(side: Side, inner: Sequence[int], free: Callable[[int], bool]) -> Iterator[int]:
    """Modules without a partner that hold these calls and no other one that computes, with their backward and gradients."""
    ours = set(inner)
    for parent in dict.fromkeys(map(side.parent, inner)):
        holder = parent
        while holder is not None and free(holder) and ours.issuperset(computing(side, list(below(side, holder)))):
            yield from side.relatives(holder)
            holder = side.parent(holder)


def _fuse_backward(matching: Matching, found: _Found, confidence: float, *, on_target: bool) -> None:
    """The backward of the fused call beside that of the run: the gradient that arrives, and those that leave.

    The run's gradient of an input that several of its calls use is a sum that no call holds: it cannot be compared.
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
    _note(
        matching,
        _Found(
            single=single, inner=inner, end=inner[-1], items=tuple(pairs), inputs=1, agree=True, outputs=1, same=True
        ),
        confidence,
        on_target=on_target,
        holders=False,
    )


def _leaving(
    single_side: Side, run_side: Side, found: _Found, single: int, backward: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Pairs of gradients of inputs: the gradient of an argument stands at the argument's own place."""
    place_of = {value.item: value.path for value in values(single_side, found.single, Role.INPUT)}
    gradients = {value.path: value for value in values(single_side, single, Role.OUTPUT)}
    uses: dict[object, list[tuple[int, int]]] = {}
    owner: dict[int, object] = {}
    for entry in found.inner:
        for value in values(run_side, entry, Role.INPUT):
            uses.setdefault(value.mark, []).append((entry, value.path))
            owner[value.item] = value.mark
    for one, other in found.items:
        users = uses.get(owner.get(other), [])
        mine = gradients.get(place_of.get(one, -1))
        if mine is None or len(users) != 1 or users[0][0] not in backward:
            continue
        entry, path = users[0]
        theirs = {value.path: value for value in values(run_side, backward[entry], Role.OUTPUT)}.get(path)
        if theirs is not None and theirs.shape == mine.shape:
            yield mine.item, theirs.item


def _first(found: list[Value]) -> Value | None:
    return found[0] if found else None
