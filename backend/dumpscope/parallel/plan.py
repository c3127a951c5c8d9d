"""Which ranks of both sides make each virtual unit, and the yaml in which a user reads, edits and gives it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from dumpscope.errors import UsageError
from dumpscope.texts import Phrase, english

HINT: Final = "dumpscope compare TARGET GOLDEN --dry-run prints a plan to begin with; docs/parallel.md explains it"
SIZES: Final = ("ranks", "tp", "cp", "ep", "pp", "vpp", "order", "sequence")
SEQUENCES: Final = ("plain", "zigzag")
"""How context-parallel ranks share a sequence: one part each from its beginning on, or the first and last halves of parts."""
GRADIENTS: Final = ("sum", "mean")
WAYS: Final = ("copy", "sum", "skip")
"""How an item may be joined besides along a dimension."""
LARGEST: Final = 1 << 16
"""Ranks, stages or layers that a plan may name."""

Ranks = tuple[tuple[tuple[int, ...], ...], ...]
"""Ranks by replica, stage and shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A parallel configuration as launchers know it. order: which of tp, cp, dp and pp varies fastest from rank to rank, first
    the fastest; data-parallel size is what is left of the ranks. vpp: model chunks that each stage holds; ep: ranks among
    which experts are shared, which are replicas in all else; sequence: one of SEQUENCES, None to find out"""

    ranks: int | None = None
    tp: int = 1
    cp: int = 1
    ep: int = 1
    pp: int = 1
    vpp: int = 1
    order: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    sequence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePlan:
    """ranks: by replica, stage and shard; chunks: model chunks of each stage
    offsets: what is added to the layer numbers of every virtual stage; chunk c of stage s is virtual stage c * stages + s
    context: that many replicas after one another share a batch, each with a part of its sequence (`sequence` says which)
    experts: that many replicas after one another share the experts, each with as many of them
    """

    ranks: Ranks
    chunks: int = 1
    offsets: tuple[int, ...] = (0,)
    context: int = 1
    sequence: str | None = None
    experts: int = 1

    @property
    def replicas(self) -> int:
        return len(self.ranks)

    @property
    def batches(self) -> int:
        """Data-parallel size: replicas with a batch of their own."""
        return len(self.ranks) // self.context

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
        raise _wrong(
            f"is no yaml: {' '.join(str(error).split())[:200]}", "close every bracket and quote, and indent with spaces"
        ) from error
    data = _mapping(data or {}, "the file", ("target", "golden", "units", "gradients", "dimensions"))
    units = _units(data.get("units") or [])
    if units and ("target" in data or "golden" in data):
        raise _wrong("gives both units and sizes", "units are what sizes would make, so leave out one of them")
    gradients = data.get("gradients")
    if gradients is not None and gradients not in GRADIENTS:
        raise _wrong(f"gradients: {gradients!r} is not one of {', '.join(GRADIENTS)}", "leave it out to have it found")
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
            if side.context > 1:
                lines.append(f"    context: {side.context}  # replicas that share a sequence")
            if side.sequence is not None:
                lines.append(f"    sequence: {side.sequence}")
            if side.experts > 1:
                lines.append(f"    experts: {side.experts}  # replicas that share the experts")
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
                known = ", ".join(map(str, sorted(there)[:16])) + (", ..." if len(there) > 16 else "")
                raise _wrong(
                    f"unit {unit.rank}: the {name} has no rank {', '.join(map(str, lacking))} (it has {known})",
                    f"name ranks of the {name} only",
                )


def left_out(units: Collection[UnitPlan], target: Collection[int], golden: Collection[int]) -> dict[str, list[int]]:
    """Ranks of each side that stand in no unit."""
    return {
        name: sorted(set(there) - {rank for unit in units for rank in getattr(unit, name).every()})
        for name, there in (("target", target), ("golden", golden))
    }


def sizes_ranks(sizes: Sizes, there: Collection[int], side: str) -> Ranks:
    """Ranks by replica, stage and shard; `there` are numbered in their order. Of replicas those that share a sequence follow
    one another. Raises UsageError where the sizes do not fit."""
    numbers = sorted(there)
    count = len(numbers)
    if sizes.ranks is not None and sizes.ranks != count:
        raise _wrong(f"{side}: ranks is {sizes.ranks}, and its dump has {count}", f"leave it out, or write {count}")
    one = sizes.tp * sizes.cp * sizes.pp
    if count % one:
        sized = f"tp {sizes.tp} times pp {sizes.pp}" + (f" times cp {sizes.cp}" if sizes.cp > 1 else "")
        raise _wrong(f"{side}: {count} ranks cannot be cut into {sized}", f"their product must divide {count}")
    extent = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "dp": count // one}
    if extent["dp"] * sizes.cp % sizes.ep:
        raise _wrong(
            f"{side}: {extent['dp'] * sizes.cp} replicas cannot share experts among ep {sizes.ep}",
            f"ep must divide {extent['dp'] * sizes.cp}, which is dp times cp",
        )
    stride, step = dict.fromkeys(extent, 0), 1
    for name in sizes.order:
        stride[name] = step
        step *= extent[name]
    return tuple(
        tuple(
            tuple(
                numbers[d * stride["dp"] + c * stride["cp"] + p * stride["pp"] + t * stride["tp"]]
                for t in range(extent["tp"])
            )
            for p in range(extent["pp"])
        )
        for d in range(extent["dp"])
        for c in range(extent["cp"])
    )


def _wrong(what: str, remedy: str = HINT) -> UsageError:
    return UsageError(f"plan: {what}", hint=remedy)


def _mapping(data: Any, where: str, known: Collection[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(f"{where} is no mapping")
    for key in data:
        if key not in known:
            raise _wrong(f"{where}: {key!r} is not one of {', '.join(known)}", "take it out, or correct its name")
    return data


def _number(value: Any, where: str, least: int) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise _wrong(f"{where}: {value!r} is no number from {least} to {LARGEST}")
    return value


def _sizes(data: Any, side: str) -> Sizes | None:
    if data is None:
        return None
    data = _mapping(data, side, SIZES)
    words = ("order", "sequence")
    numbers = {name: _number(data[name], f"{side}.{name}", 1) for name in data if name not in words}
    if numbers.get("vpp", 1) > 1 and numbers.get("pp", 1) == 1:
        raise _wrong(f"{side}: vpp needs pp above 1", "give pp, or leave out vpp")
    return Sizes(
        order=_order(data.get("order", "tp-cp-dp-pp"), numbers.get("cp", 1), side),
        sequence=_sequence(data.get("sequence"), numbers.get("cp", 1), side),
        **numbers,
    )


def _order(order: Any, context: int, side: str) -> tuple[str, ...]:
    words = [word for word in order.split("-") if word != "ep"] if isinstance(order, str) else []
    if "cp" not in words and context == 1 and "tp" in words:
        words.insert(words.index("tp") + 1, "cp")
    if sorted(words) != ["cp", "dp", "pp", "tp"]:
        raise _wrong(
            f"{side}.order: {order!r} does not name tp, {'cp, ' if context > 1 else ''}dp and pp once",
            "write the fastest first, as in tp-cp-ep-dp-pp",
        )
    return tuple(words)


def _sequence(word: Any, context: int, where: str) -> str | None:
    if word is None:
        return None
    if word not in SEQUENCES:
        raise _wrong(
            f"{where}.sequence: {word!r} is not one of {', '.join(SEQUENCES)}", "leave it out to have it found"
        )
    if context == 1:
        raise _wrong(f"{where}: sequence needs ranks that share one", "give cp (of units: context), or leave it out")
    return str(word)


def _units(data: Any) -> tuple[UnitPlan, ...]:
    if not isinstance(data, list):
        raise _wrong("units is no list", "begin each unit with a dash")
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
            raise _wrong(
                f"{what} {twice} stands in it twice", "every rank has one place, and every unit a number of its own"
            )
    return tuple(units)


def _side(data: Any, where: str) -> SidePlan:
    data = _mapping(data, where, ("ranks", "offsets", "chunks", "context", "sequence", "experts"))
    ranks = data.get("ranks")
    if isinstance(ranks, int):
        ranks = [[[ranks]]]
    if not _nested(ranks):
        raise _wrong(
            f"{where}.ranks: {ranks!r} is no list of replicas, each a list of stages, each a list of ranks",
            "write [[[0, 1]]] for two shards, [[[0], [1]]] for two stages, [[[0]], [[1]]] for two replicas",
        )
    found: Ranks = tuple(
        tuple(tuple(_number(rank, f"{where}.ranks", 0) for rank in stage) for stage in replica) for replica in ranks
    )
    if len({len(replica) for replica in found}) > 1 or len({len(stage) for replica in found for stage in replica}) > 1:
        raise _wrong(
            f"{where}.ranks: {ranks!r} has replicas or stages of different size",
            "give every replica as many stages, and every stage as many ranks",
        )
    chunks = _number(data.get("chunks", 1), f"{where}.chunks", 1)
    virtual = len(found[0]) * chunks
    offsets = data.get("offsets", [0] * virtual)
    if not isinstance(offsets, list) or len(offsets) != virtual:
        raise _wrong(
            f"{where}.offsets: {offsets!r} does not list {virtual} numbers, one per stage",
            "stages times chunks is how many; leave it out where every stage numbers its layers as the whole does",
        )
    shared = {name: _number(data.get(name, 1), f"{where}.{name}", 1) for name in ("context", "experts")}
    for name, count in shared.items():
        if len(found) % count:
            raise _wrong(
                f"{where}.{name}: {count} does not divide {len(found)} replicas", "list as many replicas in ranks"
            )
    return SidePlan(
        ranks=found,
        chunks=chunks,
        offsets=tuple(_number(offset, f"{where}.offsets", 0) for offset in offsets),
        sequence=_sequence(data.get("sequence"), shared["context"], where),
        **shared,
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
        raise _wrong("dimensions is no mapping from item names to dimensions", 'write "Module.*.output.0": 1')
    for name, way in data.items():
        if type(name) is not str or (type(way) is not int and way not in WAYS) or (type(way) is int and way < 0):
            raise _wrong(
                f"dimensions: {name!r}: {way!r} is neither a dimension nor one of {', '.join(WAYS)}",
                "count dimensions from 0",
            )
    return dict(data)


def _listed(ranks: Ranks) -> str:
    return str([[list(stage) for stage in replica] for replica in ranks])
