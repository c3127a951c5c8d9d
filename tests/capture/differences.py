"""Where a record of ours and one of msprobe's part, and which nodes they may lack; docs/capture.md has the reasons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dumpscope_capture.calls.names import PREFIXES, read_list
from dumpscope_capture.calls.registry import beyond
from dumpscope_format.schema import NODE_KEYS, RECOMPUTED_KEY, WRITTEN_KEY

OURS = {"counts", "stride", "absent", "whole_shape", *NODE_KEYS, RECOMPUTED_KEY, WRITTEN_KEY}
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
_SHIPPED = read_list().names
BEYOND = {
    f"{PREFIXES[category]}.{name.rpartition('.')[2]}"
    for category, names in beyond(moves=True).items()
    for name in names
} - {f"{PREFIXES[category]}.{name.rpartition('.')[2]}" for category, names in _SHIPPED.items() for name in names}
"""Calls that msprobe's list lacks."""
INPLACE = {"conv": {"Functional.relu.0.backward"}}
"""msprobe's inserted nodes give another gradient than autograd's; ours is that of the next node."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Of two numbers: their difference may be `absolute`, or `relative` of the larger, or `of_tensor` of the tensor's largest."""

    relative: float
    absolute: float
    of_tensor: float = 0.0

    def holds(self, one: float, other: float, largest: float) -> bool:
        """largest: magnitude of the largest element of the tensor that the numbers tell of"""
        absolute = max(self.absolute, self.of_tensor * largest)
        return math.isclose(one, other, rel_tol=self.relative, abs_tol=absolute) or (
            math.isnan(one) and math.isnan(other)
        )


SAME_MACHINE = Tolerance(relative=1e-6, absolute=1e-8)
"""Between what two tools wrote of the same numbers."""
OTHER_MACHINE = Tolerance(relative=1e-4, absolute=1e-6, of_tensor=1e-5)
"""Between what two processors compute in float32: other kernels add in another order, and sums may cancel."""
REMAINDERS = Tolerance(relative=1e-4, absolute=1e-3, of_tensor=1e-5)
"""The same where a remainder is taken: it keeps the rounding of the number that was divided, 550 here."""


def differences(
    ours: Any, theirs: Any, path: str, tolerance: Tolerance = SAME_MACHINE, largest: float = 0.0
) -> Iterator[tuple[str, Any, Any]]:
    """Places where our record is not msprobe's; where msprobe has no number ours may have one. A hash is compared where
    msprobe's record has one. largest: see `Tolerance`"""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        largest = _largest(theirs)
        for key in {**theirs, **ours}:
            if key in OURS and key not in theirs:
                continue
            if key not in ours or key not in theirs:
                yield f"{path}.{key}", ours.get(key), theirs.get(key)
            else:
                yield from differences(ours[key], theirs[key], f"{path}.{key}", tolerance, largest)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}.{number}", tolerance)
    elif ours is None and isinstance(theirs, dict) and theirs.get("Max") == 0 == theirs.get("Min"):
        return  # zeros that msprobe's inserted nodes made of no gradient
    elif theirs is None and path.endswith((".Mean", ".Norm")):
        return  # integers and float64
    elif isinstance(theirs, (int, float)) and isinstance(ours, (int, float)):
        if not tolerance.holds(ours, theirs, largest):
            yield path, ours, theirs
    elif ours != theirs:
        yield path, ours, theirs


def _largest(record: dict[str, Any]) -> float:
    ends = [value for key in ("Max", "Min") if isinstance(value := record.get(key), (int, float))]
    return max((abs(value) for value in ends if math.isfinite(value)), default=0.0)


def hashes_in(record: Any) -> Iterator[str]:
    """All hashes in a record."""
    if isinstance(record, dict):
        if "md5" in record:
            yield record["md5"]
        for part in record.values():
            yield from hashes_in(part)
    elif isinstance(record, list):
        for part in record:
            yield from hashes_in(part)


def check_step(name: str, risk: str, dump: Any, peer: dict[str, Any], tolerance: Tolerance = SAME_MACHINE) -> None:
    """One step of a model of peer_models.py as we recorded it (`conftest.Dump`), held to msprobe's record of it.

    peer: `data` of its dump.json, its construct.json, and `stacks`, the nodes in its stack.json
    """
    ours, theirs = dump.data, peer["data"]
    extra = set(EXTRA.get(name, set())) | {node for node in ours if node.rsplit(".", 2)[0] in BEYOND}
    if risk == "CORE":  # a missing comma in msprobe's list loses `linear`
        extra |= {node for node in ours if node.startswith("Functional.linear.")}
    assert set(theirs) - set(ours) <= MISSING.get(name, set())
    assert set(ours) - set(theirs) <= extra
    assert [node for node in ours if node in theirs] == [node for node in theirs if node in ours]
    parted = [
        (node, *difference)
        for node in theirs
        if node in ours and node not in INPLACE.get(name, set())
        for difference in differences(ours[node], theirs[node], "", tolerance)
    ]
    later = set(hashes_in(ours))  # msprobe may hash a tensor after the program has written to it
    assert not [found for found in parted if not (found[1].endswith(".md5") and found[3] in later)]
    _check_construct(dump.construct, peer["construct"], set(ours) | set(theirs))
    stacked = {node for nodes, _ in dump.json("stack.json").values() for node in nodes}
    assert stacked - extra == set(peer["stacks"])
    assert not dump.errors


def _check_construct(ours: dict[str, Any], theirs: dict[str, Any], nodes: set[str]) -> None:
    """Forward parents agree; a backward node's is the backward of its forward's parent, where msprobe's engine order
    says another."""
    for node, parent in theirs.items():
        if ".forward" in node:
            assert node in ours, node
            assert ours[node] == parent, node
    for node, parent in ours.items():
        if node in theirs and theirs[node] != parent:
            assert ".backward" in node
            assert parent is None or parent.endswith((".backward.0", ".backward.1"))
        if parent is not None and ".backward." in parent and ".forward" not in node:
            assert parent in nodes
