"""Order of backward nodes in the file, and the end of a backward pass."""

from __future__ import annotations

import threading
from typing import Any

import torch

from dumpscope_capture.context import Unobserved
from dumpscope_capture.record.gradients import Watch
from dumpscope_capture.record.step import Step


class BackwardPasses:
    """Listener of watches: decides when a backward node is written.

    A function is written when the first of its graph nodes runs, a module when the engine has run all of its graph nodes, after
    the gradients of its own parameters.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._lock = threading.RLock()
        self._open: list[Watch] = []
        self._late: list[Watch] = []
        self._unfinished: dict[int, list[Watch]] = {}
        self.any = False

    def settle(self) -> None:
        """Write the nodes that still wait for gradients."""
        with self._lock:
            passes = list(self._unfinished)
        for number in passes:
            self.end_pass(number)

    def close(self) -> None:
        """The step ends."""
        self.settle()
        with self._lock:
            self._open.clear()
            self._late.clear()
            self._unfinished.clear()
            self.any = False

    def innermost(self) -> str | None:
        """Backward node of the module that began last and is not finished."""
        with self._lock:
            return self._open[-1].name if self._open else None

    def begin(self, watch: Watch) -> None:
        if self._step.sink is None:
            return
        self._flush_late(watch.first)
        with self._lock:
            self._await_end(watch.pass_id)
            self._unfinished[watch.pass_id].append(watch)
            if watch.owner is not None:
                self._open.append(watch)
        selection = self._step.selection
        if not selection.ordered:
            return
        if watch.owner is not None:
            selection.begin_backward(watch.name)
            watch.kept = selection.may_begin(watch.name)
        elif not watch.late:  # else a module that begins with the same node may open the scope
            self._judge(watch)
            watch.kept = watch.outcome != "drop"

    def reserve(self, watch: Watch) -> None:
        if watch.owner is None and not watch.reserved and self._step.sink is not None:
            self._flush_late(watch.first)
            watch.reserved = True
            self._judge(watch)
            self._write(watch, empty=True)

    def wait_for_rest(self, watch: Watch) -> None:
        if watch.owner is not None:
            with self._lock:
                if watch not in self._late:
                    self._late.append(watch)

    def parameters_of(self, label: str) -> None:
        """A parameter of a module has its gradient. A module that waits for no gradient of an argument is written first."""
        if not self._late:
            return
        with self._lock:
            over = [w for w in self._late if not w.expected and w.name.startswith(f"{label}.backward.")]
            self._late = [watch for watch in self._late if watch not in over]
        for watch in over:
            self._finish(watch)

    def complete(self, watch: Watch) -> None:
        if watch.owner is not None and watch.expected:
            # Gradients of its own parameters may follow and are written first, until the engine has run all of its nodes.
            with self._lock:
                self._late.append(watch)
            return
        with self._lock:
            self._late = [other for other in self._late if other is not watch]
        self._flush_late(watch.first)
        self._finish(watch)

    def note_error(self, where: str, error: Exception) -> None:
        self._step.errors.note(where, error)

    def end_pass(self, number: int) -> None:
        """A backward pass is over: write what is incomplete."""
        self._flush_late(-1)
        with self._lock:
            left = self._unfinished.pop(number, [])
        for watch in left:
            if not watch.complete or watch in self._open:
                watch.settle()
                watch.complete = True
                self._finish(watch)

    def await_end(self, number: int) -> None:
        with self._lock:
            self._await_end(number)

    def _await_end(self, number: int) -> None:
        if number in self._unfinished:
            return
        self._unfinished[number] = []
        self.any = True
        if number != -1:
            torch.autograd.Variable._execution_engine.queue_callback(_EndOfPass(self, number))

    def _flush_late(self, first: int) -> None:
        """Finish waiting modules. first: sequence number of the call that runs now; modules that began after it are over."""
        if not self._late:
            return
        with self._lock:
            late = [watch for watch in self._late if watch.first > first]
            self._late = [watch for watch in self._late if watch.first <= first]
        for watch in late:
            self._finish(watch)

    def _finish(self, watch: Watch) -> None:
        with self._lock:
            if watch in self._open:
                self._open.remove(watch)
            waiting = self._unfinished.get(watch.pass_id)
            if waiting is not None and watch in waiting:
                waiting.remove(watch)
        self._judge(watch)
        self._write(watch)
        if watch.owner is not None:
            self._step.selection.end_module(watch.name)

    def _judge(self, watch: Watch) -> None:
        """Ask the filters whether a backward node is recorded, once a pass."""
        if watch.judged:
            return
        watch.judged = True
        selection = self._step.selection
        if watch.owner is not None:
            outcome = selection.module(watch.name, listed=watch.listed)
        else:
            prefix, api = watch.name.rsplit(".", 3)[:2]
            outcome = selection.call(watch.name, prefix, api, custom=watch.custom, listed=watch.listed)
        watch.outcome = "link" if outcome == "record" and not watch.data and self._step.data else outcome

    def _write(self, watch: Watch, *, empty: bool = False) -> None:
        """Write a node. empty: only reserve its place in the file; its records follow."""
        sink = self._step.sink
        if sink is None:
            return
        if watch.outcome == "link" and self._step.links:
            sink.parent(watch.name, watch.parent)
        if watch.outcome != "record":
            return
        body: dict[str, Any] = {}
        if self._step.overflow is not None:
            if empty or not self._step.overflow.overflows(watch.name, watch.inputs, watch.outputs):
                return
            watch.inputs = self._step.record(watch.inputs, f"{watch.name}.input")
            watch.outputs = self._step.record(watch.outputs, f"{watch.name}.output")
        if self._step.data:
            if watch.takes_input:
                body["input"] = [] if empty else list(watch.inputs)
            if watch.takes_output:
                body["output"] = [] if empty else list(watch.outputs)
        sink.add(watch.name, body, parent=watch.parent)

    def record_gradient(self, tensor: torch.Tensor, item: str) -> Any:
        """Record of a gradient. For an overflow check the tensor itself, until all gradients of its node are there."""
        if self._step.overflow is None:
            return self._step.record(tensor, item)
        with Unobserved():
            return tensor.detach()


class _EndOfPass:
    """Callback of the autograd engine at the end of one pass."""

    __slots__ = ("_number", "_passes")

    def __init__(self, passes: BackwardPasses, number: int) -> None:
        self._passes = passes
        self._number = number

    def __call__(self) -> None:
        try:
            self._passes.end_pass(self._number)
        except Exception as error:
            self._passes.note_error("the end of a backward", error)
