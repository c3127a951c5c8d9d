"""Where a record of ours and one of msprobe's part, and which nodes they may lack; docs/capture.md has the reasons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dumpscope_format.schema import NODE_KEYS

OURS = {"counts", "stride", "absent", *NODE_KEYS}
"""Keys of ours that msprobe does not write."""

MISSING = {
    "containers": {"Tensor.__mul__.1.backward"},  # a value nobody uses: msprobe's inserted node gives it zeros
}
EXTRA = {
    "conv": {
        "Module.relu.ReLU.backward.0",
        "Module.bn1.BatchNorm2d.backward.0",
    },  # in-place modules and those before them
    "containers": {"VF.lstm.0.forward", "VF.lstm.0.backward"},  # recurrent kernels
    "lstm": {
        "VF.lstm.0.forward",
        "VF.lstm.0.backward",
        *(f"Torch.lstm_cell.{number}.{direction}" for number in range(5) for direction in ("forward", "backward")),
    },
    "checkpoint": {f"Tensor.add_.{number}.forward" for number in range(4)},  # msprobe is deaf after a checkpoint's stop
}
INPLACE = {"conv": {"Functional.relu.0.backward"}}
"""msprobe's inserted nodes give another gradient than autograd's; ours is that of the next node."""


def differences(ours: Any, theirs: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Places where our record is not msprobe's: numbers to 1e-6, and where msprobe has none ours may have one."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in {**theirs, **ours}:
            if key in OURS and key not in theirs:
                continue
            if key not in ours or key not in theirs:
                yield f"{path}.{key}", ours.get(key), theirs.get(key)
            else:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}.{number}")
    elif ours is None and isinstance(theirs, dict) and theirs.get("Max") == 0 == theirs.get("Min"):
        return  # zeros that msprobe's inserted nodes made of no gradient
    elif theirs is None and path.endswith((".Mean", ".Norm")):
        return  # integers and float64
    elif isinstance(theirs, (int, float)) and isinstance(ours, (int, float)):
        if not (math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-8) or (math.isnan(ours) and math.isnan(theirs))):
            yield path, ours, theirs
    elif ours != theirs:
        yield path, ours, theirs
