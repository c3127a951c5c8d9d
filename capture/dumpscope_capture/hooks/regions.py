"""Regions of compiled code: each call of a graph that torch.compile made is a node `Compiled.{module or function}.{n}.forward`.

The compiled code itself runs as it runs without capture. Nothing inside a region is recorded; its arguments, results and
gradients are, as those of one call, and its graph is a text in `compiled_graphs/` of the step.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

import torch

from dumpscope_capture.calls.call import Call
from dumpscope_capture.calls.edges import is_new, node_of, sequence_number
from dumpscope_capture.calls.selection import backward_name
from dumpscope_capture.context import LOG, Unobserved
from dumpscope_capture.hooks.entering import Entering
from dumpscope_capture.hooks.graphs import GRAPHS, RESUMED, Graph
from dumpscope_capture.hooks.patches import Patches
from dumpscope_capture.older_torch import autocast_dtype
from dumpscope_capture.record.recording import Recording
from dumpscope_format.compiled_graph import SUFFIX
from dumpscope_format.paths import file_name
from dumpscope_format.run import COMPILED_GRAPHS

PREFIX: Final = "Compiled"
_BACKWARD: Final = "CompiledFunctionBackward"
_NODE_LIMIT: Final = 1_000
_FRAME_LIMIT: Final = 12
_UNFIT: Final = re.compile(r"\W+")


class CompiledRegions:
    """Records regions between `begin` and `end`.

    label_of: label of a module that is a node, None for others
    install_late: called when the program has used torch.compile for the first time
    """

    def __init__(
        self,
        recording: Recording,
        entering: Entering,
        *,
        label_of: Callable[[torch.nn.Module], str | None],
        install_late: Callable[[], None],
    ) -> None:
        self._recording = recording
        self._entering = entering
        self._label_of = label_of
        self._install_late = install_late
        self._paths: dict[int, tuple[str, weakref.ref[torch.nn.Module]]] = {}
        self._watched = False
        self._wrapped: list[tuple[dict[str, Any], str, Any, Any]] = []
        self._patches = Patches()
        self._told = self._told_unseen = False
        self.regions: dict[str, dict[str, Any]] = {}
        self._files: dict[int, str] = {}
        self._keeps_random = recording.config.task == "tensor"

    # -- on and off ----------------------------------------------------------------------------------------------------

    def watch(self, models: Sequence[torch.nn.Module], *, numbered: bool) -> None:
        """Name the modules of models, for the names of their regions."""
        self._paths.clear()
        for number, model in enumerate(models):
            head = f"{number}." if numbered else ""
            for path, module in model.named_modules():
                parts = [part for part in path.split(".") if part and part != "_orig_mod"]
                label = f"{head}{'.'.join([*parts, type(module).__name__])}"
                self._paths.setdefault(id(module), (label, weakref.ref(module)))

    def begin(self) -> None:
        """Record the regions that exist and those that are made until `end`."""
        if GRAPHS.watch():
            self._entering.install()
            GRAPHS.on_new = self._wrap
            for scope, name in GRAPHS.places():
                self._wrap(scope, name)
        elif not self._patches and "torch._dynamo" not in sys.modules:
            self._patches.put(torch, "compile", self._compile(torch.compile))

    def end(self) -> None:
        self._patches.undo()
        if GRAPHS.on_new == self._wrap:
            GRAPHS.on_new = None
        wrapped, self._wrapped = self._wrapped, []
        for scope, name, original, wrapper in wrapped:
            if scope.get(name) is wrapper:
                scope[name] = original
        self._entering.remove()

    def end_step(self) -> dict[str, dict[str, Any]]:
        """Regions of the step, by node without direction."""
        regions, self.regions = self.regions, {}
        self._files.clear()
        self._watched = False
        return regions

    def end_unseen(self) -> int:
        """Number of autograd nodes of the step made between regions, by calls that are not recorded; logged once."""
        unseen, self._entering.unseen = self._entering.unseen, 0
        if unseen and not self._told_unseen:
            self._told_unseen = True
            LOG.warning(
                "%d or fewer calls ran eagerly inside compiled code, where torch.compile gave up (a graph break in a loop): they "
                'are not recorded. "compiled": "eager" records them, with the numbers of eager code',
                unseen,
            )
        return unseen

    def _compile(self, compile_module: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.compile` until its first call, which imports dynamo."""

        def compile_and_watch(*args: Any, **kwargs: Any) -> Any:
            result = compile_module(*args, **kwargs)
            if "torch._dynamo" in sys.modules and self._patches:
                self._patches.undo()
                self._install_late()
            return result

        return compile_and_watch

    def _wrap(self, scope: dict[str, Any], name: str) -> None:
        compiled = scope[name]
        graph = GRAPHS.find(name)
        set_frames = torch._C._dynamo.eval_frame.set_eval_frame

        def call_region(*args: Any, **kwargs: Any) -> Any:
            prior = set_frames(None)
            try:
                return self._run(graph, compiled, args, kwargs)
            finally:
                set_frames(prior)

        torch._dynamo.eval_frame.skip_code(call_region.__code__)
        self._wrapped.append((scope, name, compiled, call_region))
        scope[name] = call_region

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _run(self, graph: Graph, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recording = self._recording
        if (
            not recording.active
            or recording.thread_state.inside
            or recording.functions_off
            or self._entering.inside_region
        ):
            return compiled(*args, **kwargs)
        came = self._entering.begin_region()
        try:
            call = None
            with recording.errors.guard("a compiled region's arguments"):
                call = self._begin(graph, args, kwargs, sys._getframe(2))
            states: dict[str, torch.Tensor] = {}
            if self._keeps_random and call is not None and call.outcome == "record":
                with recording.errors.guard("the state of random numbers"):
                    states = _random_states(args)
            first = sequence_number()
            try:
                result = compiled(*args, **kwargs)
            except BaseException:
                if call is not None:
                    recording.fail_call(call)
                raise
            with recording.errors.guard("a compiled region's results"):
                self._quieten(result, first)
                if call is not None:
                    self._end(call, result)
                    self._keep_random(call, args, states)
            return result
        finally:
            self._entering.end_region(came)

    def _begin(self, graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> Call:
        recording = self._recording
        label, module = self._label(frame)
        region = f"{PREFIX}.{label}"
        number = recording.count(region, frame)
        node = f"{region}.{number.shown}"
        name = f"{node}.forward"
        outcome = recording.selection.call(name, PREFIX, label, custom=True)
        call = Call(name, outcome, recording.parent(number) if recording.links else None, number)
        call.region = region
        if outcome != "drop":
            recording.take_arguments(call, args, kwargs, frame)
        if outcome == "record":
            self.regions[node] = self._describe(graph, node, module)
        return call

    def _end(self, call: Call, result: Any) -> None:
        recording = self._recording
        if call.outcome == "drop":
            return
        recording.take_results(call, result)
        recording.watch(call, backward_name(call.name), result, None)
        if recording.selection.sides.backward and torch.is_grad_enabled() and not self._watched:
            self._watched = True
            self._watch_parameters()

    def _watch_parameters(self) -> None:
        """Follow the gradients of all modules that are nodes: which of them run inside compiled code cannot be seen."""
        for _, held in self._paths.values():
            module = held()
            label = self._label_of(module) if module is not None else None
            if module is not None and label is not None:
                self._recording.parameters.watch(label, module, f"{label}.forward.0")

    def _describe(self, graph: Graph, node: str, module: torch.nn.Module | None) -> dict[str, Any]:
        """Entry of run.json."""
        found: dict[str, Any] = {
            "graph": self._write(graph, node), "backend": graph.backend, "function": graph.code, "place": graph.place,
            "whole": graph.whole and module is not None, "inputs": list(graph.names), "modes": _modes(),
        }  # fmt: skip
        if graph.breaks:
            found["graph_break"] = True
        label = self._label_of(module) if module is not None and graph.whole else None
        if label is not None:
            found["module"] = label
        return found

    def _write(self, graph: Graph, node: str) -> str | None:
        """Write the text of a graph into the step's folder, once. Returns its path there."""
        if graph.text is None:
            if not self._told:
                self._told = True
                LOG.warning("%s was compiled before the recording: the text of its graph is not known", node)
            return None
        known = self._files.get(id(graph))
        sink = self._recording.sink
        if known is None and sink is not None:
            known = self._files[id(graph)] = f"{COMPILED_GRAPHS}/{file_name(node, '.py')}"
            with self._recording.errors.guard("a compiled graph"):
                path = sink.folder / known
                path.parent.mkdir(exist_ok=True)
                head = f"# {node}: {graph.code} at {graph.place}, backend {graph.backend}\n"
                path.write_text(head + graph.text, encoding="utf-8")
                if graph.document is not None:
                    path.with_suffix(SUFFIX).write_text(graph.document, encoding="utf-8")
        return known

    def _keep_random(self, call: Call, args: tuple[Any, ...], states: dict[str, torch.Tensor]) -> None:
        """Keep the states from which a region has drawn random numbers. states: before it"""
        sink = self._recording.sink
        if not states or sink is None or all(map(torch.equal, states.values(), _random_states(args).values())):
            return
        node = call.name[: -len(".forward")]
        known = f"{COMPILED_GRAPHS}/{file_name(f'{node}.random', SUFFIX)}"
        path = sink.folder / known
        path.parent.mkdir(exist_ok=True)
        texts = {device: base64.b64encode(bytes(state.tolist())).decode() for device, state in states.items()}
        path.write_text(json.dumps(texts), encoding="utf-8")
        self.regions[node]["random"] = known

    def _label(self, frame: FrameType) -> tuple[str, torch.nn.Module | None]:
        """Name of what a region is compiled from, and the module it belongs to. frame: of the compiled function"""
        function = frame.f_code.co_name
        outer: FrameType | None = frame
        if function.startswith(RESUMED):  # the function that was left at the break is further out
            function = re.sub(r"_at_\d+(_\d+)*$", "", function[len(RESUMED) :])
        for _ in range(_FRAME_LIMIT):
            if outer is None:
                break
            if outer is frame or outer.f_code.co_name == function:
                held = outer.f_locals
                for key in (*outer.f_code.co_varnames[:1], "fn"):  # `fn` where a class of torch itself is compiled
                    if isinstance(held.get(key), torch.nn.Module):
                        return self._module_label(held[key]), held[key]
                if outer is not frame or not frame.f_code.co_name.startswith(RESUMED):
                    break
            outer = outer.f_back
        return _UNFIT.sub("_", function).strip("_") or "function", None

    def _module_label(self, module: torch.nn.Module) -> str:
        known = self._paths.get(id(module))
        return known[0] if known is not None and known[1]() is module else type(module).__name__

    def _quieten(self, result: Any, first: int) -> None:
        """Let nothing of ours be seen by the compiled backward of the call that made these results."""
        with Unobserved():
            results = result if isinstance(result, (tuple, list)) else [result]
            nodes = [node_of(one) for one in results if isinstance(one, torch.Tensor)]
            todo = [node for node in nodes if node is not None and is_new(node, first)]
            seen = set(todo)
            while todo and len(seen) < _NODE_LIMIT:
                node = todo.pop()
                if _BACKWARD in node.name():
                    node.register_prehook(_Begin(self._entering))
                    node.register_hook(_End(self._entering))
                    continue
                for below, _ in node.next_functions:
                    if below is not None and below not in seen and is_new(below, first):
                        seen.add(below)
                        todo.append(below)


def _modes() -> dict[str, Any]:
    """Switches around a region, which its graph does not hold."""
    kinds = {"cpu", *(kind for kind in ("cuda", "npu", "xpu") if getattr(torch, kind, None) is not None)}
    autocast = {kind: dtype for kind in sorted(kinds) if (dtype := autocast_dtype(kind)) is not None}
    return {
        "grad": torch.is_grad_enabled(),
        "autocast": {kind: str(dtype).replace("torch.", "") for kind, dtype in autocast.items()},
    }


def _random_states(args: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    """States of the generators that a region with these arguments may use, by device."""
    states = {"cpu": torch.get_rng_state()}
    for device in {arg.device for arg in args if isinstance(arg, torch.Tensor)}:
        module: Any = getattr(torch, device.type, None)
        if device.type not in ("cpu", "meta") and hasattr(module, "get_rng_state"):
            states[str(device)] = module.get_rng_state(device)
    return states


class _Begin:
    """Prehook of a compiled backward."""

    __slots__ = ("_entering",)

    def __init__(self, entering: Entering) -> None:
        self._entering = entering

    def __call__(self, gradients: Any) -> None:
        self._entering.begin_backward()


class _End:
    """Hook of a compiled backward."""

    __slots__ = ("_entering",)

    def __init__(self, entering: Entering) -> None:
        self._entering = entering

    def __call__(self, inputs: Any, outputs: Any) -> None:
        self._entering.end_backward()
