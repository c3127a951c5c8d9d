"""What was joined for a comparison of dumps of different parallel splits: stored with the answer, shown beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dumpscope.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """Copies on these ranks are not what the others hold, first at `item`; items: at how many. ranks: [] where two copies differ
    and neither can be called the odd one. Without an item: calls that only these ranks made, first `node`"""

    ranks: list[int]
    node: str
    item: str
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedSide:
    """ranks: by replica, stage and shard; offsets: added to the layer numbers of each virtual stage; chunks: per stage
    shards, context, replicas: how many tensors were made in each way ("copy", "sum", "skip", "odd", "dimension 1", and among
    them "padded") of parts of the model, of the sequence and of the batch; experts: calls inside experts, left out
    collectives: calls between the joined ranks, left out
    own_data: the replicas ran on data of their own, and only the first of these ranks was compared
    """

    ranks: list[list[list[int]]]
    offsets: list[int]
    chunks: int
    shards: dict[str, int] = field(default_factory=dict)
    context: dict[str, int] = field(default_factory=dict)
    replicas: dict[str, int] = field(default_factory=dict)
    experts: int = 0
    collectives: int = 0
    own_data: list[int] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedUnit:
    """One step's virtual unit, shown as `rank`. gradients: what gradients of the whole are of those of the replicas, if any"""

    step: int
    rank: int
    target: JoinedSide
    golden: JoinedSide
    gradients: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """plan: yaml that gives this plan; reasons: why it is as it is"""

    plan: str
    reasons: list[Phrase] = field(default_factory=list)
    units: list[JoinedUnit] = field(default_factory=list)


def joined_from(data: dict[str, Any] | None) -> Joined | None:
    """From plain data, as `asdict` makes it."""
    if data is None:
        return None
    return Joined(plan=data["plan"], reasons=data["reasons"], units=[unit_from(unit) for unit in data["units"]])


def unit_from(data: dict[str, Any]) -> JoinedUnit:
    return JoinedUnit(**{**data, "target": _side(data["target"]), "golden": _side(data["golden"])})


def _side(data: dict[str, Any]) -> JoinedSide:
    return JoinedSide(**{**data, "strays": [Stray(**stray) for stray in data["strays"]]})
