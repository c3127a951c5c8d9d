"""Writes the dumps of small runs call by call, with the numbers that a test wants, as our own capture or msprobe would."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Made = dict[str, Any]
"""A record of a tensor, as it stands in dump.json."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A tensor whose dtype numpy does not have, as "torch.bfloat16"."""

    array: Array
    dtype: str


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Recording:
    """One rank of one step. counts: numbers of zeros, NaN and infinities are stored, as our own capture does

    tensors: with a file for each tensor; hashes: md5 instead of statistics
    """

    def __init__(
        self,
        root: Path,
        *,
        step: int = 0,
        rank: int = 0,
        counts: bool = True,
        tensors: bool = False,
        hashes: bool = False,
        level: str = "L1",
    ) -> None:
        self.root = root
        self.folder = root / f"step{step}" / f"rank{rank}"
        self.data = self.folder / "dump_tensor_data"
        self.data.mkdir(parents=True)
        self.counts, self.tensors, self.hashes, self.level = counts, tensors, hashes, level
        self.nodes: dict[str, Any] = {}
        self.stacks: dict[str, Any] = {}
        self.parents: dict[str, Any] = {}

    def call(
        self,
        name: str,
        taken: Iterable[Any],
        made: Iterable[Any],
        *,
        given: Mapping[str, Any] | None = None,
        written: Mapping[str, Any] | None = None,
        stack: Iterable[str] = (),
        within: str | None = None,
    ) -> None:
        """taken, made: tensors as arrays or as records, other arguments as they are; given: arguments by name; written: tensors
        after the call, by item; stack: innermost first; within: node of the module around it"""
        backward = name.endswith("backward")
        heads = ("input", "output") if backward else ("input_args", "output")
        node: dict[str, Any] = {
            heads[0]: [self._leaf(f"{name}.input.{place}", value) for place, value in enumerate(taken)],
            heads[1]: [self._leaf(f"{name}.output.{place}", value) for place, value in enumerate(made)],
        }
        if not backward:
            node["input_kwargs"] = {
                key: self._leaf(f"{name}.input.{key}", value) for key, value in (given or {}).items()
            }
        if written:
            node["written"] = {
                item: self._leaf(f"{name}.output.written.{item}", value) for item, value in written.items()
            }
        self.nodes[name] = node
        self.parents[name] = within
        if stack:
            self.stacks[name] = [[name], list(stack)]

    def gradient(self, name: str, **gradients: Any) -> None:
        """Gradients of the parameters of a module."""
        self.nodes[name] = {key: [self._leaf(f"{name}.{key}", value)] for key, value in gradients.items()}

    def done(self) -> Path:
        """Write the files; returns the root of the dump."""
        task = "tensor" if self.tensors else "statistics"
        head: dict[str, Any] = {"task": task, "level": self.level, "framework": "pytorch"}
        head |= {"dump_data_dir": str(self.data) if self.tensors else None, "data": self.nodes}
        (self.folder / "dump.json").write_text(json.dumps(head))
        (self.folder / "construct.json").write_text(json.dumps(self.parents if self.level != "L1" else {}))
        stacks = {str(place): stack for place, stack in enumerate(self.stacks.values())}
        (self.folder / "stack.json").write_text(json.dumps(stacks))
        return self.root

    def _leaf(self, item: str, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        if isinstance(value, Typed):
            return self.record(value.array, dtype=value.dtype, item=item)
        if not isinstance(value, np.ndarray):
            return None if value is None else {"type": type(value).__name__, "value": value}
        return self.record(value, item=item)

    def record(self, array: Array, *, dtype: str = "", item: str = "") -> Made:
        """dtype: in place of the array's own, as "torch.bfloat16" """
        kept: Made = {"type": "torch.Tensor", "dtype": dtype or f"torch.{array.dtype}".replace("bool_", "bool")}
        kept["shape"] = list(array.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            wide = array.astype(np.float64)
            numbers = wide.max(), wide.min(), wide.mean(), np.linalg.norm(wide)
        if self.hashes:
            kept |= dict.fromkeys(("Max", "Min", "Mean", "Norm"))
        elif array.dtype == np.bool_:
            kept |= {"Max": bool(array.max()), "Min": bool(array.min()), "Mean": None, "Norm": None}
        else:
            kept |= dict(zip(("Max", "Min", "Mean", "Norm"), map(float, numbers), strict=True))
        kept["requires_grad"] = False
        if self.hashes:
            kept["md5"] = hashlib.md5(array.tobytes()).hexdigest()[:8]
        if self.tensors and item:
            kept["data_name"] = f"{item}.npy"
            np.save(self.data / kept["data_name"], array)
        if self.counts and not self.hashes:
            found = {"zeros": (wide == 0).sum(), "nan": np.isnan(wide).sum()}
            found |= {"inf": np.isposinf(wide).sum(), "-inf": np.isneginf(wide).sum()}
            if counts := {word: int(count) for word, count in found.items() if count}:
                kept["counts"] = counts
        return kept
