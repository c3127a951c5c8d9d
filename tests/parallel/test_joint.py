"""Joining columns: the statistics of the whole follow from those of its parts, and tensors are made as the parts lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, State
from dumpscope.errors import UnreadableError
from dumpscope.parallel.join_unit import Whole, join_unit
from dumpscope.parallel.orders import Order
from dumpscope.parallel.plan import Plan, SidePlan, UnitPlan
from dumpscope.pipeline.compare.joined_tensors import realise
from dumpscope.readers import discover, read_rank

Array = np.ndarray[Any, np.dtype[np.float64]]


def tensor(array: Array) -> dict[str, Any]:
    return {
        "type": "torch.Tensor", "dtype": "torch.float64", "shape": list(array.shape), "Max": float(array.max()),
        "Min": float(array.min()), "Mean": float(array.mean()), "Norm": float(np.linalg.norm(array.ravel())),
        "requires_grad": False,
    }  # fmt: skip


def write(folder: Path, calls: dict[str, tuple[list[Any], list[Any]]]) -> RankDump:
    """A rank of these calls: name -> what it took and made."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {name: {"input_args": taken, "input_kwargs": {}, "output": made} for name, (taken, made) in calls.items()}
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(head))
    (folder / "stack.json").write_text("{}")
    (folder / "construct.json").write_text("{}")
    return read_rank(discover(folder).ranks[0])


def joined(shards: list[RankDump], whole: RankDump) -> Whole:
    target = SidePlan(ranks=(((*range(len(shards)),),),))
    unit = UnitPlan(rank=0, target=target, golden=SidePlan(ranks=(((0,),),)))
    return join_unit(
        unit, Plan(units=(unit,)), shards.__getitem__, lambda _rank: whole, Options(), worlds=(range(len(shards)), [0])
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_statistics_of_the_whole_follow_from_those_of_its_parts(
    tmp_path_factory: pytest.TempPathFactory, parts: int, dimension: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    shape = [5, 3, 2]
    shape[dimension] *= parts
    array = np.random.default_rng(seed).normal(size=shape)
    name = "Functional.gelu.0.forward"
    whole = write(folder / "whole", {name: ([tensor(array)], [tensor(array)])})
    shards = [
        write(folder / str(place), {name: ([tensor(part)], [tensor(part)])})
        for place, part in enumerate(np.split(array, parts, axis=dimension))
    ]
    found = joined(shards, whole).target.items
    np.testing.assert_allclose(found.stats, whole.items.stats, rtol=1e-12, atol=1e-12)
    assert [found.shapes[code] for code in found.shape] == [tuple(shape)] * 2


def one_call(folder: Path, taken: list[Array], made: Array) -> RankDump:
    return write(folder, {"Functional.linear.0.forward": ([tensor(one) for one in taken], [tensor(made)])})


def test_a_result_that_differs_and_was_made_of_parts_is_a_part_of_a_sum(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(3, 8)), rng.normal(size=(5, 8))
    whole = one_call(tmp_path / "whole", [x, weight], x @ weight.T)
    shards = [
        one_call(tmp_path / str(place), [x[:, part], weight[:, part]], x[:, part] @ weight[:, part].T)
        for place, part in enumerate((slice(0, 4), slice(4, 8)))
    ]
    found = joined(shards, whole)
    assert found.unit.target.shards == {"dimension 1": 2, "sum": 1}
    assert found.unit.target.strays == []
    assert (found.target.items.stat_state[2] == State.ABSENT).all()


def test_a_result_that_differs_though_all_that_was_taken_is_equal_strays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(3, 8)), rng.normal(size=(5, 8))
    whole = one_call(tmp_path / "whole", [x, weight], x @ weight.T)
    shards = [
        one_call(tmp_path / str(place), [x, weight], x @ weight.T * (1.1 if place == 1 else 1)) for place in range(2)
    ]
    found = joined(shards, whole)
    (stray,) = found.unit.target.strays
    assert (stray.ranks, stray.item, stray.items) == ([1], "Functional.linear.0.forward.output.0", 1)
    np.testing.assert_allclose(found.target.items.stats[2, 3], np.linalg.norm(x @ weight.T) * 1.1)


def test_nan_and_infinity_survive_joining(tmp_path: Path) -> None:
    array = np.arange(8.0)
    name = "Functional.relu.0.forward"
    whole = write(tmp_path / "whole", {name: ([tensor(array)], [tensor(array)])})
    shards = []
    for place, part in enumerate(np.split(array, 2)):
        made = tensor(part)
        if place:
            made |= {"Max": float("inf"), "Mean": float("nan")}
        shards.append(write(tmp_path / str(place), {name: ([tensor(part)], [made])}))
    states = joined(shards, whole).target.items.stat_state[1].tolist()
    assert states == [State.POS_INF, State.FINITE, State.NAN, State.FINITE]


def test_sizes_are_counted_on_the_whole_only_where_something_is_cut(tmp_path: Path) -> None:
    array = np.arange(16.0).reshape(2, 8)

    def rank(folder: Path, part: Array, size: int) -> RankDump:
        sizes = [{"type": "int", "value": -1}, {"type": "int", "value": size}]
        taken = [tensor(part), *sizes]
        scale = [tensor(np.ones(3)), {"type": "int", "value": size}]
        calls = {"Tensor.view.0.forward": (taken, [tensor(part)]), "Torch.mul.0.forward": (scale, [tensor(np.ones(3))])}
        return write(folder, calls)

    whole = rank(tmp_path / "whole", array, 8)
    shards = [rank(tmp_path / str(place), part, 4) for place, part in enumerate(np.split(array, 2, axis=1))]
    items = joined(shards, whole).target.items
    values = [items.values[code] for code, kind in zip(items.value, items.kind, strict=True) if kind == 1]
    assert values == ["-1", "8", "4"]


def test_a_call_that_one_rank_made_alone_shifts_no_other(tmp_path: Path) -> None:
    arrays = [np.arange(4.0) + place for place in range(3)]

    def rank(folder: Path, extra: bool) -> RankDump:
        calls = [arrays[0], *([arrays[2] * 7] if extra else []), arrays[1]]
        return write(folder, {f"Torch.mul.{k}.forward": ([tensor(x)], [tensor(x)]) for k, x in enumerate(calls)})

    found = joined([rank(tmp_path / "0", False), rank(tmp_path / "1", True)], rank(tmp_path / "whole", False))
    assert [(stray.ranks, stray.node, stray.item, stray.items) for stray in found.unit.target.strays] == [
        ([1], "Torch.mul.1.forward", "", 1)
    ]
    assert found.unit.target.shards == {"copy": 4}


def test_ranks_that_did_not_run_the_same_are_not_joined(tmp_path: Path) -> None:
    ranks = [
        write(
            tmp_path / api, {f"Torch.{api}.{k}.forward": ([tensor(np.ones(2))], [tensor(np.ones(2))]) for k in range(3)}
        )
        for api in ("mul", "exp")
    ]
    with pytest.raises(UnreadableError, match="ranks that should have run the same calls have 0 of 3 in common"):
        joined(ranks, ranks[0])


@given(st.integers(2, 3), st.integers(1, 4), st.integers(0, 1), st.booleans())
@settings(max_examples=40, deadline=None)
def test_parts_are_joined_in_the_blocks_of_the_other_sides_tensor(
    tmp_path_factory: pytest.TempPathFactory, parts: int, blocks: int, dimension: int, faulty: bool
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    shape = [4, 4]
    shape[dimension] = parts * blocks * 2
    whole = np.random.default_rng(parts * 10 + blocks).normal(size=shape)
    np.save(folder / "whole.npy", whole)
    names = []
    for place in range(parts):
        rows = [np.split(block, parts, axis=dimension)[place] for block in np.split(whole, blocks, axis=dimension)]
        part = np.concatenate(rows, axis=dimension) * (1.5 if faulty and place == 0 else 1)
        names.append(str(folder / f"{place}.npy"))
        np.save(names[-1], part)
    made = realise(Order(parts=tuple(names), dimension=dimension, like=str(folder / "whole.npy")))
    same = np.isclose(made, whole)
    assert made.shape == whole.shape
    assert same.mean() == pytest.approx((parts - 1) / parts if faulty else 1)
