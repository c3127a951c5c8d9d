"""Joins a virtual unit: the ranks that a plan names become one dump per side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import log
from typing import Final, TypeVar

import numpy as np

from dumpscope.domain.joined import JoinedSide, JoinedUnit, Stray
from dumpscope.domain.options import Options
from dumpscope.domain.records import Direction, Float64, Kind, RankDump, Role, State, item_name
from dumpscope.match import match
from dumpscope.parallel.aligned import Aligned, align_members
from dumpscope.parallel.collectives import without_peers
from dumpscope.parallel.columns import lean
from dumpscope.parallel.join_members import Joint, Terms, alone, join_members, share, without_padding
from dumpscope.parallel.members import Members
from dumpscope.parallel.orders import Order
from dumpscope.parallel.plan import Plan, SidePlan, UnitPlan
from dumpscope.parallel.replicas import Odd, distance, odd_members, tolerance
from dumpscope.parallel.shards import WHOLE, Counts, Cuts, Part, find_cuts
from dumpscope.parallel.wrappers import depth

_T = TypeVar("_T")
Load = Callable[[int], RankDump]
"""Reads a rank."""
_OWN: Final = 0.2
"""If more than this share of the forward items (weights included) differs between replicas, they ran on different data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Both sides of a unit as single dumps; orders by data name."""

    target: RankDump
    golden: RankDump
    target_orders: dict[str, Order]
    golden_orders: dict[str, Order]
    unit: JoinedUnit


@dataclass(slots=True, kw_only=True)
class _Side:
    """first: shards of the first replica; joints: first one per replica, then one per batch, then a single one
    counts: of parts that are not joined yet; ways: number of tensors per way, by level"""

    plan: SidePlan
    golden: bool
    members: Members
    first: list[RankDump]
    counts: Counts
    joints: list[Joint] = field(default_factory=list)
    ways: dict[str, dict[str, int]] = field(default_factory=dict)
    strays: list[Stray] = field(default_factory=list)
    own_data: tuple[int, ...] = ()

    def shards(self, replica: int) -> list[RankDump]:
        return self.members.replica(replica) if replica else self.first


def join_unit(
    unit: UnitPlan,
    plan: Plan,
    target: Load,
    golden: Load,
    options: Options,
    *,
    worlds: tuple[Sequence[int], Sequence[int]],
) -> Whole:
    """Join the ranks of one unit in one step. target, golden: read a rank of either side; worlds: all ranks of both sides.

    Replicas are read one after the other, so that memory holds the shards of one replica and the joined dumps of the others.
    Raises UnreadableError if ranks that should run the same calls do not.
    """
    one, other = _read_sides(unit, (target, golden), worlds)
    if one.counts.shards > 1 or other.counts.shards > 1:
        _join_shards(one, other, plan, options)
    else:
        for side in (one, other):
            side.joints = [alone(side.shards(number)[0]) for number in range(side.plan.replicas)]
    gradients = None
    for level in ("context", "replicas"):
        if one.counts.of(level) > 1 or other.counts.of(level) > 1:
            gradients = _join_data(one, other, plan, options, level) or gradients
    dumps = _whole_dump(one, unit.rank), _whole_dump(other, unit.rank)
    return Whole(
        target=dumps[0],
        golden=dumps[1],
        target_orders=one.joints[0].orders,
        golden_orders=other.joints[0].orders,
        unit=JoinedUnit(
            step=dumps[0].ref.step,
            rank=unit.rank,
            target=_describe_side(one),
            golden=_describe_side(other),
            gradients=gradients,
        ),
    )


def _read_sides(
    unit: UnitPlan, loads: tuple[Load, Load], worlds: tuple[Sequence[int], Sequence[int]]
) -> tuple[_Side, _Side]:
    """Both sides with their first replicas, without wrappers that only one side has, and without experts if ranks share them."""
    plans = unit.target, unit.golden
    members = [
        Members(plan=plan, load=load, world=world) for plan, load, world in zip(plans, loads, worlds, strict=True)
    ]
    firsts = [side.whole(0) for side in members]
    depths = [depth(first[0]) for first in firsts]
    for side, deep in zip(members, depths, strict=True):
        side.wrappers = deep - min(depths)
        side.experts = max(plan.experts for plan in plans) > 1
    one, other = (
        _Side(
            plan=side.plan,
            golden=number == 1,
            members=side,
            first=side.without_wrappers_of(first),
            counts=Counts(shards=side.plan.shards, context=side.plan.context, replicas=side.plan.batches),
        )
        for number, (side, first) in enumerate(zip(members, firsts, strict=True))
    )
    return one, other


def _join_shards(one: _Side, other: _Side, plan: Plan, options: Options) -> None:
    firsts = one.first[0], other.first[0]
    pairs = match(*firsts, options).items
    parts = [_part(side.first, side.counts) for side in (one, other)]
    longer: dict[int, tuple[int, int]] = {}
    for side, own, opposite in ((one, parts[0], parts[1]), (other, parts[1], parts[0])):
        if side.counts.shards == 1:
            continue
        cuts = find_cuts(own, opposite, pairs, "shards", golden=side.golden)
        for number in range(side.plan.replicas):
            shards = side.shards(number)
            part, its = own, cuts
            if number:
                part = _part(shards, side.counts)
                if not _have_same_shapes(shards[0], side.first[0]):
                    sides = (opposite.dump, shards[0]) if side.golden else (shards[0], opposite.dump)
                    its = find_cuts(part, opposite, match(*sides, options).items, "shards", golden=side.golden)
            ranks = tuple(
                tuple(stage[place] for stage in side.plan.ranks[number]) for place in range(side.counts.shards)
            )
            terms = Terms(ranks=ranks, word="shards", patterns=plan.dimensions)
            assert part.aligned is not None
            joint = join_members([alone(shard) for shard in shards], part.aligned, its, opposite.dump, terms)
            side.strays += _find_deviations(joint, joint.odd, ranks)
            side.joints.append(replace(joint, dump=lean(joint.dump, side.joints[0].dump if side.joints else None)))
        side.ways["shards"] = share(side.joints[0])
        longer = {int(cuts.partner[item]): short for item, short in cuts.padded.items()}
    for side in (one, other):
        if side.counts.shards == 1:
            wholes = (side.shards(number)[0] for number in range(side.plan.replicas))
            side.joints = [
                without_padding(alone(dump), longer if _have_same_shapes(dump, side.first[0]) else {})
                for dump in wholes
            ]
            if side.joints[0].padded:
                side.ways["shards"] = {"padded": len(side.joints[0].padded)}
    for side in (one, other):
        side.counts = replace(side.counts, shards=1)
        side.first = []


def _part(members: Sequence[RankDump], counts: Counts) -> Part:
    return Part(dump=members[0], counts=counts, aligned=align_members(members) if len(members) > 1 else None)


def _have_same_shapes(one: RankDump, other: RankDump) -> bool:
    """Whether the items of both correspond by number and have the same shapes."""
    a, b = one.items, other.items
    return (
        one.nodes.names == other.nodes.names
        and len(a) == len(b)
        and a.shapes == b.shapes
        and a.paths == b.paths
        and all(bool((getattr(a, name) == getattr(b, name)).all()) for name in ("node", "role", "path", "shape"))
    )


def _join_data(one: _Side, other: _Side, plan: Plan, options: Options, level: str) -> str | None:
    """Join the parts of a batch ("context") or the batches ("replicas"). Also returns how their gradients make the whole's."""
    firsts = one.joints[0].dump, other.joints[0].dump
    pairs = match(*firsts, options).items
    groups = [_grouped(side.joints, side.counts.of(level)) for side in (one, other)]
    parts = [
        _part([joint.dump for joint in group[0]], side.counts) for side, group in zip((one, other), groups, strict=True)
    ]
    cuts = [
        find_cuts(parts[number], parts[1 - number], pairs, level, golden=side.golden)
        for number, side in enumerate((one, other))
    ]
    gradients = plan.gradients or _gradients(
        (parts[0], parts[1]), cuts[0], one.counts.of(level), other.counts.of(level)
    )
    for number, side in enumerate((one, other)):
        count = side.counts.of(level)
        if count == 1:
            continue
        factor = 1.0 / count if gradients == "mean" else 1.0
        ranks = [tuple(rank for stage in replica for rank in stage) for replica in side.plan.ranks]
        if level == "replicas" and side.plan.context > 1:
            ranks = [tuple(chain(*group)) for group in _grouped(ranks, side.plan.context)]
        joints = []
        for place, group in enumerate(groups[number]):
            its = tuple(ranks[place * count : (place + 1) * count])
            terms = Terms(
                ranks=its, word=level, factor=factor, patterns=plan.dimensions,
                sequence=side.plan.sequence if level == "context" else None,
                rivals=(other if number == 0 else one).counts.of(level),
            )  # fmt: skip
            aligned = parts[number].aligned if place == 0 else align_members([joint.dump for joint in group])
            assert aligned is not None
            joint = _join_group(side, group, aligned, cuts[number], firsts[1 - number], terms)
            joints.append(joint)
        side.joints = joints
        if not side.own_data:
            side.ways[level] = share(joints[0])
    for side in (one, other):
        side.counts = replace(side.counts, **{level: 1})
    return gradients


def _join_group(
    side: _Side, group: Sequence[Joint], aligned: Aligned, cuts: Cuts, rival: RankDump, terms: Terms
) -> Joint:
    """Join one group. If the replicas ran on different data, take the replica with the data of the other side."""
    chosen = _own_data(aligned, cuts, rival) if terms.word == "replicas" else None
    if chosen is not None:
        side.own_data = (terms.ranks[chosen][0],)
        side.strays += _find_deviations(replace(group[chosen], dump=aligned.base), _stray_weights(aligned), terms.ranks)
        return group[chosen]
    joint = join_members(group, aligned, cuts, rival, terms)
    side.strays += _find_deviations(joint, joint.odd, terms.ranks)
    return joint


def _grouped(members: Sequence[_T], size: int) -> list[Sequence[_T]]:
    return [members[first : first + size] for first in range(0, len(members), size)]


def _gradients(parts: tuple[Part, Part], cuts: Cuts, replicas: int, rivals: int) -> str | None:
    """Whether gradients of the whole are the mean of the replicas' (the loss is a mean) or their sum; None without gradients.

    If they are averaged in the end, each replica's part of an activation's gradient is n times as large as in the whole,
    where n is the number of replicas.
    """
    one = parts[0].dump
    rows = np.flatnonzero(
        (cuts.dimension >= 0) & (one.nodes.direction[one.items.node] == Direction.BACKWARD) & (cuts.partner >= 0)
    )
    mine, theirs = _norms(parts[0])[rows], _norms(parts[1])[cuts.partner[rows]]
    known = (mine > 0) & (theirs > 0)
    if not known.any():
        return None
    ratio = float(np.median(mine[known] / theirs[known]))
    return "mean" if abs(log(ratio * rivals / replicas)) < abs(log(ratio)) else "sum"


def _norms(part: Part) -> Float64:
    """By item: the norm of all parts put together, as they were stored; nan where one is not known."""
    items = part.dump.items
    if part.aligned is None:
        return np.where(items.stat_state[:, 3] == State.FINITE, items.stats[:, 3], np.nan)
    norms = np.full(len(items), np.nan)
    known = (part.aligned.states[:, :, 3] == State.FINITE).all(axis=0)
    squares = (part.aligned.stats[:, :, 3] ** 2).sum(axis=0)
    norms[part.aligned.kept] = np.where(known, np.sqrt(squares), np.nan)
    return norms


def _own_data(aligned: Aligned, cuts: Cuts, rival: RankDump) -> int | None:
    """If the replicas ran on different data: the one with the other side's data; else None."""
    base = aligned.base
    items = base.items
    partner, dimension = cuts.partner[aligned.kept], cuts.dimension[aligned.kept]
    activations = np.flatnonzero(
        (items.kind == Kind.TENSOR)
        & (items.role != Role.PARAMETER)
        & (base.nodes.direction[items.node] == Direction.FORWARD)
    )
    if not len(activations) or (dimension[activations] != WHOLE).any():
        return None
    differing = ~aligned.same[activations]
    first = int(activations[0])
    if differing.mean() <= _OWN or aligned.same[first]:
        return None
    if partner[first] < 0:
        return 0
    theirs = rival.items.stats[partner[first]], rival.items.stat_state[partner[first]]
    far = [distance(aligned.stats[m, first], aligned.states[m, first], *theirs) for m in range(len(aligned.members))]
    return int(np.argmin(far))


def _stray_weights(aligned: Aligned) -> list[Odd]:
    items = aligned.base.items
    odd = []
    for item in np.flatnonzero((items.role == Role.PARAMETER) & ~aligned.same).tolist():
        dtype = items.dtypes[items.dtype[item]] if items.dtype[item] >= 0 else ""
        copies = aligned.stats[:, item], aligned.states[:, item], aligned.hashes[:, item]
        odd.append(Odd(item=item, members=odd_members(*copies, tolerance(dtype), None)))
    return odd


def _whole_dump(side: _Side, rank: int) -> RankDump:
    dump = without_peers(side.joints[0].dump)
    ranks = tuple(sorted(set(side.plan.every())))
    label = "+".join(f"rank{number}" for number in ranks)
    return replace(dump, ref=replace(dump.ref, rank=rank, label=label, joined=ranks if len(ranks) > 1 else ()))


def _describe_side(side: _Side) -> JoinedSide:
    return JoinedSide(
        ranks=[[list(stage) for stage in replica] for replica in side.plan.ranks],
        offsets=list(side.plan.offsets),
        chunks=side.plan.chunks,
        shards=side.ways.get("shards", {}),
        context=side.ways.get("context", {}),
        replicas=side.ways.get("replicas", {}),
        experts=side.members.inside,
        collectives=side.members.collectives,
        own_data=list(side.own_data),
        strays=side.strays,
    )


def _find_deviations(joint: Joint, odd: Sequence[Odd], ranks: tuple[tuple[int, ...], ...]) -> list[Stray]:
    """First deviation of each group of ranks; then, by rank, the calls that not all ranks made. ranks: of every member"""
    dump = joint.dump
    odd_by_ranks: dict[tuple[int, ...], list[Odd]] = {}
    for one in odd:
        odd_by_ranks.setdefault(tuple(sorted({rank for member in one.members for rank in ranks[member]})), []).append(
            one
        )
    out = []
    for who, entries in odd_by_ranks.items():
        item = entries[0].item
        node = dump.nodes.names[dump.items.node[item]]
        out.append(Stray(ranks=list(who), node=node, item=item_name(dump, item), items=len(entries)))
    calls: dict[int, list[str]] = {}
    for member, node in joint.alone:
        calls.setdefault(member, []).append(node)
    for member, nodes in calls.items():
        out.append(Stray(ranks=list(ranks[member]), node=nodes[0], item="", items=len(nodes)))
    return out
