"""Which ranks of both sides make each virtual unit, and the yaml in which a user reads, edits and gives it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from dumpscope.domain.phrases import Phrase, english
from dumpscope.errors import UsageError

HINT: Final = "dumpscope compare TARGET GOLDEN --dry-run prints a plan to begin with; docs/parallel.md explains it"
SIZES: Final = ("ranks", "tp", "pp", "vpp", "order")
GRADIENTS: Final = ("sum", "mean")
WAYS: Final = ("copy", "sum", "skip")
"""How an item may be joined besides along a dimension."""
LARGEST: Final = 1 << 16
"""Ranks, stages or layers that a plan may name."""

Ranks = tuple[tuple[tuple[int, ...], ...], ...]
"""Ranks by replica, stage and shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A parallel configuration as launchers know it. order: which of tp, dp and pp varies fastest from rank to rank, first
    the fastest; data-parallel size is what is left of the ranks. vpp: model chunks that each stage holds"""

    ranks: int | None = None
    tp: int = 1
    pp: int = 1
    vpp: int = 1
    order: tuple[str, ...] = ("tp", "dp", "pp")


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePlan:
    """ranks: by replica, stage and shard; chunks: model chunks of each stage
    offsets: what is added to the layer numbers of every virtual stage; chunk c of stage s is virtual stage c * stages + s
    """

    ranks: Ranks
    chunks: int = 1
    offsets: tuple[int, ...] = (0,)

    @property
    def replicas(self) -> int:
        return len(self.ranks)

    @property
    def stages(self) -> int:
        return len(self.ranks[0])

    @property
    def shards(self) -> int:
        return len(self.ranks[0][0])

    def every(self) -> Iterator[int]:
        for replica in self.ranks:
            for stage in replica:
                yield from stage


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlan:
    """rank: number under which results show the unit"""

    rank: int
    target: SidePlan
    golden: SidePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """gradients: what a whole gradient is of those of the replicas, None to find out
    dimensions: pattern of item names (`*` for anything) -> dimension, or one of WAYS; the first that fits counts
    reasons: why the plan is as it is, one sentence each; empty where the user gave the units
    """

    units: tuple[UnitPlan, ...]
    gradients: str | None = None
    dimensions: dict[str, int | str] = field(default_factory=dict)
    reasons: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a user's file says: sizes of the sides, or units, or neither (then the plan is found)."""

    target: Sizes | None = None
    golden: Sizes | None = None
    units: tuple[UnitPlan, ...] = ()
    gradients: str | None = None
    dimensions: dict[str, int | str] = field(default_factory=dict)


def parse_plan(text: str | None) -> Given:
    """Raises UsageError that names the entry and what is wrong with it."""
    if text is None:
        return Given()
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _wrong(f"is no yaml: {' '.join(str(error).split())[:200]}") from error
    data = _mapping(data or {}, "the file", ("target", "golden", "units", "gradients", "dimensions"))
    units = _units(data.get("units") or [])
    if units and ("target" in data or "golden" in data):
        raise _wrong("gives both units and sizes; units are what sizes would make, so leave out one of them")
    gradients = data.get("gradients")
    if gradients is not None and gradients not in GRADIENTS:
        raise _wrong(f"gradients: {gradients!r} is not one of {', '.join(GRADIENTS)}")
    sides = [_sizes(data.get(side), side) for side in ("target", "golden")]
    return Given(
        target=sides[0],
        golden=sides[1],
        units=units,
        gradients=gradients,
        dimensions=_dimensions(data.get("dimensions") or {}),
    )


def write_plan(plan: Plan) -> str:
    """The plan as yaml that `parse_plan` reads; reasons become comments."""
    lines = [f"# {english([reason])}" for reason in plan.reasons] + ["units:"]
    for unit in plan.units:
        lines.append(f"- rank: {unit.rank}")
        for name, side in (("target", unit.target), ("golden", unit.golden)):
            lines.append(f"  {name}:")
            lines.append(f"    ranks: {_listed(side.ranks)}  # replicas of stages of shards")
            if side.stages * side.chunks > 1:
                lines.append(f"    offsets: {list(side.offsets)}  # added to the layer numbers of each stage")
            if side.chunks > 1:
                lines.append(f"    chunks: {side.chunks}")
    if plan.gradients:
        lines.append(f"gradients: {plan.gradients}")
    if plan.dimensions:
        lines.append(yaml.safe_dump({"dimensions": plan.dimensions}, sort_keys=False).rstrip())
    return "\n".join(lines) + "\n"


def require_ranks(units: Collection[UnitPlan], target: Collection[int], golden: Collection[int]) -> None:
    """Raise UsageError where the plan names a rank that a side lacks."""
    for name, there in (("target", target), ("golden", golden)):
        for unit in units:
            side: SidePlan = getattr(unit, name)
            lacking = sorted(set(side.every()) - set(there))
            if lacking:
                raise _wrong(
                    f"unit {unit.rank}: the {name} has no rank {', '.join(map(str, lacking))}"
                    f" (it has {', '.join(map(str, sorted(there)[:16]))})"
                )


def sizes_ranks(sizes: Sizes, there: Collection[int], side: str) -> Ranks:
    """Ranks by replica, stage and shard; `there` are numbered in their order. Raises UsageError where the sizes do not fit."""
    numbers = sorted(there)
    count = len(numbers)
    if sizes.ranks is not None and sizes.ranks != count:
        raise _wrong(f"{side}: ranks is {sizes.ranks}, and its dump has {count}")
    if count % (sizes.tp * sizes.pp):
        raise _wrong(f"{side}: {count} ranks cannot be cut into tp {sizes.tp} times pp {sizes.pp}")
    extent = {"tp": sizes.tp, "pp": sizes.pp, "dp": count // (sizes.tp * sizes.pp)}
    stride, step = {}, 1
    for name in sizes.order:
        stride[name] = step
        step *= extent[name]
    return tuple(
        tuple(
            tuple(numbers[d * stride["dp"] + p * stride["pp"] + t * stride["tp"]] for t in range(extent["tp"]))
            for p in range(extent["pp"])
        )
        for d in range(extent["dp"])
    )


def _wrong(what: str) -> UsageError:
    return UsageError(f"plan: {what}", hint=HINT)


def _mapping(data: Any, where: str, known: Collection[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(f"{where} is no mapping")
    for key in data:
        if key not in known:
            raise _wrong(f"{where}: {key!r} is not one of {', '.join(known)}")
    return data


def _number(value: Any, where: str, least: int) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise _wrong(f"{where}: {value!r} is no number from {least} to {LARGEST}")
    return value


def _sizes(data: Any, side: str) -> Sizes | None:
    if data is None:
        return None
    data = _mapping(data, side, (*SIZES, "cp", "ep"))
    numbers = {name: _number(data[name], f"{side}.{name}", 1) for name in data if name != "order"}
    if numbers.pop("cp", 1) > 1 or numbers.pop("ep", 1) > 1:
        raise _wrong(f"{side}: cp and ep above 1 cannot be joined; compare the ranks that correspond with --rank")
    order = data.get("order", "tp-dp-pp")
    words = [word for word in order.split("-") if word not in ("cp", "ep")] if isinstance(order, str) else []
    if sorted(words) != ["dp", "pp", "tp"]:
        raise _wrong(f"{side}.order: {order!r} does not name tp, dp and pp once, as in tp-dp-pp")
    if numbers.get("vpp", 1) > 1 and numbers.get("pp", 1) == 1:
        raise _wrong(f"{side}: vpp needs pp above 1")
    return Sizes(order=tuple(words), **numbers)


def _units(data: Any) -> tuple[UnitPlan, ...]:
    if not isinstance(data, list):
        raise _wrong("units is no list")
    units = []
    for place, found in enumerate(data):
        where = f"units[{place}]"
        entry = _mapping(found, where, ("rank", "target", "golden"))
        rank = _number(entry.get("rank", place), f"{where}.rank", 0)
        sides = [_side(entry.get(side), f"{where}.{side}") for side in ("target", "golden")]
        units.append(UnitPlan(rank=rank, target=sides[0], golden=sides[1]))
    for what, numbers in (
        ("unit", [unit.rank for unit in units]),
        ("target rank", [rank for unit in units for rank in unit.target.every()]),
        ("golden rank", [rank for unit in units for rank in unit.golden.every()]),
    ):
        twice = next((number for number in numbers if numbers.count(number) > 1), None)
        if twice is not None:
            raise _wrong(f"{what} {twice} stands in it twice")
    return tuple(units)


def _side(data: Any, where: str) -> SidePlan:
    data = _mapping(data, where, ("ranks", "offsets", "chunks"))
    ranks = data.get("ranks")
    if isinstance(ranks, int):
        ranks = [[[ranks]]]
    if not _nested(ranks):
        raise _wrong(f"{where}.ranks: {ranks!r} is no list of replicas, each a list of stages, each a list of ranks")
    found: Ranks = tuple(
        tuple(tuple(_number(rank, f"{where}.ranks", 0) for rank in stage) for stage in replica) for replica in ranks
    )
    if len({len(replica) for replica in found}) > 1 or len({len(stage) for replica in found for stage in replica}) > 1:
        raise _wrong(f"{where}.ranks: {ranks!r} has replicas or stages of different size")
    chunks = _number(data.get("chunks", 1), f"{where}.chunks", 1)
    virtual = len(found[0]) * chunks
    offsets = data.get("offsets", [0] * virtual)
    if not isinstance(offsets, list) or len(offsets) != virtual:
        raise _wrong(f"{where}.offsets: {offsets!r} does not list {virtual} numbers, one per stage")
    return SidePlan(
        ranks=found, chunks=chunks, offsets=tuple(_number(offset, f"{where}.offsets", 0) for offset in offsets)
    )


def _nested(ranks: Any) -> bool:
    return (
        isinstance(ranks, list)
        and bool(ranks)
        and all(
            isinstance(replica, list) and replica and all(isinstance(stage, list) and stage for stage in replica)
            for replica in ranks
        )
    )


def _dimensions(data: Any) -> dict[str, int | str]:
    if not isinstance(data, dict):
        raise _wrong("dimensions is no mapping from item names to dimensions")
    for name, way in data.items():
        if type(name) is not str or (type(way) is not int and way not in WAYS) or (type(way) is int and way < 0):
            raise _wrong(f"dimensions: {name!r}: {way!r} is neither a dimension nor one of {', '.join(WAYS)}")
    return dict(data)


def _listed(ranks: Ranks) -> str:
    return str([[list(stage) for stage in replica] for replica in ranks])
