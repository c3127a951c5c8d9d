"""Two processes over gloo: each rank has its folder, and collective calls show what went in and what came out."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import dist_models

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")


def launch(engine: str, folder: Path, python: str = sys.executable, task: str = "statistics") -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    processes = [
        subprocess.Popen(
            [python, dist_models.__file__, engine, task, str(folder)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in processes:
            out, _ = process.communicate(timeout=120)
            assert process.returncode == 0, out[-3000:]
    finally:
        for process in processes:
            process.kill()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("dist")
    launch("dumpscope", folder)
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


@pytest.mark.skipif("DUMPSCOPE_PEER_PYTHON" not in os.environ, reason="no interpreter with msprobe was named")
def test_msprobe_records_the_same_nodes_of_both_ranks(ranks: list[dict[str, Any]], tmp_path: Path) -> None:
    launch("msprobe", tmp_path, os.environ["DUMPSCOPE_PEER_PYTHON"])
    for number, ours in enumerate(ranks):
        theirs = json.loads((tmp_path / "dump" / "step0" / f"rank{number}" / "dump.json").read_text())["data"]
        assert list(theirs) == [node for node in ours if node in theirs]
        assert not set(ours) - set(theirs)
        for node in theirs:
            if node.startswith("Distributed."):
                assert _plain(ours[node]) == _plain(theirs[node]), node


def _plain(record: Any) -> Any:
    """A record without keys of ours, numbers rounded."""
    if isinstance(record, dict):
        return {key: _plain(part) for key, part in record.items() if key not in ("counts", "stride", "absent")}
    if isinstance(record, list):
        return [_plain(part) for part in record]
    return round(record, 6) if isinstance(record, float) else record
