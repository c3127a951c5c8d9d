"""Models of the data flow around a call of a comparison: one step, and the path view of a few."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasPath, BeforeValidator, Field

from dumpscope.api.models.base import Real, VerdictWord, Wire
from dumpscope.api.models.pairs import NodeRow
from dumpscope.index.pair_queries.item_pairs import ItemPairRow


class FlowInput(Wire):
    """`item`: the record's name; `producer`: the call that made the tensor, `made`: its name there; `untold`: why unknown."""

    pair: int
    item: Annotated[str, Field(validation_alias=AliasPath("leaf", "name"))]
    role: Annotated[str, Field(validation_alias=AliasPath("leaf", "role"))]
    path: Annotated[str, Field(validation_alias=AliasPath("leaf", "path"))]
    verdict: VerdictWord
    score: Real
    producer: NodeRow | None
    made: str | None
    untold: Literal["not_dumped", "constant", "unstored", "golden_only"] | None


class FlowConsumer(Wire):
    """`item`: the record's name as the consumer's input; `made`: its name as the node's output, null if not known."""

    pair: int
    item: Annotated[str, Field(validation_alias=AliasPath("leaf", "name"))]
    role: Annotated[str, Field(validation_alias=AliasPath("leaf", "role"))]
    path: Annotated[str, Field(validation_alias=AliasPath("leaf", "path"))]
    verdict: VerdictWord
    score: Real
    consumer: NodeRow
    made: str | None


class FlowSource(Wire):
    """One step back along the difference: `received` from the call that made it, `inside` the module, `saved` by the forward
    call, `sent` by another `rank`, or, if none of these is known, assumed to come from the last differing call `before`."""

    node: NodeRow
    way: Literal["received", "inside", "saved", "before", "sent"]
    rank: int | None


class Flow(Wire):
    """`inputs` holds the worst 100 of `input_count` tensors; `consumers` 50 of `consumer_count`, differing ones first;
    `source` is null where the difference begins, and if nothing differs."""

    node: NodeRow
    inputs: list[FlowInput]
    input_count: int
    consumers: list[FlowConsumer]
    consumer_count: int
    source: FlowSource | None


class PathItem(Wire):
    """One tensor that a call received, under its name there; `score` is in floors."""

    pair: int
    item: str
    role: str
    path: str
    verdict: VerdictWord
    score: Real


def _item(row: ItemPairRow | PathItem | None) -> PathItem | None:
    if not isinstance(row, ItemPairRow):
        return row
    leaf = row.target or row.golden
    return PathItem(
        pair=row.id,
        item=leaf.name if leaf else "",
        role=row.role,
        path=leaf.path if leaf else "",
        verdict=row.verdict,  # type: ignore[arg-type]  # one of them
        score=row.score,
    )


class PathBox(Wire):
    """`hop`: steps before (negative) or after the call in the middle; `module`: name of the module around it, or empty; `place`:
    on the way from the origin, which is 0; null beside the way"""

    node: NodeRow
    hop: int
    module: str
    place: int | None


class Passage(Wire):
    """What the call `maker` passed to the call `reader` (each the `pair` of a box): the worst of `items` tensors, and its
    relative `error`. `received`: as a tensor; `saved`: by the forward call; `before`: assumed, the last differing call."""

    maker: int
    reader: int
    word: Literal["received", "saved", "before"]
    item: Annotated[PathItem | None, BeforeValidator(_item)]
    items: int
    error: Real
    way: bool


class PathEnd(Wire):
    """`items` tensors that `reader` received and no dumped call made, the worst of them in `item`; `sent`: by the call `node` of
    another `rank`"""

    reader: int
    word: Literal["weight", "not_dumped", "constant", "unstored", "golden_only", "sent"]
    item: Annotated[PathItem | None, BeforeValidator(_item)]
    items: int
    error: Real
    node: str | None
    rank: int | None


class PathMore(Wire):
    """`count` further calls at this step; `query`: a search of the list of calls that finds them"""

    hop: int
    count: int
    query: str


class PathWay(Wire):
    """The shortest way from the first origin of this step and rank to the end of its difference: `length` calls; `place`: of
    the call in the middle, null if it is beside the way"""

    start: NodeRow
    end: NodeRow
    length: int
    place: int | None


class PathView(Wire):
    """At most 33 boxes; `middle` is the `pair` of the call in the middle."""

    middle: int
    hops: int
    boxes: list[PathBox]
    passages: list[Passage]
    ends: list[PathEnd]
    more: list[PathMore]
    way: PathWay | None
