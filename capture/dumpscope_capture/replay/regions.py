"""Runs a compiled region, or a piece of its graph, with each backend, and judges each result.

The reference is eager code in higher precision. Calls that draw random numbers are left out of what is compiled: what they gave
in eager code is an input, and what they took is a result.
"""

from __future__ import annotations

import base64
import contextlib
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
import torch.fx

from dumpscope_capture.replay.arguments import Case, Tensors, lay_out
from dumpscope_capture.replay.graphs import RECORDED_NAME, Builder, Graph, Piece
from dumpscope_capture.replay.judging import ERROR, ORDER, PASS, SKIP, WARNING, Judgement, judge, worst
from dumpscope_capture.replay.running import Side, shake, switches, to_cpu, to_type

EAGER: Final = "eager"
INDUCTOR: Final = "inductor"
BACKENDS: Final = (EAGER, "aot_eager", INDUCTOR)
AS_FAR: Final = 8.0
"""A compiled result passes that is at most this many times as far off as eager code, where that is off itself."""
_NO_COMPILER: Final = ("InvalidCxxCompiler", "No working C++ compiler", "Cannot find a working triton", "TritonMissing")


@dataclass
class Given:
    """What a piece is run with: values of its inputs by name, those that want a gradient, and gradients of its outputs."""

    values: dict[str, Any]
    wants: set[str] = field(default_factory=set)
    grads: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass
class Ran:
    """Results of a run by item, tensors on the CPU: `NAME`, `gradient.NAME`, and `changed.NAME` of an input that was written to.

    error: why it ended early, else ""; missing: whether that is something that this machine lacks
    """

    items: dict[str, torch.Tensor] = field(default_factory=dict)
    error: str = ""
    missing: bool = False
    seconds: float = 0.0


class Region:
    """A region with its inputs on the device, and what a run of its graph in eager code has shown.

    drawn: operations that draw random numbers, and the states of the generators before each
    whole: names whose value is neither a tensor nor a number; types: floating types of results, by operation
    """

    def __init__(self, call: dict[str, Any], tensors: Tensors, case: Case) -> None:
        self.call = call
        self.case = case
        document = call["graph"]
        specs = dict(zip((node["name"] for node in document["nodes"] if node["op"] == "placeholder"), call["args"]))
        read = {name: _input(spec, tensors, case) for name, spec in specs.items()}
        numbers = {
            name: value.item()
            for name, value in read.items()
            if isinstance(value, torch.Tensor) and value.dim() == 0 and value.dtype is torch.float64
            and not specs[name].get("requires_grad")
        }  # fmt: skip
        self.graph = Graph(document, numbers)
        self.values = read
        self.item = {name: f"input.{place}" for place, name in enumerate(self.graph.inputs)}
        self.states = {
            device: torch.tensor(list(base64.b64decode(text)), dtype=torch.uint8)
            for device, text in (call["random"] or {}).items()
        }
        self.drawn: dict[int, list[torch.Tensor]] = {}
        self.drew: dict[str, torch.Tensor] = {}
        self.whole: list[str] = []
        self.types: dict[int, torch.dtype] = {}
        self.grads_begin = "none"
        self._slopes: dict[str, torch.Tensor] | None = None
        self.raised = _raised(list(read.values()))
        self._builders: dict[torch.dtype | None, Builder] = {}
        self.looked = self._look()

    def _look(self) -> Ran:
        """Run the whole graph in eager code and note what its nodes give."""
        piece = self.graph.piece(range(len(self.graph.nodes)))
        module = self.builder(None).module(piece)
        watching = _Watching(module, self.graph, self.case.device)
        done = Ran()
        try:
            with self.modes(Side()):
                self.seed()
                given = Given(dict(self.values), self.wanted(piece.inputs))
                _, passed = self._inputs(piece, given, Side())
                result = watching.run(*passed)
                done.items = {
                    name: to_cpu(tensor)
                    for name, tensor in zip(piece.outputs, result)
                    if isinstance(tensor, torch.Tensor)
                }
        except Exception as error:
            done.error = _said(error)
        self.drawn, self.whole, self.types = watching.drawn, watching.whole, watching.types
        self.drew = {
            self.graph.nodes[place]["name"]: watching.values[place] for place in self.drawn if place in watching.values
        }
        return done

    def builder(self, raised: torch.dtype | None) -> Builder:
        if raised not in self._builders:
            self._builders[raised] = Builder(self.graph, self.case, self.call["modes"], raised)
        return self._builders[raised]

    def wanted(self, names: Sequence[str]) -> set[str]:
        specs = dict(zip(self.graph.inputs, self.call["args"]))
        if self.call["backward"] == "none":
            return set()
        return {name for name in names if isinstance(specs.get(name), dict) and specs[name].get("requires_grad")}

    def seed(self) -> None:
        """Put the random generators where they were at the region's start, or at the seed."""
        torch.manual_seed(self.case.seed)
        for device, state in self.states.items():
            if device == "cpu":
                torch.set_rng_state(state)
            elif torch.device(self.case.device).type == torch.device(device).type:
                getattr(torch, torch.device(device).type).set_rng_state(state, torch.device(self.case.device))

    @contextlib.contextmanager
    def modes(self, side: Side) -> Iterator[None]:
        with switches(self.call, self.case, side):
            yield

    # -- pieces --------------------------------------------------------------------------------------------------------

    def cut(self, first: int, last: int) -> Piece:
        """The operations from `first` up to `last`, without those that draw random numbers."""
        return self.graph.piece([place for place in range(first, last) if place not in self.drawn], self.whole)

    def given(self, piece: Piece) -> Given:
        """What a piece gets in eager code: values of its inputs before its first node, and gradients of its outputs."""
        first = piece.nodes[0] if piece.nodes else 0
        needed = [name for name in piece.inputs if name in self.graph.place and name not in self.drew]
        before = self.graph.before(first, needed)
        passed = {name: _copy(value) for name, value in self.values.items()}
        values: dict[str, Any] = dict(passed)
        if needed:
            with torch.no_grad(), self.modes(Side()):
                self.seed()
                got = self.builder(None).module(before)(*(passed[name] for name in before.inputs))
            values.update(zip(needed, got))
        values.update(self.drew)
        wants = self.wanted(piece.inputs)
        slopes = self.slopes()
        wants |= {name for name in piece.inputs if name in slopes}
        found = {name: _copy(values[name]) for name in piece.inputs}
        return Given(found, wants, {name: slopes[name] for name in piece.outputs if name in slopes})

    def slopes(self) -> dict[str, torch.Tensor]:
        """Gradients of all results of the graph's nodes in eager code, and of its outputs as recorded."""
        if self._slopes is None:
            self._slopes = {} if self.call["backward"] == "none" else self._run_back()
        return self._slopes

    def _run_back(self) -> dict[str, torch.Tensor]:
        graph = self.graph
        piece = graph.piece(range(len(graph.nodes)))
        watching = _Watching(self.builder(None).module(piece), graph, self.case.device, keep=True)
        with self.modes(Side()):
            self.seed()
            given = Given(dict(self.values), self.wanted(piece.inputs))
            _, passed = self._inputs(piece, given, Side())
            result = dict(zip(piece.outputs, watching.run(*passed)))
            begins = self.begin(result)
            if not begins:
                return {}
            inner = {
                graph.nodes[place]["name"]: value
                for place, value in watching.values.items()
                if isinstance(value, torch.Tensor) and value.requires_grad
            }
            ends, starts = zip(*begins.values())
            found = torch.autograd.grad(ends, list(inner.values()), starts, allow_unused=True)
        slopes = {name: grad.detach() for name, grad in zip(inner, found) if grad is not None}
        return {**slopes, **{name: start for name, (_, start) in begins.items() if name not in slopes}}

    def begin(self, result: Mapping[str, Any]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Outputs of the graph with the gradients at which its backward begins: those recorded, else ones."""
        tensors = Tensors(self.call["data"], self.case.seed)
        known = self.call["grads"]
        found: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        ends = {
            name: (place, result[name])
            for place, name in self.graph.results.items()
            if isinstance(result.get(name), torch.Tensor) and result[name].requires_grad
        }
        for name, (place, tensor) in ends.items():
            spec = known[place] if place < len(known) else None
            if spec is not None and list(tensor.shape) == spec["shape"]:
                found[name] = tensor, lay_out(tensors(spec).to(tensor.dtype), spec, self.case.layout).to(tensor.device)
        self.grads_begin = "recorded" if found else "none"
        if not found and ends and self.call["backward"] != "recorded":
            self.grads_begin = "sum"
            found = {name: (tensor, torch.ones_like(tensor)) for name, (_, tensor) in ends.items()}
        return found

    def run(self, piece: Piece, given: Given, backend: str, side: Side | None = None) -> Ran:
        """Run a piece forward and backward."""
        side = side or Side()
        done = Ran()
        start = time.perf_counter()
        try:
            module = self.builder(self.raised if side.raised else None).module(piece)
            stepwise = side.raised and any(place in self.drawn for place in piece.nodes)
            with self.modes(side), _backend(module, backend, dynamic=self.graph.symbolic) as compiled:
                function = _Raising(module, self).run if stepwise else compiled
                leaves, passed = self._inputs(piece, given, side)
                before = [one._version if isinstance(one, torch.Tensor) else 0 for one in passed]
                written = self.call["changed"]
                self.seed()
                result = dict(zip(piece.outputs, function(*passed)))
                tensors = {name: one for name, one in result.items() if isinstance(one, torch.Tensor)}
                done.items = {name: to_cpu(tensor) for name, tensor in tensors.items()}
                for name, one, version in zip(piece.inputs, passed, before):
                    if (
                        isinstance(one, torch.Tensor)
                        and name in self.item
                        and (one._version != version or name in written)
                    ):
                        done.items[f"changed.{name}"] = to_cpu(one)
                begins = [
                    (tensor, shake(given.grads[name].to(tensor.dtype), side.shaken, self.case.seed + 1) if side.shaken
                     else given.grads[name].to(tensor.dtype))
                    for name, tensor in tensors.items()
                    if tensor.requires_grad and name in given.grads
                ]  # fmt: skip
                if begins and leaves:
                    ends, starts = zip(*begins)
                    grads = torch.autograd.grad(ends, list(leaves.values()), starts, allow_unused=True)
                    done.items.update({
                        f"gradient.{name}": to_cpu(grad) for name, grad in zip(leaves, grads) if grad is not None
                    })  # fmt: skip
        except Exception as error:
            done.error = _said(error)
            done.missing = any(word in done.error for word in (*_NO_COMPILER, "Invalid backend"))
        done.seconds = time.perf_counter() - start
        return done

    def _inputs(self, piece: Piece, given: Given, side: Side) -> tuple[dict[str, torch.Tensor], list[Any]]:
        """Leaves by name, and what is passed."""
        leaves: dict[str, torch.Tensor] = {}
        passed: list[Any] = []
        changed = set(self.call["changed"])
        for name in piece.inputs:
            value = given.values[name]
            if isinstance(value, torch.Tensor):
                value = to_type(_copy(value), self.case, self.raised if side.raised else None)
                if side.shaken is not None:
                    value = shake(value, side.shaken, self.case.seed)
                if (
                    name in given.wants
                    and (value.is_floating_point() or value.is_complex())
                    and torch.is_grad_enabled()
                ):
                    leaves[name] = value = value.requires_grad_()
                    if name in changed or name not in self.item:
                        value = value.clone()  # a leaf must not be written in place
            passed.append(value)
        return leaves, passed

    # -- judging -------------------------------------------------------------------------------------------------------

    def references(self, piece: Piece, given: Given) -> tuple[Ran, Ran]:
        """The piece in higher precision, with inputs as they are and shaken; empty with an error where that does not run."""
        right = self.run(piece, given, EAGER, Side(raised=True))
        coarsest = self.coarsest(piece)
        if right.error or coarsest is None:
            return right, Ran()
        return right, self.run(piece, given, EAGER, Side(raised=True, shaken=coarsest))

    def coarsest(self, piece: Piece) -> torch.dtype | None:
        """The coarsest floating type in a piece, its inputs included."""
        found = [self.types[place] for place in piece.nodes if place in self.types]
        for name in piece.inputs:
            value = self.values.get(name)
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype.itemsize > 1:
                found.append(value.dtype)
            elif name in self.graph.place and self.graph.place[name] in self.types:
                found.append(self.types[self.graph.place[name]])
        return max(found, key=lambda one: torch.finfo(one).eps, default=None)

    def judge(self, piece: Piece, items: Mapping[str, torch.Tensor], right: Ran, moved: Ran) -> dict[str, Judgement]:
        judged = {}
        coarsest = self.coarsest(piece)
        for item, tensor in items.items():
            if item not in right.items:
                judged[item] = Judgement(verdict=WARNING, reason="the reference gives no such result")
                continue
            working = None
            if tensor.is_floating_point() and coarsest is not None:
                working = max((tensor.dtype, coarsest), key=lambda one: torch.finfo(one).eps)
            judged[item] = judge(tensor, right.items[item], moved.items.get(item), working=working)
        for item in right.items.keys() - items.keys():
            if not item.startswith("changed."):
                judged[item] = Judgement(verdict=ERROR, reason="it gives no such result")
        return judged

    def noise(
        self, piece: Piece, given: Given, right: Ran, moved: Ran, plain: Mapping[str, Judgement]
    ) -> dict[str, Judgement]:
        """How far rounding moves eager code: the worse of its judgement `plain` and of that with inputs shaken."""
        coarsest = self.coarsest(piece)
        if coarsest is None:
            return dict(plain)
        swayed = self.judge(piece, self.run(piece, given, EAGER, Side(shaken=coarsest)).items, right, moved)
        return {item: max((one, swayed.get(item, one)), key=_severity) for item, one in plain.items()}


class _Raising(torch.fx.Interpreter):
    """Runs a module in higher precision, but nodes that draw random numbers in their recorded type, from their recorded state."""

    def __init__(self, module: torch.fx.GraphModule, region: Region) -> None:
        super().__init__(module)
        self._region = region

    def run_node(self, n: torch.fx.Node) -> Any:
        region = self._region
        name = n.meta.get(RECORDED_NAME, "")
        place = region.graph.place.get(name)
        states = region.drawn.get(place) if place is not None else None
        if states is None:
            return super().run_node(n)
        _restore(states, region.case.device)
        known = region.drew.get(name)
        if not isinstance(known, torch.Tensor):
            return super().run_node(n)
        args, kwargs = torch.fx.node.map_aggregate(
            self.fetch_args_kwargs_from_env(n), lambda one: _in_type(one, known.dtype)
        )
        return _in_type(getattr(self, n.op)(n.target, args, kwargs), region.raised)


def _in_type(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _restore(states: Sequence[torch.Tensor], device: str) -> None:
    torch.set_rng_state(states[0])
    for state in states[1:]:
        getattr(torch, torch.device(device).type).set_rng_state(state, torch.device(device))


class _Watching(torch.fx.Interpreter):
    """Runs a module and notes which nodes draw random numbers, and the types of results.

    values: of the nodes that draw, detached; with keep of all nodes, as they are
    """

    def __init__(self, module: torch.fx.GraphModule, graph: Graph, device: str, *, keep: bool = False) -> None:
        super().__init__(module)
        self._place = graph.place
        self._device = device
        self._keep = keep
        self.drawn: dict[int, list[torch.Tensor]] = {}
        self.values: dict[int, Any] = {}
        self.whole: list[str] = []
        self._drawn_whole: list[str] = []
        self.types: dict[int, torch.dtype] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        before = _states(self._device)
        value = super().run_node(n)
        place = self._place.get(n.meta.get(RECORDED_NAME, ""))
        if place is None or n.op == "get_attr":
            return value
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype.itemsize > 1:
            self.types[place] = value.dtype
        drew = any(self._splits(one) for one in n.all_input_nodes) or not all(
            map(torch.equal, before, _states(self._device))
        )
        if drew:
            self.drawn[place] = before
        if not isinstance(value, (torch.Tensor, int, float, bool, type(None))):
            (self._drawn_whole if drew else self.whole).append(n.meta[RECORDED_NAME])
        if self._keep:
            self.values[place] = value
        elif drew:
            self.values[place] = _copy(value)
        return value

    def _splits(self, node: torch.fx.Node) -> bool:
        """Whether a node has drawn random numbers and gives several values, which are taken apart."""
        return node.meta.get(RECORDED_NAME) in self._drawn_whole


def _states(device: str) -> list[torch.Tensor]:
    found = [torch.get_rng_state()]
    kind = torch.device(device).type
    if kind != "cpu":
        found.append(getattr(torch, kind).get_rng_state(torch.device(device)))
    return found


@contextlib.contextmanager
def _backend(module: torch.fx.GraphModule, backend: str, *, dynamic: bool) -> Iterator[Any]:
    """The module compiled by a backend, without any cache, for as long as the context lasts."""
    if backend == EAGER:
        yield module
        return
    import torch._dynamo  # noqa: PLC0415 - takes seconds

    torch._dynamo.reset()
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "dynamo_pgo force disabled")  # that is meant
        stack.enter_context(torch._dynamo.config.patch(suppress_errors=False, capture_scalar_outputs=True))
        if backend == INDUCTOR:
            import torch._inductor.config  # noqa: PLC0415

            caches = {"force_disable_caches": True} if hasattr(torch._inductor.config, "force_disable_caches") else {}
            stack.enter_context(torch._inductor.config.patch({"compile_threads": 1, **caches}))
        yield torch.compile(module, backend=backend, fullgraph=True, dynamic=True if dynamic else None)
    torch._dynamo.reset()


def _input(spec: Any, tensors: Tensors, case: Case) -> Any:
    if not isinstance(spec, dict) or "tensor" not in spec:
        return spec
    return lay_out(tensors(spec), spec, case.layout).to(case.device)


def _copy(value: Any) -> Any:
    """A copy with the same strides; what is no tensor is itself."""
    if not isinstance(value, torch.Tensor):
        return value
    return lay_out(value.detach(), {"stride": list(value.stride())}, "recorded")


def _raised(values: Sequence[Any]) -> torch.dtype:
    """float64 where an input has 32 bits or more, float32 where all have fewer."""
    wide = (torch.float32, torch.float64, torch.complex64, torch.complex128)
    types = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    narrow = any(dtype in (torch.float16, torch.bfloat16) for dtype in types)
    return torch.float64 if any(dtype in wide for dtype in types) or not narrow else torch.float32


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def excuse(one: Judgement, noise: Judgement | None) -> Judgement:
    """A judgement taken back where rounding alone moves eager code as far from the reference."""
    if one.verdict not in (WARNING, ERROR) or noise is None or noise.verdict in (PASS, SKIP):
        return one
    mine, its = one.measures, noise.measures
    counted = mine is not None and its is not None and not one.units and mine.unequal <= AS_FAR * its.unequal
    if counted or (one.units and one.units <= AS_FAR * noise.units) or one.reason == noise.reason:
        said = f"rounding moves eager code as far: {one.reason}"
        return Judgement(verdict=PASS, reason=said, units=one.units, measures=one.measures)
    return one


def _severity(one: Judgement) -> tuple[int, float]:
    return ORDER.index(one.verdict), one.units


def verdict_of(judged: Mapping[str, Judgement]) -> str:
    return worst([one.verdict for one in judged.values()])
