"""Captures that keep only some nodes by their values: those that overflow, or those that differ from an earlier dump.

Both read numbers back at every node, so each node waits for the device.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dumpscope_capture.calls.held_arguments import HeldArguments
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, Unobserved
from dumpscope_capture.device.overflow_registers import Registers, overflow_registers
from dumpscope_capture.values.nonfinite import NonfiniteMarks
from dumpscope_format.paths import DUMP_JSON, is_single, step_folder


class FindingLimit:
    """Counts findings and ends the capture at the limit. limit: -1 for none; what: text before a name in the log."""

    def __init__(self, limit: int, what: str, ended: Callable[[], None]) -> None:
        self._left = limit
        self._what = what
        self._ended = ended

    def count(self, name: str) -> None:
        LOG.warning("%s: %s", self._what, name)
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                LOG.info("the requested number of findings is reached: the capture ends")
                self._ended()


class OverflowCheck:
    """Task overflow_check: keeps nodes with NaN, infinity or the largest number of their type not explained by arguments.

    registers: finds the overflow registers of a device that computes no infinities; values are not read then
    """

    def __init__(
        self,
        config: Config,
        ended: Callable[[], None],
        *,
        registers: Callable[[], Registers | None] = overflow_registers,
    ) -> None:
        self._limit = FindingLimit(config.overflow_nums, "overflow in", ended)
        self._look_up = registers
        self._registers: Registers | None = None
        self._looked_up = False

    def prepare(self) -> None:
        """Clear the registers before a call. Raises RuntimeError where they cannot be read."""
        if not self._looked_up:
            self._registers, self._looked_up = self._look_up(), True
        if self._registers is not None and self._registers.raised():
            self._registers.clear()

    def overflows(self, name: str, given: Any, results: Any) -> bool:
        """Whether a node's values overflow. given: its arguments, or `HeldArguments`.

        Infinities that the arguments hold too do not count: a mask of -inf is legal.
        """
        if self._registers is not None:
            bad = self._registers.raised()
            if bad:
                self._registers.clear()
        else:
            bad = self.judge(*_marks_around(given, results))
        if bad:
            self._limit.count(name)
        return bad

    def judge(self, before: NonfiniteMarks, after: NonfiniteMarks) -> bool:
        """Whether a call is kept, from the values before and after it."""
        return before.nan or before.tensor_inf or after.nan or after.exceeds(before)


def _marks_around(given: Any, results: Any) -> tuple[NonfiniteMarks, NonfiniteMarks]:
    with Unobserved():
        after = NonfiniteMarks()
        if isinstance(given, HeldArguments) and given.marks is not None:
            before = given.marks
        else:
            before = NonfiniteMarks()
            before.gather(given, scalars=True)
        after.gather(results, scalars=False)
        before.read()
        after.read()
    return before, after


class BenchCheck:
    """Task tensor with bench_path: compares CRC values with an earlier md5 dump and saves the tensors of calls that differ."""

    def __init__(self, config: Config, ended: Callable[[], None]) -> None:
        self._path = Path(config.bench_path or "")
        self._limit = FindingLimit(config.diff_nums, "differs from the bench dump", ended)
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
        """Whether a node has the same arguments as in the bench dump but other results."""
        bench = self._data.get(name)
        if bench is None:
            return False
        same = all(
            _fingerprint(body.get(key)) == _fingerprint(bench.get(key)) for key in ("input_args", "input_kwargs")
        )
        if not same or _fingerprint(body.get("output")) == _fingerprint(bench.get("output")):
            return False
        self._limit.count(name)
        return True


def _fingerprint(record: Any) -> list[Any]:
    """Shapes and hashes of the tensors in a record, in order."""
    if isinstance(record, Mapping):
        if "shape" in record:
            return [(list(record["shape"]), record.get("md5"))]
        return [mark for part in record.values() for mark in _fingerprint(part)]
    if isinstance(record, list):
        return [mark for part in record for mark in _fingerprint(part)]
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
