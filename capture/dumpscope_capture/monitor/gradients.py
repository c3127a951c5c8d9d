"""When gradients are read: before they are reduced over ranks, before they are clipped, and as the optimizer gets them.

A gradient is whole for this rank when its AccumulateGrad has run, which is before any wrapper reduces it. The backward pass ends
with callbacks: ours comes after that of DistributedDataParallel, as it is queued by a callback. What the optimizer gets is read
by a hook before its step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from dumpscope_capture.context import LOG, HookErrors, Unobserved, peek
from dumpscope_capture.monitor.ring import Numbers
from dumpscope_capture.monitor.settings import MonitorSettings
from dumpscope_capture.monitor.statistics import Meters
from dumpscope_capture.older_torch import is_compiling
from dumpscope_capture.values.tensor_subclasses import unwrap

PROBES: Final = 8
"""Parameters whose gradients tell that a backward pass runs; a hook on each of them would cost more than the measurement."""


def plain(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """The numbers of a tensor that can be measured: this rank's part of a sharded one; None where there are none."""
    if tensor is None:
        return None
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        _, tensor, _, absent = unwrap(tensor)
        if absent is not None:
            return None
    if tensor.layout is not torch.strided or not tensor.is_floating_point() or not tensor.numel():
        return None
    return tensor.detach()


def gradient_of(parameter: torch.nn.Parameter) -> torch.Tensor | None:
    """The gradient of a parameter, Megatron's `main_grad` where it has one."""
    main = getattr(parameter, "main_grad", None)
    return plain(main if isinstance(main, torch.Tensor) else parameter.grad)


class GradientWatch:
    """Measures gradients of one step; `take` gives the numbers and begins the next step.

    watched: the parameters by name; wanted: whether the step that runs is recorded
    """

    def __init__(
        self,
        watched: Sequence[tuple[str, torch.nn.Parameter]],
        settings: MonitorSettings,
        wanted: Callable[[], bool],
        errors: HookErrors,
    ) -> None:
        self._watched = watched
        self._wanted = wanted
        self._errors = errors
        self._reduces = _ranks() > 1
        self._early = Meters(settings.unclipped if settings.reduced else (), settings.eps)
        self._early_metric = "grad_unreduced" if settings.msprobe_words and not self._reduces else "grad_unclipped"
        self._local = Meters(settings.unreduced if settings.reduced and self._reduces else (), settings.eps)
        self._late = Meters(settings.statistics if settings.reduced else (), settings.eps)
        self._unreduced: dict[str, Numbers] = {}
        self._unclipped: list[Numbers] = []
        self._queued = False
        self._passes = 0
        self._expected = 1
        self._measured_at = 0
        self._handles: list[Any] = []

    def install(self) -> None:
        """Put hooks on parameters."""
        if self._local.statistics:
            for name, parameter in self._watched:
                self._handles.append(_after_accumulation(parameter, self._local_hook(name)))
        if self._early.statistics and self._watched:
            count = min(PROBES, len(self._watched))
            for place in sorted({at * (len(self._watched) - 1) // max(count - 1, 1) for at in range(count)}):
                self._handles.append(_after_accumulation(self._watched[place][1], self._probe))

    def remove(self) -> None:
        """Take all hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def take(self) -> list[Numbers]:
        """The gradients as the optimizer gets them, and those measured before: called before the optimizer's step."""
        found = list(self._unreduced.values())
        if self._measured_at == self._passes:
            found += self._unclipped
        self._expected, self._passes, self._measured_at = max(self._passes, 1), 0, 0
        self._unreduced, self._unclipped = {}, []
        if self._wanted():
            found += self._measure("grad_reduced", self._late)
        return found

    def _measure(self, metric: str, meters: Meters) -> list[Numbers]:
        if not meters.statistics:
            return []
        with Unobserved():
            named = [(name, grad) for name, one in self._watched if (grad := gradient_of(one)) is not None]
            return [Numbers(metric, meters.statistics, names, values) for names, values in meters.measure(named)]

    def _local_hook(self, name: str) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            if is_compiling() or self._passes + 1 < self._expected or not self._wanted():
                return
            with self._errors.guard("a gradient before it is reduced"), Unobserved():
                gradient = gradient_of(parameter)  # type: ignore[arg-type]
                if gradient is not None:
                    for names, values in self._local.measure([(name, gradient)]):
                        self._unreduced[name] = Numbers("grad_unreduced", self._local.statistics, names, values)

        return hook

    def _probe(self, parameter: torch.Tensor) -> None:
        if self._queued or is_compiling() or not self._wanted():
            return
        with self._errors.guard("the end of a backward pass"):
            self._queued = True
            _at_end(lambda: _at_end(self._backward_ended))

    def _backward_ended(self) -> None:
        """A backward pass is over. With several a step, or checkpoints that run their own, only the last one is measured: as many
        as the step before had."""
        self._queued = False
        self._passes += 1
        if self._passes < self._expected:
            return
        with self._errors.guard("gradients before they are clipped"):
            self._unclipped = self._measure(self._early_metric, self._early)
            self._measured_at = self._passes


def _after_accumulation(parameter: torch.nn.Parameter, hook: Callable[[torch.Tensor], None]) -> Any:
    return parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]


def _at_end(callback: Callable[[], None]) -> None:
    """Call something when the backward pass that runs is over."""
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def _ranks() -> int:
    distributed = torch.distributed
    ready = distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if ready else 1


def torch_optimizer(optimizer: Any) -> Any:
    """The optimizer whose step does the work: wrappers of other packages hold it as `optimizer`. None where there is none."""
    for _ in range(8):
        inner = peek(optimizer, "optimizer")
        if isinstance(inner, torch.optim.Optimizer) and inner is not optimizer:
            optimizer = inner
            continue
        break
    if callable(peek(optimizer, "register_step_pre_hook")):
        return optimizer
    LOG.warning("monitor: %s takes no hooks of torch's optimizers", type(optimizer).__name__)
    return None
