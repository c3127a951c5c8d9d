"""Gradients of one call or module, read at the edges of what it added to the autograd graph.

    arguments --edges before--> [nodes the call made] <--edges after-- results

After the call the graph is walked from the results' nodes to the arguments' edges. A prehook on a result's node sees
the gradient of
that result; a hook on the last node before an argument's edge sees what this call alone adds to the argument's
gradient. No node is
inserted, no tensor is changed, and hooks return nothing, so gradients are the same to the bit. Hooks hold no node and no tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch.autograd.graph import Node

from dumpscope_capture.calls.edges import Edge, is_new, node_of, walk
from dumpscope_capture.context import Quiet

Record = Any


class Listener(Protocol):
    """Who is told how a backward goes. Called under no lock, from the threads of the autograd engine."""

    def begun(self, watch: Watch) -> None:
        """The first gradient of a result is about to be used."""

    def reserve(self, watch: Watch) -> None:
        """The first node of a call is done, and its record will be complete later."""

    def partial(self, watch: Watch) -> None:
        """Some gradients of results have come, more may follow, and none of arguments will."""

    def complete(self, watch: Watch) -> None:
        """The last contribution has come."""

    def gradient(self, tensor: torch.Tensor, item: str) -> Record:
        """Record of one gradient."""

    def failed(self, where: str, error: Exception) -> None: ...


class Watch:
    """What arrives in one backward pass of a call. name: of the backward node.

    inputs: records of the gradients of the results; outputs: of the arguments, None for one that has none
    first: number the graph stood at when the call began; expected: nodes that give gradients to arguments; awaited: nodes that
    take those of the results; spread: these are not the same
    owner: the module, None for a function; custom: of a function the program registered; data: whether gradients are wanted;
    outcome: what the filters said
    """

    __slots__ = (
        "_counts", "_fired", "_inner", "_lock", "_sums", "awaited", "complete", "custom", "data", "expected", "first", "inputs",
        "listener", "name", "outcome",
        "outputs", "owner", "parent", "pass_id", "reserved", "spread", "started", "takes_input", "takes_output",
    )  # fmt: skip

    def __init__(
        self, name: str, listener: Listener, *, parent: str | None, results: int, arguments: int, owner: Any = None
    ) -> None:
        self.name = name
        self.listener = listener
        self.parent = parent
        self.owner = owner
        self.inputs: list[Record] = [None] * results
        self.outputs: list[Record] = [None] * arguments
        self.first = 0
        self.expected = 0
        self.awaited = 1
        self.pass_id = -1
        self.started = False
        self.complete = False
        self.reserved = False
        self.data = True
        self.custom = False
        self.spread = False
        self.outcome = "record"
        self.takes_input = True
        self.takes_output = True
        self._counts: list[int] = [0] * arguments
        self._fired = 0
        self._sums: dict[int, torch.Tensor] = {}
        self._inner: dict[int, torch.Tensor] = {}
        self._lock = threading.Lock()

    def attach(self, results: Sequence[torch.Tensor], edges: Sequence[Edge | None], first: int) -> bool:
        """Hook the graph of a finished call. False where it made none.

        edges: of the arguments, before the call; first: sequence number the graph stood at
        """
        self.first = first
        roots = [node_of(tensor) for tensor in results]
        new = [node is not None and is_new(node, first) for node in roots]
        if not any(new):
            return self._attach_through(roots, results, edges)
        places: dict[Edge, list[int]] = {}
        for place, edge in enumerate(edges):
            if edge is not None:
                places.setdefault(edge, []).append(place)
        made: dict[Edge, int] = {}
        for place, (node, tensor, fresh) in enumerate(zip(roots, results, new, strict=True)):
            if node is not None and fresh:
                made[node, tensor.output_nr] = place
        boundary, inner = walk([node for node, _ in made], places, made, first)
        for node, slot, edge in inner:
            node.register_hook(_Inner(self, slot, made[edge]))
        taken = self._assign(boundary, places)
        by_node: dict[Node, list[tuple[int, int]]] = {}
        for (node, slot), place in made.items():
            by_node.setdefault(node, []).append((place, slot))
        self.expected, self.awaited = len(taken), len(by_node)
        self.spread = taken.keys() != by_node.keys()
        if self.owner is None and not self.spread and len(taken) == 1:
            taken = self._by_slot(taken)
        for node, wanted in by_node.items():
            node.register_prehook(_Before(self, wanted))
            if self.spread:
                node.register_hook(_Reserve(self))
        for node, contributions in taken.items():
            node.register_hook(_After(self, contributions))
        return True

    def _attach_through(
        self, roots: list[Node | None], results: Sequence[torch.Tensor], edges: Sequence[Edge | None]
    ) -> bool:
        """A module that hands its arguments on: the gradient of the result is that of the argument."""
        if self.owner is None:
            return False
        found = False
        for place, (node, tensor) in enumerate(zip(roots, results, strict=True)):
            edge = (node, tensor.output_nr) if node is not None else None
            if node is not None and edge in edges:
                node.register_prehook(_Through(self, tensor.output_nr, place, edges.index(edge)))
                self.expected += 1
                found = True
        return found

    def attach_marker(self, results: Sequence[torch.Tensor], first: int) -> bool:
        """Only learn that the backward of a call comes."""
        self.data = False
        self.first = first
        for tensor in results:
            node = node_of(tensor)
            if node is not None and is_new(node, first):
                node.register_prehook(_Before(self, []))
                return True
        return False

    def attach_last(self, results: Sequence[torch.Tensor], first: int) -> bool:
        """As msprobe does: everything that goes through the node of the first result that has one."""
        self.first = first
        for tensor in results:
            node = node_of(tensor)
            if node is not None:
                node.register_hook(_Whole(self))
                return True
        return False

    def _assign(
        self, boundary: list[tuple[Node, int, Edge]], places: dict[Edge, list[int]]
    ) -> dict[Node, list[tuple[int, int]]]:
        """Give each contribution its argument; a tensor passed twice gets one each where the numbers agree, else the
        first has all."""
        of_edge: dict[Edge, list[tuple[Node, int]]] = {}
        for node, slot, edge in boundary:
            of_edge.setdefault(edge, []).append((node, slot))
        taken: dict[Node, list[tuple[int, int]]] = {}
        for edge, contributions in of_edge.items():
            arguments = places[edge]
            each = len(contributions) == len(arguments)
            for number, (node, slot) in enumerate(contributions):
                argument = arguments[number] if each else arguments[0]
                self._counts[argument] += 1
                taken.setdefault(node, []).append((slot, argument))
        return taken

    def _by_slot(self, taken: dict[Node, list[tuple[int, int]]]) -> dict[Node, list[tuple[int, int]]]:
        """Number the gradients of a call of one node by that node's slots: these are its differentiable arguments, as a rule in
        their own order. Where the order is another one the arguments' stays."""
        ((node, contributions),) = taken.items()
        contributions = sorted(contributions)
        arguments = [argument for _, argument in contributions]
        if any(after <= before for before, after in pairwise(arguments)):
            return taken
        slots = len(node.next_functions)
        self.outputs = [None] * slots
        self._counts = [1] * slots
        return {node: [(slot, slot) for slot, _ in contributions]}

    # -- called by hooks -----------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Start or go on with a pass; a graph kept for a second pass starts anew. Whether this was the start."""
        current = torch._C._current_graph_task_id()
        with self._lock:
            if self.started and self.pass_id == current:
                return False
            self.started = True
            self.complete = self.reserved = False
            self.pass_id = current
            self.inputs = [None] * len(self.inputs)
            self.outputs = [None] * len(self.outputs)
            self._sums.clear()
            self._inner.clear()
            self._fired = 0
        self.listener.begun(self)
        return True

    def take_results(self, wanted: list[tuple[int, int]], gradients: Sequence[torch.Tensor | None]) -> None:
        if self.takes_input and self.data:
            for place, slot in wanted:
                gradient = gradients[slot]
                inner = self._inner.pop(place, None)
                if gradient is not None:
                    if inner is not None:
                        with Quiet():
                            gradient = gradient - inner
                    self.inputs[place] = self.listener.gradient(gradient, f"{self.name}.input.{place}")

    def take_arguments(self, contributions: list[tuple[int, int]], gradients: Sequence[torch.Tensor | None]) -> None:
        for slot, argument in contributions:
            gradient = gradients[slot]
            if gradient is None or not self.takes_output:
                continue
            if self._counts[argument] <= 1:
                self.outputs[argument] = self.listener.gradient(gradient, f"{self.name}.output.{argument}")
                continue
            with self._lock, Quiet():
                known = self._sums.get(argument)
                self._sums[argument] = gradient.detach() if known is None else known + gradient.detach()
        self.arrived()

    def take_inner(self, place: int, gradient: torch.Tensor | None) -> None:
        """Part of a result's gradient that comes from the call's own use of it, and so is none of the result's."""
        if gradient is not None and self.takes_input:
            with self._lock, Quiet():
                known = self._inner.get(place)
                self._inner[place] = gradient.detach() if known is None else known + gradient.detach()

    def arrived(self) -> None:
        """One of the expected nodes is done."""
        with self._lock:
            self._fired += 1
            if self.complete or self._fired < self.expected:
                return
            self.complete = True
        self.settle()
        self.listener.complete(self)

    def result_arrived(self) -> None:
        """One of the awaited nodes is done, of a call whose arguments get no gradients."""
        with self._lock:
            self._fired += 1
            if self.complete:
                return
            self.complete = self._fired >= self.awaited
        if self.complete:
            self.listener.complete(self)
        else:
            self.listener.partial(self)

    def settle(self) -> None:
        """Record the sums that have come so far."""
        with self._lock:
            sums, self._sums = self._sums, {}
        for argument, total in sums.items():
            self.outputs[argument] = self.listener.gradient(total, f"{self.name}.output.{argument}")


class _Before:
    """Prehook of a result's node."""

    __slots__ = ("_wanted", "_watch")

    def __init__(self, watch: Watch, wanted: list[tuple[int, int]]) -> None:
        self._watch = watch
        self._wanted = wanted

    def __call__(self, gradients: Sequence[torch.Tensor | None]) -> None:
        watch = self._watch
        try:
            watch.begin()
            watch.take_results(self._wanted, gradients)
            if watch.expected == 0:
                watch.result_arrived()
        except Exception as error:
            watch.listener.failed("a gradient", error)


class _Inner:
    """Hook of a node inside a call that uses one of its results."""

    __slots__ = ("_place", "_slot", "_watch")

    def __init__(self, watch: Watch, slot: int, place: int) -> None:
        self._watch = watch
        self._slot = slot
        self._place = place

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        try:
            self._watch.begin()
            self._watch.take_inner(self._place, inputs[self._slot])
        except Exception as error:
            self._watch.listener.failed("a gradient", error)


class _Through:
    """Prehook of the node of an argument that a module returned as it was."""

    __slots__ = ("_argument", "_place", "_slot", "_watch")

    def __init__(self, watch: Watch, slot: int, place: int, argument: int) -> None:
        self._watch = watch
        self._slot = slot
        self._place = place
        self._argument = argument

    def __call__(self, gradients: Sequence[torch.Tensor | None]) -> None:
        watch = self._watch
        try:
            watch.begin()
            watch.take_results([(self._place, self._slot)], gradients)
            watch.take_arguments([(self._slot, self._argument)], gradients)
        except Exception as error:
            watch.listener.failed("a gradient", error)


class _Reserve:
    """Hook of a result's node, where other nodes are still to come: the record gets its place in the file now."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        try:
            self._watch.listener.reserve(self._watch)
        except Exception as error:
            self._watch.listener.failed("a gradient", error)


class _After:
    """Hook of the last node before arguments."""

    __slots__ = ("_contributions", "_watch")

    def __init__(self, watch: Watch, contributions: list[tuple[int, int]]) -> None:
        self._watch = watch
        self._contributions = contributions

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        watch = self._watch
        try:
            watch.begin()
            watch.take_arguments(self._contributions, inputs)
        except Exception as error:
            watch.listener.failed("a gradient", error)


class _Whole:
    """Hook of a node all of whose gradients are recorded."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        watch = self._watch
        try:
            watch.begin()
            record: Callable[[torch.Tensor, str], Record] = watch.listener.gradient
            watch.inputs = [
                part if part is None else record(part, f"{watch.name}.input.{n}") for n, part in enumerate(outputs)
            ]
            watch.outputs = [
                part if part is None else record(part, f"{watch.name}.output.{n}") for n, part in enumerate(inputs)
            ]
            watch.complete = True
            watch.listener.complete(watch)
        except Exception as error:
            watch.listener.failed("a gradient", error)
