"""Sentences as data: the id of a template and the values that go into it, so that a reader's language is chosen last.

English is rendered here, from `dumpscope.domain.english`; the web UI holds the same ids in Chinese.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict, Union

from dumpscope.domain.english import ENGLISH

Value = Union[int, str, "list[Phrase]"]


class Phrase(TypedDict):
    """Plain JSON. id: key of ENGLISH; values: one per placeholder: a count, a written number or name, or phrases to enumerate."""

    id: str
    values: dict[str, Value]


def phrase(id: str, /, **values: Value) -> Phrase:
    return {"id": id, "values": values}


def english(phrases: Sequence[Phrase]) -> str:
    """The sentences one after the other."""
    return " ".join(map(_render, phrases))


def _render(one: Phrase) -> str:
    values = {
        name: ", ".join(map(_render, value)) if isinstance(value, list) else value
        for name, value in one["values"].items()
    }
    return ENGLISH[one["id"]].format_map(values)


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
    return f"ranks {as_ranges(all_ranks)}" if len(all_ranks) > 1 else f"rank {rank}"
