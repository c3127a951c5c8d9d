"""Nodes of the current step: their names, numbers, parents and records.

Hooks of calls and modules call this from any thread; finished records go to the sink.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import torch

from dumpscope_capture.calls import observers
from dumpscope_capture.calls.call import (
    DROPOUTS,
    OPTIMIZER,
    Call,
    ThreadState,
    backward_of,
    differentiable,
    drop_share,
    is_clipping,
    is_recomputed,
    is_stopped,
)
from dumpscope_capture.calls.edges import edge_of, leaf_edge, sequence_number
from dumpscope_capture.calls.graph_makers import graph_maker
from dumpscope_capture.calls.held_arguments import HeldArguments, writes_in_place
from dumpscope_capture.calls.names import Api
from dumpscope_capture.calls.numbers import Number, Numbers
from dumpscope_capture.calls.selection import Outcome, Selection, backward_name
from dumpscope_capture.config import Config
from dumpscope_capture.context import HookErrors, Unobserved, call_stack, is_running
from dumpscope_capture.device.kernels import KernelDump
from dumpscope_capture.record.backward_passes import BackwardPasses
from dumpscope_capture.record.gradients import Watch
from dumpscope_capture.record.notes import Notes
from dumpscope_capture.record.parameter_gradients import ParameterGradients
from dumpscope_capture.record.step import Step
from dumpscope_capture.values.provenance import Provenance
from dumpscope_capture.values.recorder import Recorder
from dumpscope_capture.values.written import Writes, buffers_of, surely_written
from dumpscope_capture.write.sink import Sink
from dumpscope_format.naming import api_name, item_name
from dumpscope_format.run import TRACED_NOTE
from dumpscope_format.schema import RECOMPUTED_KEY, WRITTEN_KEY


class Recording(Step):
    """What one process records, step after step. A step is open between `open` and `close`; outside everything is ignored.

    It owns the step: `passes` and `parameters` read the step's state and never import this module.
    """

    def __init__(self, config: Config, selection: Selection, errors: HookErrors) -> None:
        super().__init__(config, selection, errors)
        self.thread_state = ThreadState()
        self._on = False
        self.notes = Notes()
        self.passes = BackwardPasses(self)
        self.parameters = ParameterGradients(self, self.passes)
        self.provenance = Provenance() if config.extra_info and self.data else None
        self.functions_too = config.level == "mix"
        self.functions_off = False
        self.around: Callable[[FrameType | None], None] | None = None
        self.extra_keys = True  # keys of bodies that the files of ptdbg have no place for
        self.aten = False
        self.kernels: KernelDump | None = None
        self.observers: list[observers.Observer] = []
        self._lock = threading.RLock()
        self.numbers = Numbers(plain=config.numbering == "msprobe")
        self._pseudo: set[str] = set()
        self._left_out: dict[str, int] = {}

    @property
    def active(self) -> bool:
        """Whether what the program does now is recorded: not while a tool makes a graph of it, which is noted."""
        if not self._on:
            return False
        try:
            maker = graph_maker()
        except (
            Exception
        ) as error:  # every hook asks this: a torch that keeps its state elsewhere must not end the program
            self.errors.note("the state of torch", error)
            return True
        if maker is None:
            return True
        self.notes.add(TRACED_NOTE, maker)
        return False

    @active.setter
    def active(self, on: bool) -> None:
        self._on = on

    # -- steps ---------------------------------------------------------------------------------------------------------

    def open(self, sink: Sink, recorder: Recorder) -> None:
        with self._lock:
            self.sink, self.recorder = sink, recorder

    def close(self) -> None:
        """The step ends: counters start at 0 again."""
        self.passes.close()
        with self._lock:
            self.numbers.reset()
            self._pseudo.clear()
            self.parameters.reset()
            if self.provenance is not None:
                self.provenance.reset()
            self.selection.reset()
            self.notes.reset()
            self.sink = self.recorder = None

    def count(self, label: str, frame: FrameType | None) -> Number:
        """Number of the call of `label` that starts now. frame: that makes it"""
        return self.numbers.next(label, frame, self.parent)

    def parent(self, number: Number | None = None) -> str | None:
        """Node that encloses a call that starts now in this thread. number: of the call, None where it has none yet"""
        thread = self.thread_state
        if thread.modules:
            return thread.modules[-1].call.name
        if thread.is_stepping():
            return OPTIMIZER
        if torch._C._current_graph_task_id() != -1:  # recomputed inside a backward pass
            part = number.part if number is not None and self.selection.sides.backward else None
            around = None if part is None else backward_of(part.parent)
            return self.passes.innermost() if around is None else around
        return None

    def close_left(self, frame: FrameType | None) -> None:
        """Close what an exception has left without a hook of torch. frame: of what runs now"""
        thread = self.thread_state
        while thread.modules and not is_running(thread.modules[-1].frame, frame):
            self.end_module(thread.modules.pop().call, None)
        while thread.steps and not is_running(thread.steps[-1].frame, frame):
            thread.steps.pop()

    def end_module(self, call: Call, result: Any, label: str | None = None) -> None:
        """Record a module's results, and watch its gradients. label: of the module, None where an exception ended it"""
        try:
            if call.outcome != "drop":
                parameters = call.body.pop("parameters", None)
                self.take_results(call, result, more={} if parameters is None else {"parameters": parameters})
                if label is not None:
                    self.watch(call, backward_name(call.name), result, label)
        finally:
            self.selection.end_module(call.name)

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
        self.close_left(frame)
        if self.around is not None:
            self.around(frame)
        number = self.count(api.label, frame)
        name = api_name(api.prefix, api.name, number.shown, "forward")
        outcome: Outcome = "drop"
        if self.config.level != "L0" or api.custom:  # at L0 calls are only numbered, for `save_calls`
            outcome = self.selection.call(name, api.prefix, api.name, custom=api.custom)
        if not self.config.optimizer and self.thread_state.is_stepping():
            outcome = "drop"  # numbered all the same, so that other names do not depend on the key
        if outcome == "link" and not self.links:
            self._left_out[api.label] = self._left_out.get(api.label, 0) + 1
        call = Call(name, outcome, self.parent(number) if self.links else None, number)
        if call.parent is None and self.links and self.functions_too and is_clipping(frame):
            call.parent = "clip_grad"
            self.link_once("clip_grad")
        call.api = api
        call.idle = api.name in DROPOUTS and drop_share(args, kwargs) == 0
        if outcome != "drop":
            self.take_arguments(call, args, kwargs, frame)
        for observer in (*self.observers, *observers.OBSERVERS):
            with self.errors.guard("a call's arguments"):
                observer.begin(call, args, kwargs, frame)
        return call

    def take_left_out(self) -> dict[str, int]:
        """Functions that the risk level left out since the last time, and how often, where construct.json does not tell it."""
        counted, self._left_out = self._left_out, {}
        return counted

    def run(self, call: Call, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call: inside the device's kernel dump if it is the call to dump, else as the interventions say."""
        if self.kernels is not None and self.sink is not None and self.kernels.is_target(call.name):
            return self.kernels.run(call.name, self.sink.folder, function, args, kwargs)
        return observers.run(call, function, args, kwargs)

    def end_call(self, call: Call, result: Any) -> None:
        """Record a call's results and watch its gradients."""
        for observer in (*self.observers, *observers.OBSERVERS):
            with self.errors.guard("a call's results"):
                observer.end(call, result)
        if call.outcome == "drop":
            return
        self.take_results(call, result)
        if not call.idle:
            self.watch(call, backward_name(call.name), result, None)

    def note_uninitialised(self, result: Any) -> None:
        """A call that is no node returned memory as it is."""
        if self.provenance is not None:
            self.provenance.uninitialised.note(result)

    def stop_call(self, call: Call) -> None:
        """Activation checkpointing stopped its recomputation in this call: a node without results."""
        with self.errors.guard("a call's results"):
            if call.outcome == "record" and self.sink is not None and self.selection.sides.forward:
                self.sink.add(call.name, call.body, stack=call.stack, parent=call.parent)

    def note_exception(self, error: BaseException) -> None:
        """An exception of the program passes through a call."""
        for observer in (*self.observers, *observers.OBSERVERS):
            with self.errors.guard("an exception"):
                observer.note_exception(error)

    def fail_call(self, call: Call) -> None:
        """A call raised: it is not a node, and the next call of the same name takes its number."""
        if call.number is not None:
            self.numbers.give_back(call.number)

    # -- what functions and modules have in common ---------------------------------------------------------------------

    def take_arguments(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
        module: torch.nn.Module | None = None,
    ) -> None:
        """Record what a call receives. module: that is called, None for a function"""
        sides = self.selection.sides
        if call.outcome == "record" and sides.forward:
            if self.extra_keys and (call.made_again or (self.numbers.plain and is_recomputed(frame))):
                call.body[RECOMPUTED_KEY] = True
            if self.config.extra_info:
                call.stack = call_stack(frame)
            if self.overflow is not None:
                self.overflow.prepare()
            if self.overflow is not None or self.bench is not None:
                in_place = call.api is not None and writes_in_place(call.api.name, kwargs)
                call.held = HeldArguments(args, kwargs, in_place=in_place, marked=self.overflow is not None)
            if sides.input and self.data and self.overflow is None:
                self.record_arguments(call, args, kwargs)
            if sides.output and self.data and self._follows_writes(call):
                with Unobserved():
                    call.writes = self._writes(call, args, kwargs, module)
        if sides.backward and not self.aten and torch.is_grad_enabled():
            with Unobserved():
                tensors = list(args) if call.region else differentiable(args, kwargs)
                if call.api is None and not call.region:
                    tensors = [tensor for tensor in tensors if tensor.requires_grad]
                call.edges = [edge_of(value) if isinstance(value, torch.Tensor) else None for value in tensors]
                call.first = sequence_number()

    def _follows_writes(self, call: Call) -> bool:
        """Whether what the call writes into is recorded; the results of a collective are its buffers anyway."""
        plain = call.api is None or call.api.prefix not in ("Distributed", "Triton", "MindSpeed")
        return plain and self.extra_keys and self.overflow is None and self.bench is None

    def _writes(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], module: torch.nn.Module | None
    ) -> Writes:
        """What a call may write into."""
        if module is not None:
            buffers, sure = buffers_of(module)
            return Writes(args, kwargs, buffers=buffers, sure=sure)
        name = call.api.name if call.api is not None else ""
        return Writes(args, kwargs, sure=surely_written(name, args, kwargs, in_place=writes_in_place(name, kwargs)))

    def _record_written(self, call: Call, result: Any) -> None:
        """Record the arguments and buffers that a call has written into, as they are after it."""
        writes, call.writes = call.writes, None
        if writes is None:
            return
        with Unobserved():
            found = {
                path: (tensor, item_name(call.name, "output", f"{WRITTEN_KEY}.{path}"))
                for path, tensor in writes.after(result).items()
            }
            if self.provenance is not None and call.api is not None:
                for tensor, item in found.values():
                    self.provenance.note_written(tensor, item)
        if found:
            call.body[WRITTEN_KEY] = {path: self.record(tensor, item) for path, (tensor, item) in found.items()}

    def record_arguments(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder, name, body = self.recorder, call.name, call.body
        if recorder is None:
            return
        with Unobserved():
            head = item_name(name, "input", "")
            body["input_args"] = [recorder.record_unobserved(value, f"{head}.{n}") for n, value in enumerate(args)]
            body["input_kwargs"] = {
                key: recorder.record_unobserved(value, item_name(name, "kwargs", key), keyword=key)
                for key, value in kwargs.items()
            }
            if self.provenance is not None:
                call.extra = self.provenance.of_arguments(args, kwargs, body, call.api)
        if self.provenance is not None and call.api is not None:
            self.provenance.meet(call.label, call.api.function)

    def take_results(self, call: Call, result: Any, more: Mapping[str, Any] | None = None) -> None:
        """Finish the forward node. more: further keys of its body."""
        sink = self.sink
        if sink is None:
            return
        sides = self.selection.sides
        if call.outcome == "record" and sides.forward:
            if self.overflow is not None and not self._keep_overflow(call, result):
                return
            if sides.output and self.data and not (result is None and is_stopped(call)):
                call.body["output"] = self.record_output(result, call.name)
                self._record_written(call, result)
            call.body.update(more or {})
            if call.substituted is not None:
                call.body["substituted"] = call.substituted
            if self.provenance is not None and self.data:
                with Unobserved():
                    self.provenance.of_results(result, call.name, call.extra, call.api)
                call.body.update(call.extra)
            if self.bench is not None:
                self._save_difference(call, result)
            sink.add(call.name, call.body, stack=call.stack, parent=call.parent)
        elif self.links and sides.forward:
            sink.parent(call.name, call.parent)

    def _keep_overflow(self, call: Call, result: Any) -> bool:
        """Record the arguments of a call whose values overflow. Returns whether they do."""
        assert self.overflow is not None
        held, call.held = call.held, None
        if not self.overflow.overflows(call.name, held, result):
            return False
        if held is not None and self.selection.sides.input:
            self.record_arguments(call, held.args, held.kwargs)
        return True

    def _save_difference(self, call: Call, result: Any) -> None:
        """Save the tensors of a call whose results differ from the bench dump."""
        assert self.bench is not None
        held, call.held = call.held, None
        if self.recorder is None or held is None:
            return
        self.recorder.resolve()
        if self.bench.differs(call.name, call.body):
            self.bench.saving = True
            try:
                self.record_arguments(call, held.args, held.kwargs)
                call.body["output"] = self.record_output(result, call.name)
            finally:
                self.bench.saving = False

    def record_output(self, result: Any, name: str) -> Any:
        """Record of the results: a list, or an object for a named tuple or dataclass."""
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
        with Unobserved():
            results = differentiable((result,), {})
            if owner is not None:
                results = [tensor for tensor in results if tensor.requires_grad]
            watch = Watch(name, self.passes, parent=parent or call.backward_parent, results=len(results),
                          arguments=len(call.edges), owner=owner)  # fmt: skip
            watch.custom = bool(call.region) or (call.api is not None and call.api.custom)
            watch.by_slots = not call.region
            watch.takes_input, watch.takes_output = self.selection.sides.input, self.selection.sides.output
            watch.late = self.selection.before
            watch.listed = self.selection.named and self.selection.follows(name)
            if not self.data or (call.outcome == "link" and not self.selection.follows(name)):
                watch.attach_marker(results, call.first)
            elif owner is None and not call.region and self.config.backward == "msprobe":
                watch.attach_last(results, call.first)
            else:
                edges = [leaf_edge(edge) if isinstance(edge, torch.Tensor) else edge for edge in call.edges]
                watch.attach(results, edges, call.first)
        call.edges = []
