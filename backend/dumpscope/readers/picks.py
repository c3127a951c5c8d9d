"""Reads the tensors of a call that sorts, picks or jumps, and sees whether they belong together."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.facts import NodePairs
from dumpscope.domain.picking import PickCheck, Picking, WrongPick, picking_of, value_of
from dumpscope.domain.records import Kind, RankDump, Role
from dumpscope.errors import TensorError
from dumpscope.match.operators.operations import operation
from dumpscope.metrics.picks import find_wrong_pick
from dumpscope.metrics.steps import follows
from dumpscope.readers.tensors import tensor_file

MOST: Final = 1 << 26
"""Elements of an input that is read for this; a larger one would take seconds to sort."""

Array = NDArray[Any]


def check_picks(target: RankDump, golden: RankDump, pairs: NodePairs, pair: int) -> PickCheck | None:
    """What the tensors of both sides show of a pair of picking calls. None where a side has no tensors, or they cannot be read
    here: then nothing is known."""
    found: list[WrongPick | None] = []
    for dump, nodes in ((target, pairs.target), (golden, pairs.golden)):
        node = int(nodes[pair])
        picking = picking_of(dump, node) if node >= 0 else None
        if picking is None or dump.header.data_dir is None or dump.ref.joined:
            return None
        try:
            found.append(_check(dump, picking))
        except (TensorError, OSError, ValueError):
            return None
    return PickCheck(target=found[0], golden=found[1])


def check_steps(target: RankDump, golden: RankDump, pairs: NodePairs, pair: int) -> bool | None:
    """Whether each side's result of a pair of calls that pick or jump follows from its own input, as its tensors show. None where
    nothing is known."""
    picked = check_picks(target, golden, pairs, pair)
    if picked is not None:
        return picked.target is None and picked.golden is None
    found: list[bool | None] = []
    for dump, nodes in ((target, pairs.target), (golden, pairs.golden)):
        node = int(nodes[pair])
        if node < 0 or dump.header.data_dir is None or dump.ref.joined:
            return None
        try:
            found.append(_check_step(dump, node))
        except (TensorError, OSError, ValueError):
            return None
    return False if False in found else None if None in found else True


def _check_step(dump: RankDump, node: int) -> bool | None:
    """As `check_steps`, of one side. Raises as `_check`."""
    items = dump.items
    first, last = np.searchsorted(items.node, [node, node + 1]).tolist()
    given: dict[str, Any] = {}
    made, dtype = -1, ""
    for item in range(first, last):
        if items.role[item] == Role.OUTPUT:
            made = item if made < 0 and items.kind[item] == Kind.TENSOR else made
        elif items.role[item] in (Role.INPUT, Role.KWARG):
            tensor = items.kind[item] == Kind.TENSOR
            given[items.paths[items.path[item]]] = read_item(dump, item) if tensor else value_of(dump, item)
            dtype = dtype or (items.dtypes[items.dtype[item]] if tensor else "")
    label = int(dump.nodes.label[node])
    if made < 0 or label < 0:
        return None
    return follows(operation(dump.nodes.labels[label]), given, read_item(dump, made), dtype)


def _check(dump: RankDump, picking: Picking) -> WrongPick | None:
    """Raises TensorError, OSError or ValueError where the tensors are missing, damaged, too large, or of another form."""
    if not prod(dump.items.shapes[dump.items.shape[picking.source]]):
        raise ValueError(picking)
    source, indices = read_item(dump, picking.source), read_item(dump, picking.indices)
    return find_wrong_pick(picking, source, indices, read_item(dump, picking.values) if picking.values >= 0 else None)


def read_item(dump: RankDump, item: int) -> Array:
    """The tensor of an item; 16-bit numbers that numpy does not know are handed out as float32.

    Raises TensorError or OSError; ValueError where the record names no file, is too large, or the numbers cannot be ordered.
    """
    code = int(dump.items.data_name[item])
    root = dump.header.data_dir
    shape = dump.items.shapes[dump.items.shape[item]] if dump.items.shape[item] >= 0 else ()
    if code < 0 or root is None or prod(shape) > MOST:
        raise ValueError(item)
    array = tensor_file.load(Path(root) / dump.items.data_names[code], root=root).array
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise ValueError(array.dtype)
    return array
