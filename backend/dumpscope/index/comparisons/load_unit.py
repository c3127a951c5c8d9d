"""Load a stored unit of a comparison back as the columns it was stored from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.domain.context import gather
from dumpscope.domain.facts import (
    TENSOR_METRICS,
    Facts,
    ItemOpinions,
    ItemPairs,
    NodeOpinions,
    NodePairs,
    TensorFacts,
)
from dumpscope.domain.records import STATISTICS, Int64, RankDump
from dumpscope.domain.result import ResultTree, Unit
from dumpscope.errors import NotFoundError, Problem
from dumpscope.index.comparisons.distances import read_distances
from dumpscope.index.dumps.load_rank import load_rank
from dumpscope.index.store import tables
from dumpscope.index.store.codec import (
    codes,
    number,
    numbers,
    scores,
    unpack_flags,
    unpack_histograms,
    unpack_states,
    with_phrases,
)
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.texts import say

COUNTS = ("unequal", "nonfinite_target", "nonfinite_golden", "nonfinite_disagree")


def load_unit(database: Database, unit_id: int, *, sides: tuple[RankDump, RankDump] | None = None) -> Unit:
    """The unit `unit_id`, opinions included; `sides` spares loading (target, golden) again."""
    with database.read() as connection:
        row = connection.execute(select(tables.unit).where(tables.unit.c.id == unit_id)).one_or_none()
    if row is None:
        raise NotFoundError(say("index.step_rank_comparison_gone"), hint=say("api.compare_again"))
    target, golden = sides or (load_rank(database, row.target), load_rank(database, row.golden))
    with database.read() as connection:
        pairs, node_opinions = _load_nodes(connection, unit_id)
        tree = _load_places(connection, unit_id, bool(row.inferred), target, golden, pairs)
        items, facts, item_opinions = _load_items(connection, unit_id)
    return Unit(
        step=row.step,
        rank=row.rank,
        target=target,
        golden=golden,
        mode=row.mode,
        pairs=pairs,
        items=items,
        tree=tree,
        context=gather(target, golden, pairs, items),
        facts=facts,
        item_opinions=item_opinions,
        node_opinions=node_opinions,
        problems=[Problem(**problem) for problem in json.loads(row.problems)],
    )


def _load_nodes(connection: Connection, owner: int) -> tuple[NodePairs, NodeOpinions]:
    names = (
        "target", "golden", "method", "confidence", "verdict", "cls", "in_score", "severity", "leftover", "beside",
    )  # fmt: skip
    target, golden, method, confidence, verdict, cls, in_score, severity, leftover, beside = _rows(
        connection, "node_pair", names, owner
    )
    pairs = NodePairs(
        target=codes(target),
        golden=codes(golden),
        method=np.array(method, dtype=np.int8),
        confidence=np.array(confidence, dtype=np.float64),
        leftover=np.array([code or 0 for code in leftover], dtype=np.int8),
        beside=codes(beside),
    )
    opinions = NodeOpinions(
        verdict=np.array(verdict, dtype=np.int8),
        cls=np.array(cls, dtype=np.int8),
        in_score=scores(np.array(in_score, dtype=np.float64)),
        out_score=scores(np.array(severity, dtype=np.float64)),
    )
    return pairs, opinions


def _load_places(
    connection: Connection, owner: int, inferred: bool, target: RankDump, golden: RankDump, pairs: NodePairs
) -> ResultTree:
    parent, seq, pair, name = _rows(connection, "place", ("parent", "seq", "pair", "name"), owner)
    pair_codes = codes(pair)
    names: list[str] = []
    for code, virtual in zip(pair_codes.tolist(), name, strict=True):
        if code < 0:
            names.append(virtual)
            continue
        mine, other = int(pairs.target[code]), int(pairs.golden[code])
        names.append(target.nodes.names[mine] if mine >= 0 else golden.nodes.names[other])
    parents = np.array(parent, dtype=np.int64)
    return ResultTree(
        names=names,
        parent=np.where(parents < 0, -1, parents & tables.NUMBER_MASK).astype(np.int32),
        order=np.array(seq, dtype=np.int32),
        pair=pair_codes,
        inferred=inferred,
    )


def _load_items(connection: Connection, owner: int) -> tuple[ItemPairs, Facts, ItemOpinions]:
    statistics = [name.lower() for name in STATISTICS]
    names = (
        *("node", "target", "golden", "outcome", "flags"),
        *(f"diff_{name}" for name in statistics),
        *(f"rel_{name}" for name in statistics),
        *("states", "elements", "verdict", "rule", "severity"),
    )
    columns = _rows(connection, "item_pair", names, owner)
    node, target, golden, outcome, flags = columns[:5]
    packed, elements, verdict, rule, severity = columns[13:]
    states = unpack_states(np.array(packed, dtype=np.int64), 2 * len(STATISTICS))
    equal, dtype_differs = unpack_flags(np.array(flags, dtype=np.int64))
    size = len(node)
    tensor = np.full((size, len(TENSOR_METRICS)), np.nan)
    tensor_state = np.zeros((size, len(TENSOR_METRICS)), dtype=np.uint8)
    counts = {name: np.full(size, -1, dtype=np.int64) for name in COUNTS}
    element_counts = codes(elements, np.int64)
    details = _load_tensors(connection, owner, element_counts, tensor, tensor_state, counts)
    distances, standing = read_distances(lambda table, names: _rows(connection, table, names, owner), size)
    facts = Facts(
        outcome=np.array(outcome, dtype=np.int8),
        equal=equal,
        dtype_differs=dtype_differs,
        diff=numbers(columns[5:9], states[:, :4]),
        diff_state=states[:, :4].copy(),
        rel=numbers(columns[9:13], states[:, 4:]),
        rel_state=states[:, 4:].copy(),
        tensor=tensor,
        tensor_state=tensor_state,
        elements=element_counts,
        unequal=counts["unequal"],
        nonfinite_target=counts["nonfinite_target"],
        nonfinite_golden=counts["nonfinite_golden"],
        nonfinite_disagree=counts["nonfinite_disagree"],
        details=details,
        errors=load_errors(connection, owner),
        distances=distances,
    )
    pairs = ItemPairs(pair=np.array(node, dtype=np.int32), target=codes(target), golden=codes(golden))
    opinions = ItemOpinions(
        verdict=np.array(verdict, dtype=np.int8),
        rule=np.array(rule, dtype=np.int8),
        score=scores(np.array(severity, dtype=np.float64)),
        standing=standing,
    )
    return pairs, facts, opinions


def _load_tensors(
    connection: Connection, owner: int, elements: Int64, tensor: Any, tensor_state: Any, counts: dict[str, Any]
) -> dict[int, TensorFacts]:
    columns = _rows(connection, "tensor_fact", ("id", *TENSOR_METRICS, "states", *COUNTS, "worst", "histograms"), owner)
    rows = np.array(columns[0], dtype=np.int64) & tables.NUMBER_MASK
    width = len(TENSOR_METRICS)
    states = unpack_states(np.array(columns[width + 1], dtype=np.int64), width)
    tensor[rows] = numbers(columns[1 : width + 1], states)
    tensor_state[rows] = states
    for place, name in enumerate(COUNTS):
        counts[name][rows] = codes(columns[width + 2 + place], np.int64)
    details: dict[int, TensorFacts] = {}
    for row, record in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
        if record[-1] is not None or record[-2] is not None:
            details[row] = tensor_facts(record, int(elements[row]))
    return details


def tensor_facts(record: Sequence[Any], elements: int) -> TensorFacts:
    """One row of tensor_fact, in the table's column order; elements: see item_pair."""
    width = len(TENSOR_METRICS)
    packed = record[width + 1]
    metrics: dict[str, Any] = {
        name: number(record[1 + place], packed, place) for place, name in enumerate(TENSOR_METRICS)
    }
    counts = {name: -1 if value is None else value for name, value in zip(COUNTS, record[width + 2 : -2], strict=True)}
    index, target, golden = json.loads(record[-2]) if record[-2] else (None, None, None)
    absolute, relative = unpack_histograms(None if record[-1] is None else bytes(record[-1]))
    return TensorFacts(
        elements=elements,
        **metrics,
        **counts,
        worst_index=None if index is None else tuple(index),
        worst_target=_number(target),
        worst_golden=_number(golden),
        abs_histogram=absolute,
        rel_histogram=relative,
    )


def load_errors(connection: Connection, owner: int) -> dict[int, str]:
    """Item pair -> why it could not be read."""
    columns = _rows(connection, "item_error", ("id", "message", "said"), owner)
    return {key & tables.NUMBER_MASK: with_phrases(message, said) for key, message, said in zip(*columns, strict=True)}


def _number(value: float | int | str | None) -> float | int | str | None:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    return value


def _rows(connection: Connection, table: str, names: Sequence[str], owner: int) -> list[Sequence[Any]]:
    first, last = tables.key_range(owner)
    quoted = ", ".join(f'"{name}"' for name in names)
    found = fetch_columns(connection, f"SELECT {quoted} FROM {table} WHERE id BETWEEN {first} AND {last} ORDER BY id")
    return list(found) if found else [() for _ in names]
