"""A call in plain words, from facts alone: what it reads, who inherits its difference, what is the same on both sides.

The sentence of its worst item, which says what differs and by how much, stands between `before` and `after`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dumpscope.texts import Phrase, phrase

EQUAL: Final = "E-1"
"""Rule of items that are equal in all that is stored."""
LEFT_OUT: Final = "X-"
"""How the rules of items begin that are not judged."""

Same = Literal["arguments", "weights", "forms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An item pair. place: name within its call, as "input.0"; tensor: on both sides; both: neither side lacks it
    score: error in floors, None where nothing was compared; alike: found equal by statistics alone
    same_form: dtype and shape are the same, None of what is no tensor
    """

    place: str
    received: bool
    weight: bool
    both: bool
    tensor: bool
    rule: str
    score: float | None
    alike: bool = False
    same_form: bool | None = None

    @property
    def equal(self) -> bool:
        return self.rule == EQUAL

    @property
    def apart(self) -> bool:
        return not self.equal and self.score is not None and self.score > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """Where two tensors differ most, both values as they are written."""

    index: tuple[int, ...]
    target: str
    golden: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """before, after: sentences around that of the worst item

    compared, equal, apart: items that the call received; worst: place of the one that differs most, worst_score: its score
    same: what is the same on both sides, and so ruled out; left_out: items that are not judged, by rule
    """

    before: list[Phrase]
    after: list[Phrase]
    compared: int = 0
    equal: int = 0
    apart: int = 0
    worst: str | None = None
    worst_score: float | None = None
    same: list[Same] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)


def explain(
    parts: Sequence[Part],
    *,
    differs: bool,
    alone: bool = False,
    told_input: bool = False,
    largest: Largest | None = None,
    inherited: int | None = None,
    first: str | None = None,
    repeats: int | None = None,
) -> Explanation:
    """differs: the call received or made something different; alone: it has no partner
    told_input: the item whose sentence stands in the middle is one that the call received
    inherited: number of later calls that inherit the difference, None where it is not known; first: name of the first of them
    repeats: step in which the same call went wrong first, None where this is not the same fault again
    """
    received = [one for one in parts if one.received and one.both]
    equal = [one for one in received if one.equal]
    apart = [one for one in received if one.apart]
    worst = max(apart, key=lambda one: one.score or 0.0, default=None)
    same = find_same(parts) if differs else []
    left_out = Counter(one.rule for one in parts if one.rule.startswith(LEFT_OUT))
    after = []
    if differs and largest is not None:
        after.append(
            phrase("explain.largest", index=str(list(largest.index)), target=largest.target, golden=largest.golden)
        )
    if differs and inherited is not None and not (alone and inherited == 0):
        after.append(_describe_heirs(inherited, first))
    if same:
        after.append(phrase("explain.same", parts=[phrase(f"explain.same_{word}") for word in same]))
    after += [
        phrase("explain.left_out", count=count, why=[phrase(f"rule.{rule}")])
        for rule, count in sorted(left_out.items())
        if not alone
    ]
    return Explanation(
        before=[
            *([] if repeats is None else [phrase("explain.repeats", step=repeats)]),
            *(_describe_received(equal, apart, worst, told_input) if differs else []),
        ],
        after=after,
        compared=len(equal) + len(apart),
        equal=len(equal),
        apart=len(apart),
        worst=None if worst is None else worst.place,
        worst_score=None if worst is None else worst.score,
        same=same,
        left_out=dict(left_out),
    )


def find_same(parts: Sequence[Part]) -> list[Same]:
    """What of a call is the same on both sides, as far as all of it was compared: arguments that are no tensors, weights, and
    the dtypes and shapes of its tensors."""
    found: list[Same] = []
    arguments = [one for one in parts if one.received and not one.tensor]
    if arguments and all(one.both and one.equal for one in arguments):
        found.append("arguments")
    weights = [one for one in parts if one.weight]
    if weights and all(one.both and one.equal for one in weights):
        found.append("weights")
    tensors = [one for one in parts if one.same_form is not None]
    if tensors and all(one.both and one.same_form for one in tensors):
        found.append("forms")
    return found


def _describe_received(equal: Sequence[Part], apart: Sequence[Part], worst: Part | None, told: bool) -> list[Phrase]:
    count = len(equal) + len(apart)
    if worst is None:
        if not equal:
            return []
        word = "inputs.alike" if any(one.alike for one in equal) else "inputs.equal"
        return [phrase("explain.reads", inputs=[_count_inputs(word, count)])]
    if told:  # the sentence that follows says by how much
        return [] if count == 1 else [phrase("explain.reads_some", count=len(apart), of=count)]
    score = worst.score or 0.0
    far = [phrase("explain.floors", score=f"{score:.3g}") if math.isfinite(score) else phrase("explain.endless")]
    if count == 1:
        return [phrase("explain.reads_other", far=far)]
    return [phrase("explain.reads_apart", count=len(apart), of=count, place=worst.place, far=far)]


def _count_inputs(word: str, count: int) -> Phrase:
    if count > 2:
        return phrase(word, count=count)
    return phrase(f"{word}_one" if count == 1 else f"{word}_both")


def _describe_heirs(count: int, first: str | None) -> Phrase:
    if count == 0 or first is None:
        return phrase("explain.heirs_none")
    return phrase("explain.heirs", count=count, first=first)
