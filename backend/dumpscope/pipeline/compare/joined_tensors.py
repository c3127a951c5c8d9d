"""Tensors of a joined dump: made of the ranks' files by its orders, in a folder of its own."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Float64, RankDump, State, UInt8, item_name
from dumpscope.errors import Problem, TensorError
from dumpscope.parallel.orders import Order
from dumpscope.readers.tensors import tensor_file
from dumpscope.readers.tensors.members import MEMBER
from dumpscope.texts import say

Array = np.ndarray[Any, Any]
_CLOSE: Final = 1e-2
"""Distance, by the magnitude, up to which an element is where it is in the other side's tensor."""
_SORTED: Final = 1e-3
"""The same for elements in their order of size; what is left of a difference the statistics tell."""
MOST: Final = 1 << 27
"""Elements of all passes from which only the last state of a cache is looked at."""
_CLEAR: Final = 0.1
"""Parts lie in blocks where that brings this share of the elements more to their places."""


def make_tensors(dump: RankDump, orders: Mapping[str, Order], folder: Path | None) -> RankDump:
    """The dump with its tensors in `folder` (which is made), and with the statistics of sums and of tensors that were cut. A
    tensor that cannot be read is a problem. folder: None: only these statistics are wanted, no tensors"""
    items = dump.items
    stats, states = items.stats.copy(), items.stat_state.copy()
    names: list[str] = []
    codes = np.full(len(items), -1, np.int32)
    problems: list[Problem] = []
    if folder is not None:
        folder.mkdir(parents=True)
    for item in np.flatnonzero(items.data_name >= 0).tolist():
        name = items.data_names[items.data_name[item]]
        order = orders.get(name)
        summed = order is not None and order.changes_statistics
        if folder is None and not summed:
            continue
        try:
            if order is None and MEMBER in name:  # one of several tensors of a file
                made = f"{item}.npy"
                if folder is not None:
                    np.save(folder / made, realise(name))
            elif order is None:
                made = f"{item}{os.path.splitext(name)[1]}"
                if folder is not None:
                    _link(name, folder / made)
            else:
                array = realise(order)
                if order.moved and _stands_elsewhere(array, order):
                    continue
                if summed:
                    stats[item], states[item] = _statistics(array)
                made = f"{item}.npy"
                if folder is not None:
                    np.save(folder / made, array)
        except (TensorError, OSError) as error:
            loc = f"step{dump.ref.step}/{dump.ref.label}/{item_name(dump, item)}"
            problems.append(Problem(loc=loc, kind="tensor_unreadable", message=str(error)))
            continue
        if folder is not None:
            codes[item] = len(names)
            names.append(made)
    return replace(
        dump,
        header=replace(dump.header, data_dir=None if folder is None else str(folder)),
        items=replace(items, stats=stats, stat_state=states, data_name=codes, data_names=names),
        problems=[*dump.problems, *problems],
    )


def realise(order: Order | str) -> Array:
    """The tensor that an order makes, 16-bit floats as float32. Raises TensorError."""
    if isinstance(order, str):
        array = tensor_file.load(order).array
        if array.dtype.kind not in "fcbiu" or (array.dtype.itemsize < 4 and array.dtype.kind == "f"):
            return array.astype(np.float32)
        return array
    if order.ends is not None and order.dimension is not None:
        return _placed(order, order.ends, order.dimension)
    if order.grown is not None:
        return _grown(order, order.grown)
    if order.tail is not None and order.dimension is not None:
        return _last_places(realise(order.parts[0]), order.dimension, order.blocks, order.tail)
    parts = [realise(part) for part in order.parts]
    if order.factor != 1.0:
        parts = [part * np.asarray(order.factor, part.dtype) for part in parts]
    rests = (
        {part.shape[: order.dimension] for part in parts} if order.dimension is not None else {p.shape for p in parts}
    )
    if len(rests) > 1:
        raise TensorError(_unlike(parts))
    whole = sum(parts[1:], start=parts[0]) if order.dimension is None else _joined(parts, order)
    if order.order is not None and order.dimension is not None and order.blocks == 1:
        whole = _reordered(whole, order, order.dimension)
    if order.length is not None:
        whole = np.take(whole, range(order.length), axis=order.dimension)
    return whole


def _joined(parts: list[Array], order: Order) -> Array:
    """Parts end to end, or in the order of their sequence, or block by block where that is what the other side's tensor looks
    like. A part of several matrices in one (query, key and value; gate and up; heads or sequences of a batch) holds a part of
    each."""
    dimension = order.dimension or 0
    if order.blocks > 1:
        return _continued(parts, dimension, order)
    plain = _interleaved(parts, dimension, 1, zigzag=order.sequence == "zigzag")
    if order.like is None or any(part.shape != parts[0].shape for part in parts):
        return plain
    try:
        pattern = realise(order.like)
    except TensorError:
        return plain
    if pattern.shape != plain.shape or not plain.size or plain.dtype.kind not in "fiu":
        return plain
    best, most = plain, _near(plain, pattern)
    needed = most + _CLEAR
    size = parts[0].shape[dimension]
    for blocks in range(1, size + 1 if needed <= 1 else 0):
        if size % blocks:
            continue
        for zigzag in (False, True):
            if (zigzag and size // blocks % 2) or (not zigzag and order.sequence == "zigzag"):
                continue
            found = _interleaved(parts, dimension, blocks, zigzag=zigzag)
            near = _near(found, pattern)
            if near > most and near >= needed:
                best, most = found, near
    return best


def _continued(parts: list[Array], dimension: int, order: Order) -> Array:
    """Parts that continue several runs, or, where that looks more like the other side's tensor, lie end to end."""
    runs = [part.reshape(*part.shape[:dimension], order.blocks, -1, *part.shape[dimension + 1 :]) for part in parts]
    joined = np.concatenate(runs, axis=dimension + 1)
    plain = np.concatenate(parts, axis=dimension)
    if order.order is not None:
        joined = np.take(joined, order.order, axis=dimension + 1)
        plain = _reordered(plain, order, dimension)
    found: Array = joined.reshape(plain.shape)
    try:
        pattern = None if order.like is None else realise(order.like)
    except TensorError:
        pattern = None
    if pattern is None or pattern.shape != found.shape or not found.size or found.dtype.kind not in "bfiu":
        return found
    return plain if _near(plain, pattern) > _near(found, pattern) else found


def _last_places(part: Array, dimension: int, blocks: int, count: int) -> Array:
    """The last places of a tensor along a dimension, in each of that many runs."""
    runs = part.reshape(*part.shape[:dimension], blocks, -1, *part.shape[dimension + 1 :])
    length = runs.shape[dimension + 1]
    taken = np.take(runs, range(length - count, length), axis=dimension + 1)
    return taken.reshape(*part.shape[:dimension], -1, *part.shape[dimension + 1 :])


def _stands_elsewhere(whole: Array, order: Order) -> bool:
    """Whether the other side's tensor holds the same elements at other places."""
    pattern = None if order.like is None else realise(order.like)
    if pattern is None or pattern.shape != whole.shape or not whole.size or whole.dtype.kind not in "bfiu":
        return False
    if _near(whole, pattern) == 1.0:
        return False
    return _near(np.sort(whole, axis=None), np.sort(pattern, axis=None), _SORTED) == 1.0


def _reordered(whole: Array, order: Order, dimension: int) -> Array:
    """The rows of a tensor that are taken; each may take several places along the dimension."""
    split = whole.reshape(*whole.shape[:dimension], -1, order.times, *whole.shape[dimension + 1 :])
    taken = np.take(split, order.order or (), axis=dimension)
    found: Array = taken.reshape(*whole.shape[:dimension], -1, *whole.shape[dimension + 1 :])
    return found


def _grown(order: Order, grown: int) -> Array:
    """What the passes of a model held of a cache, or made over it. What a pass held otherwise than the last one is shown as that
    pass held it, the earliest first; places that no pass made are taken from the other side's tensor."""
    if order.dimension is not None:
        return _pasted(order, order.dimension, grown)
    last = realise(order.parts[-1])
    found: Array = last.copy()
    if last.size * len(order.parts) > MOST:
        return found
    for name in reversed(order.parts[:-1]):
        part = realise(name)
        place = (slice(None),) * grown + (slice(part.shape[grown]),)
        if found[place].shape != part.shape:
            raise TensorError(_unlike([part, last]))
        differs = part != last[place]
        if part.dtype.kind in "fc":
            differs &= ~(np.isnan(part) & np.isnan(last[place]))
        found[place] = np.where(differs, part, found[place])
    return found


def _placed(order: Order, ends: Sequence[int], dimension: int) -> Array:
    """The other side's tensor with what every pass made in its place."""
    if order.like is None:
        raise TensorError(_unlike([]))
    found: Array = realise(order.like).copy()
    for name, end in zip(order.parts, ends, strict=True):
        part = realise(name)
        there = (slice(None),) * dimension + (slice(end, end + 1),)
        if end >= found.shape[dimension]:
            break  # this side went on
        if found[there].shape != part.shape:
            raise TensorError(_unlike([part, found]))
        found[there] = part
    return found


def _pasted(order: Order, dimension: int, grown: int) -> Array:
    parts = [realise(part) for part in order.parts]
    if order.widths is not None:
        return _in_common(parts, dimension, grown, order.widths)
    pattern = realise(order.like) if order.like is not None else None
    length, width = sum(part.shape[dimension] for part in parts), parts[-1].shape[grown]
    cut = tuple(
        slice(length if place == dimension else width if place == grown else None) for place in range(parts[0].ndim)
    )
    if pattern is None or pattern.ndim != parts[0].ndim:
        raise TensorError(_unlike(parts))
    found = pattern[cut].astype(parts[0].dtype)
    begin = 0
    for part in parts:
        end = begin + part.shape[dimension]
        there = tuple(
            slice(begin, end) if place == dimension else slice(part.shape[grown] if place == grown else None)
            for place in range(part.ndim)
        )
        if found[there].shape != part.shape:
            raise TensorError(_unlike([part, pattern]))
        found[there] = part
        begin = end
    return found


def _in_common(parts: list[Array], dimension: int, grown: int, widths: Sequence[int]) -> Array:
    """What both sides made of what is made over a cache, of two that made it in several passes: places that either did not make
    are zero."""
    shape = list(parts[-1].shape)
    shape[dimension] = sum(part.shape[dimension] for part in parts)
    found = np.zeros(shape, parts[-1].dtype)
    begin = 0
    for part in parts:
        for place in range(part.shape[dimension]):
            width = min(widths[begin + place], part.shape[grown]) if begin + place < len(widths) else part.shape[grown]
            there, here = [slice(None)] * part.ndim, [slice(None)] * part.ndim
            there[dimension], here[dimension] = slice(begin + place, begin + place + 1), slice(place, place + 1)
            there[grown] = here[grown] = slice(width)
            if found[tuple(there)].shape != part[tuple(here)].shape:
                raise TensorError(_unlike(parts))
            found[tuple(there)] = part[tuple(here)]
        begin += part.shape[dimension]
    return found


def _unlike(parts: Sequence[Array]) -> str:
    return say("pipeline.parts_shapes_do_not_go_together", names=", ".join(str(list(part.shape)) for part in parts))


def _interleaved(parts: list[Array], dimension: int, blocks: int, *, zigzag: bool) -> Array:
    """Every part's first block, then every part's second, and so on. Of a zigzag a block has two halves, counted from either end
    of what the blocks of all parts make together."""
    if zigzag and any(part.shape[dimension] // blocks % 2 for part in parts):
        raise TensorError(say("pipeline.part_places_no_zigzag_two_halves", shape=parts[0].shape[dimension]))
    rows = [np.split(part, blocks, axis=dimension) if blocks > 1 else [part] for part in parts]
    found = []
    for place in range(blocks):
        held = [row[place] for row in rows]
        if zigzag:
            halves = [np.split(part, 2, axis=dimension) for part in held]
            held = [half[0] for half in halves] + [half[1] for half in halves[::-1]]
        found += held
    return np.concatenate(found, axis=dimension)


def _near(one: Array, other: Array, close: float = _CLOSE) -> float:
    """Share of elements that lie close together: a fault in one part leaves those of the others."""
    wide = other.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        usual = np.sqrt(np.square(wide, where=np.isfinite(wide), out=np.zeros_like(wide)).mean())
        return float((np.abs(one - wide) <= close * (np.abs(wide) + usual)).mean())


def _statistics(array: Array) -> tuple[Float64, UInt8]:
    if not array.size or array.dtype.kind not in "fiu":
        return np.full(4, np.nan), np.zeros(4, np.uint8)
    wide = array.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        values = [float(wide.max()), float(wide.min()), float(wide.mean()), float(np.linalg.norm(wide.ravel()))]
    states = [
        State.NAN if math.isnan(value) else State.FINITE if math.isfinite(value) else (
            State.POS_INF if value > 0 else State.NEG_INF
        )
        for value in values
    ]  # fmt: skip
    return np.array(values), np.array(states, np.uint8)


def _link(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
