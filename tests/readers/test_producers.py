"""Who made an argument, as our own capture says: keys of a forward node's body become record numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.records import RankDump, item_name
from dumpscope.readers import discover, read_rank

TENSOR = {
    "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0,
    "requires_grad": False,
}  # fmt: skip


def node(producers: Any = None, *, inputs: int = 1, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"input_args": [TENSOR] * inputs, "input_kwargs": {}, "output": [TENSOR], **more}
    return body if producers is None else {**body, "producers": producers}


def read(folder: Path, data: str | dict[str, Any]) -> RankDump:
    rank = folder / "step0" / "rank0"
    rank.mkdir(parents=True, exist_ok=True)
    text = data if isinstance(data, str) else json.dumps(data)
    (rank / "dump.json").write_text(
        f'{{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {text}}}'
    )
    (rank / "stack.json").write_text("{}")
    (rank / "construct.json").write_text("{}")
    return read_rank(discover(folder).ranks[0])


def told(dump: RankDump) -> dict[str, str]:
    """Argument -> the record that made it."""
    rows = np.flatnonzero(dump.items.producer >= 0).tolist()
    return {item_name(dump, row): item_name(dump, int(dump.items.producer[row])) for row in rows}


def test_names_become_the_numbers_of_records_in_nested_arguments_and_results_too(tmp_path: Path) -> None:
    dump = read(
        tmp_path,
        {
            "Torch.split.0.forward": node(output=[[TENSOR, TENSOR]]),
            "Module.a.output.Linear.forward.0": node(output={"output": {"output": TENSOR}}),
            "Torch.stack.0.forward": node(
                {
                    "input.0.1": "Torch.split.0.forward.output.0.1",
                    "kwargs.out": "Module.a.output.Linear.forward.0.output.output.output",
                },
                input_args=[[TENSOR, TENSOR]],
                input_kwargs={"out": TENSOR},
            ),
        },
    )
    assert told(dump) == {
        "Torch.stack.0.forward.input.0.1": "Torch.split.0.forward.output.0.1",
        "Torch.stack.0.forward.input.out": "Module.a.output.Linear.forward.0.output.output.output",
    }
    assert not dump.problems


@pytest.mark.parametrize(
    "wrong",
    [
        {"input.0": "Torch.none.0.forward.output.0"}, {"input.0": "Torch.relu.0.forward.output.7"}, {"input.0": "nonsense"},
        {"input.0": "Torch.exp.1.forward.output.0"}, {"input.0": "Torch.late.0.forward.output.0"}, {"input.0": ["a"]},
        {"input.7": "Torch.relu.0.forward.output.0"}, {"output.0": "Torch.relu.0.forward.output.0"}, ["input.0"], 3,
        {"input.0": 3}, {"": ""},
    ],
)  # fmt: skip
def test_a_damaged_or_unknown_name_is_left_out_and_told_once(tmp_path: Path, wrong: Any) -> None:
    good = {"input.0": "Torch.relu.0.forward.output.0"}
    dump = read(
        tmp_path,
        {
            "Torch.relu.0.forward": node(),
            "Torch.exp.0.forward": node(wrong),
            "Torch.exp.1.forward": node(wrong),
            "Torch.late.0.forward": node(good),
        },
    )
    assert told(dump) == {"Torch.late.0.forward.input.0": "Torch.relu.0.forward.output.0"}
    assert [problem.message[:11] for problem in dump.problems] == ["2 arguments"]


def test_a_maker_of_which_only_the_arguments_were_recorded_is_no_damage(tmp_path: Path) -> None:
    dump = read(
        tmp_path,
        {
            "Torch.relu.0.forward": {"input_args": [TENSOR], "input_kwargs": {}},
            "Torch.exp.0.forward": node({"input.0": "Torch.relu.0.forward.output.0"}),
        },
    )
    assert not told(dump)
    assert not dump.problems


def test_records_that_stand_twice_keep_the_producers_of_the_last(tmp_path: Path) -> None:
    body = [json.dumps(node({"input.0": f"Torch.{name}.0.forward.output.0"})) for name in ("relu", "tanh")]
    start = json.dumps({"Torch.relu.0.forward": node(), "Torch.tanh.0.forward": node()})[:-1]
    dump = read(tmp_path, f'{start}, "Torch.exp.0.forward": {body[0]}, "Torch.exp.0.forward": {body[1]}}}')
    assert told(dump) == {"Torch.exp.0.forward.input.0": "Torch.tanh.0.forward.output.0"}


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=12))
def test_every_earlier_result_is_found_whatever_the_graph(
    tmp_path_factory: pytest.TempPathFactory, graph: list[list[int]]
) -> None:
    names = [f"Torch.op.{number}.forward" for number in range(len(graph))]
    data, wanted = {}, {}
    for place, makers in enumerate(graph):
        known = {f"input.{n}": f"{names[maker]}.output.0" for n, maker in enumerate(makers) if maker < place}
        data[names[place]] = node(known, inputs=len(makers))
        wanted.update({f"{names[place]}.{item}": made for item, made in known.items()})
    dump = read(tmp_path_factory.mktemp("graph"), data)
    assert told(dump) == wanted
    assert not dump.problems
