"""A plan that is tried: what joining makes of one unit of one step, tensor by tensor, with nothing stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from dumpscope.domain.joined import JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind, RankDump, item_name
from dumpscope.errors import LimitError, NotFoundError, Problem
from dumpscope.index.dumps.catalogue import stored_ranks
from dumpscope.index.dumps.load_rank import load_rank, rank_places
from dumpscope.index.store.database import Database
from dumpscope.pipeline.compare.rank_plan import UnitPair, dimension_problems, find_plan, join_pair, unit_pairs
from dumpscope.texts import say

MOST: Final = 1_000_000
"""Items of the ranks of a unit up to which it is joined while the caller waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTensor:
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
class Trial:
    """unit: what was joined, ways counted; tensors: the first of `count`"""

    unit: JoinedUnit
    tensors: list[TrialTensor]
    count: int
    problems: list[Problem]


def try_plan(
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
) -> Trial:
    """Join one unit of two dumps of the index by the plan of `options`. q: part of the names of the tensors to list;
    copies: those too that are equal on all ranks

    Raises UsageError where the plan does not fit, NotFoundError for a step or unit that it does not make, LimitError.
    """
    sides = rank_places(database, target), rank_places(database, golden)
    numbers = {ref: number for side in sides for number, ref in side.items()}
    one, other = (list(side.values()) for side in sides)
    plan, problems = find_plan(one, other, options, lambda ref: load_rank(database, numbers[ref]))
    pairs, missing = ([], []) if plan is None else unit_pairs(plan, one, other, options, Path())
    chosen = next((pair for pair in pairs if step in (None, pair.step) and unit in (None, pair.rank)), None)
    if plan is None or chosen is None:
        raise NotFoundError(
            say("pipeline.plan_joins_no_such_step_unit"),
            hint=missing[0].message if missing else say("api.name_another_none"),
        )
    _require_small(database, (target, golden), chosen)
    dumps = join_pair(chosen, replace(options, tensors=False), lambda ref: load_rank(database, numbers[ref]))
    found = [
        tensor
        for word, dump, side in zip(("target", "golden"), dumps[:2], (dumps[2].target, dumps[2].golden), strict=True)
        if sum(len(stage) for replica in side.ranks for stage in replica) > 1
        for tensor in _tensors(dump, word)
        if (copies or tensor.way != "copy") and q.lower() in tensor.name.lower()
    ]
    problems = [*problems, *missing, *dimension_problems(chosen, *dumps[:2])]
    return Trial(unit=dumps[2], tensors=list(islice(found, limit)), count=len(found), problems=problems)


def _require_small(database: Database, dumps: tuple[str, str], pair: UnitPair) -> None:
    for dump_id, ranks in zip(dumps, (pair.target, pair.golden), strict=True):
        held = sum(one.items for one in stored_ranks(database, dump_id) if one.step == pair.step and one.rank in ranks)
        if held > MOST:
            raise LimitError(
                say("pipeline.ranks_unit_hold_items_too_many", rank=pair.rank, held=held),
                hint=say("pipeline.compare_dumps_how_they_joined_comes"),
            )


def _tensors(dump: RankDump, side: str) -> Iterator[TrialTensor]:
    items = dump.items
    for item in np.flatnonzero(items.kind == Kind.TENSOR).tolist():
        text = items.values[items.value[item]] if items.value[item] >= 0 else ""
        said = json.loads(text).get("joined", []) if '"joined"' in text else []
        last = said[-1] if said else {}
        shape = items.shapes[items.shape[item]] if items.shape[item] >= 0 else None
        sizes = last.get("sizes")
        yield TrialTensor(
            side=side,
            name=item_name(dump, item),
            way=last.get("way", "copy"),
            by=last.get("by", ""),
            members=last.get("members", len(last.get("ranks", [0]))),
            shape=shape,
            dimension=last.get("dimension"),
            sizes=None if sizes is None else tuple(sizes),
        )
