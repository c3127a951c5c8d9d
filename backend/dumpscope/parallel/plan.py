"""Plans: which ranks of both sides make each virtual unit, and the yaml form that users read, edit and pass in."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dumpscope.errors import UsageError
from dumpscope.texts import Phrase, english, say

HINT: Final = say("parallel.dumpscope_compare_target_golden_dry_run")
SIZES: Final = ("ranks", "tp", "cp", "ep", "pp", "vpp", "order", "sequence")
SEQUENCES: Final = ("plain", "zigzag")
"""How context-parallel ranks share a sequence: one block each, or (zigzag) one chunk from the front and one from the end."""
GRADIENTS: Final = ("sum", "mean")
WAYS: Final = ("copy", "sum", "skip")
"""Other ways than a dimension to join an item."""
LARGEST: Final = 1 << 16
"""Ranks, stages or layers that a plan may name."""

Ranks = tuple[tuple[tuple[int, ...], ...], ...]
"""Ranks by replica, stage and shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A parallel configuration in the words of launchers. order: tp, cp, dp and pp, the one that varies fastest from rank to rank
    first; the remaining ranks are data parallel. vpp: model chunks per stage; ep: number of ranks that share the experts
    and are replicas in all other parts; sequence: one of SEQUENCES, None to find it"""

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
    offsets: added to the layer numbers of every virtual stage; chunk c of stage s is virtual stage c * stages + s
    context: that many consecutive replicas share a batch, each with a part of its sequence (`sequence` says which)
    experts: that many consecutive replicas share the experts, each with the same number
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
    """rank: number of the unit in results"""

    rank: int
    target: SidePlan
    golden: SidePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """gradients: how the gradients of the replicas make the whole gradient (mean or sum), None to find it
    dimensions: pattern of item names (`*` for anything) -> dimension, or one of WAYS; the first match is used
    reasons: reasons for the plan, one sentence each; empty if the user gave the units
    """

    units: tuple[UnitPlan, ...]
    gradients: str | None = None
    dimensions: dict[str, int | str] = field(default_factory=dict)
    reasons: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Content of a user's file: sizes of the sides, or units, or neither (then the plan is found)."""

    target: Sizes | None = None
    golden: Sizes | None = None
    units: tuple[UnitPlan, ...] = ()
    gradients: str | None = None
    dimensions: dict[str, int | str] = field(default_factory=dict)


def parse_plan(text: str | None) -> Given:
    """Read a plan file. Raises UsageError that names the entry and its fault."""
    if text is None:
        return Given()
    from dumpscope.yaml_text import YamlError, read_yaml  # noqa: PLC0415 (few comparisons need it)

    try:
        data = read_yaml(text, "parallel")
    except YamlError as error:
        raise _wrong(
            say("parallel.no_yaml", names=str(error)[:200]),
            say("parallel.close_every_bracket_quote_indent_spaces"),
        ) from error
    data = _mapping(data or {}, "the file", ("target", "golden", "units", "gradients", "dimensions"))
    units = _units(data.get("units") or [])
    if units and ("target" in data or "golden" in data):
        raise _wrong(say("parallel.gives_both_units_sizes"), say("parallel.units_what_sizes_would_make_so"))
    gradients = data.get("gradients")
    if gradients is not None and gradients not in GRADIENTS:
        raise _wrong(
            say("parallel.gradients_not_one", gradients=f"{gradients!r}", names=", ".join(GRADIENTS)),
            say("parallel.leave_out_have_found"),
        )
    sides = [_sizes(data.get(side), side) for side in ("target", "golden")]
    return Given(
        target=sides[0],
        golden=sides[1],
        units=units,
        gradients=gradients,
        dimensions=_dimensions(data.get("dimensions") or {}),
    )


def write_plan(plan: Plan) -> str:
    """Write the plan as the yaml that `parse_plan` reads; reasons become comments."""
    lines = [f"# {english([reason])}" for reason in plan.reasons] + ["units:"]
    for unit in plan.units:
        lines.append(f"- rank: {unit.rank}")
        for name, side in (("target", unit.target), ("golden", unit.golden)):
            lines.append(f"  {name}:")
            lines.append(f"    ranks: {_list_text(side.ranks)}  # replicas of stages of shards")
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
        import yaml  # noqa: PLC0415

        lines.append(yaml.safe_dump({"dimensions": plan.dimensions}, sort_keys=False).rstrip())
    return "\n".join(lines) + "\n"


def require_ranks(units: Collection[UnitPlan], target: Collection[int], golden: Collection[int]) -> None:
    """Raise UsageError if the plan names a rank that a side does not have."""
    for name, there in (("target", target), ("golden", golden)):
        for unit in units:
            side: SidePlan = getattr(unit, name)
            lacking = sorted(set(side.every()) - set(there))
            if lacking:
                known = ", ".join(map(str, sorted(there)[:16])) + (", ..." if len(there) > 16 else "")
                raise _wrong(
                    say(
                        "parallel.unit_has_no_rank_has",
                        rank=unit.rank,
                        name=name,
                        names=", ".join(map(str, lacking)),
                        known=known,
                    ),
                    say("parallel.name_ranks_only", name=name),
                )


def left_out(units: Collection[UnitPlan], target: Collection[int], golden: Collection[int]) -> dict[str, list[int]]:
    """Ranks of each side that are in no unit."""
    return {
        name: sorted(set(there) - {rank for unit in units for rank in getattr(unit, name).every()})
        for name, there in (("target", target), ("golden", golden))
    }


def sizes_ranks(sizes: Sizes, there: Collection[int], side: str) -> Ranks:
    """Ranks by replica, stage and shard; the ranks `there` are numbered in their order. Replicas that share a sequence are
    consecutive. Raises UsageError if the sizes do not match the number of ranks."""
    numbers = sorted(there)
    count = len(numbers)
    if sizes.ranks is not None and sizes.ranks != count:
        raise _wrong(
            say("parallel.ranks_dump_has", side=side, ranks=sizes.ranks, count=count),
            say("parallel.leave_out_write", count=count),
        )
    one = sizes.tp * sizes.cp * sizes.pp
    if count % one:
        sized = f"tp {sizes.tp} times pp {sizes.pp}" + (f" times cp {sizes.cp}" if sizes.cp > 1 else "")
        raise _wrong(
            say("parallel.ranks_cannot_cut_into", side=side, count=count, sized=sized),
            say("parallel.their_product_must_divide", count=count),
        )
    extent = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "dp": count // one}
    if (replicas := extent["dp"] * sizes.cp) % sizes.ep:
        raise _wrong(
            say("parallel.replicas_cannot_share_experts_among_ep", side=side, extent=replicas, ep=sizes.ep),
            say("parallel.ep_must_divide_which_dp_times", extent=replicas),
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
    return UsageError(say("parallel.plan", what=what), hint=remedy)


def _mapping(data: Any, where: str, known: Collection[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(say("parallel.no_mapping", where=where))
    for key in data:
        if key not in known:
            raise _wrong(
                say("parallel.not_one", where=where, key=f"{key!r}", names=", ".join(known)),
                say("parallel.take_out_correct_name"),
            )
    return data


def _number(value: Any, where: str, least: int) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise _wrong(say("parallel.no_number_from", where=where, value=f"{value!r}", least=least, largest=LARGEST))
    return value


def _sizes(data: Any, side: str) -> Sizes | None:
    if data is None:
        return None
    data = _mapping(data, side, SIZES)
    words = ("order", "sequence")
    numbers = {name: _number(data[name], f"{side}.{name}", 1) for name in data if name not in words}
    if numbers.get("vpp", 1) > 1 and numbers.get("pp", 1) == 1:
        raise _wrong(say("parallel.vpp_needs_pp_above_1", side=side), say("parallel.give_pp_leave_out_vpp"))
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
            say(
                "parallel.order_does_not_name_tp_dp", side=side, order=f"{order!r}", part="cp, " if context > 1 else ""
            ),
            say("parallel.write_fastest_first_tp_cp_ep"),
        )
    return tuple(words)


def _sequence(word: Any, context: int, where: str) -> str | None:
    if word is None:
        return None
    if word not in SEQUENCES:
        raise _wrong(
            say("parallel.sequence_not_one", where=where, word=f"{word!r}", names=", ".join(SEQUENCES)),
            say("parallel.leave_out_have_found"),
        )
    if context == 1:
        raise _wrong(
            say("parallel.sequence_needs_ranks_share_one", where=where), say("parallel.give_cp_units_context_leave_out")
        )
    return str(word)


def _units(data: Any) -> tuple[UnitPlan, ...]:
    if not isinstance(data, list):
        raise _wrong(say("parallel.units_no_list"), say("parallel.begin_each_unit_dash"))
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
                say("parallel.stands_twice", what=what, twice=twice), say("parallel.every_rank_has_one_place_every")
            )
    return tuple(units)


def _side(data: Any, where: str) -> SidePlan:
    data = _mapping(data, where, ("ranks", "offsets", "chunks", "context", "sequence", "experts"))
    ranks = data.get("ranks")
    if isinstance(ranks, int):
        ranks = [[[ranks]]]
    if not _nested(ranks):
        raise _wrong(
            say("parallel.ranks_no_list_replicas_each_list", where=where, ranks=f"{ranks!r}"),
            say("parallel.write_0_1_two_shards_0"),
        )
    found: Ranks = tuple(
        tuple(tuple(_number(rank, f"{where}.ranks", 0) for rank in stage) for stage in replica) for replica in ranks
    )
    if len({len(replica) for replica in found}) > 1 or len({len(stage) for replica in found for stage in replica}) > 1:
        raise _wrong(
            say("parallel.ranks_has_replicas_stages_different_size", where=where, ranks=f"{ranks!r}"),
            say("parallel.give_every_replica_many_stages_every"),
        )
    chunks = _number(data.get("chunks", 1), f"{where}.chunks", 1)
    virtual = len(found[0]) * chunks
    offsets = data.get("offsets", [0] * virtual)
    if not isinstance(offsets, list) or len(offsets) != virtual:
        raise _wrong(
            say("parallel.offsets_does_not_list_numbers_one", where=where, offsets=f"{offsets!r}", virtual=virtual),
            say("parallel.stages_times_chunks_how_many_leave"),
        )
    shared = {name: _number(data.get(name, 1), f"{where}.{name}", 1) for name in ("context", "experts")}
    for name, count in shared.items():
        if len(found) % count:
            raise _wrong(
                say("parallel.does_not_divide_replicas", where=where, name=name, count=count, count2=len(found)),
                say("parallel.list_many_replicas_ranks"),
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
        raise _wrong(say("parallel.dimensions_no_mapping_from_item_names"), say("parallel.write_module_output_0_1"))
    for name, way in data.items():
        if type(name) is not str or (type(way) is not int and way not in WAYS) or (type(way) is int and way < 0):
            raise _wrong(
                say(
                    "parallel.dimensions_neither_dimension_nor_one",
                    name=f"{name!r}",
                    way=f"{way!r}",
                    names=", ".join(WAYS),
                ),
                say("parallel.count_dimensions_from_0"),
            )
    return dict(data)


def _list_text(ranks: Ranks) -> str:
    return str([[list(stage) for stage in replica] for replica in ranks])
