"""Numbers of ranks and steps in sentences."""

from __future__ import annotations

from collections.abc import Iterable

from dumpscope.texts import say


def as_ranges(numbers: Iterable[int]) -> str:
    """Numbers in order, each once, with neighbours joined: "0-3, 6"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def on_ranks(rank: int, ranks: Iterable[int]) -> str:
    """Where an origin shows: "rank 0", or "ranks 0-3" where replicas show it alike."""
    all_ranks = {rank, *ranks}
    return say("domain.ranks", as_ranges=as_ranges(all_ranks)) if len(all_ranks) > 1 else say("domain.rank", rank=rank)
