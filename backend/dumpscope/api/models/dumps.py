"""Models of a dump, its nodes and their records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, AliasPath, Field

from dumpscope.api.models.base import Error, Frames, Moment, Phrase, Problems, Real, Stack, Wire
from dumpscope.domain.watching import Condition


class Watch(Wire):
    """A watched folder. `dump`, `partner`, `comparison`: ids; `side`: of the dump in the comparison with its partner;
    `condition` has been so since `since`; `step`: the newest, with `calls` in it so far where a journal tells; `whole`: steps
    that are whole; `new_steps`, `new_ranks`: read since the watch began; `why`: what makes the folder unreadable."""

    id: str
    dump: str
    dump_name: str
    path: str
    side: Literal["target", "golden"]
    partner: str | None
    partner_name: str | None
    comparison: str | None
    condition: Annotated[Condition, Field(validation_alias=AliasPath("seen", "condition"))]
    since: Annotated[Moment, Field(validation_alias=AliasPath("seen", "since"))]
    step: Annotated[int | None, Field(validation_alias=AliasPath("seen", "step"))]
    calls: Annotated[int | None, Field(validation_alias=AliasPath("seen", "calls"))]
    whole: Annotated[list[int], Field(validation_alias=AliasPath("seen", "whole"))]
    why: Annotated[str | None, Field(validation_alias=AliasPath("seen", "why"))]
    why_said: Annotated[list[Phrase] | None, Field(validation_alias=AliasPath("seen", "why_said"))]
    new_steps: list[int]
    new_ranks: list[int]
    created: Moment


class Dump(Wire):
    """`uploaded`: its files came over the network, so that nothing new can appear; `watch`: what keeps an eye on its folder"""

    id: str
    name: str
    path: str
    status: Literal["pending", "ready", "failed"]
    job: str | None
    error: Error | None
    framework: str | None
    task: str | None
    level: str | None
    summary: str | None
    steps: list[int]
    ranks: list[int]
    nodes: int
    items: int
    bytes: int
    created: Moment
    problems: Problems
    uploaded: Annotated[bool, Field(validation_alias=AliasChoices("uploaded", "owned"))] = False
    watch: Watch | None = None


class Leaf(Wire):
    """`value` is JSON text: the value of a non-tensor, or a tensor's further keys."""

    name: str
    role: str
    path: str
    type: str | None
    dtype: str | None
    shape: list[int] | None
    max: Annotated[Real, Field(validation_alias=AliasPath("stats", 0))]
    min: Annotated[Real, Field(validation_alias=AliasPath("stats", 1))]
    mean: Annotated[Real, Field(validation_alias=AliasPath("stats", 2))]
    norm: Annotated[Real, Field(validation_alias=AliasPath("stats", 3))]
    requires_grad: bool | None
    md5: Annotated[str | None, Field(validation_alias=AliasChoices("md5", "hash"))]
    value: str | None
    data_name: str | None


class RowOutput(Wire):
    """The first output tensor of a call. `largest`: its largest magnitude"""

    dtype: str | None
    shape: list[int] | None
    norm: Real
    largest: Real


class DumpNodeRow(Wire):
    """`output`: null if the call put out no tensor; `alone`: its pre-check result, null if it has none"""

    ordinal: int
    name: str
    kind: str
    direction: str
    order: int
    output: RowOutput | None
    alone: Literal["pass", "warning", "fail", "skip"] | None


class Producer(Wire):
    """The record `item`, an output of `node`, that became an argument: named by the dump, or `inferred` from equal values."""

    node: str
    item: str
    inferred: bool


class DumpLeaf(Leaf):
    """`id`: number of the record in its step and rank"""

    id: int
    producer: Producer | None


class DumpNode(Wire):
    """`items` holds at most 300 of `item_count` records."""

    name: str
    step: int
    rank: int
    items: list[DumpLeaf]
    item_count: int
    stack: Stack
    frames: Frames
    siblings: list[str]
    path: list[str]
