"""Errors that grow along a chain of sixty calls: a smooth drift has no culprit, a jump has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.facts import Origin
from pipeline.comparing import compare

CALLS = 60
SIZE = 512
SMOOTH = [1e-6 * 1e4 ** (call / (CALLS - 1)) for call in range(CALLS)]


def chain(root: Path, errors: list[float], *, tensors: bool) -> Path:
    """A dump of linear calls, each fed by the one before; errors: relative noise of every output, as it left the call."""
    folder = root / "step0" / "rank0"
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True)
    values, noise = np.random.default_rng(1), np.random.default_rng(7)
    nodes: dict[str, Any] = {}
    arriving = values.standard_normal(SIZE, dtype=np.float32)
    for call, error in enumerate(errors):
        name = f"Functional.linear.{call}.forward"
        weight = values.standard_normal(64, dtype=np.float32)
        leaving = (values.standard_normal(SIZE) * (1 + error * noise.standard_normal(SIZE))).astype(np.float32)
        parts = {"input.0": arriving, "input.1": weight, "output.0": leaving}
        leaves = []
        for part, array in parts.items():
            leaf: dict[str, Any] = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [array.size]}
            wide = array.astype(np.float64)
            leaf |= {"Max": float(wide.max()), "Min": float(wide.min()), "Mean": float(wide.mean())}
            leaf |= {"Norm": float(np.linalg.norm(wide)), "requires_grad": False}
            if tensors:
                leaf["data_name"] = f"{name}.{part}.npy"
                np.save(data / leaf["data_name"], array)
            leaves.append(leaf)
        nodes[name] = {"input_args": leaves[:2], "input_kwargs": {}, "output": leaves[2:]}
        arriving = leaving
    head: dict[str, Any] = {"task": "tensor" if tensors else "statistics", "level": "L1", "framework": "pytorch"}
    head |= {"dump_data_dir": str(data) if tensors else None, "data": nodes}
    (folder / "dump.json").write_text(json.dumps(head))
    (folder / "construct.json").write_text("{}")
    (folder / "stack.json").write_text("{}")
    return root


def origins(folder: Path, errors: list[float], *, tensors: bool) -> list[Origin]:
    golden = chain(folder / "golden", [0.0] * CALLS, tensors=tensors)
    return compare(chain(folder / "target", errors, tensors=tensors), golden)[0].origins


@pytest.mark.parametrize("tensors", [True, False])
def test_a_smooth_drift_is_accumulated_with_no_single_suspect(tmp_path: Path, tensors: bool) -> None:
    found = origins(tmp_path, SMOOTH, tensors=tensors)
    assert [origin.kind for origin in found] == ["accumulated"]
    assert found[0].confidence < 0.6
    assert "without a jump" in found[0].evidence
    assert "higher precision" in found[0].advice


@pytest.mark.parametrize("tensors", [True, False])
def test_a_jump_in_a_drift_is_the_call_that_made_it(tmp_path: Path, tensors: bool) -> None:
    errors = [error * (1 if call < 30 else 100) for call, error in enumerate(SMOOTH)]
    found = origins(tmp_path, errors, tensors=tensors)
    assert [(origin.node, origin.kind) for origin in found] == [("Functional.linear.30.forward", "computation")]


@pytest.mark.parametrize("errors", [[1e-6 * (1 + call) for call in range(CALLS)], [1e-6] * CALLS])
def test_rounding_that_adds_up_is_no_finding(tmp_path: Path, errors: list[float]) -> None:
    assert origins(tmp_path, errors, tensors=True) == []


def test_a_jump_that_no_other_rule_names_is_no_drift(tmp_path: Path) -> None:
    """The inputs of the call that jumps were not stored, so only the growth tells."""
    errors = [1e-5 if call < 30 else 0.1 for call in range(CALLS)]
    golden = chain(tmp_path / "golden", [0.0] * CALLS, tensors=False)
    target = chain(tmp_path / "target", errors, tensors=False)
    found, _ = compare(target, golden)
    assert [(one.node, one.kind) for one in found.origins] == [("Functional.linear.30.forward", "computation")]
    assert "without a jump" not in found.origins[0].evidence
