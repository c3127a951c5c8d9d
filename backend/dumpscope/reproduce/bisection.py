"""Which calls must run differently for a program to be right: the smallest set, in few runs.

What repairs is taken to stay repaired when more calls run differently. A run leaves some calls as they are: it is wrong where
a needed one is among them, so the search is that for few bad ones in pools. A pool that is wrong is halved; what shared a wrong
pool with a found call is looked at later, what was in a right one never again. Pools are cut so that one needed call of n, the
common case, takes at most 2 log2(n) runs, and two take three more than that, rounded up, at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

Repairs = Callable[[Sequence[str]], bool]
"""Whether the program is right with these calls run differently."""

_RECKONED: Final = 2
"""Needed calls that the pools are cut for; with more the search starts again on what is left."""
_SPARE: Final = 2
"""Runs beyond those that two calls can be promised in: pools are cut nearer to half, and one call alone takes half as many."""


def needed(calls: Sequence[str], repairs: Repairs) -> list[str] | None:
    """The needed calls in call order, None where not even all of them repair.

    calls: all, in call order; that the program is wrong with none of them run differently is known
    """
    if not calls:
        return None
    search = _Search(calls, repairs)
    try:
        return [calls[place] for place in sorted(search.found)] if search.run() else None
    finally:
        _reach.cache_clear()


class _Search:
    """Calls by place. found: needed; pool: holds a needed one, or nothing; rest: not looked at. All others are not needed.

    left: how many more needed calls are reckoned with; runs: that are left for them; repaired: a run was right
    """

    def __init__(self, calls: Sequence[str], repairs: Repairs) -> None:
        self.found: list[int] = []
        self._calls = calls
        self._repairs = repairs
        self._pool = list(range(len(calls)))
        self._rest: list[int] = []
        self._left = _RECKONED
        self._runs = budget(len(calls))
        self._repaired = False

    def run(self) -> bool:
        """Whether anything repairs."""
        while self._pool or self._rest or not self._repaired:
            if len(self._pool) == 1:
                self.found += self._pool
                self._pool = []
                self._left -= 1
                if not self._repaired and not self._right_without([]):
                    return False
            elif not self._pool:
                self._look_at_rest()
            else:
                self._halve()
        return True

    def _look_at_rest(self) -> None:
        taken = self._rest if self._left <= 0 else self._rest[-_share_of_rest(len(self._rest), self._runs) :]
        others = self._rest[: len(self._rest) - len(taken)]
        if not self._right_without(taken):
            self._pool = taken
            if self._left <= 0:
                self._left = _RECKONED
                self._runs = _fewest(len(taken), len(taken), repaired=self._repaired) + _SPARE
        self._rest = others

    def _halve(self) -> None:
        size, total = len(self._pool), len(self._pool) + len(self._rest)
        if self._left < _RECKONED:
            cut = size // 2
        else:
            cut = _cut(size, total, self._runs, repaired=self._repaired)
        kept, taken = self._pool[: size - cut], self._pool[size - cut :]
        if self._right_without(taken):
            self._pool = kept
        else:
            self._pool = taken
            self._rest = sorted([*self._rest, *kept])

    def _right_without(self, taken: Sequence[int]) -> bool:
        """Whether it is right with all but these, and those known as not needed, run differently."""
        left_out = set(taken)
        chosen = sorted(place for place in (*self.found, *self._pool, *self._rest) if place not in left_out)
        right = self._repairs([self._calls[place] for place in chosen])
        self._repaired |= right
        self._runs -= 1
        return right


def budget(count: int) -> int:
    """Runs in which one or two needed calls of `count` are found and shown to be all; the run as it is not counted."""
    return _fewest(count, count, repaired=False) + _SPARE


def _fewest(size: int, total: int, *, repaired: bool) -> int:
    runs = 0
    while _reach(runs, total, repaired=repaired) < size:
        runs += 1
    return runs


def _share_of_rest(size: int, runs: int) -> int:
    """How many of `size` calls, one of which at most is reckoned to be needed, to leave as they are next."""
    if 2 + (size - 1).bit_length() <= runs:
        return size
    return min(size, 1 << max(runs - 2, 0))


def _cut(size: int, total: int, runs: int, *, repaired: bool) -> int:
    """How much of a pool of `size` to leave as it is next: as near to half as the runs allow, whatever comes out."""
    high = max(1, min(size - 1, _reach(runs - 1, total, repaired=repaired)))
    low = min(size // 2, high)
    while low < high:  # the smallest that leaves few enough behind where the run is right
        middle = (low + high) // 2
        if size - middle <= _reach(runs - 1, total - middle, repaired=True):
            high = middle
        else:
            low = middle + 1
    return low


@cache
def _reach(runs: int, total: int, *, repaired: bool) -> int:
    """The largest pool, one of whose calls is needed and one more of `total` may be, that these runs are enough for.

    repaired: that all calls together repair is known; otherwise it takes a run once the first needed call is found.
    """
    spare = runs if repaired else runs - 1
    lone = int(spare >= 0 and (total <= 1 or (spare >= 1 and total - 1 <= 1 << (spare - 1))))
    if not lone or runs == 0:
        return lone
    wrong = _reach(runs - 1, total, repaired=repaired)
    if not 0 < wrong < total:
        return max(lone, wrong)
    return max(lone, min(total, wrong + _reach(runs - 1, total - wrong, repaired=True)))


def patterns(calls: Sequence[str], treatment: str) -> dict[str, str]:
    """The calls as patterns of `dumpscope_format.interventions`: one an operator, numbers in ranges."""
    numbers: dict[str, list[int]] = {}
    for call in calls:
        label, _, number = call.rpartition(".")
        numbers.setdefault(label, []).append(int(number))
    return {f"{label}.{','.join(ranges(sorted(found)))}": treatment for label, found in sorted(numbers.items())}


def ranges(numbers: Sequence[int]) -> list[str]:
    """`[0, 1, 2, 5]` as `["0-2", "5"]`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in found]
