"""Reads the mask and the results of a call of attention on both sides: rows in which the mask hides every position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dumpscope.domain.facts import MaskedRows
from dumpscope.domain.limits import is_limit
from dumpscope.domain.records import Bool, RankDump
from dumpscope.errors import TensorError
from dumpscope.readers.picks import Array, read_item


def read_masked_rows(
    dumps: Sequence[RankDump], masks: Sequence[int], results: Sequence[int], floor: float
) -> MaskedRows | None:
    """The rows of results that no position of the mask is left for, and whether all other rows agree. None where a side has no
    tensors, they cannot be read here, or the masks do not hide the same rows.

    dumps: target and golden; masks, results: the item of each, the mask (..., rows, positions) and the result (..., rows, size)
    floor: the relative distance up to which results agree
    """
    try:
        hides = [_hides_all(read_item(dump, item)) for dump, item in zip(dumps, masks, strict=True)]
        target, golden = (read_item(dump, item) for dump, item in zip(dumps, results, strict=True))
        rows, other = (np.broadcast_to(one, target.shape[:-1]) for one in hides)
    except (TensorError, OSError, ValueError):
        return None
    if target.shape != golden.shape or not np.array_equal(rows, other):
        return None
    kept = ~rows
    with np.errstate(all="ignore"):
        apart = np.linalg.norm(target[kept].astype(np.float64) - golden[kept])
        agrees = bool(apart <= floor * np.linalg.norm(golden[kept].astype(np.float64)))
    return MaskedRows(hidden=int(rows.sum()), count=rows.size, others_agree=agrees)


def _hides_all(mask: Array) -> Bool:
    """By row of a mask: it hides every position. False hides in one of truth values, the lowest number in one that is added."""
    if mask.dtype.kind == "b":
        return np.asarray(~mask.any(axis=-1), bool)
    lowest = mask.max(axis=-1)
    found: Bool = np.asarray(lowest == -np.inf, bool)
    for number in np.unique(lowest[np.isfinite(lowest)]).tolist():
        if number < 0 and is_limit(number):
            found |= lowest == number
    return found
