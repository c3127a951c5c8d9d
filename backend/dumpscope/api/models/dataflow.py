"""Models of the data flow one step before and after a call of a comparison."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasPath, Field

from dumpscope.api.models.base import Real, VerdictWord, Wire
from dumpscope.api.models.pairs import NodeRow


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
