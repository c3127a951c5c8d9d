"""Captures that look at values as they come: only overflowing nodes, or only nodes that differ from an earlier dump.

Both read numbers back at every node, so the device is waited for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dumpscope_capture.calls.held_arguments import Held
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, Quiet
from dumpscope_capture.device.overflow_registers import Registers, overflow_registers
from dumpscope_capture.values.nonfinite import Marks
from dumpscope_format.paths import DUMP_JSON, is_single, step_folder


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


class Overflow:
    """Task overflow_check: keeps nodes that hold NaN, infinity or their type's last number, which nothing explains.

    registers: of a device that notes overflows itself and computes no infinities; values are not looked at then
    """

    def __init__(
        self,
        config: Config,
        ended: Callable[[], None],
        *,
        registers: Callable[[], Registers | None] = overflow_registers,
    ) -> None:
        self._limit = Limit(config.overflow_nums, "overflow in", ended)
        self._look_up = registers
        self._registers: Registers | None = None
        self._looked_up = False

    def prepare(self) -> None:
        """Before a call: what the registers note from now on is its doing. Raises RuntimeError where they cannot be read."""
        if not self._looked_up:
            self._registers, self._looked_up = self._look_up(), True
        if self._registers is not None and self._registers.raised():
            self._registers.clear()

    def overflows(self, name: str, given: Any, results: Any) -> bool:
        """Whether a node's values overflow. given: arguments, or what was held of them.

        Infinities that the arguments hold as well are handed on: a mask filled with -inf is legal, and what softmax reads is.
        """
        if self._registers is not None:
            bad = self._registers.raised()
            if bad:
                self._registers.clear()
        else:
            bad = self.judge(*_marked(given, results))
        if bad:
            self._limit.found(name)
        return bad

    def judge(self, before: Marks, after: Marks) -> bool:
        """Whether values before and after a call are one to be kept."""
        return before.nan or before.tensor_inf or after.nan or after.appeared(before)


def _marked(given: Any, results: Any) -> tuple[Marks, Marks]:
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
    return before, after


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
