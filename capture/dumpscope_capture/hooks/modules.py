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
from torch.nn.parameter import is_lazy

from dumpscope_capture.calls.call import Call, Open
from dumpscope_capture.context import LOG
from dumpscope_capture.hooks.compiled import compiled_regions, region_name
from dumpscope_capture.hooks.fast_paths import FastPaths, module_keywords
from dumpscope_capture.hooks.patches import Patches
from dumpscope_capture.older_torch import is_compiling
from dumpscope_capture.record.recording import Recording
from dumpscope_format.older_python import dataclass
from dumpscope_format.run import COMPILED_NOTE, FAST_PATH_NOTE

_SKIPPED: Final = frozenset(("FullyShardedDataParallel", "FSDP"))
_ANY_HOOK: Final = "_has_any_global_hook"
_IN_PLACE: Final = "_compiled_call_impl"
_INNER: Final = "_orig_mod"
"""Attribute of a compiled module that holds the module itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModule:
    """A module of the model. label: `Module.layers.0.fc.Linear`."""

    label: str
    module: weakref.ref[torch.nn.Module]


class ModuleScopes:
    """Records the modules of the models given to `watch`.

    compiled: compiled code runs compiled, so that the calls inside it cannot be seen
    scripted: labels of the outermost TorchScript modules among them. They run outside of Python, so they have no nodes.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._known: dict[int, KnownModule] = {}
        self._handles: list[Any] = []
        self._inner: dict[int, KnownModule] = {}
        self._in_place: list[KnownModule] = []
        self._lifted = False
        self._patches = Patches()
        self.compiled = False
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
                bare, kind = self._uncompiled(path, kind, module)
                if bare and kind not in _SKIPPED and self._find(module) is None:
                    self.name(module, f"{head}.{bare}.{kind}")

    def _uncompiled(self, path: str, kind: str, module: torch.nn.Module) -> tuple[str, str]:
        """Path and class that a module has in the program without torch.compile; path "" for what is no node.

        Of a compiled module and the one inside it, the one whose call can be seen from outside of compiled code is the node.
        """
        parts = path.split(".")
        bare = ".".join(part for part in parts if part != _INNER)
        if is_optimized(module):
            return (bare, type(module._orig_mod).__name__) if self.compiled else ("", kind)
        return ("", kind) if parts[-1] == _INNER and self.compiled else (bare, kind)

    def name(self, module: torch.nn.Module, label: str) -> None:
        old = module._is_full_backward_hook is False and bool(module._backward_hooks)
        if old and label not in self._warned:
            self._warned.add(label)
            LOG.warning(
                "%s has a hook of the deprecated register_backward_hook; its backward is recorded all the same", label
            )
        known = self._known[id(module)] = KnownModule(label=label, module=weakref.ref(module))
        if is_optimized(module):
            self._inner[id(module._orig_mod)] = known
        if self.compiled and module._compiled_call_impl is not None:
            self._in_place.append(known)

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

    def label_of(self, module: torch.nn.Module) -> str | None:
        """Label of a module, or of the compiled module that holds it; None where neither is a node."""
        known = self._find(module) or self._inner.get(id(module))
        return known.label if known is not None else None

    def lift(self) -> None:
        """Take the hooks away for a while; False after `remove`."""
        if self._handles:
            self.remove()
            self._lifted = True

    def lay(self) -> None:
        """End of `lift`."""
        if self._lifted:
            self._lifted = False
            self.install()

    def install(self) -> None:
        if not self._handles:
            self._handles = [
                hooks.register_module_forward_pre_hook(self._before),
                hooks.register_module_forward_hook(self._after, always_call=True),
            ]
            for known in self._in_place:
                module = known.module()
                if module is not None and module._compiled_call_impl is not None:
                    self._patches.put(module, _IN_PLACE, self._from_outside(module, module._compiled_call_impl))
            if hasattr(hooks, _ANY_HOOK):  # torch.compile warns where it is true; our hooks are gone when it matters
                self._patches.put(hooks, _ANY_HOOK, self._any_other_hook)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo()

    def _from_outside(self, module: torch.nn.Module, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The code of a module compiled in place, with our hooks around it: torch would compile them with it."""

        def call_compiled(*args: Any, **kwargs: Any) -> Any:
            result = None
            self._before(module, args)
            try:
                result = compiled(*args, **kwargs)
            finally:
                self._after(module, args, result)
            return result

        return call_compiled

    def _any_other_hook(self) -> bool:
        """Whether the program has global hooks."""
        own = {handle.id for handle in self._handles}
        return any(
            key not in own
            for some in (
                hooks._global_backward_pre_hooks,
                hooks._global_backward_hooks,
                hooks._global_forward_pre_hooks,
                hooks._global_forward_hooks,
            )
            for key in some
        )

    @property
    def empty(self) -> bool:
        return not self._known and self._only is None

    def _find(self, module: torch.nn.Module) -> KnownModule | None:
        if self._only is not None:
            return self._only if self._only.module() is module else None
        known = self._known.get(id(module))
        return known if known is not None and known.module() is module else None

    def note_compiled(self, frame: FrameType | None) -> None:
        """Note the compiled regions that run eagerly around a call."""
        if self.compiled:
            return
        for region in compiled_regions(frame):
            known = self._known.get(id(getattr(region, "__self__", None)))
            self._recording.notes.add(COMPILED_NOTE, region_name(region) if known is None else known.label)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _before(self, module: torch.nn.Module, args: Any) -> None:
        if is_compiling():  # torch.compile reads this code too, and is to find nothing in it
            return
        try:
            self._enter(module, args if isinstance(args, tuple) else (args,), sys._getframe(1))
        except Exception as error:
            self._recording.errors.note("a module", error)

    def _enter(self, module: torch.nn.Module, args: tuple[Any, ...], frame: FrameType) -> None:
        active = self._recording.active
        known = self._find(module) if active else None
        if active:
            self._adopt_thread(module)
        if known is not None:
            try:
                self._begin(known, module, args, module_keywords(frame), frame)
            except Exception as error:
                self._recording.errors.note("a module's arguments", error)
        self._fast.before(module, args, frame)

    def _after(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        if is_compiling():
            return
        try:
            self._leave(module, result)
        except Exception as error:
            self._recording.errors.note("a module", error)

    def _leave(self, module: torch.nn.Module, result: Any) -> None:
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
        number = recording.count(known.label, frame.f_back)
        name = f"{known.label}.forward.{number.shown}"
        recording.selection.begin_module(name)
        parent = recording.parent(number) if recording.links else None
        call = Call(name, recording.selection.module(name), parent, number)
        recording.thread_state.modules.append(Open(id(module), call, frame))
        if call.outcome == "drop":
            return
        recording.take_arguments(call, args, kwargs, frame, module)
        sides = recording.selection.sides
        if call.outcome == "record":
            if recording.provenance is not None:
                recording.provenance.meet(type(_inside(module)).__name__, _inside(module).forward)
            if sides.forward and recording.data and sides.input:
                call.body["parameters"] = self._parameters(name, module)

    def _parameters(self, name: str, module: torch.nn.Module) -> dict[str, Any]:
        """Records of the module's own parameters, but for those of a lazy module that have no shape before its first call."""
        recording = self._recording
        return {
            key: recording.record(value, f"{name}.parameters.{key}")
            for key, value in _inside(module).named_parameters(recurse=False)
            if not is_lazy(value)
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
            recording.parameters.watch(known.label, _inside(module), call.name)
        recording.end_module(call, result, known.label)


def is_optimized(module: torch.nn.Module) -> bool:
    """Whether `torch.compile(module)` made this module."""
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is not None and isinstance(module, dynamo.OptimizedModule)


def _inside(module: torch.nn.Module) -> torch.nn.Module:
    """The module with the parameters: of a compiled module the one that it holds."""
    inner = module._orig_mod if is_optimized(module) else module
    assert isinstance(inner, torch.nn.Module)
    return inner
