"""A virtual unit: the ranks of both sides that a plan names become one dump a side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np

from dumpscope.domain.joined import JoinedSide, JoinedUnit, Stray
from dumpscope.domain.options import Options
from dumpscope.domain.records import Direction, Kind, RankDump, Role, State, item_name
from dumpscope.match import match
from dumpscope.parallel.aligned import Aligned, align_members
from dumpscope.parallel.collectives import without_collectives, without_peers
from dumpscope.parallel.joint import Joint, Order, Terms, alone, join_members, share
from dumpscope.parallel.plan import Plan, SidePlan, UnitPlan
from dumpscope.parallel.replicas import Odd, distance, straying, tolerance
from dumpscope.parallel.shards import WHOLE, Counts, Cuts, find_cuts
from dumpscope.parallel.stages import join_stages
from dumpscope.parallel.wrappers import depth, unwrapped

_OWN: Final = 0.2
"""Share of what was recorded of forward calls, weights included, that differs between replicas from which their data do."""


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
    """members: by replica and shard, then by replica"""

    plan: SidePlan
    golden: bool
    members: list[list[RankDump]]
    counts: Counts
    collectives: int
    joints: list[Joint]
    shards: dict[str, int]
    strays: list[Stray]
    own_data: tuple[int, ...] = ()


def join_unit(
    unit: UnitPlan, plan: Plan, target: Mapping[int, RankDump], golden: Mapping[int, RankDump], options: Options,
    *, worlds: tuple[Sequence[int], Sequence[int]],
) -> Whole:  # fmt: skip
    """Join the ranks of one unit in one step. target, golden: dumps by rank; worlds: all ranks of both sides.

    Raises UnreadableError where ranks that should have run the same did not.
    """
    sides = [
        _side(side, dumps, world, golden=number == 1)
        for number, (side, dumps, world) in enumerate(
            zip((unit.target, unit.golden), (target, golden), worlds, strict=True)
        )
    ]
    one, other = sides
    _unwrap(one, other)
    if one.counts.shards > 1 or other.counts.shards > 1:
        _join_shards(one, other, plan, options)
    gradients = None
    if one.counts.replicas > 1 or other.counts.replicas > 1:
        gradients = _join_replicas(one, other, plan, options)
    step = next(iter(target.values())).ref.step
    return Whole(
        target=_named(one, unit.rank),
        golden=_named(other, unit.rank),
        target_orders=one.joints[0].orders,
        golden_orders=other.joints[0].orders,
        unit=JoinedUnit(step=step, rank=unit.rank, target=_told(one), golden=_told(other), gradients=gradients),
    )


def _side(plan: SidePlan, dumps: Mapping[int, RankDump], world: Sequence[int], *, golden: bool) -> _Side:
    ours = set(plan.every())
    bare: dict[int, RankDump] = {}
    dropped = 0
    for rank in sorted(ours):
        bare[rank] = _located(dumps[rank])
        if len(ours) > 1:
            bare[rank], count = without_collectives(bare[rank], ours, world)
            dropped += count
    members = [
        [join_stages([bare[stage[place]] for stage in replica], plan) for place in range(plan.shards)]
        for replica in plan.ranks
    ]
    return _Side(
        plan=plan,
        golden=golden,
        members=members,
        counts=Counts(shards=plan.shards, replicas=plan.replicas),
        collectives=dropped,
        joints=[],
        shards={},
        strays=[],
    )


def _unwrap(one: _Side, other: _Side) -> None:
    """Take off the wrappers that only one side has around its model."""
    depths = [depth(side.members[0][0]) for side in (one, other)]
    for side, deep in zip((one, other), depths, strict=True):
        side.members = [[unwrapped(dump, deep - min(depths)) for dump in replica] for replica in side.members]
        side.joints = [alone(replica[0]) for replica in side.members]


def _located(dump: RankDump) -> RankDump:
    """The dump with paths for data names, which say where they lie even among those of other ranks."""
    folder = dump.header.data_dir
    items = dump.items
    if folder is None:
        return replace(dump, items=replace(items, data_name=np.full(len(items), -1, np.int32), data_names=[]))
    names = [os.path.join(folder, name) for name in items.data_names]
    return replace(dump, items=replace(items, data_names=names))


def _join_shards(one: _Side, other: _Side, plan: Plan, options: Options) -> None:
    firsts = one.members[0][0], other.members[0][0]
    pairs = match(*firsts, options).items
    for side, rival in ((one, other), (other, one)):
        if side.counts.shards == 1:
            continue
        rival_first = firsts[0] if side.golden else firsts[1]
        cuts = find_cuts(
            side.members[0][0], rival_first, pairs, side.counts, rival.counts, replicas=False, golden=side.golden
        )
        joints = []
        for number, shards in enumerate(side.members):
            own = cuts
            if number and not _alike(shards[0], side.members[0][0]):
                sides = (rival_first, shards[0]) if side.golden else (shards[0], rival_first)
                own = find_cuts(
                    shards[0], rival_first, match(*sides, options).items, side.counts, rival.counts, replicas=False,
                    golden=side.golden,
                )  # fmt: skip
            ranks = tuple(
                tuple(stage[place] for stage in side.plan.ranks[number]) for place in range(side.counts.shards)
            )
            terms = Terms(ranks=ranks, word="shards", patterns=plan.dimensions)
            joint = join_members([alone(shard) for shard in shards], own, rival_first, terms)
            side.strays += _strays(joint, joint.odd, ranks)
            joints.append(joint)
        side.joints = joints
        side.shards = share(joints[0])


def _alike(one: RankDump, other: RankDump) -> bool:
    """The items of both correspond by number, and have the same shapes."""
    a, b = one.items, other.items
    return (
        one.nodes.names == other.nodes.names
        and len(a) == len(b)
        and a.shapes == b.shapes
        and a.paths == b.paths
        and all(bool((getattr(a, name) == getattr(b, name)).all()) for name in ("node", "role", "path", "shape"))
    )


def _join_replicas(one: _Side, other: _Side, plan: Plan, options: Options) -> str | None:
    firsts = one.joints[0].dump, other.joints[0].dump
    pairs = match(*firsts, options).items
    cuts = [
        find_cuts(
            firsts[number], firsts[1 - number], pairs, side.counts, rival.counts, replicas=True, golden=side.golden
        )
        for number, (side, rival) in enumerate(((one, other), (other, one)))
    ]
    if plan.gradients is not None:
        gradients: str | None = plan.gradients
    else:
        gradients = _gradients(firsts, cuts[0], one.counts.replicas, other.counts.replicas)
    for number, side in enumerate((one, other)):
        if side.counts.replicas == 1:
            continue
        ranks = tuple(tuple(rank for stage in replica for rank in stage) for replica in side.plan.ranks)
        rival = firsts[1 - number]
        aligned = align_members([joint.dump for joint in side.joints])
        chosen = _own_data(aligned, cuts[number], rival)
        if chosen is not None:
            joint = side.joints[chosen]
            side.own_data = (ranks[chosen][0],)
            side.strays += _strays(replace(joint, dump=aligned.base), _stray_weights(aligned), ranks)
            side.joints = [joint]
            continue
        factor = 1.0 / side.counts.replicas if gradients == "mean" else 1.0
        terms = Terms(ranks=ranks, word="replicas", factor=factor, patterns=plan.dimensions)
        joint = join_members(side.joints, cuts[number], rival, terms)
        side.strays += _strays(joint, joint.odd, ranks)
        side.joints = [joint]
    return gradients


def _gradients(firsts: tuple[RankDump, RankDump], cuts: Cuts, replicas: int, rivals: int) -> str | None:
    """Whether gradients of the whole are the mean of the replicas' (the loss is a mean) or their sum; None without any.

    A replica's part of an activation's gradient is as many times larger than the whole's as there are replicas, if they are
    averaged in the end.
    """
    one, other = firsts
    rows = np.flatnonzero(
        (cuts.dimension >= 0) & (one.nodes.direction[one.items.node] == Direction.BACKWARD) & (cuts.partner >= 0)
    )
    partners = cuts.partner[rows]
    known = (one.items.stat_state[rows, 3] == State.FINITE) & (other.items.stat_state[partners, 3] == State.FINITE)
    mine, theirs = one.items.stats[rows, 3], other.items.stats[partners, 3]
    known &= (mine > 0) & (theirs > 0)
    if not known.any():
        return None
    parts = replicas / rivals
    ratio = float(np.median(mine[known] / theirs[known])) * parts**0.5  # of norms of wholes
    return "mean" if abs(log(ratio / parts)) < abs(log(ratio)) else "sum"


def _own_data(aligned: Aligned, cuts: Cuts, rival: RankDump) -> int | None:
    """The replica to compare where each ran on data of its own: the one whose data are the other side's; else None."""
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
        odd.append(Odd(item=item, members=straying(*copies, tolerance(dtype), None)))
    return odd


def _named(side: _Side, rank: int) -> RankDump:
    dump = without_peers(side.joints[0].dump)
    ranks = tuple(sorted(set(side.plan.every())))
    label = "+".join(f"rank{number}" for number in ranks)
    return replace(dump, ref=replace(dump.ref, rank=rank, label=label, joined=ranks if len(ranks) > 1 else ()))


def _told(side: _Side) -> JoinedSide:
    joint = side.joints[0]
    return JoinedSide(
        ranks=[[list(stage) for stage in replica] for replica in side.plan.ranks],
        offsets=list(side.plan.offsets),
        chunks=side.plan.chunks,
        shards=side.shards,
        replicas=share(joint) if side.counts.replicas > 1 and not side.own_data else {},
        collectives=side.collectives,
        own_data=list(side.own_data),
        strays=side.strays,
    )


def _strays(joint: Joint, odd: Sequence[Odd], ranks: tuple[tuple[int, ...], ...]) -> list[Stray]:
    """By the ranks that stray, where they did so first; then by rank the calls that not all made. ranks: of every member"""
    dump = joint.dump
    strayed: dict[tuple[int, ...], list[Odd]] = {}
    for one in odd:
        strayed.setdefault(tuple(sorted({rank for member in one.members for rank in ranks[member]})), []).append(one)
    out = []
    for who, entries in strayed.items():
        item = entries[0].item
        node = dump.nodes.names[dump.items.node[item]]
        out.append(Stray(ranks=list(who), node=node, item=item_name(dump, item), items=len(entries)))
    calls: dict[int, list[str]] = {}
    for member, node in joint.alone:
        calls.setdefault(member, []).append(node)
    for member, nodes in calls.items():
        out.append(Stray(ranks=list(ranks[member]), node=nodes[0], item="", items=len(nodes)))
    return out
