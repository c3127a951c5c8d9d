"""Dumps of tensors a test makes up: one call a tensor, written as msprobe writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def node_of(name: str) -> str:
    """The call whose output is the tensor `name`."""
    return f"Functional.{name}.0.forward"


def write_dump(root: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> Path:
    """One step and rank with a call per tensor; numpy's own dtypes go into `.npy` files, bfloat16 into one of torch.save."""
    folder = root / "step0" / "rank0"
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True)
    nodes: dict[str, Any] = {}
    for name, array in tensors.items():
        file = f"{node_of(name)}.output.0"
        leaf: dict[str, Any] = {
            "type": "torch.Tensor",
            "dtype": f"torch.{array.dtype.name}",
            "shape": list(array.shape),
        }
        leaf |= {"Max": None, "Min": None, "Mean": None, "Norm": None, "requires_grad": False}
        if array.dtype.name == "bfloat16":
            _save(data / f"{file}.pt", array)
            leaf["data_name"] = f"{file}.pt"
        else:
            np.save(data / f"{file}.npy", array)
            leaf["data_name"] = f"{file}.npy"
        nodes[node_of(name)] = {"input_args": [], "input_kwargs": {}, "output": [leaf]}
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(data), "data": nodes}
    (folder / "dump.json").write_text(json.dumps(head))
    (folder / "construct.json").write_text("{}")
    (folder / "stack.json").write_text("{}")
    return root


def _save(path: Path, array: np.ndarray[Any, Any]) -> None:
    import torch  # noqa: PLC0415  # only where the test has it

    torch.save(torch.from_numpy(array.view(np.int16)).view(torch.bfloat16), path)
