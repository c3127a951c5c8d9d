"""Gradients of one call or module, read at the edges of what it added to the autograd graph.

    arguments --edges before--> [nodes the call made] <--edges after-- results

After the call the graph is walked from the results' nodes to the arguments' edges. A prehook on a result's node sees the
gradient of that result; a hook on the last node before an argument's edge sees what this call alone adds to the argument's
gradient. No node is inserted, no tensor is changed, and hooks return nothing, so gradients are the same to the bit. Hooks hold
no node and no tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.autograd.graph import Node

from dumpscope_capture.calls.edges import Edge, is_new, leaf_type, node_of, walk
from dumpscope_capture.context import Unobserved

Record = Any


class Listener(Protocol):
    """Receives the events of backward passes. Called without a lock, from the threads of the autograd engine."""

    def begin(self, watch: Watch) -> None:
        """The first gradient of a result is about to be used."""

    def reserve(self, watch: Watch) -> None:
        """The first node of a call has run; its record gets its place in the file now and its data later."""

    def wait_for_rest(self, watch: Watch) -> None:
        """Some gradients of results have arrived. More may follow, but no gradients of arguments."""

    def complete(self, watch: Watch) -> None:
        """The last gradient has arrived."""

    def record_gradient(self, tensor: torch.Tensor, item: str) -> Record:
        """Record of one gradient."""

    def note_error(self, where: str, error: Exception) -> None: ...


class Watch:
    """Gradients of one call in one backward pass. name: of the backward node.

    inputs: records of the gradients of the results; outputs: of the arguments, None where there is none
    first: autograd sequence number at which the call began
    expected: number of nodes that give gradients to arguments; awaited: of nodes that take gradients of results
    spread: these two sets of nodes differ
    owner: label of the module, None for a function; custom: the program registered the function
    data: whether gradients are recorded; listed: the list names what the call runs in
    kept: whether the filters may keep this pass; judged: whether `outcome`, their answer, is known
    by_slots: a call with one node numbers its gradients by the slots of this node
    late: the scope begins with the backward of a module that holds the call
    """

    __slots__ = (
        "_casts", "_counts", "_fired", "_inner", "_lock", "_sums", "awaited", "by_slots", "complete", "custom", "data",
        "expected", "first", "inputs", "judged", "kept", "late", "listed", "listener", "name", "outcome", "outputs", "owner",
        "parent", "pass_id", "reserved", "spread", "started", "takes_input", "takes_output",
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
        self.by_slots = True
        self.custom = False
        self.spread = False
        self.outcome = "record"
        self.listed = False
        self.late = False
        self.kept = True
        self.judged = False
        self.takes_input = True
        self.takes_output = True
        self._counts: list[int] = [0] * arguments
        self._casts: dict[int, torch.dtype] = {}
        self._fired = 0
        self._sums: dict[int, torch.Tensor] = {}
        self._inner: dict[int, torch.Tensor] = {}
        self._lock = threading.Lock()

    def attach(self, results: Sequence[torch.Tensor], edges: Sequence[Edge | None], first: int) -> bool:
        """Hook the graph of a finished call. False where the call added no node.

        edges: of the arguments, before the call; first: sequence number at which the call began
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
        for place, (node, tensor, fresh) in enumerate(zip(roots, results, new)):
            if node is not None and fresh:
                made[node, tensor.output_nr] = place
        boundary, inner = walk([node for node, _ in made], places, made, first)
        for node, slot, edge in inner:
            node.register_hook(_InnerHook(self, slot, made[edge]))
        taken = self._assign(boundary, places)
        by_node: dict[Node, list[tuple[int, int]]] = {}
        for (node, slot), place in made.items():
            by_node.setdefault(node, []).append((place, slot))
        self.expected, self.awaited = len(taken), len(by_node)
        self.spread = taken.keys() != by_node.keys()
        if self.owner is None and self.by_slots and not self.spread and len(taken) == 1:
            taken = self._by_slot(taken)
        for node, wanted in by_node.items():
            node.register_prehook(_ResultPrehook(self, wanted))
            if self.spread:
                node.register_hook(_ReserveHook(self))
        for node, contributions in taken.items():
            node.register_hook(_ArgumentHook(self, contributions))
        return True

    def _attach_through(
        self, roots: list[Node | None], results: Sequence[torch.Tensor], edges: Sequence[Edge | None]
    ) -> bool:
        """For a module that returns its argument: the gradient of the result is also that of the argument."""
        if self.owner is None:
            return False
        found = False
        for place, (node, tensor) in enumerate(zip(roots, results)):
            edge = (node, tensor.output_nr) if node is not None else None
            if node is not None and edge in edges:
                node.register_prehook(_ThroughPrehook(self, tensor.output_nr, place, edges.index(edge)))
                self.expected += 1
                found = True
        return found

    def attach_marker(self, results: Sequence[torch.Tensor], first: int) -> bool:
        """Only notice that the backward of a call runs."""
        self.data = False
        self.first = first
        for tensor in results:
            node = node_of(tensor)
            if node is not None and is_new(node, first):
                node.register_prehook(_ResultPrehook(self, []))
                return True
        return False

    def attach_last(self, results: Sequence[torch.Tensor], first: int) -> bool:
        """As msprobe does: all gradients of the node behind the first result that has a node."""
        self.first = first
        for tensor in results:
            node = node_of(tensor)
            if node is not None:
                node.register_hook(_WholeNodeHook(self))
                return True
        return False

    def _assign(
        self, boundary: list[tuple[Node, int, Edge]], places: dict[Edge, list[int]]
    ) -> dict[Node, list[tuple[int, int]]]:
        """Assign each gradient to an argument. A tensor passed twice gets one gradient each if the counts agree, in the order in
        which the program used it; else the first argument gets all."""
        of_edge: dict[Edge, list[tuple[Node, int]]] = {}
        for node, slot, edge in boundary:
            of_edge.setdefault(edge, []).append((node, slot))
        taken: dict[Node, list[tuple[int, int]]] = {}
        for edge, contributions in of_edge.items():
            arguments = places[edge]
            each = len(contributions) == len(arguments)
            if each and len(contributions) > 1:
                contributions.sort(key=lambda one: (one[0]._sequence_nr(), one[1]))
            for number, (node, slot) in enumerate(contributions):
                argument = arguments[number] if each else arguments[0]
                if (
                    node.next_functions[slot] != edge
                ):  # a weight that autocast casts: its gradient has the type of the copy here
                    self._casts[argument] = leaf_type(edge)
                self._counts[argument] += 1
                taken.setdefault(node, []).append((slot, argument))
        return taken

    def _by_slot(self, taken: dict[Node, list[tuple[int, int]]]) -> dict[Node, list[tuple[int, int]]]:
        """Number the gradients of a call with one node by the slots of this node, which are its differentiable arguments, mostly
        in their order. If the order differs, the numbers of the arguments stay."""
        ((node, contributions),) = taken.items()
        contributions = sorted(contributions)
        arguments = [argument for _, argument in contributions]
        if any(after <= before for before, after in zip(arguments, arguments[1:])):
            return taken
        slots = len(node.next_functions)
        self._casts = {slot: self._casts[place] for slot, place in contributions if place in self._casts}
        self.outputs = [None] * slots
        self._counts = [1] * slots
        return {node: [(slot, slot) for slot, _ in contributions]}

    # -- called by hooks -----------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Start or continue a pass; a retained graph starts again in its second pass. Returns whether this was the start."""
        current = torch._C._current_graph_task_id()
        with self._lock:
            if self.started and self.pass_id == current:
                return False
            self.started = True
            self.complete = self.reserved = self.judged = False
            self.kept = True
            self.pass_id = current
            self.inputs = [None] * len(self.inputs)
            self.outputs = [None] * len(self.outputs)
            self._sums.clear()
            self._inner.clear()
            self._fired = 0
        self.listener.begin(self)
        return True

    def take_results(self, wanted: list[tuple[int, int]], gradients: Sequence[torch.Tensor | None]) -> None:
        if self.takes_input and self.data and self.kept:
            for place, slot in wanted:
                gradient = gradients[slot]
                inner = self._inner.pop(place, None)
                if gradient is not None:
                    if inner is not None:
                        with Unobserved():
                            gradient = gradient - inner
                    self.inputs[place] = self.listener.record_gradient(gradient, f"{self.name}.input.{place}")

    def take_arguments(self, contributions: list[tuple[int, int]], gradients: Sequence[torch.Tensor | None]) -> None:
        for slot, argument in contributions:
            gradient = gradients[slot]
            if gradient is None or not self.takes_output or not self.kept:
                continue
            if argument in self._casts:
                with Unobserved():
                    gradient = gradient.detach().to(self._casts[argument])
            if self._counts[argument] <= 1:
                self.outputs[argument] = self.listener.record_gradient(gradient, f"{self.name}.output.{argument}")
                continue
            with self._lock, Unobserved():
                known = self._sums.get(argument)
                self._sums[argument] = gradient.detach() if known is None else known + gradient.detach()
        self.count_argument()

    def take_inner(self, place: int, gradient: torch.Tensor | None) -> None:
        """Part of a result's gradient that comes from the call's own use of the result; it is subtracted."""
        if gradient is not None and self.takes_input and self.kept:
            with self._lock, Unobserved():
                known = self._inner.get(place)
                self._inner[place] = gradient.detach() if known is None else known + gradient.detach()

    def count_argument(self) -> None:
        """One of the expected nodes has run."""
        with self._lock:
            self._fired += 1
            if self.complete or self._fired < self.expected:
                return
            self.complete = True
        self.settle()
        self.listener.complete(self)

    def count_result(self) -> None:
        """One of the awaited nodes has run, for a call whose arguments get no gradients."""
        with self._lock:
            self._fired += 1
            if self.complete:
                return
            self.complete = self._fired >= self.awaited
        if self.complete:
            self.listener.complete(self)
        else:
            self.listener.wait_for_rest(self)

    def settle(self) -> None:
        """Record the sums so far."""
        with self._lock:
            sums, self._sums = self._sums, {}
        for argument, total in sums.items():
            self.outputs[argument] = self.listener.record_gradient(total, f"{self.name}.output.{argument}")


class _ResultPrehook:
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
                watch.count_result()
        except Exception as error:
            watch.listener.note_error("a gradient", error)


class _InnerHook:
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
            self._watch.listener.note_error("a gradient", error)


class _ThroughPrehook:
    """Prehook of the node of an argument that a module returned unchanged."""

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
            watch.listener.note_error("a gradient", error)


class _ReserveHook:
    """Hook of a result's node, where more nodes follow: reserves the record's place in the file."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        try:
            self._watch.listener.reserve(self._watch)
        except Exception as error:
            self._watch.listener.note_error("a gradient", error)


class _ArgumentHook:
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
            watch.listener.note_error("a gradient", error)


class _WholeNodeHook:
    """Hook of a node all of whose gradients are recorded."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __call__(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor | None]) -> None:
        watch = self._watch
        try:
            watch.begin()
            if not watch.kept:
                watch.complete = True
                watch.listener.complete(watch)
                return
            record: Callable[[torch.Tensor, str], Record] = watch.listener.record_gradient
            watch.inputs = [
                part if part is None else record(part, f"{watch.name}.input.{n}") for n, part in enumerate(outputs)
            ]
            watch.outputs = [
                part if part is None else record(part, f"{watch.name}.output.{n}") for n, part in enumerate(inputs)
            ]
            watch.complete = True
            watch.listener.complete(watch)
        except Exception as error:
            watch.listener.note_error("a gradient", error)
