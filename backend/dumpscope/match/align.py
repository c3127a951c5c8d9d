"""Sequence alignment: pairs the calls of two sides when some calls were inserted, dropped or renumbered.

The result is a maximum-weight common subsequence: only calls with equal keys may pair, and of all pairings that keep the
order the one with the largest sum of similarities is taken. Small gaps are solved exactly; a long sequence is first cut
where both sides agree, so that the work stays near linear.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

EXACT_CELLS: Final = 250_000
"""Largest gap (rows x columns) solved exactly, about a quarter of a second."""
WINDOW: Final = 256
"""Calls per side that are aligned at once if no position with agreeing keys is near."""
LOOKAHEAD: Final = 96
"""How far to look for the end of a long gap."""
RUN: Final = 6
"""Calls in a row that must agree before a gap counts as closed."""

Similarity = Callable[[int, int], float]


def align(a: Sequence[Hashable], b: Sequence[Hashable], similarity: Similarity) -> list[tuple[int, int]]:
    """Return pairs (i, j) of positions with equal keys, increasing in both.

    similarity(i, j): weight > 0 of a pair whose keys are equal; 10 and more means "certainly the same call".
    """
    if list(a) == list(b):
        return [(i, i) for i in range(len(a))]
    if len(a) * len(b) <= EXACT_CELLS:
        return _exact(a, b, 0, len(a), 0, len(b), similarity)
    head = 0
    stop = min(len(a), len(b))
    while head < stop and a[head] == b[head] and similarity(head, head) >= 10:
        head += 1
    tail = 0
    while (
        tail < stop - head
        and a[len(a) - 1 - tail] == b[len(b) - 1 - tail]
        and similarity(len(a) - 1 - tail, len(b) - 1 - tail) >= 10
    ):
        tail += 1
    pairs = [(i, i) for i in range(head)]
    pairs += _middle(a, b, head, len(a) - tail, head, len(b) - tail, similarity)
    pairs += [(len(a) - t, len(b) - t) for t in range(tail, 0, -1)]
    return pairs


def align_by_weight(rows: int, columns: int, similarity: Similarity) -> list[tuple[int, int]]:
    """Like `align`, but the weight decides which calls may pair: 0 means that they may not."""
    return _middle([0] * rows, [0] * columns, 0, rows, 0, columns, similarity)


def _middle(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, a1: int, b0: int, b1: int, similarity: Similarity
) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    while (a1 - a0) * (b1 - b0) > EXACT_CELLS:
        step = _resync(a, b, a0, a1, b0, b1, similarity)
        if step is None:
            found, a0, b0 = _window(a, b, a0, a1, b0, b1, similarity)
            pairs += found
            continue
        da, db = step
        if da or db:
            pairs += _exact(a, b, a0, a0 + da, b0, b0 + db, similarity)
            a0 += da
            b0 += db
        pairs += [(a0 + k, b0 + k) for k in range(RUN)]
        a0 += RUN
        b0 += RUN
        while a0 < a1 and b0 < b1 and a[a0] == b[b0] and similarity(a0, b0) >= 5:
            pairs.append((a0, b0))
            a0 += 1
            b0 += 1
    return pairs + _exact(a, b, a0, a1, b0, b1, similarity)


def _resync(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, a1: int, b0: int, b1: int, similarity: Similarity
) -> tuple[int, int] | None:
    """Smallest skip (da, db) after which RUN keys in a row agree and the calls look similar."""
    for total in range(2 * LOOKAHEAD):
        for da in range(max(0, total - LOOKAHEAD), min(total, LOOKAHEAD) + 1):
            i, j = a0 + da, b0 + total - da
            if i + RUN > a1 or j + RUN > b1 or a[i] != b[j]:
                continue
            if (
                list(a[i : i + RUN]) == list(b[j : j + RUN])
                and sum(similarity(i + k, j + k) for k in range(RUN)) >= 5 * RUN
            ):
                return da, total - da
    return None


def _window(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, a1: int, b0: int, b1: int, similarity: Similarity
) -> tuple[list[tuple[int, int]], int, int]:
    """Pair the beginning of a long part in which keys never agree for long. Also returns where to continue.

    A window is solved exactly and only its first three quarters are kept: near its end the pairs depend on later calls.
    """
    rows = min(a1 - a0, max(WINDOW, WINDOW**2 // (b1 - b0)))
    columns = min(b1 - b0, WINDOW**2 // rows)
    a_end = a0 + (rows if a0 + rows == a1 else rows * 3 // 4)
    b_end = b0 + (columns if b0 + columns == b1 else columns * 3 // 4)
    found = _exact(a, b, a0, a0 + rows, b0, b0 + columns, similarity)
    kept = [(i, j) for i, j in found if i < a_end and j < b_end]
    if len(kept) < len(found):  # there is no pair between the last kept pair and the next one
        i, j = found[len(kept)]
        return kept, min(i, a_end), min(j, b_end)
    return kept, a_end, b_end


def _exact(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, a1: int, b0: int, b1: int, similarity: Similarity
) -> list[tuple[int, int]]:
    """Maximum-weight common subsequence of a[a0:a1] and b[b0:b1] by dynamic programming."""
    rows, columns = a1 - a0, b1 - b0
    if not rows or not columns:
        return []
    places: dict[Hashable, list[int]] = {}
    for j in range(columns):
        places.setdefault(b[b0 + j], []).append(j)
    best = [[0.0] * (columns + 1)]
    weights: dict[tuple[int, int], float] = {}
    for i in range(rows):
        above = best[i]
        row = list(above)
        for j in places.get(a[a0 + i], ()):
            weight = weights[i, j] = similarity(a0 + i, b0 + j)
            row[j + 1] = max(row[j + 1], above[j] + weight)
        running = 0.0
        for j in range(columns + 1):
            running = max(running, row[j])
            row[j] = running
        best.append(row)
    pairs: list[tuple[int, int]] = []
    i, j = rows, columns
    while i and j:
        here = best[i][j]
        weight = weights.get((i - 1, j - 1), -1.0)
        if weight > 0 and here == best[i - 1][j - 1] + weight and here > best[i - 1][j] and here > best[i][j - 1]:
            pairs.append((a0 + i - 1, b0 + j - 1))
            i -= 1
            j -= 1
        elif here == best[i - 1][j]:
            i -= 1
        elif here == best[i][j - 1]:
            j -= 1
        else:
            pairs.append((a0 + i - 1, b0 + j - 1))
            i -= 1
            j -= 1
    pairs.reverse()
    return pairs
