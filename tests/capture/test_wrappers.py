"""Trainings under the wrappers of torch.distributed compute the same with and without capture, and are recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from capture.dist_wrappers import SETTINGS, STEPS, WRAPPERS
from capture.launching import launch_together


def _step(folder: Path, wrapper: str, level: str, rank: int, task: str = "statistics") -> tuple[Any, Any]:
    """(data of dump.json, run.json)"""
    place = folder / f"{wrapper}-{level}-{task}-statistics" / f"step{STEPS - 1}" / f"rank{rank}"
    return (json.loads((place / name).read_text(encoding="utf-8")) for name in ("dump.json", "run.json"))  # type: ignore[return-value]


@pytest.mark.parametrize(("wrapper", "size"), [*((name, 2) for name in WRAPPERS), ("fsdp1", 1), ("fsdp2", 1)])
def test_a_wrapped_model_trains_the_same_at_every_level_and_task(tmp_path: Path, wrapper: str, size: int) -> None:
    launch_together("capture.dist_wrappers", [str(tmp_path), wrapper], tmp_path, size=size)
    for rank in range(size):
        for level, task, _ in SETTINGS:
            if task in ("statistics", "tensor") and level in ("L0", "L1", "mix"):
                dump, run = _step(tmp_path, wrapper, level, rank, task)
                assert dump["data"]
                assert run["counts"] == {}
        for level in ("L0", "mix"):
            dump, run = _step(tmp_path, wrapper, level, rank)
            gradients = [name for name in dump["data"] if "parameters_grad" in name]
            assert len(gradients) == {"fsdp1": 2, "tensor_parallel": 2}.get(
                wrapper, 6
            )  # fsdp1: a flat parameter a wrapper
            assert "notes" not in run
            for name in gradients:
                assert all(one[0]["Max"] is not None for one in dump["data"][name].values())


def test_gradients_that_reach_no_parameter_are_noted(make: Any, read: Any, caplog: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    debugger = make(level="L0")
    for backward in (lambda loss: torch.autograd.grad(loss, list(model.parameters())), lambda loss: loss.backward()):
        debugger.start(model)
        backward(model(torch.ones(1, 2)).sum())
        debugger.stop()
        debugger.step()
    assert read(0).run["notes"] == {"parameters_grad": ["Module.0.Linear"]}
    assert "parameters_grad is missing" in caplog.text
    assert "notes" not in read(1).run
