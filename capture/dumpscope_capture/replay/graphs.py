"""Parts of a recorded graph (dumpscope_format.compiled_graph) as modules of torch.fx that run."""

from __future__ import annotations

import base64
import importlib
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.fx

from dumpscope_capture.replay.arguments import Case, rebuild

ENTER: Final = "torch.amp.autocast_mode._enter_autocast"
EXIT: Final = "torch.amp.autocast_mode._exit_autocast"
SET_GRAD: Final = "torch._C._set_grad_enabled"
RECORDED_NAME: Final = "recorded_name"
"""Key of a node's `meta`: its name in the document."""
_BUILTINS: Final = frozenset((
    "abs", "bool", "complex", "divmod", "float", "getattr", "int", "len", "list", "max", "min", "pow", "round", "slice", "sum",
    "tuple",
))  # fmt: skip
_FORBIDDEN: Final = frozenset(("load", "save", "hub", "os", "sys", "compile", "package", "import_module"))
_MODULES: Final = ("torch", "_operator", "operator", "math", "builtins")
_NARROW: Final = ("float", "half", "bfloat16")
"""Methods that choose a type; the reference keeps its own."""
_ACCELERATOR: Final = re.compile(r"(cuda|npu|xpu|mps)(:\d+)?")
_OPERATIONS: Final = ("call_function", "call_method", "get_attr")


@dataclass(frozen=True)
class Switches:
    """What is on while a node runs. autocast: the arguments of each that was entered; grad: None as at the region's start"""

    autocast: tuple[Any, ...] = ()
    grad: bool | None = None


@dataclass(frozen=True)
class Piece:
    """Some nodes of a graph, in order. inputs: names of nodes outside whose values it takes; outputs: of its own that it gives"""

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Graph:
    """A recorded graph.

    nodes: its operations, without switches; inputs, results: names of its inputs, and of its results by place
    """

    def __init__(self, document: dict[str, Any], numbers: dict[str, Any]) -> None:
        """numbers: inputs that are 0-dimensional tensors for plain numbers; their `item()` is the number"""
        self.document = document
        self.inputs: list[str] = []
        self.results: dict[int, str] = {}
        self.nodes: list[dict[str, Any]] = []
        self.switches: list[Switches] = []
        self.symbolic = any(node.get("symbolic") for node in document["nodes"])
        self.known: dict[str, Any] = {}
        entered: dict[str, Any] = {}
        grad: bool | None = None
        for node in document["nodes"]:
            target, args = node["target"], node["args"]
            if node["op"] == "placeholder":
                self.inputs.append(node["name"])
            elif node["op"] == "output":
                held = args[0]["tuple"] if isinstance(args[0], dict) and "tuple" in args[0] else args[0]
                parts = held if isinstance(held, list) else [held]
                self.results = {
                    place: part["node"] for place, part in enumerate(parts) if isinstance(part, dict) and "node" in part
                }
            elif target == ENTER:
                entered[node["name"]] = args
            elif target == EXIT:
                entered.pop(args[0]["node"], None)
            elif target == SET_GRAD:
                grad = bool(args[0])
            elif node["op"] == "call_method" and target == "item" and args[0]["node"] in numbers:
                self.known[node["name"]] = numbers[args[0]["node"]]
            else:
                self.nodes.append(node)
                self.switches.append(Switches(autocast=tuple(entered.values()), grad=grad))
        self.place = {node["name"]: place for place, node in enumerate(self.nodes)}
        self.users: dict[str, list[int]] = {}
        for place, node in enumerate(self.nodes):
            for name in uses(node):
                self.users.setdefault(name, []).append(place)

    @property
    def nests(self) -> bool:
        """Whether it holds levels of vmap or grad, within which no value stands for itself."""
        return any("increment_nesting" in node["target"] for node in self.nodes)

    def before(self, first: int, outputs: Sequence[str]) -> Piece:
        """The nodes before `first`, which give `outputs`."""
        names = dict.fromkeys(name for node in self.nodes[:first] for name in uses(node) if name in self.inputs)
        return Piece(nodes=tuple(range(first)), inputs=tuple(names), outputs=tuple(outputs))

    def piece(self, chosen: Sequence[int], whole: Collection[str] = ()) -> Piece:
        """The nodes at `chosen`, closed so that only tensors and numbers pass its ends. whole: names whose value is neither"""
        inside = set(chosen)
        todo = list(chosen)
        while todo:
            place = todo.pop()
            node = self.nodes[place]
            more = [self.place[name] for name in uses(node) if name in self.place and self._inseparable(name, whole)]
            if node["name"] in whole:
                more += self.users.get(node["name"], [])
            todo += [one for one in more if one not in inside]
            inside.update(more)
        places = sorted(inside)
        own = {self.nodes[place]["name"] for place in places}
        inputs = dict.fromkeys(
            name for place in places for name in uses(self.nodes[place]) if name not in own and name not in self.known
        )
        wanted = set(self.results.values())
        outputs = [
            self.nodes[place]["name"]
            for place in places
            if self.nodes[place]["op"] != "get_attr"
            and (
                self.nodes[place]["name"] in wanted
                or any(user not in inside for user in self.users.get(self.nodes[place]["name"], ()))
            )
        ]
        return Piece(nodes=tuple(places), inputs=tuple(inputs), outputs=tuple(outputs))

    def _inseparable(self, name: str, whole: Collection[str]) -> bool:
        return name in whole or self.nodes[self.place[name]]["op"] == "get_attr"

    def frame(self, place: int) -> dict[str, Any] | None:
        """The innermost line of the program that made a node."""
        number = self.nodes[place].get("stack")
        frames = self.document.get("stacks", [])[number] if number is not None else []
        return frames[-1] if frames else None

    def expression(self, place: int) -> str:
        """A node as a person would write it."""
        node = self.nodes[place]
        given = [short(part) for part in node["args"]] + [
            f"{key}={short(part)}" for key, part in node["kwargs"].items()
        ]
        if node["op"] == "call_method":
            return f"{given[0]}.{node['target']}({', '.join(given[1:])})"
        return f"{node['target']}({', '.join(given)})"


class Builder:
    """Makes modules of a graph. raised: type that takes the place of narrower floating types, None for those recorded"""

    def __init__(self, graph: Graph, case: Case, modes: dict[str, Any], raised: torch.dtype | None = None) -> None:
        self._graph = graph
        self._case = case
        self._grad = bool(modes.get("grad", True))
        self._raised = raised

    def module(self, piece: Piece) -> torch.fx.GraphModule:
        """A module that takes the piece's inputs and gives a tuple of its outputs."""
        graph = self._graph
        root = torch.nn.Module()
        made = torch.fx.Graph()
        known: dict[str, Any] = {**graph.known, **{name: made.placeholder(name) for name in piece.inputs}}
        now = Switches()
        entered: list[torch.fx.Node] = []
        for place in piece.nodes:
            wanted = graph.switches[place]
            entered = self._switch(made, now, wanted, entered)
            now = wanted
            self._add(made, root, graph.document, graph.nodes[place], known)
        self._switch(made, now, Switches(), entered)
        made.output(tuple(known[name] for name in piece.outputs))
        return torch.fx.GraphModule(root, made)

    def _switch(
        self, made: torch.fx.Graph, now: Switches, wanted: Switches, entered: list[torch.fx.Node]
    ) -> list[torch.fx.Node]:
        """Leave what `now` has on and enter what is wanted. Returns the nodes that have entered an autocast."""
        if now.grad is not wanted.grad:
            made.call_function(torch._C._set_grad_enabled, (self._grad if wanted.grad is None else wanted.grad,))
        if now.autocast == wanted.autocast or self._raised is not None:
            return entered
        for node in reversed(entered):
            made.call_function(torch.amp.autocast_mode._exit_autocast, (node,))
        return [
            made.call_function(torch.amp.autocast_mode._enter_autocast, tuple(self._value(part, {}) for part in args))
            for args in wanted.autocast
        ]

    def _add(
        self,
        made: torch.fx.Graph,
        root: torch.nn.Module,
        document: dict[str, Any],
        node: dict[str, Any],
        known: dict[str, Any],
    ) -> None:
        op, target = node["op"], node["target"]
        args = tuple(self._value(part, known) for part in node["args"])
        kwargs = {key: self._value(part, known) for key, part in node["kwargs"].items()}
        if op == "get_attr":
            attribute = target.replace(".", "_")
            if not hasattr(root, attribute):
                self._attach(root, document, target, attribute)
            target = attribute
        elif op == "call_function":
            target = find_function(target)
            if target is getattr and str(args[1]).startswith("__"):
                raise LookupError(f"a graph may not read {args[1]}")
        elif target.startswith("__"):
            raise LookupError(f"a graph may not call {target}")
        elif self._raised is not None and target in _NARROW:
            target, args = "to", (*args[:1], self._raised)
        elif _ACCELERATOR.fullmatch(target):
            target, args = "to", (*args[:1], torch.device(self._case.device))
        known[node["name"]] = made.create_node(op, target, args, kwargs, name=node["name"])
        known[node["name"]].meta[RECORDED_NAME] = node["name"]

    def _attach(self, root: torch.nn.Module, document: dict[str, Any], path: str, attribute: str) -> None:
        if path in document["modules"]:
            root.add_module(attribute, self._inner(document["modules"][path]))
        else:
            root.register_buffer(attribute, self._constant(document["constants"][path]))

    def _inner(self, document: dict[str, Any]) -> torch.fx.GraphModule:
        root, made = torch.nn.Module(), torch.fx.Graph()
        known: dict[str, Any] = {}
        for node in document["nodes"]:
            if node["op"] == "placeholder":
                known[node["name"]] = made.placeholder(node["name"])
            elif node["op"] == "output":
                made.output(self._value(node["args"][0], known))
            elif self._raised is not None and node["target"] in (ENTER, EXIT):
                known[node["name"]] = None
            else:
                self._add(made, root, document, node, known)
        return torch.fx.GraphModule(root, made)

    def _constant(self, held: dict[str, Any]) -> torch.Tensor:
        data = bytearray(base64.b64decode(held["data"]))
        dtype = getattr(torch, held["dtype"])
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        tensor = flat.clone().reshape(held["shape"])
        if self._raised is not None and tensor.is_floating_point():
            tensor = tensor.to(self._raised)
        return tensor.to(self._case.device)

    def _value(self, value: Any, known: dict[str, Any]) -> Any:
        if isinstance(value, str) and _ACCELERATOR.fullmatch(value):
            return self._case.device if ":" in value else torch.device(self._case.device).type
        if isinstance(value, list):
            return [self._value(part, known) for part in value]
        if not isinstance(value, dict):
            return value
        (key, held), *_ = value.items()
        if key == "node":
            return known[held]
        if key == "function":
            return find_function(held)
        if key == "tuple":
            return tuple(self._value(part, known) for part in held)
        if key == "dict":
            return {name: self._value(part, known) for name, part in held.items()}
        if key == "slice":
            return slice(*(self._value(part, known) for part in held))
        return rebuild(value, _refuse, self._case, dtype=self._dtype)

    def _dtype(self, dtype: torch.dtype) -> torch.dtype:
        raised = self._raised
        if raised is None or not dtype.is_floating_point or dtype is torch.float64:
            return dtype
        return raised


def uses(node: dict[str, Any]) -> Iterator[str]:
    """Names of the nodes whose results a node takes, some of them twice."""
    yield from _references([node["args"], list(node["kwargs"].values())])


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from _references(part)
    elif isinstance(value, dict):
        if "node" in value:
            yield value["node"]
        else:
            for part in value.values():
                yield from _references(part)


def find_function(name: str) -> Any:
    """The function for a dotted name. Raises LookupError without one, and for one that does more than compute."""
    parts = name.split(".")
    if parts[0] == "builtins" and parts[-1] not in _BUILTINS:
        raise LookupError(f"a graph may not call {name}")
    library = parts[0] not in _MODULES and parts[0] in getattr(
        sys, "stdlib_module_names", ("os", "subprocess", "shutil")
    )
    if library or (parts[0] == "torch" and _FORBIDDEN.intersection(parts)):
        raise LookupError(f"a graph may not call {name}")
    for place in range(len(parts) - 1, 0, -1):
        path = ".".join(parts[:place])
        try:
            held: Any = importlib.import_module(path) if path != "torch.ops" else torch.ops
        except ImportError:
            continue
        for part in parts[place:]:
            held = getattr(held, part, None)
        origin = str(getattr(held, "__module__", None) or parts[0]).split(".")[0]
        if callable(held) and (parts[0] not in _MODULES or origin in _MODULES):
            return held
    raise LookupError(f"torch {torch.__version__} has no {name}; --prelude may bring it")


def _refuse(spec: dict[str, Any]) -> Any:
    raise LookupError(f"a graph holds no tensor {spec['tensor']}")


def short(value: Any) -> str:
    """A value of a graph in few characters."""
    if isinstance(value, list):
        return f"[{', '.join(map(short, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    (key, held), *_ = value.items()
    if key == "tuple":
        return f"({', '.join(map(short, held))}{',' if len(held) == 1 else ''})"
    if key == "slice":
        return ":".join("" if part is None else short(part) for part in held[: 3 if held[2] is not None else 2])
    return f"torch.{held}" if key in ("dtype", "memory_format", "layout") else str(held)
