"""Models of node pairs and item pairs, of the communications of a call, and of the strip."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from dumpscope import texts
from dumpscope.api.models.base import Frames, Phrase, Real, Stack, VerdictWord, Wire
from dumpscope.api.models.dumps import Leaf
from dumpscope.api.models.explanations import Explained
from dumpscope.domain.facts import ERROR_BINS, unmatched_sentence
from dumpscope.index.dumps.leaves import Leaf as Record
from dumpscope.index.pair_queries.item_pairs import ItemPairRow
from dumpscope.index.pair_queries.node_pairs import NodePairRow

BINS: Final = [0.0, 0.0, *(float(f"1e{int(edge)}") for edge in ERROR_BINS)]


def _record_name(record: Record | str | None) -> str | None:
    return record.name if isinstance(record, Record) else record


class Standing(Wire):
    """Distances from the reference; `ratio` is the target's divided by the golden's, `inverse` the golden's divided by the
    target's (distances below the floor count as the floor); `measure`: relative L2 (bulk), or the largest element (peak)."""

    target: Real
    golden: Real
    measure: Literal["bulk", "peak"]
    ratio: Real
    inverse: Real


class NodeRow(Wire):
    """`address`: unique name of the row: its name, or `golden:` and its name if the target has another node of the same name;
    `leftover`: why the call has no partner, null if it has one; `beside`: the call that shows the cause; `standing`: of
    the output that decides, null if no reference was measured."""

    pair: int
    order: int
    name: str
    address: str
    golden_name: str | None
    match: str
    confidence: float
    leftover: str | None
    beside: str | None
    kind: str
    direction: str
    api: str | None
    verdict: VerdictWord
    cls: str
    in_score: Real
    out_score: Real
    in_error: Real
    out_error: Real
    entry: int
    standing: Standing | None


class Pair(Wire):
    id: int
    node: str
    target: Annotated[str | None, BeforeValidator(_record_name)]
    golden: Annotated[str | None, BeforeValidator(_record_name)]
    role: str
    match: str
    verdict: VerdictWord
    rule: str
    score: Real
    message: str
    target_leaf: Annotated[Leaf | None, Field(validation_alias=AliasChoices("target_leaf", "target"))]
    golden_leaf: Annotated[Leaf | None, Field(validation_alias=AliasChoices("golden_leaf", "golden"))]
    metrics: dict[str, Real]
    producer: str | None
    standing: Standing | None


class PairDetail(Wire):
    """`bins`: lower edge of each histogram bin; the first counts errors that are exactly zero, the second those below 1e-16."""

    worst_index: list[int] | None
    worst_target: Real
    worst_golden: Real
    abs_histogram: list[int]
    rel_histogram: list[int]
    bins: Annotated[
        list[float], BeforeValidator(lambda _: BINS), Field(validation_alias=AliasChoices("bins", "abs_histogram"))
    ]


class PairWithDetail(Pair):
    detail: PairDetail | None
    message_said: Annotated[list[Phrase], Field(validation_alias=AliasChoices("message_said", "said"))]


class Half(Wire):
    """The tensors of one direction; `score` is that of the worst."""

    verdict: VerdictWord
    score: Real


class CollectivePart(Wire):
    """One rank's part in a communication; `gave` or `took` is null if the call reads or writes nothing on this rank."""

    rank: int
    node: str
    pair: int
    gave: Half | None
    took: Half | None


class Collective(Wire):
    """One communication of all its ranks. `call` counts those of its kind and group before it; `ranks` are the group's, `missing`
    those without a part; `faulty`: all inputs agree and a result does not; `parts` holds 64 of `part_count`."""

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
    """`items` holds at most 100 of `item_count` pairs; `GET .../pairs?node=` pages through all. `explanation`: `reason` with what
    surrounds it. `collectives` are the communications that this call takes part in, at most 8."""

    reason: str
    reason_said: list[Phrase]
    explanation: Explained
    rule: str
    items: list[Pair]
    item_count: int
    target_stack: Stack
    golden_stack: Stack
    target_frames: Frames
    golden_frames: Frames
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


class FilterCounts(Wire):
    """Node pairs by word; `classes` holds "absorbed" too, whose calls are benign as well.

    micros: calls of each micro-step of the step, by its number, whatever the filter; empty where the dump tells none
    """

    classes: dict[str, int]
    verdicts: dict[str, int]
    leftovers: dict[str, int]
    micros: dict[str, int]


class Strip(Wire):
    total: int
    buckets: list[StripBucket]
    backward: int | None


def reason(row: NodePairRow, worst: ItemPairRow | None) -> list[texts.Phrase]:
    """Why the node got its verdict: the sentence of its worst item."""
    if row.leftover is not None:
        return unmatched_sentence(row.leftover, row.beside)
    if worst is None:
        return [texts.phrase("node.no_partner" if row.match == "none" else "node.nothing")]
    role = [texts.phrase(f"role.{worst.role}")]
    if worst.verdict == "yes":
        return [texts.phrase("node.agrees", items=row.items, role=role), *worst.said]
    return [texts.phrase("node.worst", role=role, path=_path(worst)), *worst.said]


def _path(row: ItemPairRow) -> str:
    leaf_row = row.target or row.golden
    return leaf_row.path if leaf_row else ""
