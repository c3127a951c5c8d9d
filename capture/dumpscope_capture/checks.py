"""Captures that look at values as they come: only overflowing nodes, or only nodes that differ from an earlier dump.

Both read numbers back at every node, so the device is waited for.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, Quiet
from dumpscope_format.layout import DUMP_JSON, is_single, step_folder


class Limit:
    """Counts findings; at the limit the capture ends. limit: -1 for none."""

    def __init__(self, limit: int, what: str, ended: Callable[[], None]) -> None:
        self._left = limit
        self._what = what
        self._ended = ended

    def found(self, name: str) -> None:
        LOG.warning("%s: %s", self._what, name)
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                LOG.info("the number of findings asked for is reached: the capture ends")
                self._ended()


class Held:
    """Arguments of a call as they were before it. in_place: of which function; its tensors are copied, as it writes into them."""

    __slots__ = ("args", "kwargs", "marks")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, in_place: bool, marked: bool) -> None:
        self.args, self.kwargs = args, kwargs
        self.marks: Marks | None = None
        with Quiet():
            if marked:
                self.marks = Marks()
                self.marks.gather((args, kwargs), scalars=True)
            if in_place:
                self.args = tuple(_copied(value) for value in args)
                self.kwargs = {key: _copied(value) for key, value in kwargs.items()}


def writes_in_place(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether a function writes into its arguments: `add_`, `__iadd__`, `relu(inplace=True)`, `out=`."""
    special = name.startswith("__")
    return (
        (name.endswith("_") and not special)
        or (special and name.startswith("__i") and name not in ("__invert__", "__index__", "__int__"))
        or name == "__setitem__"
        or bool(kwargs.get("inplace"))
        or kwargs.get("out") is not None
    )


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not value.is_meta and value.layout is torch.strided:
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value


class Overflow:
    """Task overflow_check: keeps nodes that hold NaN or infinity which nothing explains."""

    def __init__(self, config: Config, ended: Callable[[], None]) -> None:
        self._limit = Limit(config.overflow_nums, "overflow in", ended)

    def overflows(self, name: str, given: Any, results: Any) -> bool:
        """Whether a node's values overflow. given: arguments, or what was held of them.

        Infinities that the arguments hold as well are handed on: a mask filled with -inf is legal, and what softmax reads is.
        """
        with Quiet():
            after = Marks()
            if isinstance(given, Held) and given.marks is not None:
                before = given.marks
            else:
                before = Marks()
                before.gather(given, scalars=True)
            after.gather(results, scalars=False)
            before.read()
            after.read()
        bad = (
            after.nan or before.nan or before.tensor_inf
            or (after.inf and not before.inf) or (after.negative and not before.negative)
        )  # fmt: skip
        if bad:
            self._limit.found(name)
        return bad


class Marks:
    """Which values that are not finite occur. inf: +inf anywhere; tensor_inf: in a tensor; negative: -inf anywhere."""

    def __init__(self) -> None:
        self.nan = self.inf = self.tensor_inf = self.negative = False
        self._flags: list[torch.Tensor] = []

    def gather(self, value: Any, *, scalars: bool) -> None:
        if isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, float):
            if scalars:
                self.inf |= value == math.inf
                self.negative |= value == -math.inf
        elif isinstance(value, Mapping):
            for part in value.values():
                self.gather(part, scalars=scalars)
        elif isinstance(value, (list, tuple)):
            for part in value:
                self.gather(part, scalars=scalars)

    def _tensor(self, tensor: torch.Tensor) -> None:
        if tensor.is_meta or not tensor.numel() or not tensor.is_floating_point() or tensor.layout is not torch.strided:
            return
        try:
            data = tensor.detach()
            data = data if data.element_size() > 1 else data.float()
            self._flags.append(
                torch.stack([data.isnan().any(), (data == math.inf).any(), (data == -math.inf).any()]).cpu()
            )
        except (RuntimeError, NotImplementedError):
            return

    def read(self) -> None:
        for flags in self._flags:
            nan, positive, negative = flags.tolist()
            self.nan |= nan
            self.inf |= positive
            self.tensor_inf |= positive
            self.negative |= negative


class Bench:
    """Task tensor with bench_path: compares CRC values with an earlier md5 dump, and saves the tensors where they part."""

    def __init__(self, config: Config, ended: Callable[[], None]) -> None:
        self._path = Path(config.bench_path or "")
        self._limit = Limit(config.diff_nums, "differs from the bench dump", ended)
        self._data: Mapping[str, Any] = {}
        self.saving = False

    def open(self, step: int, folder: str) -> None:
        """Read the bench dump of a step. folder: `rank3` or `proc123`."""
        self._data = {}
        found = _bench_folder(self._path, step, folder)
        if found is None:
            LOG.warning("bench_path %s has no dump of step %d for %s: nothing is compared", self._path, step, folder)
            return
        try:
            with open(found / DUMP_JSON, encoding="utf-8") as stream:
                self._data = json.load(stream).get("data", {})
        except (OSError, ValueError) as error:
            LOG.warning("the bench dump %s cannot be read: %s", found, error)

    def differs(self, name: str, body: Mapping[str, Any]) -> bool:
        """Whether a node has the bench's arguments but other results."""
        bench = self._data.get(name)
        if bench is None:
            return False
        same = all(_marks(body.get(key)) == _marks(bench.get(key)) for key in ("input_args", "input_kwargs"))
        if not same or _marks(body.get("output")) == _marks(bench.get("output")):
            return False
        self._limit.found(name)
        return True


def _marks(record: Any) -> list[Any]:
    """Shapes and hashes of the tensors in a record, in order."""
    if isinstance(record, Mapping):
        if "shape" in record:
            return [(list(record["shape"]), record.get("md5"))]
        return [mark for part in record.values() for mark in _marks(part)]
    if isinstance(record, list):
        return [mark for part in record for mark in _marks(part)]
    return []


def _bench_folder(path: Path, step: int, folder: str) -> Path | None:
    base = path / step_folder(step)
    names: Iterable[str] = (folder,)
    if is_single(folder) and base.is_dir():
        names = sorted(name for name in os.listdir(base) if is_single(name))
    for name in names:
        if (base / name / DUMP_JSON).is_file():
            return base / name
    return None
