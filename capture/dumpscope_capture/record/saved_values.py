"""`save()`: values that the program records itself at level debug, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dumpscope_capture.context import LOG
from dumpscope_capture.record.recording import Recording
from dumpscope_capture.write.sink import Sink
from dumpscope_format.naming import debug_name

_PLAIN = (torch.Tensor, int, float, str)
_DEPTH = 400


class ValueSaver:
    """Names and counts what is saved in one step. open_step: opens the files of a step, by its number"""

    def __init__(self, recording: Recording, open_step: Callable[[int], None]) -> None:
        self._recording = recording
        self._open_step = open_step
        self._counts: dict[str, int] = {}

    def reset(self) -> None:
        self._counts.clear()

    def save(self, variable: Any, name: str, backward: bool, *, step: int) -> None:
        """Record a value as `name.n.debug`, and its gradients as `name_grad.n.debug`."""
        if not _is_savable(variable, 0):
            LOG.warning(
                "save(%r): only tensors, numbers, texts and dicts or lists of them are saved, not %s",
                name,
                type(variable).__name__,
            )
            return
        recording = self._recording
        try:
            self._open_step(step)
            number = self._counts.get(name, 0)
            self._counts[name] = number + 1
            key = debug_name(name, number)
            sink = recording.sink
            if sink is None:
                return
            sink.add(key, recording.record(variable, key))
            if backward:
                self._watch(variable, debug_name(name, number, gradient=True))
        except Exception as error:
            recording.errors.note("save()", error)

    def _watch(self, variable: Any, key: str) -> None:
        """Write null for every gradient, and replace it when the gradient arrives."""
        root: list[Any] = [None]
        found = _skeleton(variable, key, root, 0)
        sink = self._recording.sink
        if not found or sink is None:
            return
        sink.add(key, root[0])
        for tensor, item, holder, place in found:
            tensor.register_hook(  # type: ignore[no-untyped-call]
                _GradientHook(self._recording, sink, key, item, root, holder, place)
            )


class _GradientHook:
    """Hook of one saved tensor."""

    def __init__(
        self, recording: Recording, sink: Sink, key: str, item: str, root: list[Any], holder: Any, place: Any
    ) -> None:
        self._recording = recording
        self._sink = sink
        self._key = key
        self._item = item
        self._root = root
        self._holder = holder
        self._place = place

    def __call__(self, gradient: torch.Tensor) -> None:
        recording = self._recording
        sink = recording.sink
        if sink is None or sink is not self._sink:
            return
        try:
            self._holder[self._place] = recording.record(gradient, self._item)
            sink.add(self._key, self._root[0])
        except Exception as error:
            recording.errors.note("save()", error)


def _is_savable(value: Any, depth: int) -> bool:
    if isinstance(value, _PLAIN) or (value is None and depth):
        return True
    if depth > _DEPTH:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_savable(part, depth + 1) for key, part in value.items())
    return isinstance(value, (list, tuple)) and all(_is_savable(part, depth + 1) for part in value)


def _skeleton(value: Any, item: str, holder: Any, place: Any) -> list[tuple[torch.Tensor, str, Any, Any]]:
    """Write the value's structure with null leaves to `holder[place]`. Returns the tensors that can get a gradient:
    (tensor, item, holder, place)."""
    found: list[tuple[torch.Tensor, str, Any, Any]] = []
    if isinstance(value, dict):
        holder[place] = form = dict.fromkeys(value)
        for key, part in value.items():
            found += _skeleton(part, f"{item}.{key}", form, key)
    elif isinstance(value, (list, tuple)):
        holder[place] = row = [None] * len(value)
        for number, part in enumerate(value):
            found += _skeleton(part, f"{item}.{number}", row, number)
    else:
        holder[place] = None
        if isinstance(value, torch.Tensor) and value.requires_grad:
            found.append((value, item, holder, place))
    return found
