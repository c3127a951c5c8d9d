"""The explanation of a call as it is sent: one paragraph, and the facts it is made from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from dumpscope.analysis.explanation import Explanation, Largest, Part, explain
from dumpscope.api.models.base import Phrase, Real, Wire, real
from dumpscope.domain.facts import Origin
from dumpscope.index.dumps.leaves import Leaf
from dumpscope.index.pair_queries.item_pairs import ItemPairRow
from dumpscope.index.pair_queries.node_pairs import NodePairRow
from dumpscope.texts import Phrase as Said, english

DIFFERING = ("propagated", "amplifier", "nonfinite", "origin", "structural")
"""Classes of calls that received or made something different."""


RECEIVED = ("input", "kwargs", "parameters")
"""Roles of what a call received."""


class Reads(Wire):
    """Items that the call received and that were compared; `worst`: the one that differs most, `score` in floors."""

    compared: int
    equal: int
    apart: int
    worst: str | None
    score: Real


class LargestDifference(Wire):
    """Where the worst item differs most."""

    item: str
    index: list[int]
    target: str
    golden: str


class Inherits(Wire):
    """Later calls that inherit the difference; `first`: the first of them."""

    count: int
    first: str | None


class Repeats(Wire):
    """Where the same call went wrong first."""

    step: int
    rank: int
    node: str


class Facts(Wire):
    """`repeats`: the origin of an earlier step whose fault this is again; `same`: what is the same on both sides, and so ruled
    out; `left_out`: items that are not judged, by rule. `reads` is null if the call has more than 100 items, `inherits` if it
    does not differ or the result does not tell."""

    differs: bool
    reads: Reads | None
    largest: LargestDifference | None
    inherits: Inherits | None
    same: list[Literal["arguments", "weights", "forms"]]
    left_out: dict[str, int]
    repeats: Repeats | None


class Explained(Wire):
    """`said` holds the sentences of `text`."""

    text: str
    said: list[Phrase]
    facts: Facts


def told_item(items: Sequence[ItemPairRow], worst: ItemPairRow | None) -> ItemPairRow | None:
    """The item that the explanation tells of: the worst of the outputs that differ, else the worst."""
    made = [one for one in items if one.role not in RECEIVED and one.verdict in ("no", "warning")]
    order = {"warning": 0, "no": 1}
    return max(made, key=lambda one: (order[one.verdict], -1.0 if one.score is None else one.score), default=worst)


def differs(row: NodePairRow) -> bool:
    return row.cls in DIFFERING or row.verdict in ("no", "warning")


def explained(
    row: NodePairRow,
    items: Sequence[ItemPairRow],
    told: ItemPairRow | None,
    why: list[Said],
    *,
    inherited: int | None,
    first: str | None,
    repeats: Origin | None = None,
) -> Explained:
    """items: the first of the call's; told: of them; why: the sentence of that one
    repeats: the origin whose fault this is again"""
    whole = len(items) == row.items
    largest = _largest(told)
    found = explain(
        [_part(one) for one in items] if whole else [],
        differs=differs(row),
        alone=row.leftover is not None,
        told_input=told is not None and told.role in RECEIVED,
        largest=largest,
        inherited=inherited,
        first=first,
        repeats=None if repeats is None else repeats.step,
    )
    said = [*found.before, *why, *found.after]
    return Explained(
        text=english(said),
        said=[Phrase.model_validate(one) for one in said],
        facts=_facts(row, found, whole, told, largest, inherited, first, repeats),
    )


def _facts(
    row: NodePairRow,
    found: Explanation,
    whole: bool,
    worst: ItemPairRow | None,
    largest: Largest | None,
    inherited: int | None,
    first: str | None,
    repeats: Origin | None,
) -> Facts:
    shown = differs(row) and largest is not None and worst is not None
    return Facts(
        differs=differs(row),
        reads=Reads(
            compared=found.compared,
            equal=found.equal,
            apart=found.apart,
            worst=found.worst,
            score=real(found.worst_score),
        )
        if whole
        else None,
        largest=LargestDifference(
            item=_place(worst), index=list(largest.index), target=largest.target, golden=largest.golden
        )
        if shown and worst is not None and largest is not None
        else None,
        inherits=None if inherited is None else Inherits(count=inherited, first=first),
        same=found.same,
        left_out=found.left_out,
        repeats=None if repeats is None else Repeats(step=repeats.step, rank=repeats.rank, node=repeats.node),
    )


def _part(row: ItemPairRow) -> Part:
    sides: list[Leaf | None] = [row.target, row.golden]
    leaves = [one for one in sides if one is not None]
    tensors = [one for one in leaves if one.shape is not None]
    both = len(leaves) == 2
    return Part(
        place=_place(row),
        received=row.role in RECEIVED,
        weight=row.role == "parameters",
        both=both,
        tensor=len(tensors) == len(leaves) > 0,
        rule=row.rule,
        score=row.score,
        alike=any(one["id"] == "item.equal_statistics" for one in row.said),
        same_form=_same_form(leaves) if tensors else None,
    )


def _same_form(leaves: Sequence[Leaf]) -> bool:
    return len({(one.dtype, None if one.shape is None else tuple(one.shape)) for one in leaves}) == 1


def _place(row: ItemPairRow) -> str:
    leaf = row.target or row.golden
    if leaf is None:
        return ""
    return leaf.name[len(leaf.node) + 1 :] or leaf.name


def _largest(row: ItemPairRow | None) -> Largest | None:
    detail = None if row is None else row.detail
    if detail is None or not detail.worst_index or not detail.unequal:
        return None
    if detail.worst_target is None or detail.worst_golden is None or detail.worst_target == detail.worst_golden:
        return None
    return Largest(index=detail.worst_index, target=_number(detail.worst_target), golden=_number(detail.worst_golden))


def _number(value: float | int | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else str(value)
