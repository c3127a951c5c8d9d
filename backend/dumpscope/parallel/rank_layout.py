"""Makes a plan from the user's sizes, or from evidence in the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import lcm
from typing import Final

from dumpscope.errors import UsageError
from dumpscope.parallel.evidence import Evidence
from dumpscope.parallel.plan import (
    HINT,
    Given,
    Plan,
    Ranks,
    SidePlan,
    Sizes,
    UnitPlan,
    require_ranks,
    sizes_ranks,
)
from dumpscope.texts import Phrase, phrase, say

ORDERS: Final = tuple(permutations(("tp", "dp", "pp")))
"""Orders of ranks, in the order in which they are tried."""
MOST_RANKS: Final = 4096
"""Ranks of a side up to which a plan is found without the user."""


def lay_out(given: Given, target: Sequence[Evidence], golden: Sequence[Evidence]) -> Plan:
    """The plan of a comparison. Raises UsageError if the user's entries do not match the dumps, or if there are none and
    no plan can be found from the dumps."""
    rivals = {one.rank: one for one in target}, {one.rank: one for one in golden}
    if given.units:
        require_ranks(given.units, *rivals)
        _require_unlike(given.units)
        return Plan(units=given.units, gradients=given.gradients, dimensions=given.dimensions)
    if given.target is None and given.golden is None:
        sides, reasons = _search(*rivals)
    else:
        sizes = given.target or Sizes(), given.golden or Sizes()
        sides = _side_plan(sizes[0], rivals[0], "target"), _side_plan(sizes[1], rivals[1], "golden")
        reasons = [phrase("plan.given")]
    return Plan(
        units=tuple(_units(*sides)), gradients=given.gradients, dimensions=given.dimensions, reasons=tuple(reasons)
    )


def _require_unlike(units: Sequence[UnitPlan]) -> None:
    """Raise UsageError if a unit joins equally many parts on both sides: then no shape shows which dimension is cut."""
    for unit in units:
        for name, word in (("shards", "shards"), ("batches", "replicas"), ("context", "parts of a sequence")):
            count = getattr(unit.target, name)
            if count == getattr(unit.golden, name) > 1:
                raise UsageError(
                    say("parallel.plan_unit_joins_both_sides", rank=unit.rank, count=count, word=word),
                    hint=say("parallel.make_units_each_one_them_either", count=count),
                )


def _side_plan(sizes: Sizes, there: Mapping[int, Evidence], side: str) -> SidePlan:
    plan = SidePlan(
        ranks=sizes_ranks(sizes, there, side), chunks=sizes.vpp, context=sizes.cp, sequence=sizes.sequence,
        experts=sizes.ep,
    )  # fmt: skip
    return _with_offsets(plan, there)


def _units(target: SidePlan, golden: SidePlan) -> Iterator[UnitPlan]:
    """Split into units: if both sides have equally many replicas (or batches, or shards), these are compared one by one."""
    for one, other in _split_by_replicas(target, golden):
        yield UnitPlan(rank=min(one.every()), target=one, golden=other)


def _split_by_replicas(target: SidePlan, golden: SidePlan) -> Iterator[tuple[SidePlan, SidePlan]]:
    shared = (target.context, target.experts) == (golden.context, golden.experts)
    blocks = (1, 1) if shared else tuple(lcm(side.context, side.experts) for side in (target, golden))
    counts = target.replicas // blocks[0], golden.replicas // blocks[1]
    if counts[0] == counts[1] > 1:
        for place in range(counts[0]):
            yield from _split_by_replicas(_block(target, place, blocks[0]), _block(golden, place, blocks[1]))
    elif target.shards == golden.shards > 1:
        for place in range(target.shards):
            yield _shard(target, place), _shard(golden, place)
    else:
        yield target, golden


def _block(side: SidePlan, place: int, size: int) -> SidePlan:
    """Size of a block of consecutive replicas; a single replica shares nothing."""
    ranks = side.ranks[place * size : (place + 1) * size]
    return replace(side, ranks=ranks) if size > 1 else replace(side, ranks=ranks, context=1, sequence=None, experts=1)


def _shard(side: SidePlan, place: int) -> SidePlan:
    return replace(side, ranks=tuple(tuple((stage[place],) for stage in replica) for replica in side.ranks))


def _with_offsets(side: SidePlan, there: Mapping[int, Evidence]) -> SidePlan:
    """Number the layers on from stage to stage, if every stage starts with the same number."""
    counts = [_layers(there[stage[0]], chunk, side.chunks) for chunk in range(side.chunks) for stage in side.ranks[0]]
    seen: set[int] = set()
    shared = False
    for numbers in counts:
        shared = shared or bool(seen & numbers)
        seen |= numbers
    offsets, total = [], 0
    for numbers in counts:
        offsets.append(total)
        total += max(numbers) + 1 if shared and numbers else 0
    return replace(side, offsets=tuple(offsets))


def _layers(one: Evidence, chunk: int, chunks: int) -> set[int]:
    """Layer numbers in the longest module list of one chunk."""
    head = f"{chunk}."
    lists = [set(found) for path, found in one.numbers.items() if chunks == 1 or path.startswith(head)]
    return max(lists, key=len, default=set())


def _chunks(there: Mapping[int, Evidence]) -> int:
    """Number of models in every rank, from the numbers before the names of their modules."""
    heads = [{path.split(".", 1)[0] for path in one.numbers} for one in there.values()]
    if not all(found and all(head.isdigit() for head in found) for found in heads):
        return 1
    return len(set.union(*heads))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way in which the ranks of a side may be arranged."""

    tp: int
    pp: int
    dp: int


def _ways(count: int) -> list[_Way]:
    sizes = [size for size in range(1, count + 1) if count % size == 0]
    return [_Way(tp=tp, pp=pp, dp=count // tp // pp) for pp, tp in product(sizes, sizes) if count % (tp * pp) == 0]


def _search(
    target: Mapping[int, Evidence], golden: Mapping[int, Evidence]
) -> tuple[tuple[SidePlan, SidePlan], list[Phrase]]:
    if max(len(target), len(golden)) > MOST_RANKS or not all(
        any(one.weights for one in side.values()) for side in (target, golden)
    ):
        raise _no_plan_error()
    ratio = _ratio(target, golden)
    chunks = _chunks(target), _chunks(golden)
    ways = [
        (one, other)
        for one, other in product(_ways(len(target)), _ways(len(golden)))
        if ratio is None or Fraction(one.tp, other.tp) == ratio
    ]
    arranged: dict[tuple[int, _Way], SidePlan | None] = {}
    for pair in sorted(ways, key=lambda pair: (pair[0].pp + pair[1].pp, pair[0].tp + pair[1].tp)):
        sides = []
        for number, (way, there) in enumerate(zip(pair, (target, golden), strict=True)):
            key = number, way
            if key not in arranged:
                arranged[key] = _first_order(way, there, chunks[number] if way.pp > 1 else 1)
            sides.append(arranged[key])
        one, other = sides
        if one is None or other is None:
            continue
        layers = _total(one, target), _total(other, golden)
        if layers[0] == layers[1] or 0 in layers:
            return (one, other), _reasons(pair, ratio, layers)
    raise _no_plan_error()


def _no_plan_error() -> UsageError:
    return UsageError(say("parallel.how_ranks_two_dumps_belong_together"), hint=say("parallel.give_plan", hint=HINT))


def _ratio(target: Mapping[int, Evidence], golden: Mapping[int, Evidence]) -> Fraction | None:
    """How many times longer a cut dimension of a weight is in the golden: 1 if all shapes agree, None without a common weight."""
    votes: Counter[Fraction] = Counter()
    common = False
    for name, (shape, _) in ((name, held) for one in target.values() for name, held in one.weights.items()):
        for other in golden.values():
            if name not in other.weights:
                continue
            rival = other.weights[name][0]
            common = True
            apart = [(g, t) for t, g in zip(shape, rival, strict=False) if t != g]
            if len(shape) == len(rival) and len(apart) == 1 and apart[0][1]:
                votes[_length_ratio(*apart[0])] += 1
            break
    if not common:
        return None
    return votes.most_common(1)[0][0] if votes else Fraction(1)


def _length_ratio(long: int, short: int) -> Fraction:
    """Ratio of two lengths: a whole number (or 1 by one) also if the parts of a length differ by one."""
    for one, other, turned in ((long, short, False), (short, long, True)):
        parts = round(one / other)
        if parts > 1 and other in (one // parts, -(-one // parts)):
            return Fraction(1, parts) if turned else Fraction(parts)
    return Fraction(long, short)


def _first_order(way: _Way, there: Mapping[int, Evidence], chunks: int) -> SidePlan | None:
    """The first order of ranks that the dumps do not contradict."""
    for order in ORDERS:
        ranks = sizes_ranks(Sizes(tp=way.tp, pp=way.pp, order=order), there, "")
        if _is_consistent(ranks, there):
            return _with_offsets(SidePlan(ranks=ranks, chunks=chunks), there)
    return None


def _is_consistent(ranks: Ranks, there: Mapping[int, Evidence]) -> bool:
    first = ranks[0]
    for place, stage in enumerate(first):
        modules = there[stage[0]].modules
        if any(there[rank].modules != modules for replica in ranks for rank in replica[place]):
            return False
        for replica in ranks[1:]:
            if not all(_are_copies(there[a], there[b]) for a, b in zip(stage, replica[place], strict=True)):
                return False
        if len(stage) > 1 and there[stage[0]].weights == there[stage[1]].weights:
            return False
    pairs = pairwise(first)
    return all(
        there[a[0]].modules != there[b[0]].modules or not _are_copies(there[a[0]], there[b[0]]) for a, b in pairs
    )


def _are_copies(one: Evidence, other: Evidence) -> bool:
    """Whether ranks are copies: more than three quarters of their weights are equal (one rank may be wrong)."""
    if one.weights.keys() != other.weights.keys():
        return False
    same = sum(held == other.weights[name] for name, held in one.weights.items())
    return 4 * same > 3 * len(one.weights) or same == len(one.weights)


def _total(side: SidePlan, there: Mapping[int, Evidence]) -> int:
    return sum(
        len(_layers(there[stage[0]], chunk, side.chunks)) for chunk in range(side.chunks) for stage in side.ranks[0]
    )


def _reasons(pair: tuple[_Way, _Way], ratio: Fraction | None, layers: tuple[int, int]) -> list[Phrase]:
    reasons = []
    for word, way in (("target", pair[0]), ("golden", pair[1])):
        side = [phrase(f"side.{word}")]
        if way.tp > 1:
            reasons.append(phrase("plan.shards", side=side, shards=way.tp))
        if way.pp > 1:
            reasons.append(phrase("plan.stages", side=side, stages=way.pp, layers=max(layers)))
        if way.dp > 1:
            reasons.append(phrase("plan.replicas", side=side, replicas=way.dp))
    if ratio is not None and ratio != 1:
        reasons.append(phrase("plan.ratio", ratio=str(ratio)))
    return reasons
