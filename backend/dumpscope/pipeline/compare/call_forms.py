"""Item pairs that say the same in other words get an outcome of their own.

Masks are looked at element by element where both sides have them as tensors.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.analysis.unit.noise import have_other_dtypes
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Method, NodePairs, Outcome
from dumpscope.domain.records import RankDump
from dumpscope.errors import TensorError
from dumpscope.match.forms import find_defaults, find_mapped, find_masks, find_other_words
from dumpscope.readers.tensors import tensor_file

MOST: Final = 1 << 26
"""Elements of a mask that is looked at; statistics tell of a larger one."""


def tell_other_words(target: RankDump, golden: RankDump, pairs: NodePairs, context: Context, facts: Facts) -> None:
    """Write Outcome.DEFAULT and Outcome.FORM into `facts`, which were just measured."""
    rows = find_defaults(target, golden, pairs, context, facts)
    facts.outcome[rows] = Outcome.DEFAULT
    facts.equal[rows] = 1
    shaped = context.reshaped & (facts.outcome == Outcome.COMPARED) & (facts.equal == 1)
    masks = [row for row in find_masks(context, facts).tolist() if _agree(target, golden, context, facts, row)]
    other_dtypes = have_other_dtypes(context)
    for rows in (
        np.flatnonzero(shaped & _unfused(pairs, context)),
        np.array(masks, np.int64),
        find_other_words(target, golden, context, facts, other_dtypes=other_dtypes),
        find_mapped(target, golden, context, facts),
    ):
        facts.outcome[rows] = Outcome.FORM
        facts.equal[rows] = -1


def _unfused(pairs: NodePairs, context: Context) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pairs.method[context.pair] != Method.FUSED
    return found


def _agree(target: RankDump, golden: RankDump, context: Context, facts: Facts, row: int) -> bool:
    """Both tensors mask the same places and agree at the others; True where they were not read."""
    if facts.unequal[row] < 0 or context.elements[row] > MOST:
        return True
    masks = []
    for dump, item in ((target, int(context.target[row])), (golden, int(context.golden[row]))):
        name, root = int(dump.items.data_name[item]), dump.header.data_dir
        if name < 0 or root is None:
            return True
        try:
            array = tensor_file.load(os.path.join(root, dump.items.data_names[name]), root=root).array
        except TensorError:
            return True
        masks.append(array.reshape(-1))
    return _same_mask(*masks)


def _same_mask(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype.kind not in "bf" or other.dtype.kind not in "bf" or one.shape != other.shape:
        return True
    if one.dtype.kind == "b" or other.dtype.kind == "b":
        keep, added = (one, other) if one.dtype.kind == "b" else (other, one)
        return bool(np.array_equal(keep, added == 0))
    lowest = [array <= np.finfo(array.dtype).min for array in (one, other)]
    kept = ~lowest[0]
    return bool(np.array_equal(*lowest) and np.allclose(one[kept], other[kept], rtol=1e-4, atol=0))
