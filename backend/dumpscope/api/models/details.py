"""Wire models of one node pair, of the communications that a call takes part in, of the strip, and of the way down a tree."""

from __future__ import annotations

from dumpscope.api.models.schemas import NodeRow, Page, Pair, Phrase, Real, TreeRow, VerdictWord, Wire
from dumpscope.api.replies import real
from dumpscope.index.pair_queries.collectives import CollectiveRow, HalfRow, PartRow
from dumpscope.index.pair_queries.pair_columns import Bucket


class Half(Wire):
    """What went one way; `score` is the worst of its tensors."""

    verdict: VerdictWord
    score: Real


class CollectivePart(Wire):
    """One rank's part in a communication; `gave` or `took` is null where the call reads or writes nothing there."""

    rank: int
    node: str
    pair: int
    gave: Half | None
    took: Half | None


class Collective(Wire):
    """One communication of all its ranks. `call` counts those of its kind and group before it; `ranks` are the group's, `missing`
    those without a part; `faulty`: all that was given agrees and a result does not; `parts` holds 64 of `part_count`."""

    id: int
    step: int
    api: str
    call: int
    ranks: list[int]
    missing: list[int]
    verdict: VerdictWord
    faulty: bool
    parts: list[CollectivePart]
    part_count: int


class NodeDetail(NodeRow):
    """`items` holds at most 100 of `item_count` pairs; `GET .../pairs?node=` pages through all. `collectives` are the
    communications that this call takes part in, at most 8."""

    reason: str
    reason_said: list[Phrase]
    rule: str
    items: list[Pair]
    item_count: int
    target_stack: list[str]
    golden_stack: list[str]
    path: list[str]
    siblings: list[str]
    collectives: list[Collective]


class StripBucket(Wire):
    """Node pairs `first`..`last`; `seq`, `name`, `cls` and `verdict` are the worst one's, `severity` the largest out score."""

    first: int
    last: int
    severity: Real
    cls: str
    verdict: VerdictWord
    seq: int


class Strip(Wire):
    total: int
    buckets: list[StripBucket]
    backward: int | None


def told_collective(row: CollectiveRow) -> Collective:
    return Collective(
        id=row.id,
        step=row.step,
        api=row.api,
        call=row.call,
        ranks=row.ranks,
        missing=row.missing,
        verdict=row.verdict,  # type: ignore[arg-type]
        faulty=row.faulty,
        parts=[told_part(part) for part in row.parts],
        part_count=row.part_count,
    )


def told_part(row: PartRow) -> CollectivePart:
    return CollectivePart(rank=row.rank, node=row.node, pair=row.pair, gave=_half(row.gave), took=_half(row.took))


def _half(half: HalfRow | None) -> Half | None:
    if half is None:
        return None
    return Half(verdict=half.verdict, score=real(half.score))  # type: ignore[arg-type]


def bucket(row: Bucket) -> StripBucket:
    return StripBucket(
        first=row.first,
        last=row.last,
        severity=real(row.severity),
        cls=row.cls,
        verdict=row.verdict,  # type: ignore[arg-type]
        seq=row.seq,
    )


class TreeLevel(Page[TreeRow]):
    """Children of `parent` (null: the top) around the one on the way."""

    parent: int | None


class TreeLevels(Wire):
    """`depth`: levels of the whole way; `next`: the level to ask for `from`, null where the way is complete."""

    levels: list[TreeLevel]
    depth: int
    next: int | None
