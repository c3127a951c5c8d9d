"""Models of a matching preview, and of matches made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dumpscope.api.models.base import Wire
from dumpscope.api.replies import REPLY_BYTES
from dumpscope.index.comparisons.hand_matches import EditState
from dumpscope.match.by_hand import Edit
from dumpscope.match.preview import Preview
from dumpscope.match.renames.proposals import Proposals

SENT = 500
"""Calls without a partner sent at once."""


class RenameRule(Wire):
    """`labels`: number of renamed labels of the target; `pairs`: calls whose partner has the new label."""

    rule: str
    labels: int
    pairs: int


class LeftCall(Wire):
    name: str
    side: Literal["target", "golden"]
    leftover: str
    beside: str | None


class MatchingPreview(Wire):
    """`left` holds at most 500 of `left_count` calls without a partner; those `inside` fused calls are not among them."""

    step: int
    rank: int
    pairs: int
    methods: dict[str, int]
    inside: int
    rules: list[RenameRule]
    left: list[LeftCall]
    left_count: int


class RuleExample(Wire):
    label: str
    renamed: str


class ProposedRule(Wire):
    """A rename rule; `labels`, `pairs`: its share when used with the others; `examples`: at most three."""

    rule: str
    labels: int
    pairs: int
    examples: list[RuleExample]


class RuleProposals(Wire):
    """`now`: the matching without these rules, `after`: with all of them."""

    rules: list[ProposedRule]
    now: MatchingPreview
    after: MatchingPreview


class HandEdit(Wire):
    """`match`: target and golden are the same call; `unmatch`: the given one has no partner, the other is null.

    `state`: `applied` if the result holds it, `waiting` until it is compared again, `overruled` by a later edit of the same
    node, `absent` if this step and rank does not have one of the nodes.
    """

    kind: Literal["match", "unmatch"]
    target: str | None
    golden: str | None
    state: EditState


class HandEdits(Wire):
    """The last of `count` edits that fit in one reply, in the order in which they were made. They take effect when the comparison
    is compared again; `waiting`: number of edits that are not in its result yet."""

    edits: list[HandEdit]
    count: int
    waiting: int


def hand_edits(edits: Sequence[Edit], states: Sequence[EditState]) -> HandEdits:
    sent: list[HandEdit] = []
    size = 0
    for edit, state in zip(reversed(edits), reversed(states), strict=True):
        one = HandEdit(kind="match" if edit.join else "unmatch", target=edit.target, golden=edit.golden, state=state)
        size += len(one.model_dump_json().encode()) + 1
        if sent and size > REPLY_BYTES:
            break
        sent.append(one)
    return HandEdits(edits=sent[::-1], count=len(edits), waiting=sum(state == "waiting" for state in states))


def matching_preview(found: Preview) -> MatchingPreview:
    return MatchingPreview(
        step=found.step,
        rank=found.rank,
        pairs=found.pairs,
        methods=found.methods,
        inside=found.inside,
        rules=[RenameRule(rule=one.rule, labels=one.labels, pairs=one.pairs) for one in found.rules],
        left=[
            LeftCall(name=one.name, side=one.side, leftover=one.leftover, beside=one.beside)  # type: ignore[arg-type]
            for one in found.left[:SENT]
        ],
        left_count=len(found.left),
    )


def rule_proposals(found: Proposals) -> RuleProposals:
    counts = found.after.rules[len(found.after.rules) - len(found.rules) :]
    return RuleProposals(
        rules=[
            ProposedRule(
                rule=rule.text,
                labels=count.labels,
                pairs=count.pairs,
                examples=[RuleExample(label=label, renamed=fresh) for label, fresh in rule.examples],
            )
            for rule, count in zip(found.rules, counts, strict=True)
        ],
        now=matching_preview(found.now),
        after=matching_preview(found.after),
    )
