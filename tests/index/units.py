"""Synthetic ranks and units: every column filled, numbers of all states, several sides of every rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from dumpscope.domain.context import gather
from dumpscope.domain.facts import (
    ERROR_BINS,
    TENSOR_METRICS,
    Class,
    Facts,
    ItemOpinions,
    ItemPairs,
    Method,
    NodeOpinions,
    NodePairs,
    Outcome,
    TensorFacts,
    Verdict,
)
from dumpscope.domain.records import (
    Direction,
    Header,
    Items,
    Kind,
    NodeKind,
    Nodes,
    RankDump,
    RankRef,
    Role,
    State,
    Tree,
)
from dumpscope.domain.result import ResultTree, Unit
from dumpscope.errors import Problem

APIS = ("Functional.linear", "Functional.softmax", "Tensor.__add__", "Torch.matmul", "Functional.gelu")


def make_rank(nodes: int, *, seed: int = 0, step: int = 0, rank: int | None = 0, tensors: bool = False) -> RankDump:
    """`nodes` API calls, the second half backward, four items each, below one virtual module per ten calls."""
    random = np.random.default_rng(seed)
    half = nodes // 2
    names, labels, index, direction = [], [], [], []
    for number in range(nodes):
        forward = number < half
        call = number if forward else nodes - 1 - number
        names.append(f"{APIS[call % len(APIS)]}.{call // len(APIS)}.{'forward' if forward else 'backward'}")
        labels.append(call % len(APIS))
        index.append(call // len(APIS))
        direction.append(Direction.FORWARD if forward else Direction.BACKWARD)
    groups = (nodes + 9) // 10
    parent = [nodes + number // 10 for number in range(nodes)] + [-1] * groups
    order = [number + number // 10 + 1 for number in range(nodes)] + [11 * group for group in range(groups)]
    size = nodes * 4
    stats = random.normal(size=(size, 4))
    state = np.full((size, 4), State.FINITE, dtype=np.uint8)
    for place, kind in enumerate((State.NAN, State.POS_INF, State.NEG_INF, State.ABSENT)):
        rows = np.arange(place, size, 97)
        state[rows, place] = kind
        stats[rows, place] = (np.nan, np.inf, -np.inf, np.nan)[place]
    roles = [Role.INPUT, Role.KWARG, Role.PARAMETER, Role.OUTPUT]
    paths = ["0", "mask", "weight", "1.0"]
    data_names: list[str] = []
    data_code = np.full(size, -1, dtype=np.int32)
    if tensors:
        for item in range(size):
            word = ("input", "input", "parameters", "output")[item % 4]
            own = f"{names[item // 4]}.{word}.{paths[item % 4]}"
            data_names.append(own + ".pt" if item % 50 else f"md5name{item}.npy")
            data_code[item] = item
    return RankDump(
        ref=RankRef(
            step=step,
            rank=rank,
            label="" if rank is None else f"rank{rank}",
            folder=f"/data/run/step{step}/rank{rank}",
            dump_json=f"/data/run/step{step}/rank{rank}/dump.json",
            stack_json=None,
            construct_json=None,
        ),
        header=Header(task="statistics", level="mix", framework="pytorch", summary="statistics", data_dir=None),
        nodes=Nodes(
            names=names,
            kind=np.full(nodes, NodeKind.API, dtype=np.int8),
            direction=np.array(direction, dtype=np.int8),
            label=np.array(labels, dtype=np.int32),
            labels=list(APIS),
            index=np.array(index, dtype=np.int32),
            stack=(np.arange(nodes) % 50 - 1).astype(np.int32),
            stacks=[(f'File "model.py", line {n}, in forward', 'File "train.py", line 1, in main') for n in range(49)],
            micro=np.full(nodes, -1, dtype=np.int32),
        ),
        items=Items(
            node=np.repeat(np.arange(nodes, dtype=np.int32), 4),
            role=np.tile(np.array(roles, dtype=np.int8), nodes),
            path=np.tile(np.arange(4, dtype=np.int32), nodes),
            paths=paths,
            kind=np.tile(np.array([Kind.TENSOR, Kind.SCALAR, Kind.TENSOR, Kind.TENSOR], dtype=np.int8), nodes),
            type=np.tile(np.array([0, 1, 0, 0], dtype=np.int32), nodes),
            types=["torch.Tensor", "int"],
            dtype=np.tile(np.array([0, -1, 1, 0], dtype=np.int32), nodes),
            dtypes=["torch.float32", "torch.bfloat16"],
            shape=np.tile(np.array([0, -1, 1, 2], dtype=np.int32), nodes),
            shapes=[(2, 3), (8,), ()],
            stats=stats,
            stat_state=state,
            wide={(2, 0): 2**70, (5, 1): -(10**5000)},
            requires_grad=np.tile(np.array([1, -1, 0, 1], dtype=np.int8), nodes),
            hash=np.tile(np.array([-1, -1, 0, -1], dtype=np.int32), nodes),
            hashes=["a1b2c3d4"],
            value=np.tile(np.array([-1, 0, -1, -1], dtype=np.int32), nodes),
            values=["17"],
            data_name=data_code,
            data_names=data_names,
            producer=np.where(np.arange(size) % 4 == 0, np.arange(size) - 5, -1).clip(-1).astype(np.int32),
        ),
        tree=Tree(
            names=names + [f"Module.layers.{group}.Block.forward.0" for group in range(groups)],
            parent=np.array(parent, dtype=np.int32),
            order=np.array(order, dtype=np.int32),
            inferred=False,
        ),
        problems=[Problem(loc="dump.json:byte 7", kind="truncated", message="Cut short. Complete nodes are kept.")],
    )


def make_unit(target: RankDump, golden: RankDump, *, tensors: bool = False, seed: int = 1) -> Unit:
    """A unit of two ranks of one size: all matched, every hundredth verdict no, call 5 the origin."""
    random = np.random.default_rng(seed)
    nodes, size = len(target.nodes), len(target.items)
    verdict = np.full(size, Verdict.YES, dtype=np.int8)
    verdict[::100] = Verdict.NO
    verdict[1::50] = Verdict.WARNING
    verdict[2::70] = Verdict.NA
    score = np.abs(random.normal(size=size))
    score[2::70], score[::1000] = np.nan, np.inf
    node_verdict = verdict.reshape(nodes, 4).max(axis=1)
    cls = np.where(node_verdict == Verdict.NO, Class.PROPAGATED, Class.BENIGN).astype(np.int8)
    cls[5] = Class.ORIGIN
    rel = np.abs(random.normal(size=(size, 4)))
    rel_state = target.items.stat_state.copy()
    tensor = np.full((size, len(TENSOR_METRICS)), np.nan)
    tensor_state = np.full(tensor.shape, State.ABSENT, dtype=np.uint8)
    unknown = np.full(size, -1, dtype=np.int64)
    elements = unknown.copy()
    details: dict[int, TensorFacts] = {}
    if tensors:
        rows = np.arange(0, size, 4)
        tensor[rows] = np.abs(random.normal(size=(len(rows), len(TENSOR_METRICS))))
        tensor_state[rows] = State.FINITE
        tensor[rows[::10], 2], tensor_state[rows[::10], 2] = np.inf, State.POS_INF
        elements[rows] = 6
        for row in rows.tolist():
            histogram = [0] * (len(ERROR_BINS) + 2)
            histogram[row % len(histogram)] = 6
            metrics: dict[str, Any] = dict(zip(TENSOR_METRICS, tensor[row].tolist(), strict=True))
            details[row] = TensorFacts(
                **metrics,
                elements=6,
                unequal=-1,
                nonfinite_target=-1,
                nonfinite_golden=-1,
                nonfinite_disagree=-1,
                worst_index=(1, 2),
                worst_target=float("inf"),
                worst_golden=0.5,
                abs_histogram=tuple(histogram),
                rel_histogram=tuple(reversed(histogram)),
            )
    entries = len(target.tree)
    pairs = NodePairs(
        target=np.arange(nodes, dtype=np.int32),
        golden=np.arange(nodes, dtype=np.int32),
        method=np.full(nodes, Method.EXACT, dtype=np.int8),
        confidence=np.ones(nodes),
        leftover=(np.arange(nodes) % 3).astype(np.int8),
        beside=np.arange(-1, nodes - 1, dtype=np.int32),
    )
    items = ItemPairs(
        pair=target.items.node,
        target=np.arange(size, dtype=np.int32),
        golden=np.where(np.arange(size) % 300 == 7, -1, np.arange(size)).astype(np.int32),
    )
    return Unit(
        step=target.ref.step,
        rank=target.ref.rank or 0,
        target=target,
        golden=golden,
        mode="tensor" if tensors else "statistics",
        pairs=pairs,
        items=items,
        context=gather(target, golden, pairs, items),
        tree=ResultTree(
            names=target.tree.names,
            parent=target.tree.parent,
            order=target.tree.order,
            pair=np.where(np.arange(entries) < nodes, np.arange(entries), -1).astype(np.int32),
            inferred=False,
        ),
        facts=Facts(
            outcome=np.full(size, Outcome.COMPARED, dtype=np.int8),
            equal=(np.arange(size) % 3 - 1).astype(np.int8),
            dtype_differs=(np.arange(size) % 2).astype(np.int8),
            diff=target.items.stats.copy(),
            diff_state=target.items.stat_state.copy(),
            rel=np.where(rel_state == State.FINITE, rel, target.items.stats),
            rel_state=rel_state,
            tensor=tensor,
            tensor_state=tensor_state,
            elements=elements,
            unequal=unknown,
            nonfinite_target=unknown,
            nonfinite_golden=unknown,
            nonfinite_disagree=unknown,
            details=details,
            errors={3: "the tensor file is missing"},
        ),
        item_opinions=ItemOpinions(verdict=verdict, rule=np.ones(size, dtype=np.int8), score=score),
        node_opinions=NodeOpinions(
            verdict=node_verdict.astype(np.int8),
            cls=cls,
            in_score=score.reshape(nodes, 4)[:, 0].copy(),
            out_score=score.reshape(nodes, 4)[:, 3].copy(),
        ),
        problems=[Problem(loc="step0/rank0", kind="unmatched", message="One call has no partner.")],
    )
