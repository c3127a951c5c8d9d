"""Gradients of parameters, read after autograd has accumulated them: `Module.fc.Linear.parameters_grad.0`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.graph import Node

from dumpscope_capture.calls.edges import accumulator_of
from dumpscope_capture.calls.selection import backward_name
from dumpscope_capture.context import Unobserved
from dumpscope_capture.record.backward_passes import BackwardPasses
from dumpscope_capture.record.step import Step


class _Group:
    """Gradients of one module's parameters under one number. A parameter that gets a second gradient begins the next number."""

    __slots__ = ("body", "name", "number")

    def __init__(self) -> None:
        self.number = -1
        self.name = ""
        self.body: dict[str, Any] = {}


class ParameterGradients:
    """Hooks on the nodes that take the gradients of modules' own parameters, one per parameter, module and step.

    A node is kept alive for the step, with its hook.
    """

    def __init__(self, step: Step, passes: BackwardPasses) -> None:
        self._step = step
        self._passes = passes
        self._lock = threading.Lock()
        self._hooked: dict[tuple[int, str], tuple[Node, Any]] = {}
        self._views: dict[tuple[str, str], int] = {}
        self._groups: dict[str, _Group] = {}
        self.watched: set[str] = set()
        self._listed: set[str] = set()

    def reset(self) -> None:
        with self._lock:
            for _, handle in self._hooked.values():
                handle.remove()
            self._hooked.clear()
            self._views.clear()
            self._groups.clear()
            self.watched.clear()
            self._listed.clear()

    def watch(self, label: str, module: torch.nn.Module, name: str) -> None:
        """Hook a module's own parameters, at the end of its forward: a wrapper may put the whole parameter in the place of this
        rank's part only while the forward runs. label: `Module.fc.Linear`; name: of the forward node"""
        selection = self._step.selection
        if selection.named and selection.follows(backward_name(name)):
            self._listed.add(label)
        with Unobserved():
            for key, parameter in module.named_parameters(recurse=False):
                if not parameter.requires_grad:
                    continue
                if parameter.grad_fn is not None:  # a view into a flat parameter, made anew for each forward
                    made = parameter.grad_fn._sequence_nr()
                    if self._views.get((label, key)) != made:
                        self._views[label, key] = made
                        self.watched.add(label)
                        parameter.grad_fn.register_prehook(_ViewHook(self, label, key, parameter.output_nr))
                    continue
                known = self._hooked.get((id(parameter), label))
                if known is not None and getattr(known[0], "variable", None) is parameter:
                    continue
                node = accumulator_of(parameter)
                if node is not None:
                    self.watched.add(label)
                    handle = node.register_hook(_AccumulatorHook(self, label, key, parameter))
                    self._hooked[id(parameter), label] = node, handle

    def missing(self) -> list[str]:
        """Labels of the modules with parameters if a backward pass ran and none of them got a gradient, else empty."""
        return sorted(self.watched) if self._passes.any and not self._groups else []

    def record(self, label: str, name: str, gradient: torch.Tensor) -> None:
        """A parameter has its gradient: add it to the module's record."""
        step = self._step
        sink = step.sink
        if sink is None or not step.selection.sides.backward:
            return
        self._passes.await_end(torch._C._current_graph_task_id())
        self._passes.parameters_of(label)
        with self._lock:
            group = self._groups.setdefault(label, _Group())
            if group.number < 0 or name in group.body:
                group.number += 1
                group.name = f"{label}.parameters_grad.{group.number}"
                group.body = {}
            node = group.name
            group.body[name] = None
        if step.selection.module(node, listed=label in self._listed) != "record":
            return
        if step.overflow is not None and not step.overflow.overflows(node, (), gradient):
            return
        if step.data:
            record = step.record(gradient, f"{node}.{name}")
            with self._lock:
                group.body[name] = [record]
                body = dict(group.body)
            sink.add(node, body, linked=False)
        else:
            sink.add(node, {}, linked=False)


class _AccumulatorHook:
    """Hook of one AccumulateGrad node."""

    __slots__ = ("_label", "_name", "_owner", "_parameter")

    def __init__(self, owner: ParameterGradients, label: str, name: str, parameter: torch.Tensor) -> None:
        self._owner = owner
        self._label = label
        self._name = name
        self._parameter = weakref.ref(parameter)

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        parameter = self._parameter()
        if parameter is None:
            return
        try:
            gradient = getattr(parameter, "main_grad", None)
            gradient = parameter.grad if gradient is None else gradient
            if gradient is None and outputs:  # a hook of the program has taken it away already
                gradient = outputs[0]
            if gradient is not None:
                self._owner.record(self._label, self._name, gradient)
        except Exception as error:
            self._owner._step.errors.note("a parameter's gradient", error)


class _ViewHook:
    """Prehook of the node that made a parameter as a view."""

    __slots__ = ("_label", "_name", "_owner", "_slot")

    def __init__(self, owner: ParameterGradients, label: str, name: str, slot: int) -> None:
        self._owner = owner
        self._label = label
        self._name = name
        self._slot = slot

    def __call__(self, gradients: Sequence[torch.Tensor | None]) -> None:
        gradient = gradients[self._slot]
        if gradient is None:
            return
        try:
            self._owner.record(self._label, self._name, gradient)
        except Exception as error:
            self._owner._step.errors.note("a parameter's gradient", error)
