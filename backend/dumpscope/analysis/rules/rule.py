"""What a causal rule is, and what it finds. `dumpscope.analysis.rules.registry` lists ours and those of other packages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from dumpscope.analysis.unit.case import Case
from dumpscope.texts import Phrase, phrase

HIDDEN: Final = "hidden"
"""Variant of a finding whose cause was not dumped: its node is the first at which something differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause. pair: its node pair; kind: of the origin; rule: id of the rule that words it

    items: the item pairs that show it, most telling first; group: further node pairs of the same cause
    variant: special case of the kind, "" for none: HIDDEN, or a word of its rule's own ("ties", "faint"...)
    name: of what is at fault where that is not the call, as a weight; detail: what else its rule needs to word it
    """

    pair: int
    kind: str
    rule: str
    items: tuple[int, ...] = ()
    group: tuple[int, ...] = ()
    variant: str = ""
    name: str = ""
    detail: object = None

    @property
    def hidden(self) -> bool:
        return self.variant == HIDDEN

    @property
    def idle(self) -> bool:
        """Calls that one side made more and that change no value."""
        return self.kind == "structure" and not self.items


class Rule(ABC):
    """Finds causes of one sort in a unit, and words them.

    id: unique, as "O-1"; kinds: the kinds of origin that it names
    shown_by: which side of a node shows its causes, for ranks that exchange data: "received", "made", or "" for neither. What
        another rank sent is no origin here
    """

    id: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    shown_by: ClassVar[Literal["received", "made", ""]] = ""

    @abstractmethod
    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        """Causes in this unit. found: by the rules before this one"""

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        """Asked after all rules: what the rule names where `found`, all causes so far, leaves something unexplained."""
        return []

    @abstractmethod
    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        """Why this is a cause, with its numbers."""

    @abstractmethod
    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        """What to do next."""

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        """How sure the finding is, 0 to 1. limit: what the stored data and the match of its node allow; lower it for a doubt."""
        return limit


def own_sentence(english: str, chinese: str = "") -> Phrase:
    """A sentence that is in no catalogue, for the evidence and advice of another package's rule. In Chinese it is `chinese`, or
    `english` where that is not given."""
    return phrase("own.sentence", en=english, zh=chinese or english)
