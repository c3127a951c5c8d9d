"""Values that modules return, on request also those that they receive, and gradients of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook

from dumpscope_capture.context import HookErrors, Unobserved
from dumpscope_capture.monitor.gradients import plain
from dumpscope_capture.monitor.ring import Numbers
from dumpscope_capture.monitor.settings import MonitorSettings
from dumpscope_capture.monitor.statistics import Meters
from dumpscope_capture.older_torch import is_compiling


class ActivationWatch:
    """Measures modules of one step; of several calls in a step the last one counts.

    modules: the watched ones by name; wanted: whether the step that runs is recorded
    """

    def __init__(
        self,
        modules: Sequence[tuple[str, torch.nn.Module]],
        settings: MonitorSettings,
        wanted: Callable[[], bool],
        errors: HookErrors,
    ) -> None:
        self._modules = modules
        self._settings = settings
        self._wanted = wanted
        self._errors = errors
        self._meters: dict[str, Meters] = {}
        self._names: dict[torch.nn.Module, str] = {}
        self._found: dict[tuple[str, str], Numbers] = {}
        self._handles: list[Any] = []

    def install(self) -> None:
        """Watch the modules. No module gets a hook of its own: models can be copied and pickled as before."""
        for name, module in self._modules:
            self._meters[name] = Meters(self._settings.statistics, self._settings.eps)
            self._names[module] = name
        if self._names:
            self._handles.append(register_module_forward_hook(self._hook))

    def remove(self) -> None:
        """Take all hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def take(self) -> list[Numbers]:
        """The numbers since the last call."""
        found, self._found = self._found, {}
        return list(found.values())

    def _hook(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        if is_compiling():
            return
        name = self._names.get(module)
        if name is None or not module.training or not self._wanted():
            return
        with self._errors.guard("an activation"):
            if self._settings.forward:
                if self._settings.activation_inputs:
                    self._measure("actv", name, _numbered(f"{name}.input", args))
                self._measure("actv", name, _numbered(f"{name}.output", _listed(result)))
            if self._settings.activation_gradients and torch.is_grad_enabled():
                self._follow(name, result)

    def _follow(self, name: str, result: Any) -> None:
        """Measure the gradients of a result when they arrive. The hooks go with the graph."""
        for label, value in _numbered(f"{name}.output", _listed(result)):
            if value.requires_grad:
                value.register_hook(self._gradient_hook(name, label))  # type: ignore[no-untyped-call]

    def _gradient_hook(self, name: str, label: str) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            if not is_compiling():
                with self._errors.guard("the gradient of an activation"):
                    self._measure("actv_grad", name, iter([(label, gradient)]))

        return hook

    def _measure(self, metric: str, module: str, values: Iterator[tuple[str, torch.Tensor]]) -> None:
        meters = self._meters[module]
        with Unobserved():
            for label, value in values:
                tensor = plain(value)
                if tensor is not None:
                    for names, numbers in meters.measure([(label, tensor)]):
                        self._found[metric, label] = Numbers(metric, meters.statistics, names, numbers)


def _listed(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result) if isinstance(result, (list, tuple)) else []


def _numbered(name: str, values: Sequence[Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors with names: `name` where there is one, else `name_0`, `name_1`, as msprobe names them."""
    tensors = [one for one in values if isinstance(one, torch.Tensor)]
    for place, one in enumerate(tensors):
        yield name if len(tensors) == 1 else f"{name}_{place}", one
