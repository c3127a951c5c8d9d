"""Modules: global forward hooks while a capture runs. No module and no hook of the user is changed.

The backward of a module is read at the gradient edges of its arguments and results, not by full backward hooks.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

import torch
from torch.nn.modules import module as hooks

from dumpscope_capture.calls.call import Call, Open
from dumpscope_capture.context import LOG
from dumpscope_capture.hooks.compiled import compiled_regions, region_name
from dumpscope_capture.hooks.fast_paths import FastPaths, module_keywords
from dumpscope_capture.record.recording import Recording
from dumpscope_format.older_python import dataclass
from dumpscope_format.run import COMPILED_NOTE, FAST_PATH_NOTE

_SKIPPED: Final = frozenset(("FullyShardedDataParallel", "FSDP"))


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModule:
    """A module of the model. label: `Module.layers.0.fc.Linear`."""

    label: str
    module: weakref.ref[torch.nn.Module]


class ModuleScopes:
    """Records the modules of the models given to `watch`.

    scripted: labels of the outermost TorchScript modules among them. They run outside of Python, so they have no nodes.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._known: dict[int, KnownModule] = {}
        self._handles: list[Any] = []
        self._warned: set[str] = set()
        self.scripted: list[str] = []
        self._only: KnownModule | None = None
        self.adopt: Callable[[], Callable[[], Any] | None] | None = None
        self._adopted = threading.local()
        self._fast = FastPaths(recording.errors)

    def watch(self, models: Sequence[torch.nn.Module], *, numbered: bool) -> None:
        """Name the modules of models. A module used in several places keeps its first name. The models are no nodes."""
        for number, model in enumerate(models):
            head = f"Module.{number}" if numbered else "Module"
            inside: tuple[str, ...] = ()
            for path, module in model.named_modules():
                kind = type(module).__name__
                if isinstance(module, torch.jit.ScriptModule):
                    if not path.startswith(inside):
                        inside = (*inside, f"{path}." if path else "")
                        self._skip(f"{head}.{path}.{kind}" if path else f"{head}.{kind}")
                    continue
                if path and kind not in _SKIPPED and self._find(module) is None:
                    self.name(module, f"{head}.{path}.{kind}")

    def name(self, module: torch.nn.Module, label: str) -> None:
        old = module._is_full_backward_hook is False and bool(module._backward_hooks)
        if old and label not in self._warned:
            self._warned.add(label)
            LOG.warning(
                "%s has a hook of the deprecated register_backward_hook; its backward is recorded all the same", label
            )
        self._known[id(module)] = KnownModule(label=label, module=weakref.ref(module))

    def _skip(self, label: str) -> None:
        if label not in self.scripted:
            self.scripted.append(label)
            LOG.warning("%s is compiled by TorchScript: neither it nor what it calls is recorded", label)

    def knows(self, module: torch.nn.Module) -> bool:
        return self._find(module) is not None

    def narrow(self, module: torch.nn.Module, label: str) -> None:
        """Record this module only."""
        self._only = KnownModule(label=label, module=weakref.ref(module))

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

    def _find(self, module: torch.nn.Module) -> KnownModule | None:
        if self._only is not None:
            return self._only if self._only.module() is module else None
        known = self._known.get(id(module))
        return known if known is not None and known.module() is module else None

    def note_compiled(self, frame: FrameType | None) -> None:
        """Note the compiled regions that run around a call."""
        for region in compiled_regions(frame):
            known = self._known.get(id(getattr(region, "__self__", None)))
            self._recording.notes.add(COMPILED_NOTE, region_name(region) if known is None else known.label)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _before(self, module: torch.nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling():  # torch.compile reads this code too, and is to find nothing in it
            return
        active = self._recording.active
        known = self._find(module) if active else None
        frame = sys._getframe(1)
        given = args if isinstance(args, tuple) else (args,)
        if active:
            self._adopt_thread(module)
        if known is not None:
            try:
                self._begin(known, module, given, module_keywords(frame), frame)
            except Exception as error:
                self._recording.errors.note("a module's arguments", error)
        self._fast.before(module, given, frame)

    def _after(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        if torch.compiler.is_compiling():
            return
        known = self._find(module)
        if self._fast.after(module) and result is not None and self._recording.active:
            self._recording.notes.add(FAST_PATH_NOTE, type(module).__name__ if known is None else known.label)
        self._leave_thread(module)
        if known is None:
            return
        try:
            self._end(known, module, result)
        except Exception as error:
            self._recording.errors.note("a module's results", error)

    def _adopt_thread(self, module: torch.nn.Module) -> None:
        """In a thread that the program started: record functions too, until the first module called there returns."""
        if self.adopt is not None and getattr(self._adopted, "owner", None) is None:
            leave = self.adopt()
            if leave is not None:
                self._adopted.owner, self._adopted.leave = id(module), leave

    def _leave_thread(self, module: torch.nn.Module) -> None:
        if getattr(self._adopted, "owner", None) == id(module):
            self._adopted.leave()
            self._adopted.owner = None

    def _begin(
        self,
        known: KnownModule,
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
    ) -> None:
        recording = self._recording
        recording.close_left(frame.f_back)
        self.note_compiled(frame)
        number = recording.count(known.label)
        name = f"{known.label}.forward.{number}"
        recording.selection.begin_module(name)
        call = Call(name, recording.selection.module(name), recording.parent() if recording.links else None)
        recording.thread_state.modules.append(Open(id(module), call, frame))
        if call.outcome == "drop":
            return
        recording.take_arguments(call, args, kwargs, frame, module)
        sides = recording.selection.sides
        if call.outcome == "record":
            if recording.provenance is not None:
                recording.provenance.meet(type(module).__name__, module.forward)
            if sides.forward and recording.data and sides.input:
                call.body["parameters"] = self._parameters(name, module)

    def _parameters(self, name: str, module: torch.nn.Module) -> dict[str, Any]:
        """Records of the module's own parameters."""
        recording = self._recording
        return {
            key: recording.record(value, f"{name}.parameters.{key}")
            for key, value in module.named_parameters(recurse=False)
        }

    def _end(self, known: KnownModule, module: torch.nn.Module, result: Any) -> None:
        recording = self._recording
        modules = recording.thread_state.modules
        if not any(one.owner == id(module) for one in modules):
            return
        while modules[-1].owner != id(module):  # modules inside that an exception left open
            recording.end_module(modules.pop().call, None)
        call = modules.pop().call
        if call.outcome == "link" and recording.selection.ends_inside(call.name):
            call.outcome = "record"
            if recording.selection.sides.forward and recording.data and recording.selection.sides.output:
                call.body["parameters"] = self._parameters(call.name, module)
        if call.outcome != "drop" and recording.selection.sides.backward and torch.is_grad_enabled():
            recording.parameters.watch(known.label, module, call.name)
        recording.end_module(call, result, known.label)
