"""Module scopes: global forward hooks while a capture runs, so no module and no hook of the user's is ever changed.

Backward comes from the gradient edges of a module's arguments and results, never from full backward hooks.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import torch
from torch.nn.modules import module as hooks

from dumpscope_capture.calls.call import Call
from dumpscope_capture.context import LOG
from dumpscope_capture.record.recording import Recording

_SKIPPED: Final = frozenset(("FullyShardedDataParallel", "FSDP"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A module of the model. label: `Module.layers.0.fc.Linear`."""

    label: str
    module: weakref.ref[torch.nn.Module]


class ModuleScopes:
    """Records the modules of the models given to `watch`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._known: dict[int, Known] = {}
        self._handles: list[Any] = []
        self._warned: set[str] = set()
        self._only: Known | None = None
        self.adopt: Callable[[], Callable[[], Any] | None] | None = None
        self._adopted = threading.local()

    def watch(self, models: Sequence[torch.nn.Module], *, numbered: bool) -> None:
        """Name the modules of models; a module that stands in several places keeps its first name. The roots are no nodes."""
        for number, model in enumerate(models):
            head = f"Module.{number}" if numbered else "Module"
            for path, module in model.named_modules():
                kind = type(module).__name__
                if path and kind not in _SKIPPED and self._of(module) is None:
                    self.name(module, f"{head}.{path}.{kind}")

    def name(self, module: torch.nn.Module, label: str) -> None:
        old = module._is_full_backward_hook is False and bool(module._backward_hooks)
        if old and label not in self._warned:
            self._warned.add(label)
            LOG.warning(
                "%s has a hook of the deprecated register_backward_hook; its backward is recorded all the same", label
            )
        self._known[id(module)] = Known(label=label, module=weakref.ref(module))

    def knows(self, module: torch.nn.Module) -> bool:
        return self._of(module) is not None

    def narrow(self, module: torch.nn.Module, label: str) -> None:
        """Record this module only."""
        self._only = Known(label=label, module=weakref.ref(module))

    def widen(self) -> None:
        self._only = None

    def install(self) -> None:
        if not self._handles:
            self._handles = [
                hooks.register_module_forward_pre_hook(self._before),
                hooks.register_module_forward_hook(self._after, always_call=True),
            ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def empty(self) -> bool:
        return not self._known and self._only is None

    def _of(self, module: torch.nn.Module) -> Known | None:
        if self._only is not None:
            return self._only if self._only.module() is module else None
        known = self._known.get(id(module))
        return known if known is not None and known.module() is module else None

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _before(self, module: torch.nn.Module, args: Any) -> None:
        if not self._recording.active:
            return
        self._meet_thread(module)
        known = self._of(module)
        if known is None:
            return
        try:
            frame = sys._getframe(1)
            self._begin(known, module, args if isinstance(args, tuple) else (args,), _keywords(frame), frame)
        except Exception as error:
            self._recording.faults.note("a module's arguments", error)

    def _after(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        self._leave_thread(module)
        known = self._of(module)
        if known is None:
            return
        try:
            self._end(known, module, result)
        except Exception as error:
            self._recording.faults.note("a module's results", error)

    def _meet_thread(self, module: torch.nn.Module) -> None:
        """A thread that the program started calls its first module: its functions are recorded until that module returns."""
        if self.adopt is not None and getattr(self._adopted, "owner", None) is None:
            leave = self.adopt()
            if leave is not None:
                self._adopted.owner, self._adopted.leave = id(module), leave

    def _leave_thread(self, module: torch.nn.Module) -> None:
        if getattr(self._adopted, "owner", None) == id(module):
            self._adopted.leave()
            self._adopted.owner = None

    def _begin(
        self, known: Known, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        recording = self._recording
        number = recording.count(known.label)
        name = f"{known.label}.forward.{number}"
        recording.selection.begin_module(name)
        call = Call(name, recording.selection.module(name), recording.parent() if recording.links else None)
        recording.place.calls.append((id(module), call))
        recording.place.modules.append(name)
        if call.outcome == "drop":
            return
        recording.take_arguments(call, args, kwargs, frame)
        if recording.provenance is not None:
            recording.provenance.meet(type(module).__name__, module.forward)
        sides = recording.selection.sides
        if sides.forward and recording.data and sides.input:
            call.body["parameters"] = {
                key: recording.record(value, f"{name}.parameters.{key}")
                for key, value in module.named_parameters(recurse=False)
            }
        if sides.backward and torch.is_grad_enabled():
            recording.parameters.watch(known.label, module)

    def _end(self, known: Known, module: torch.nn.Module, result: Any) -> None:
        recording = self._recording
        calls = recording.place.calls
        places = [place for place, (owner, _) in enumerate(calls) if owner == id(module)]
        if not places:
            return
        call = calls[places[-1]][1]
        del calls[places[-1] :]  # what an exception left open inside goes as well
        modules = recording.place.modules
        if call.name in modules:
            del modules[modules.index(call.name) :]
        try:
            if call.outcome != "drop":
                parameters = call.body.pop("parameters", None)
                recording.take_results(call, result, more={} if parameters is None else {"parameters": parameters})
                head, _, number = call.name.rpartition(".forward.")
                recording.watch(call, f"{head}.backward.{number}", result, known.label)
        finally:
            recording.selection.end_module(call.name)


def _keywords(frame: FrameType) -> dict[str, Any]:
    """Keyword arguments of the module call in whose frame a hook is called; torch gives global hooks none."""
    given = frame.f_locals.get("kwargs")
    return given if isinstance(given, dict) else {}
