"""Which calls must run differently for a program to be right: the smallest set, found by halving the run in call order.

What repairs is taken to stay repaired when more calls run differently. Then the shortest beginning of the run that repairs ends
with a call that is needed; it is kept, and the calls before it are searched again, until the needed ones alone repair.
For one such call of n that takes log2(n) + 1 runs, for each further one no more than the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Repairs = Callable[[Sequence[str]], bool]
"""Whether the program is right with these calls run differently."""


def needed(calls: Sequence[str], repairs: Repairs) -> list[str] | None:
    """The needed calls in call order, None where not even all of them repair. calls: all, in call order."""
    kept: list[str] = []
    before = list(calls)
    while not (kept and repairs(kept)):
        length = shortest(before, kept, repairs)
        if length is None:
            return None
        kept.insert(0, before[length - 1])
        before = before[: length - 1]
    return kept


def shortest(calls: Sequence[str], kept: Sequence[str], repairs: Repairs) -> int | None:
    """Length of the shortest beginning of `calls` that repairs together with `kept`; None where all of it does not.

    No beginning at all is known not to repair.
    """
    bad, good = 0, len(calls)
    sure = False
    while good - bad > 1:
        middle = (bad + good) // 2
        if repairs([*calls[:middle], *kept]):
            good, sure = middle, True
        else:
            bad = middle
    if not calls or (not sure and not repairs([*calls, *kept])):
        return None
    return good


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
