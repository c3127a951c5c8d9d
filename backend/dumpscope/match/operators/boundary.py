"""Inputs and outputs of calls, and the item pairs of one call and a run of calls at the boundary of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dumpscope.domain.records import Kind, NodeKind, Role, State
from dumpscope.match.gaps import below, computing
from dumpscope.match.matching import Fusion, Matching
from dumpscope.match.sides import Side, close
from dumpscope_format.schema import WRITTEN_KEY

WRITTEN_PATH: Final = f"{WRITTEN_KEY}."
_ONE_FACTOR: Final = 0.02
"""Statistics of two tensors that differ by one factor: relative differences of these factors, at most."""
_STRANGE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of a call.

    path: code of its path; real: has a dtype that can have a gradient; numbers: its statistics
    mark: identifies it (statistics and size, or hash)
    """

    item: int
    path: int
    real: bool
    shape: tuple[int, ...]
    size: int
    numbers: tuple[float, ...]
    mark: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A fused call, its run (all calls, also those that move data) and the call that ends the run."""

    single: int
    inner: tuple[int, ...]
    end: int
    items: tuple[tuple[int, int], ...]  # (item of the fused call, item of the run)
    inputs: int
    agree: bool  # the paired inputs hold the same numbers
    outputs: int
    same: bool  # the paired outputs hold the same numbers


def values(side: Side, entry: int, *roles: Role) -> list[Value]:
    """Tensors of a dumped call in these roles, in order, without what it wrote into: an operator writes into other places than
    the call it stands for."""
    items = side.dump.items
    found = []
    for item in range(side.first_item[entry], side.first_item[entry + 1]) if entry < side.dumped else ():
        if items.kind[item] != Kind.TENSOR or items.role[item] not in roles:
            continue
        if items.paths[items.path[item]].startswith(WRITTEN_PATH):
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
        dtype = items.dtypes[items.dtype[item]] if items.dtype[item] >= 0 else ""
        real = "float" in dtype or "complex" in dtype
        found.append(Value(item, int(items.path[item]), real, shape, size, numbers, mark))
    return found


def received_by(side: Side, inner: Sequence[int]) -> list[Value]:
    """What the run receives from outside, each tensor once."""
    known: set[object] = set()
    needed = []
    for number, entry in enumerate(inner):
        for value in values(side, entry, Role.INPUT, Role.KWARG):
            if value.mark is None and number:
                continue  # unknown whether the run made it
            if value.mark is not None:
                if value.mark in known:
                    continue
                known.add(value.mark)
            needed.append(value)
        known |= {value.mark for value in values(side, entry, Role.OUTPUT)} - {None}
    return needed


def pair_values(
    received: list[Value], needed: list[Value], *, rest: bool = False
) -> tuple[list[tuple[int, int]], bool]:
    """Item pairs of equal shape: those with equal numbers, the nearest first, then the first with the first, then shapes that
    occur once.

    rest: pair the remaining ones in order if both sides have the same number of them.

    Also returns whether the first input agrees, or every input that could be paired.
    """
    pairs = _pair_numbers(received, needed)
    agreeing = len(pairs)
    if received and needed and 0 not in pairs and 0 not in pairs.values() and received[0].shape == needed[0].shape:
        pairs[0] = 0
    for i, one in enumerate(received):
        rivals = [k for k, x in enumerate(received) if k not in pairs and x.shape == one.shape]
        fitting = [j for j, x in enumerate(needed) if j not in pairs.values() and x.shape == one.shape]
        if rivals == [i] and len(fitting) == 1:
            pairs[i] = fitting[0]
    if rest:
        left = [i for i in range(len(received)) if i not in pairs]
        free = [j for j in range(len(needed)) if j not in pairs.values()]
        if len(left) == len(free):
            pairs |= {i: j for i, j in zip(left, free, strict=True) if fits(received[i], needed[j])}
    items = [(received[i].item, needed[j].item) for i, j in sorted(pairs.items())]
    return items, agreeing > 0 and agreeing == len(pairs)


def drop_multiples(items: list[tuple[int, int]], received: list[Value], needed: list[Value]) -> list[tuple[int, int]]:
    """The item pairs without tensors that are multiples of each other: one side multiplies before the call what the other
    multiplies inside it. Only where the results agree."""
    mine, theirs = ({value.item: value for value in values} for values in (received, needed))
    return [(one, other) for one, other in items if not _are_multiples(mine[one], theirs[other])]


def drop_strangers(items: list[tuple[int, int]], received: list[Value], needed: list[Value]) -> list[tuple[int, int]]:
    """The item pairs without tensors that only share a shape, as a mask put together with a bias shares that of the bias. Only
    where the results agree, or the run adds several."""
    mine, theirs = ({value.item: value for value in values} for values in (received, needed))
    return [(one, other) for one, other in items if not _are_strangers(mine[one], theirs[other])]


def _are_strangers(one: Value, other: Value) -> bool:
    """Whether a statistic differs by most of its size."""
    return bool(one.numbers and other.numbers) and not same_numbers(one, other) and _distance(one, other) > _STRANGE


def _are_multiples(one: Value, other: Value) -> bool:
    """Whether all statistics differ by one factor, and by more than two runs do."""
    pairs = [(a, b) for a, b in zip(one.numbers, other.numbers, strict=True) if a or b] if other.numbers else []
    if len(pairs) < 2 or same_numbers(one, other) or not all(a and b for a, b in pairs):
        return False
    factors = [a / b for a, b in pairs]
    return factors[0] > 0 and all(abs(factor - factors[0]) <= _ONE_FACTOR * factors[0] for factor in factors)


def _pair_numbers(received: list[Value], needed: list[Value]) -> dict[int, int]:
    """Places of tensors of equal shape whose numbers agree: the same ones first, then the nearest. Weights of a model are often
    as close to each other as two runs are."""
    pairs: dict[int, int] = {}
    same: dict[object, list[int]] = {}
    for j, other in enumerate(needed):
        if other.mark is not None:
            same.setdefault((other.shape, other.mark), []).append(j)
    for i, one in enumerate(received):
        if rivals := same.get((one.shape, one.mark)):
            pairs[i] = rivals.pop(0)
    taken = set(pairs.values())
    free: dict[tuple[int, ...], list[int]] = {}
    for j, other in enumerate(needed):
        if j not in taken:
            free.setdefault(other.shape, []).append(j)
    near = sorted(
        (_distance(one, needed[j]), i, j)
        for i, one in enumerate(received)
        if i not in pairs
        for j in free.get(one.shape, ())
        if same_numbers(one, needed[j])
    )
    for _, i, j in near:
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return pairs


def _distance(one: Value, other: Value) -> float:
    """The largest difference of a statistic, relative to its size."""
    pairs = zip(one.numbers, other.numbers, strict=True)
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)


def fits(one: Value, other: Value) -> bool:
    """Whether two tensors may have their elements in the same order: not if only the order of dimensions differs."""
    lengths = [length for length in one.shape if length != 1], [length for length in other.shape if length != 1]
    return lengths[0] == lengths[1] or sorted(lengths[0]) != sorted(lengths[1])


def same_numbers(one: Value, other: Value) -> bool:
    if one.numbers and other.numbers:
        return close(one.numbers, other.numbers)
    return one.mark is not None and one.mark == other.mark


def note(
    matching: Matching,
    found: Found,
    confidence: float,
    *,
    on_target: bool,
    holders: bool,
) -> None:
    """Add a fusion to the matching. holders: also mark modules that hold nothing else."""
    sides = (matching.target, matching.free_target), (matching.golden, matching.free_golden)
    run, single = sides if on_target else sides[::-1]
    matching.fuse(
        Fusion(
            target=found.end if on_target else found.single,
            golden=found.single if on_target else found.end,
            inner=(*found.inner, *(_holders(run[0], found.inner, run[1], single[0]) if holders else ())),
            around=tuple(_holders(single[0], (found.single,), single[1], run[0])) if holders else (),
            on_target=on_target,
            items=tuple(pair[::-1] if on_target else pair for pair in found.items),
            confidence=confidence,
        )
    )


def _holders(side: Side, inner: Sequence[int], free: Callable[[int], bool], other: Side) -> Iterator[int]:
    """Modules without a partner whose only computing calls are these, with their backward and gradients. Gradients that the
    other side has too are left out: a region of compiled code has them without the module."""
    ours = set(inner)
    gradients = {other.name(entry) for entry, kind in enumerate(other.kind) if kind == NodeKind.GRADIENT}
    for parent in dict.fromkeys(map(side.parent, inner)):
        holder = parent
        while holder is not None and free(holder) and ours.issuperset(computing(side, list(below(side, holder)))):
            yield from (
                entry
                for entry in side.relatives(holder)
                if side.kind[entry] != NodeKind.GRADIENT or side.name(entry) not in gradients
            )
            holder = side.parent(holder)
