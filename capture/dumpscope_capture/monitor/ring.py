"""Numbers of the last steps, on their devices, and the file that they are appended to.

Every `flush_every` steps everything comes to the host in one copy for each device and is appended by one write: a process that is
killed loses the steps since then and nothing of those before.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from dumpscope_capture.context import LOG, Unobserved
from dumpscope_capture.monitor.rules import Step
from dumpscope_format.monitor import FIRST_LINE, Group, Layout, file_name, header_frame, layout_frame, values_frame

_SWAP: Final = sys.byteorder == "big"


class Numbers(NamedTuple):
    """Statistics of one metric: of each name every statistic, flat, float32, on one device."""

    metric: str
    statistics: tuple[str, ...]
    names: tuple[str, ...]
    values: torch.Tensor


class _Step(NamedTuple):
    step: int
    layout: Layout
    scalars: tuple[Any, ...]
    values: tuple[torch.Tensor, ...]


class Ring:
    """The steps that are not in the file yet.

    folder: of the files; name: `rank3`; facts: what the header says; flush_every: steps that wait
    resume: go on after the files that are there, instead of moving them away
    seen: gets the steps that have come to the host, after they were written
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        facts: Mapping[str, Any],
        *,
        flush_every: int,
        resume: bool = False,
        seen: Callable[[Sequence[Step]], None] | None = None,
    ) -> None:
        self.path = folder / file_name(name, 0)
        self._folder = folder
        self._name = name
        self._facts = facts
        self._flush_every = flush_every
        self._resume = resume
        self._seen = seen
        self._steps: list[_Step] = []
        self._layouts: dict[Any, Layout] = {}
        self._written: set[int] = set()
        self._stream: Any = None
        self._size = 0

    def add(self, step: int, scalars: Mapping[str, Any], numbers: Sequence[Numbers]) -> None:
        """Keep the numbers of a step. scalars: a number each, or a tensor with one element"""
        joined = _join(numbers)
        key = (tuple(scalars), tuple(one[:3] for one in joined))
        layout = self._layouts.get(key)
        if layout is None:
            groups = tuple(Group(one.metric, one.statistics, one.names) for one in joined)
            layout = self._layouts[key] = Layout(len(self._layouts), tuple(scalars), groups)
        self._steps.append(_Step(step, layout, tuple(scalars.values()), tuple(one.values for one in joined)))
        if len(self._steps) >= self._flush_every:
            self.flush()

    def flush(self) -> None:
        """Bring what waits to the host and append it. Waits for the devices. Raises OSError where that fails: these steps
        are lost, later ones are not."""
        steps, self._steps = self._steps, []
        if not steps:
            return
        with Unobserved():
            contents = _fetch([value for step in steps for value in step.values])
            scalars = _numbers([value for step in steps for value in step.scalars])
        if self._stream is None:
            self._open()
        out = bytearray()
        if not self._size:
            out += FIRST_LINE + header_frame(self._facts)
        told = set(self._written)
        on_host = []
        for step in steps:
            if step.layout.number not in told:
                told.add(step.layout.number)
                out += layout_frame(step.layout)
            own, scalars = scalars[: len(step.scalars)], scalars[len(step.scalars) :]
            values, contents = contents[: len(step.values)], contents[len(step.values) :]
            out += values_frame(step.layout, step.step, own, b"".join(values))
            on_host.append(Step(step.step, step.layout, own, values))
        try:
            self._append(out)
            self._written = told
        finally:
            if self._seen is not None:
                self._seen(on_host)

    def _append(self, out: bytearray) -> None:
        """Write all of it, or nothing: what a full disk took half of is cut off again."""
        rest = memoryview(out)
        try:
            while rest:
                rest = rest[self._stream.write(rest) :]
        except OSError:
            self._stream.truncate(self._size)
            self._stream.seek(self._size)
            raise
        self._size += len(out)

    def close(self) -> None:
        """Write what is left and close the file."""
        try:
            self.flush()
        finally:
            stream, self._stream = self._stream, None
            if stream is not None:
                stream.close()

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        part = 0
        if self.path.exists():
            if self._resume:
                while self.path.exists():
                    part += 1
                    self.path = self._folder / file_name(self._name, part)
            else:
                self._move_earlier()
        self._stream = open(self.path, "xb", buffering=0)  # noqa: SIM115 - open as long as the run

    def _move_earlier(self) -> None:
        """Move the files of an earlier run away, all parts of this rank."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(os.path.getmtime(self.path)))
        kept = self._folder / f"earlier-{stamp}"
        kept.mkdir(exist_ok=True)
        part = 0
        while (path := self._folder / file_name(self._name, part)).exists():
            os.replace(path, kept / path.name)
            part += 1
        LOG.warning("%s held the monitor files of an earlier run; they are in %s now", self._folder, kept)


def _join(numbers: Sequence[Numbers]) -> list[Numbers]:
    """One entry for all numbers of a metric that have the same statistics and device: modules add theirs one by one."""
    together: dict[Any, list[Numbers]] = {}
    for one in numbers:
        together.setdefault((one.metric, one.statistics, one.values.device), []).append(one)
    return [
        some[0]
        if len(some) == 1
        else Numbers(
            some[0].metric,
            some[0].statistics,
            tuple(name for one in some for name in one.names),
            torch.cat([one.values for one in some]),
        )
        for some in together.values()
    ]


def _fetch(tensors: list[torch.Tensor]) -> list[bytes]:
    """Contents of float32 tensors; one copy for each device."""
    contents = [b""] * len(tensors)
    by_device: dict[torch.device, list[int]] = {}
    for place, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(place)
    for places in by_device.values():
        whole = torch.cat([tensors[place] for place in places]).cpu().contiguous()
        data = ctypes.string_at(whole.data_ptr(), 4 * whole.numel())
        if _SWAP:
            data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
        start = 0
        for place in places:
            end = start + 4 * tensors[place].numel()
            contents[place] = data[start:end]
            start = end
    return contents


def _numbers(values: list[Any]) -> list[float]:
    """Numbers of scalars, those on devices in one copy for each device."""
    found = [float("nan") if isinstance(value, torch.Tensor) else float(value) for value in values]
    by_device: dict[torch.device, list[int]] = {}
    for place, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            by_device.setdefault(value.device, []).append(place)
    for places in by_device.values():
        stacked = torch.stack([values[place].detach().reshape(()).to(torch.float32) for place in places])
        for place, number in zip(places, stacked.tolist()):
            found[place] = number
    return found
