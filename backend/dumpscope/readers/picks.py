"""Reads the tensors of a call that sorts or picks, and looks its indices up in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from dumpscope.domain.facts import NodePairs
from dumpscope.domain.picking import PickCheck, Picking, WrongPick, picking_of
from dumpscope.domain.records import RankDump
from dumpscope.errors import TensorError
from dumpscope.metrics.picks import find_wrong_pick
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


def _check(dump: RankDump, picking: Picking) -> WrongPick | None:
    """Raises TensorError, OSError or ValueError where the tensors are missing, damaged, too large, or of another form."""
    shape = dump.items.shapes[dump.items.shape[picking.source]]
    size = 1
    for length in shape:
        size *= length
    if not 0 < size <= MOST:
        raise ValueError(size)
    source, indices = _read(dump, picking.source), _read(dump, picking.indices)
    return find_wrong_pick(picking, source, indices, _read(dump, picking.values) if picking.values >= 0 else None)


def _read(dump: RankDump, item: int) -> Array:
    """Raises TensorError or OSError; ValueError where the record names no file, or the numbers cannot be ordered."""
    code = int(dump.items.data_name[item])
    root = dump.header.data_dir
    if code < 0 or root is None:
        raise ValueError(item)
    array = tensor_file.load(Path(root) / dump.items.data_names[code], root=root).array
    if array.dtype.kind not in "fiub":
        raise ValueError(array.dtype)
    return array
