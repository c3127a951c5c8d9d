"""Nodes of the current step: names and counters, what is kept of each, parents, and the order of what comes in backward.

Calls and modules report here from any thread; finished bodies go on to the sink.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Final

import torch

from dumpscope_capture.checks import Bench, Overflow
from dumpscope_capture.config import Config
from dumpscope_capture.context import Faults, Quiet, call_stack
from dumpscope_capture.gradients import Edge, Watch, edge_of, sequence_number
from dumpscope_capture.kernels import KernelDump
from dumpscope_capture.names import Api
from dumpscope_capture.parameters import ParameterGradients
from dumpscope_capture.selection import Outcome, Selection
from dumpscope_capture.sink import StepSink
from dumpscope_capture.values import Recorder
from dumpscope_format.naming import api_name, item_name

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_DROPOUTS: Final = frozenset(("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"))
_CLIPPERS: Final = frozenset(("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "_clip_grads_with_norm_", "get_total_norm", "_get_total_norm"))
_CLIP_LEVELS: Final = 10
NESTING_LIMIT: Final = 50


class Place(threading.local):
    """Where one thread stands.

    modules: nodes of the modules open in it, outermost first; calls: the same, by id of the module; outside: pseudo parents;
    inside: wrapped calls that run in it
    """

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.calls: list[tuple[int, Call]] = []
        self.outside: list[str] = []
        self.inside = 0


class Call:
    """A node between its start and its end."""

    __slots__ = ("api", "body", "edges", "first", "held", "idle", "name", "outcome", "parent", "stack")

    def __init__(self, name: str, outcome: Outcome, parent: str | None) -> None:
        self.name = name
        self.outcome: Outcome = outcome
        self.parent = parent
        self.api: Api | None = None
        self.body: dict[str, Any] = {}
        self.stack: tuple[str, ...] | None = None
        self.edges: list[Edge | None] = []
        self.first = -1
        self.idle = False
        self.held: Arguments | None = None

    @property
    def label(self) -> str:
        return self.api.label if self.api is not None else ""


class Recording:
    """What one process records, step after step. A step is open between `open` and `close`; outside everything is ignored."""

    def __init__(self, config: Config, selection: Selection, faults: Faults) -> None:
        self.config = config
        self.selection = selection
        self.faults = faults
        self.place = Place()
        self.active = False
        self.sink: StepSink | None = None
        self.recorder: Recorder | None = None
        self.accumulators: dict[int, Any] = {}
        self.parameters = ParameterGradients(self)
        self.links = config.extra_info and config.level != "L1"
        self.data = config.task != "structure"
        self.functions_too = config.level == "mix"
        self.functions_off = False
        self.overflow: Overflow | None = None
        self.bench: Bench | None = None
        self.kernels: KernelDump | None = None
        self._lock = threading.RLock()
        self._counters: dict[str, int] = {}
        self._pseudo: set[str] = set()
        self._open: list[Watch] = []
        self._late: list[Watch] = []
        self._unfinished: dict[int, list[Watch]] = {}

    # -- steps ---------------------------------------------------------------------------------------------------------

    def open(self, sink: StepSink, recorder: Recorder) -> None:
        with self._lock:
            self.sink, self.recorder = sink, recorder

    def settle(self) -> None:
        """Add whatever is still waiting for gradients."""
        with self._lock:
            passes = list(self._unfinished)
        for number in passes:
            self.end_pass(number)

    def close(self) -> None:
        """The step ends: counters start at 0 again."""
        self.settle()
        with self._lock:
            self._counters.clear()
            self._pseudo.clear()
            self._open.clear()
            self._late.clear()
            self._unfinished.clear()
            self.accumulators.clear()
            self.parameters.reset()
            self.selection.reset()
            self.sink = self.recorder = None

    def count(self, label: str) -> int:
        """Number of this call of `label`, from 0."""
        with self._lock:
            number = self._counters.get(label, 0)
            self._counters[label] = number + 1
            return number

    def parent(self) -> str | None:
        """Node that encloses what starts now in this thread."""
        place = self.place
        if place.modules:
            return place.modules[-1]
        if place.outside:
            return place.outside[-1]
        if torch._C._current_graph_task_id() != -1:  # recomputed inside a backward pass
            with self._lock:
                for watch in reversed(self._open):
                    if watch.owner is not None:
                        return watch.name
        return None

    def link_once(self, name: str) -> None:
        """A line of construct.json for a pseudo parent."""
        with self._lock:
            if name in self._pseudo or self.sink is None:
                return
            self._pseudo.add(name)
        self.sink.parent(name, None)

    # -- functions -----------------------------------------------------------------------------------------------------

    def begin_call(self, api: Api, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> Call:
        """Record a call's arguments before it runs."""
        name = api_name(api.prefix, api.name, self.count(api.label), "forward")
        outcome = self.selection.call(name, api.prefix, api.name, direction="forward")
        call = Call(name, outcome, self.parent() if self.links else None)
        if call.parent is None and self.links and self.functions_too and _is_clipping(frame):
            call.parent = "clip_grad"
            self.link_once("clip_grad")
        call.api = api
        call.idle = api.name in _DROPOUTS and _drop_share(args, kwargs) == 0
        if outcome != "drop":
            self.take_arguments(call, args, kwargs, frame)
        return call

    def run(self, call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call, inside the device's kernel dump where this is the call it is for."""
        if self.kernels is not None and self.sink is not None and self.kernels.wanted(call.name):
            with self.kernels.around(call.name, self.sink.folder):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    def end_call(self, call: Call, result: Any) -> None:
        """Record a call's results and watch its gradients."""
        if call.outcome == "drop":
            return
        self.take_results(call, result)
        if not call.idle:
            self.watch(call, f"{call.name.removesuffix('forward')}backward", result, None)

    def stop_call(self, call: Call) -> None:
        """A checkpoint has what it needs and breaks the call off: it is a node without results."""
        with self.faults.guard("a call's results"):
            if call.outcome == "record" and self.sink is not None and self.selection.sides.forward:
                self.sink.add(call.name, call.body, stack=call.stack, parent=call.parent)

    def fail_call(self, call: Call) -> None:
        """A call raised: it was no node, and the next one of its name takes its number."""
        number = int(call.name.rsplit(".", 2)[1])
        with self._lock:
            if self._counters.get(call.label) == number + 1:
                self._counters[call.label] = number

    # -- what functions and modules have in common ---------------------------------------------------------------------

    def take_arguments(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        sides = self.selection.sides
        if call.outcome == "record" and sides.forward:
            if self.config.extra_info:
                call.stack = call_stack(frame)
            if self.overflow is not None or self.bench is not None:
                call.held = (args, kwargs)
            if sides.input and self.data and self.overflow is None:
                self.record_arguments(call, args, kwargs)
        if sides.backward and torch.is_grad_enabled():
            with Quiet():
                tensors = differentiable(args, kwargs)
                if call.api is None:
                    tensors = [tensor for tensor in tensors if tensor.requires_grad]
                call.edges = [edge_of(tensor, self.accumulators) for tensor in tensors]
                call.first = sequence_number()

    def record_arguments(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = call.name
        call.body["input_args"] = [self.record(value, item_name(name, "input", str(n))) for n, value in enumerate(args)]
        call.body["input_kwargs"] = {
            key: self.record(value, item_name(name, "kwargs", key), keyword=key) for key, value in kwargs.items()
        }

    def take_results(self, call: Call, result: Any, more: Mapping[str, Any] | None = None) -> None:
        """Finish the forward node. more: further keys of its body."""
        sink = self.sink
        if sink is None:
            return
        sides = self.selection.sides
        if call.outcome == "record" and sides.forward:
            if self.overflow is not None and not self._keep_overflow(call, result):
                return
            if sides.output and self.data:
                call.body["output"] = self.record_output(result, call.name)
            call.body.update(more or {})
            if self.bench is not None:
                self._save_difference(call, result)
            sink.add(call.name, call.body, stack=call.stack, parent=call.parent)
        elif self.links and sides.forward:
            sink.parent(call.name, call.parent)

    def _keep_overflow(self, call: Call, result: Any) -> bool:
        """Record a call's arguments where its values overflow; in-place calls show them as they are after it."""
        assert self.overflow is not None
        held, call.held = call.held, None
        if not self.overflow.overflows(call.name, held, result):
            return False
        if held is not None and self.selection.sides.input:
            self.record_arguments(call, *held)
        return True

    def _save_difference(self, call: Call, result: Any) -> None:
        """Save a call's tensors where its results part from the bench dump's."""
        assert self.bench is not None
        held, call.held = call.held, None
        if self.recorder is None or held is None:
            return
        self.recorder.resolve()
        if self.bench.differs(call.name, call.body):
            self.bench.saving = True
            try:
                self.record_arguments(call, *held)
                call.body["output"] = self.record_output(result, call.name)
            finally:
                self.bench.saving = False

    def record_output(self, result: Any, name: str) -> Any:
        """List of results; the record of a named tuple or dataclass is an object."""
        head = item_name(name, "output", "")
        if isinstance(result, (tuple, list)) and not isinstance(result, torch.Size):
            return self.record(result, head)
        if not isinstance(result, (dict, type)) and hasattr(result, "__dataclass_fields__"):
            return self.record(result, head)
        return [self.record(result, f"{head}.0")]

    def watch(self, call: Call, name: str, result: Any, owner: Any, *, parent: str | None = None) -> None:
        """Follow the gradients of a finished call."""
        if call.first < 0:
            return
        with Quiet():
            results = differentiable((result,), {})
            if owner is not None:
                results = [tensor for tensor in results if tensor.requires_grad]
            watch = Watch(name, self, parent=parent or _backward_of(call.parent), results=len(results),
                          arguments=len(call.edges), owner=owner)  # fmt: skip
            watch.takes_input, watch.takes_output = self.selection.sides.input, self.selection.sides.output
            if call.outcome == "link" or not self.data:
                watch.attach_marker(results, call.first)
            elif owner is None and self.config.backward == "msprobe":
                watch.attach_last(results, call.first)
            else:
                watch.attach(results, call.edges, call.first)
        call.edges = []

    def gradient(self, tensor: torch.Tensor, item: str) -> Any:
        """Record of a gradient; where only overflow is kept the tensor itself, until all of its node have come."""
        return tensor.detach() if self.overflow is not None else self.record(tensor, item)

    def record(self, value: Any, item: str, *, keyword: str | None = None) -> Any:
        recorder = self.recorder
        if recorder is None:
            return None
        with Quiet():
            return recorder.record(value, item, keyword=keyword)

    # -- backward ------------------------------------------------------------------------------------------------------

    def begun(self, watch: Watch) -> None:
        if self.sink is None:
            return
        self._flush_late(watch.first)
        with self._lock:
            self._await_end(watch.pass_id)
            self._unfinished[watch.pass_id].append(watch)
            if watch.owner is not None:
                self._open.append(watch)

    def reserve(self, watch: Watch) -> None:
        if watch.owner is None and not watch.reserved and self.sink is not None:
            self._flush_late(watch.first)
            watch.reserved = True
            self._judge(watch)
            self._write(watch, empty=True)

    def complete(self, watch: Watch) -> None:
        if watch.owner is not None and watch.expected:
            # Gradients of its own parameters may follow and belong before it, until the engine has passed all of its nodes.
            with self._lock:
                self._late.append(watch)
            return
        self._flush_late(watch.first)
        self._finish(watch)

    def failed(self, where: str, error: Exception) -> None:
        self.faults.note(where, error)

    def end_pass(self, number: int) -> None:
        """A backward pass is over: what has not come by now will not come."""
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
        if number != -1:
            torch.autograd.Variable._execution_engine.queue_callback(_EndOfPass(self.end_pass, number))

    def _flush_late(self, first: int) -> None:
        """Finish waiting modules. first: number of a call that is at work now; modules that began after it are over."""
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
        if not watch.reserved:
            self._judge(watch)
        self._write(watch)

    def _judge(self, watch: Watch) -> None:
        """Whether a backward node is recorded, as its name passes the filters."""
        if watch.owner is not None:
            outcome = self.selection.module(watch.name)
        else:
            prefix, api = watch.name.rsplit(".", 3)[:2]
            outcome = self.selection.call(watch.name, prefix, api, direction="backward")
        watch.outcome = "link" if outcome == "record" and not watch.data and self.data else outcome

    def _write(self, watch: Watch, *, empty: bool = False) -> None:
        """Hand a node on. empty: it only takes its place in the file, and its records follow."""
        sink = self.sink
        if sink is None:
            return
        if watch.outcome == "link" and self.links:
            sink.parent(watch.name, watch.parent)
        if watch.outcome != "record":
            return
        body: dict[str, Any] = {}
        if self.overflow is not None:
            if empty or not self.overflow.overflows(watch.name, watch.inputs, watch.outputs):
                return
            watch.inputs = self.record(watch.inputs, f"{watch.name}.input")
            watch.outputs = self.record(watch.outputs, f"{watch.name}.output")
        if self.data:
            if watch.takes_input:
                body["input"] = [] if empty else list(watch.inputs)
            if watch.takes_output:
                body["output"] = [] if empty else list(watch.outputs)
        sink.add(watch.name, body, parent=watch.parent)


class _EndOfPass:
    """Callback of the autograd engine at the end of one pass."""

    __slots__ = ("_act", "_number")

    def __init__(self, act: Callable[[int], None], number: int) -> None:
        self._act = act
        self._number = number

    def __call__(self) -> None:
        self._act(self._number)


def differentiable(args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors that can have a gradient, in the order in which they stand: nested containers flattened, keyword ones last."""
    found: list[torch.Tensor] = []
    _gather(args, found, 0)
    if kwargs:
        _gather(kwargs, found, 0)
    return found


def _gather(value: Any, found: list[torch.Tensor], depth: int) -> None:
    if isinstance(value, torch.Tensor):
        if value.requires_grad or value.is_floating_point() or value.is_complex():
            found.append(value)
    elif depth < NESTING_LIMIT:
        if isinstance(value, (tuple, list)):
            for part in value:
                _gather(part, found, depth + 1)
        elif isinstance(value, dict):
            for part in value.values():
                _gather(part, found, depth + 1)
        elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            for field in value.__dataclass_fields__:
                _gather(getattr(value, field, None), found, depth + 1)


def _backward_of(parent: str | None) -> str | None:
    """Backward node of an enclosing forward node."""
    if parent is None or ".forward." not in parent:
        return None if parent is None or ".backward." not in parent else parent
    head, _, number = parent.rpartition(".forward.")
    return f"{head}.backward.{number}"


def _is_clipping(frame: FrameType | None) -> bool:
    """Whether a call comes from torch's clipping of gradients."""
    for _ in range(_CLIP_LEVELS):
        if frame is None:
            return False
        if frame.f_code.co_name in _CLIPPERS and frame.f_code.co_filename.endswith("clip_grad.py"):
            return True
        frame = frame.f_back
    return False


def _drop_share(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Share of elements a dropout drops. At 0 its gradient is its result's gradient and no node of its own."""
    return kwargs.get("p", args[1] if len(args) > 1 else None)
