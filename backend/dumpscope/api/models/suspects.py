"""Models of the calls to look at, and of what inherits a call's difference."""

from __future__ import annotations

from collections.abc import Mapping

from dumpscope.api.models.base import CalledAt, FramesOfStack, Phrase, Real, Wire
from dumpscope.api.models.pairs import NodeRow
from dumpscope.domain.facts import Suspect as Row, SuspectKind
from dumpscope.export.stack_frames import call_text
from dumpscope.index.pair_queries.node_pairs import NodePairRow


class Suspect(Wire):
    """`number` counts from 1; `times`: error of the output divided by that of the input, both as shown, null where that is not
    known; `count`: calls that it stands for; errors and scores as of `NodeRow`, null for a setting, which names no call;
    `called_at`: the innermost line that is neither torch's nor a framework's."""

    number: int
    kind: SuspectKind
    step: int | None
    rank: int | None
    node: str | None
    address: str | None
    order: int | None
    cls: str | None
    in_score: Real
    out_score: Real
    in_error: Real
    out_error: Real
    times: Real
    count: int
    why: str
    why_said: list[Phrase]
    module: str
    frames: FramesOfStack
    called_at: CalledAt


class Blind(Wire):
    """NaN or infinity was made at `node`: of `count` calls behind it nothing can be said."""

    node: str
    order: int
    count: int
    why: str
    why_said: list[Phrase]


class Suspects(Wire):
    """At most 10, in the order in which to look at them; none if both runs agree."""

    items: list[Suspect]
    blind: Blind | None


class Reach(Wire):
    """The calls that inherit the difference of `node`, directly or through others. `count` is null if the result was stored
    before this was kept; `first`: the first of them; `runs`: first and last bucket of each run of buckets of `strip` that
    hold one; `entries`: those of the given rows of the tree that are or hold one."""

    node: str
    count: int | None
    first: NodeRow | None
    runs: list[tuple[int, int]]
    entries: list[int]


def suspect(number: int, row: Row, pairs: Mapping[tuple[int, int, int], NodePairRow]) -> Suspect:
    """A suspect as it is sent. pairs: rows of the calls by step, rank and node pair"""
    pair = pairs.get((row.step, row.rank, row.pair))
    setting = row.kind == "setting"
    return Suspect.model_validate({
        "number": number,
        **{name: getattr(row, name) for name in ("kind", "times", "count", "why", "why_said", "module")},
        **{name: None if setting else getattr(row, name) for name in ("step", "rank", "node")},
        "order": None if setting else row.pair,
        "address": None if setting else pair.address if pair else row.node,
        **{name: getattr(pair, name, None) for name in ("cls", "in_score", "out_score", "in_error", "out_error")},
        "stack": call_text(row.stack),
    })  # fmt: skip
