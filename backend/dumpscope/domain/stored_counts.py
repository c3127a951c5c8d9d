"""Numbers of zeros, NaN and infinities that a dump stores beside the statistics of a tensor, under `counts`.

Max and Min do not tell how many elements of a mask are -inf or True; these numbers do. Only our own capture stores them, and
leaves out those that are 0, so a record without them says "none" in a dump that has them elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import numpy as np

from dumpscope.domain.records import Int32, Int64, Items, Kind

COUNTS: Final = "counts"
ZEROS: Final = "zeros"
NOT_FINITE: Final = ("nan", "inf", "-inf")
WORDS: Final = (*NOT_FINITE, ZEROS)

Counts = Mapping[str, int]
"""By one of WORDS; what is 0 is left out."""

_NONE: Final[Counts] = {}


def stores_counts(items: Items) -> bool:
    """Whether the dump counts such elements at all."""
    return any('"counts"' in text for text in items.values)


def counts_of(items: Items, item: int) -> Counts:
    """The counts of one tensor; empty where none is stored. What is no number of elements is left out."""
    code = int(items.value[item]) if item >= 0 and items.kind[item] == Kind.TENSOR else -1
    return _read(items.values[code]) if code >= 0 else _NONE


def list_other_counts(target: Items, golden: Items, t_item: int, g_item: int) -> list[tuple[str, int, int]]:
    """Words of which two tensors hold other numbers of elements, each with that of the target and of the golden."""
    t, g = counts_of(target, t_item), counts_of(golden, g_item)
    return [(word, t.get(word, 0), g.get(word, 0)) for word in WORDS if t.get(word, 0) != g.get(word, 0)]


def find_other_extras(target: Items, golden: Items, t_numbers: Int32, g_numbers: Int32) -> Int64:
    """Places at which two items of these numbers hold other extra keys, counts among them."""
    if not len(target) or not len(golden):
        return np.zeros(0, np.int64)
    codes = {text: code for code, text in enumerate(target.values)}
    table = np.array([*(codes.get(text, -2) for text in golden.values), -1], np.int64)
    t_codes = np.where(t_numbers >= 0, target.value[t_numbers], -1)
    g_codes = table[np.where(g_numbers >= 0, golden.value[g_numbers], -1)]
    found: Int64 = np.flatnonzero(t_codes != g_codes)
    return found


def _read(text: str) -> Counts:
    """The counts in the extra keys of a tensor record, as JSON."""
    if '"counts"' not in text:
        return _NONE
    kept = json.loads(text)
    found = kept.get("counts") if isinstance(kept, dict) else None
    if not isinstance(found, dict):
        return _NONE
    return {word: found[word] for word in WORDS if type(found.get(word)) is int and 0 < found[word] < 2**62}
