"""Tensor files that are not what was recorded: their checksum or their recorded statistics contradict their content.

Statistics are taken from the live tensor, the file is written and copied later. Where two sides differ in their files but not in
their statistics, one file may have been damaged since; that is no operator's fault.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, TensorFacts
from dumpscope.domain.records import Float64, State, UInt8
from dumpscope.errors import TensorError
from dumpscope.readers.tensors import tensor_file
from dumpscope.readers.tensors.checksums import find_broken_member
from dumpscope.texts import said_of, say

LARGE: Final = 0.01
"""Relative L2 distance from which files differ suspiciously if their statistics differ by a tenth of that at most."""
EXTREMES: Final = 1e-4
"""Share of the largest magnitude by which a recorded Max or Min, which are elements of the tensor, may differ from the file."""
NORMS: Final = (1e-3, 2e-2)
"""The same for a norm, of itself: it was added up in some precision, that of a 16-bit tensor at the worst."""
SQUARED: Final = 2.0**-63
"""The squares of smaller elements are no normal float32, so nobody knows what a norm of them was added up from."""
NORMAL: Final = 2.0**-126
"""Smaller numbers are zero to some hardware."""
BLOCK: Final = 1 << 20
"""Elements looked at together."""
SENTENCES: Final = ("pipeline.file_checksum_wrong", "pipeline.file_contradicts_statistics")


def is_damage(message: str) -> bool:
    """Whether a message of `explain_damage` says why a file could not be used."""
    said = said_of(message)
    return bool(said) and said[0]["id"] in SENTENCES if said else False


def is_suspicious(facts: Facts, row: int, result: TensorFacts) -> bool:
    """Whether tensors differ although what was recorded of them does not. facts: before the tensors were read"""
    if not result.unequal:
        return False
    if facts.equal[row] == 1:
        return True
    known = facts.rel_state[row] == State.FINITE
    if not known.any() or result.rel_l2 is None:
        return False
    apart = float(np.abs(facts.rel[row][known]).max())
    return not result.rel_l2 < LARGE and not apart > 0.1 * result.rel_l2


def explain_damage(roots: tuple[str, str], names: tuple[str, str], context: Context, row: int) -> str | None:
    """Why one of two files is not what was recorded; None where both are. names: of target and golden in their folders"""
    sides = (context.t_stats[row], context.t_state[row]), (context.g_stats[row], context.g_state[row])
    for root, name, (stats, states) in zip(roots, names, sides, strict=True):
        path = os.path.join(root, name)
        member = find_broken_member(path, root=root)
        if member is not None:
            return say("pipeline.file_checksum_wrong", path=path, member=member)
        told = _contradiction(path, root, stats, states)
        if told is not None:
            return say("pipeline.file_contradicts_statistics", path=path, name=told[0], file=told[1], recorded=told[2])
    return None


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """All elements, BLOCK at a time: a tensor may be larger than the memory."""
    if array.size <= BLOCK:
        yield array
    elif array.flags.c_contiguous:
        flat = array.reshape(-1)
        yield from (flat[start : start + BLOCK] for start in range(0, flat.size, BLOCK))
    else:
        for part in array:
            yield from _blocks(part)


def _contradiction(path: str, root: str, stats: Float64, states: UInt8) -> tuple[str, str, str] | None:
    """The first of Max, Min and Norm that the file's content contradicts: its name, the file's number, the recorded one."""
    try:
        array = tensor_file.load(path, root=root).array
    except TensorError:
        return None
    if not array.size or array.dtype.kind == "c":
        return None
    high, low, squares = -np.inf, np.inf, 0.0
    with np.errstate(all="ignore"):
        for block in _blocks(array):
            values = np.asarray(block, dtype=np.float64)
            high, low = np.maximum(high, values.max()), np.minimum(low, values.min())  # a NaN stays
            squares += float(np.square(values).sum())
    found = {"Max": float(high), "Min": float(low), "Norm": float(np.sqrt(squares))}
    if not all(map(np.isfinite, found.values())):
        return None  # statistics of such tensors depend on who computed them
    size = max(abs(found["Max"]), abs(found["Min"]))
    for column, name in ((0, "Max"), (1, "Min"), (3, "Norm")):
        if states[column] != State.FINITE or (name == "Norm" and size < SQUARED):
            continue
        slack = NORMS[array.dtype.itemsize < 4] * found["Norm"] if name == "Norm" else EXTREMES * size
        if not abs(found[name] - float(stats[column])) <= slack + NORMAL:
            return name, f"{found[name]:.6g}", f"{float(stats[column]):.6g}"
    return None
