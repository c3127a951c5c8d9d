"""A dry run of a plan: what joining makes of one unit of one step, tensor by tensor, with nothing stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from dumpscope.domain.joined import JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind, RankDump, item_name
from dumpscope.errors import LimitError, NotFoundError, Problem
from dumpscope.index.dumps.catalogue import stored_ranks
from dumpscope.index.store.database import Database
from dumpscope.pipeline.compare.join_ranks import dimension_problems, join_pair
from dumpscope.pipeline.compare.on_server import StoredSides
from dumpscope.pipeline.planning.joined_pairs import UnitPair
from dumpscope.texts import say

MOST: Final = 1_000_000
"""Largest number of items of a unit's ranks that are joined while the caller waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunTensor:
    """A tensor of a joined side. way: copy, join, sum, odd or skip; by: shards, context or replicas, "" of a copy
    members: of how many it was made there; shape: of the whole
    dimension: where it is joined, and sizes: of its parts along it, where they are not all alike"""

    side: str
    name: str
    way: str
    by: str
    members: int
    shape: tuple[int, ...] | None
    dimension: int | None
    sizes: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDryRun:
    """unit: what was joined, ways counted; tensors: the first of `count`"""

    unit: JoinedUnit
    tensors: list[DryRunTensor]
    count: int
    problems: list[Problem]


def dry_run_plan(
    database: Database,
    target: str,
    golden: str,
    options: Options,
    *,
    step: int | None = None,
    unit: int | None = None,
    q: str = "",
    copies: bool = False,
    limit: int = 100,
) -> PlanDryRun:
    """Join one unit of two dumps of the index by the plan of `options`. q: part of the names of the tensors to list;
    copies: those too that are equal on all ranks

    Raises UsageError where the plan does not fit, NotFoundError for a step or unit that it does not make, LimitError.
    """
    sides = StoredSides(database, target, golden)
    plan = sides.plan(options)
    chosen = next((pair for pair in plan.units if step in (None, pair.step) and unit in (None, pair.rank)), None)
    if chosen is None:
        missing = [one for one in plan.problems if one.kind == "missing_rank"]
        raise NotFoundError(
            say("pipeline.plan_joins_no_such_step_unit"),
            hint=missing[0].message if missing else say("api.name_another_none"),
        )
    _require_small(database, (target, golden), chosen)
    dumps = join_pair(chosen, options, sides.load, None)
    found = [
        tensor
        for word, dump, side in zip(("target", "golden"), dumps[:2], (dumps[2].target, dumps[2].golden), strict=True)
        if sum(len(stage) for replica in side.ranks for stage in replica) > 1
        for tensor in _tensors(dump, word)
        if (copies or tensor.way != "copy") and q.lower() in tensor.name.lower()
    ]
    problems = [*plan.problems, *dimension_problems(chosen, *dumps[:2])]
    return PlanDryRun(unit=dumps[2], tensors=list(islice(found, limit)), count=len(found), problems=problems)


def _require_small(database: Database, dumps: tuple[str, str], pair: UnitPair) -> None:
    for dump_id, ranks in zip(dumps, (pair.target, pair.golden), strict=True):
        held = sum(one.items for one in stored_ranks(database, dump_id) if one.step == pair.step and one.rank in ranks)
        if held > MOST:
            raise LimitError(
                say("pipeline.ranks_unit_hold_items_too_many", rank=pair.rank, held=held),
                hint=say("pipeline.compare_dumps_how_they_joined_comes"),
            )


def _tensors(dump: RankDump, side: str) -> Iterator[DryRunTensor]:
    items = dump.items
    for item in np.flatnonzero(items.kind == Kind.TENSOR).tolist():
        text = items.values[items.value[item]] if items.value[item] >= 0 else ""
        said = json.loads(text).get("joined", []) if '"joined"' in text else []
        last = said[-1] if said else {}
        shape = items.shapes[items.shape[item]] if items.shape[item] >= 0 else None
        sizes = last.get("sizes")
        yield DryRunTensor(
            side=side,
            name=item_name(dump, item),
            way=last.get("way", "copy"),
            by=last.get("by", ""),
            members=last.get("members", len(last.get("ranks", [0]))),
            shape=shape,
            dimension=last.get("dimension"),
            sizes=None if sizes is None else tuple(sizes),
        )
