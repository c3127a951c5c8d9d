"""Wire models of one hop of data flow, in a comparison and in one dump."""

from __future__ import annotations

from typing import Literal

from dumpscope.api.models.schemas import Leaf, NodeRow, Real, VerdictWord, Wire


class Producer(Wire):
    """The record `item`, an output of `node`, that an argument is: named by the dump, or `inferred` from equal values."""

    node: str
    item: str
    inferred: bool


class DumpLeaf(Leaf):
    producer: Producer | None


class DumpNode(Wire):
    """`items` holds at most 300 of `item_count` records."""

    name: str
    step: int
    rank: int
    items: list[DumpLeaf]
    item_count: int
    stack: list[str]
    siblings: list[str]
    path: list[str]


class FlowInput(Wire):
    """`item`: the record's name; `producer`: what made the tensor, `made`: its name there; `untold`: why nothing did."""

    pair: int
    item: str
    role: str
    path: str
    verdict: VerdictWord
    score: Real
    producer: NodeRow | None
    made: str | None
    untold: Literal["not_dumped", "constant", "unstored", "golden_only"] | None


class FlowConsumer(Wire):
    """`item`: the record's name as the consumer's input; `made`: its name as the node's output, null where not told apart."""

    pair: int
    item: str
    role: str
    path: str
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
