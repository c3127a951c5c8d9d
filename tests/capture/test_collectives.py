"""Two processes over gloo: each rank has its folder, and collective calls show what went in and what came out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from capture.launching import launch
from capture.peer_runs import Case

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("dist")
    case = Case(name="dump", model="ddp", level="mix", task="statistics", summary="statistics", risk="FOCUS")
    launch("dumpscope", folder, [case], sys.executable, size=2)
    base = folder / "dump" / "step0"
    assert sorted(path.name for path in base.iterdir()) == ["rank0", "rank1"]
    dumps = []
    for rank in range(2):
        run = json.loads((base / f"rank{rank}" / "run.json").read_text())
        assert not [key for key in run["counts"] if "error" in key or "failed" in key]
        dumps.append(json.loads((base / f"rank{rank}" / "dump.json").read_text())["data"])
    return dumps


def test_a_reduction_has_the_sum_of_both_ranks_inputs(ranks: list[dict[str, Any]]) -> None:
    calls = [rank["Distributed.all_reduce.0.forward"] for rank in ranks]
    mean = sum(call["input_args"][0]["Mean"] for call in calls)
    for call in calls:
        assert call["output"][0]["Mean"] == pytest.approx(mean, rel=1e-6)
        assert call["input_kwargs"]["op"] == {"type": "torch.distributed.ReduceOp", "value": "RedOpType.SUM"}


def test_an_asynchronous_call_shows_its_result_after_the_wait(ranks: list[dict[str, Any]]) -> None:
    for number, rank in enumerate(ranks):
        call = rank["Distributed.all_reduce.1.forward"]
        assert call["input_args"][0]["Max"] == number + 1
        assert call["output"][0]["Max"] == 3.0


def test_buffers_that_are_only_written_to_are_no_inputs(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        gather = rank["Distributed.all_gather.0.forward"]
        assert gather["input_args"][0] is None
        assert [part["Max"] for part in gather["output"][0]] == [0.0, 1.0]
        assert rank["Distributed.all_gather_into_tensor.0.forward"]["output"][0]["Max"] == 1.0
    assert ranks[1]["Distributed.recv.0.forward"]["input_args"][0] is None
    assert ranks[1]["Distributed.recv.0.forward"]["output"][0]["Max"] == 2.0


def test_point_to_point_batches_are_recorded(ranks: list[dict[str, Any]]) -> None:
    for number, rank in enumerate(ranks):
        batch = rank["Distributed.batch_isend_irecv.0.forward"]
        assert batch["output"][0][1]["tensor"]["Max"] == 1.0 - number


def test_data_parallel_modules_have_gradients(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert "Module.module.fc1.Linear.parameters_grad.0" in rank
        assert rank["Module.module.fc2.Linear.backward.0"]["output"][0]["Norm"] > 0


def test_a_distributed_tensor_is_its_local_part_with_mesh_and_placement(tmp_path: Path) -> None:
    case = Case(name="dump", model="dtensor", level="mix", task="tensor", summary="md5", risk="ALL")
    launch("dumpscope", tmp_path, [case], sys.executable, size=2)
    for rank in range(2):
        folder = tmp_path / "dump" / "step0" / f"rank{rank}"
        run = json.loads((folder / "run.json").read_text())
        assert not [key for key in run["counts"] if "error" in key or "failed" in key]
        data = json.loads((folder / "dump.json").read_text())["data"]
        weight = data["Module.0.Linear.forward.0"]["parameters"]["weight"]
        assert weight["type"] == "torch.distributed.tensor.DTensor"
        assert weight["shape"] == [3, 4]
        assert weight["placements"] == [{"Shard": {"dim": 0}}]
        assert weight["device_mesh"] == [0, 1]
        assert weight["data_name"]
        gradient = data["Module.0.Linear.parameters_grad.0"]["weight"][0]
        assert gradient["type"] == weight["type"]
        assert gradient["Norm"] > 0
        saved = torch.load(folder / "dump_tensor_data" / weight["data_name"])
        assert saved.norm().item() == pytest.approx(weight["Norm"], rel=1e-6)
