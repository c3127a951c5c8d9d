"""Wire models of one hop of data flow between the calls of a comparison."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasPath, Field

from dumpscope.api.models.base import Real, VerdictWord, Wire
from dumpscope.api.models.pairs import NodeRow


class FlowInput(Wire):
    """`item`: the record's name; `producer`: what made the tensor, `made`: its name there; `untold`: why nothing did."""

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
    """`item`: the record's name as the consumer's input; `made`: its name as the node's output, null where not told apart."""

    pair: int
    item: Annotated[str, Field(validation_alias=AliasPath("leaf", "name"))]
    role: Annotated[str, Field(validation_alias=AliasPath("leaf", "role"))]
    path: Annotated[str, Field(validation_alias=AliasPath("leaf", "path"))]
    verdict: VerdictWord
    score: Real
    consumer: NodeRow
    made: str | None


class FlowSource(Wire):
    """A step back along what differs: `received` from the call that made it, `inside` the module, `saved` by the forward call,
    `sent` by another `rank`, or taken to come from the last differing call `before`, where nothing tells."""

    node: NodeRow
    way: Literal["received", "inside", "saved", "before", "sent"]
    rank: int | None


class Flow(Wire):
    """`inputs` holds the worst 100 of `input_count` tensors; `consumers` 50 of `consumer_count`, those that differ first;
    `source` is null where the difference begins, and where nothing differs."""

    node: NodeRow
    inputs: list[FlowInput]
    input_count: int
    consumers: list[FlowConsumer]
    consumer_count: int
    source: FlowSource | None
