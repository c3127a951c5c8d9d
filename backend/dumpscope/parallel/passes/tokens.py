"""Tokens of several requests in one batch: brought into one order by request and position, as far as a record tells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WORDS: Final = ("input_ids", "token_ids", "ids")
POSITIONS: Final = ("positions", "position_ids")
REQUESTS: Final = ("rids", "request_ids", "req_pool_indices", "seq_ids")
"""Names under which engines and trainers record what their tokens are, each with one number per token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What is known of the tokens of a side, pass by pass. positions: of each in its sequence; words: which they are
    requests: of which request; each with one array per pass, [] where it was not recorded"""

    positions: Sequence[Array]
    words: Sequence[Array]
    requests: Sequence[Array]


def find_order(target: Tokens, golden: Tokens) -> tuple[list[int], list[int]] | None:
    """Which tokens of the target and of the golden belong together, as numbers of tokens over all passes; None where the record
    does not tell. Tokens that one side lacks are left out."""
    sides = [_find_sequences(side) for side in (target, golden)]
    if not all(sides) or max(map(len, sides)) < 2:
        return None
    words = [np.concatenate(list(side.words)) if side.words else None for side in (target, golden)]
    free = dict.fromkeys(range(len(sides[0])))
    orders: tuple[list[int], list[int]] = [], []
    for place, wanted in enumerate(sides[1]):
        if words[0] is not None and words[1] is not None:
            texts = words[0], words[1]
            same = {at: _count_common(texts[0][sides[0][at]], texts[1][wanted]) for at in free}
            found = max(same, key=lambda at: same[at], default=None)
            count = 0 if found is None else same[found]
        else:  # requests in the order in which they came
            found = place if place in free else None
            count = 0 if found is None else min(len(sides[0][found]), len(wanted))
        if found is None or not count:
            continue
        del free[found]
        orders[0].extend(sides[0][found][:count])
        orders[1].extend(wanted[:count])
    return orders if orders[0] else None


def _find_sequences(side: Tokens) -> list[list[int]]:
    """The tokens of each sequence, in their order; sequences in the order in which they begin.

    A token continues the sequence of its request, else the one that ends just before its position; in a pass, each sequence is
    continued by the tokens that follow each other.
    """
    if not side.positions or any(
        len(one) != len(other) for many in (side.words, side.requests) if many
        for one, other in zip(many, side.positions, strict=True)
    ):  # fmt: skip
        return []
    found: list[list[int]] = []
    ends: list[int] = []
    names: dict[int, int] = {}
    token = 0
    for number, positions in enumerate(side.positions):
        used: set[int] = set()
        before = -1
        for place, position in enumerate(positions.tolist()):
            if side.requests:
                request = int(side.requests[number][place])
                at = names.setdefault(request, len(found))
            elif before >= 0 and ends[before] == position and before in used:
                at = before
            else:
                open_ones = (at for at, end in enumerate(ends) if end == position and at not in used and position)
                at = next(open_ones, len(found))
            if at == len(found):
                found.append([])
                ends.append(0)
            used.add(at)
            found[at].append(token)
            ends[at], before = position + 1, at
            token += 1
    return found


def _count_common(one: Array, other: Array) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one.tolist(), other.tolist(), strict=False))))
