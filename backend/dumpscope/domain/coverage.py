"""How much of what was recorded a comparison judged: every item has one reason, and the reasons add up to all items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from dumpscope.texts import Phrase


class Reason(IntEnum):
    """By what an item was judged, or why it was not. Stored in answers by its word (REASON_WORDS)."""

    TENSOR = 0  # every element was read
    STATISTICS = 1  # Max, Min, Mean, Norm
    HASH = 2
    ARGUMENT = 3  # a number, a text, a dtype...
    FORM = 4  # a shape, a tensor against something else, or no element
    ENDED = 5  # the other side's record ends before
    UNFOLLOWED = 6  # only one side made the call, and nothing that comes after it was compared
    GRADIENT = 7  # only one side has this parameter's gradient
    COLLECTIVE = 8  # a communication of one side; joining the ranks of the other left its own out
    ONE_SIDED = 9  # only one side made the call; what comes after it was compared
    ONE_ITEM = 10  # both made the call; only one gave this argument or has this result
    UNREADABLE = 11  # its tensor file is missing, refused or damaged
    NO_NUMBER = 12  # a tensor of both sides without anything that can be compared; what comes after it was
    JOINED = 13  # joining ranks leaves nothing to compare, as statistics of a sum
    OBJECT = 14  # an object whose content no dump holds
    NO_LABEL = 15  # the policy has no label for it
    UNINITIALISED = 16  # or overwritten wholly by the call
    BUFFER = 17  # of a communication, its content means nothing
    IGNORED = 18  # by the policy
    INSIDE = 19  # of a fused call or compiled region
    NOT_RECORDED = 20  # the other dump records no such calls
    FORMAT = 21  # the other dump's format does not hold such arguments
    UNSTORED = 22  # as NO_NUMBER, and nothing that comes after it was compared
    UNTOLD = 23  # a backward pass that the other dump lacks: left out by its settings, or never run; it does not tell
    WRAPPER = 24  # of a wrapper around modules that the other side has unwrapped
    RECOMPUTED = 25  # activation checkpointing made the call again, and the other run did not
    COMPILED = 26  # inside or between regions of compiled code of the other run, which records only the regions
    AMOUNTS = 27  # the runs took other amounts of the same data, and it has no part that could be compared
    PICKED = 28  # other elements were picked of what differs by noise; without tensors nobody can tell whether they are equal


REASON_WORDS: Final = (
    "tensors", "statistics", "hashes", "arguments", "form", "ended", "unfollowed", "gradient", "collective", "one_sided",
    "one_item", "unreadable", "no_number", "joined", "object", "no_label", "uninitialised", "buffer", "ignored", "inside",
    "not_recorded", "format", "unstored", "untold", "wrapper", "recomputed", "compiled", "amounts", "picked",
)  # fmt: skip

GROUPS: Final[Mapping[str, tuple[Reason, ...]]] = {
    "judged": (Reason.TENSOR, Reason.STATISTICS, Reason.HASH, Reason.ARGUMENT, Reason.FORM),
    "one_sided": (
        Reason.ENDED, Reason.UNTOLD, Reason.UNFOLLOWED, Reason.GRADIENT, Reason.COLLECTIVE, Reason.ONE_SIDED,
        Reason.ONE_ITEM,
    ),
    "unreadable": (Reason.UNREADABLE,),
    "not_comparable": (
        Reason.UNSTORED, Reason.AMOUNTS, Reason.PICKED, Reason.NO_NUMBER, Reason.JOINED, Reason.OBJECT, Reason.NO_LABEL,
    ),
    "left_out": (
        Reason.UNINITIALISED, Reason.BUFFER, Reason.IGNORED, Reason.INSIDE, Reason.COMPILED, Reason.WRAPPER, Reason.RECOMPUTED,
        Reason.NOT_RECORDED, Reason.FORMAT,
    ),
}  # fmt: skip

MISSING: Final = (
    Reason.ENDED, Reason.UNTOLD, Reason.UNFOLLOWED, Reason.GRADIENT, Reason.COLLECTIVE, Reason.UNREADABLE, Reason.UNSTORED,
    Reason.AMOUNTS, Reason.PICKED,
)  # fmt: skip
"""Reasons why something that matters was not judged. All others are judged, judged by what follows, or rightly left out."""

LOST: Final = frozenset(
    {
        "truncated", "unreadable", "nesting", "limit", "empty", "refused", "tensor_unreadable", "damaged", "tensor",
        "no_data", "usage", "not_found", "forbidden", "internal", "missing_rank", "nothing_compared",
    }
)  # fmt: skip
"""Problem kinds that mean: something of the input is missing from the comparison."""

AGREES: Final = "agrees"
DIVERGED: Final = "diverged"
NOT_FULLY_JUDGED: Final = "not_fully_judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """The first call from which on something that matters was not judged. pair: node pair number inside its step and rank;
    reason: one of REASON_WORDS; said: the same as a sentence"""

    step: int
    rank: int
    node: str
    pair: int
    reason: str
    sentence: str
    said: list[Phrase] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A record that ends before that of the other side. side: whose; node: its last call; following: the other side's first
    call after it; items: of the other side behind it"""

    side: str
    step: int
    rank: int
    node: str
    following: str
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Items by reason over all units. lost: problems that mean that a part of the input is missing, with or without items"""

    reasons: dict[str, int] = field(default_factory=dict)
    first: Unjudged | None = None
    ends: list[End] = field(default_factory=list)
    lost: int = 0

    @property
    def items(self) -> int:
        return sum(self.reasons.values())

    def group(self, name: str) -> int:
        """Items of one of GROUPS."""
        return sum(self.reasons.get(REASON_WORDS[reason], 0) for reason in GROUPS[name])

    @property
    def missing(self) -> int:
        """Items that matter and were not judged."""
        return sum(self.reasons.get(REASON_WORDS[reason], 0) for reason in MISSING)

    def counted(self) -> list[dict[str, Any]]:
        """Items by reason, in the order of GROUPS. missing: whether they matter and were not judged"""
        return [
            {"reason": REASON_WORDS[reason], "group": group, "items": count, "missing": reason in MISSING}
            for group, reasons in GROUPS.items()
            for reason in reasons
            if (count := self.reasons.get(REASON_WORDS[reason], 0))
        ]

    @property
    def complete(self) -> bool:
        return not (self.missing or self.lost)


def coverage_from(data: dict[str, Any] | None) -> Coverage | None:
    """From plain data, as `asdict` makes it."""
    if data is None:
        return None
    first = data["first"]
    return Coverage(
        reasons=data["reasons"],
        first=None if first is None else Unjudged(**first),
        ends=[End(**end) for end in data["ends"]],
        lost=data["lost"],
    )
