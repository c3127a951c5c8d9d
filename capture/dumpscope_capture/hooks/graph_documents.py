"""A graph of torch.fx as a JSON document from which it can be run again (dumpscope_format.compiled_graph)."""

from __future__ import annotations

import base64
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import torch

from dumpscope_format.compiled_graph import CONSTANT_LIMIT, FRAME_LIMIT, Constant, Frame, GraphDocument, GraphNode

_FRAME: Final = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)\n\s*(?P<code>.*)')
_PLAIN: Final = (bool, int, str, type(None))
_NAMED: Final = ((torch.dtype, "dtype"), (torch.layout, "layout"), (torch.memory_format, "memory_format"))


class _Lost(Exception):
    """What a document cannot hold."""


def describe_graph(module: torch.fx.GraphModule) -> GraphDocument:
    """The document of a graph module. What it cannot hold stands in `lost`."""
    writer = _Writer()
    made = writer.graph(module)
    made["stacks"] = writer.stacks
    return made


class _Writer:
    def __init__(self) -> None:
        self.stacks: list[list[Frame]] = []
        self._known: dict[str, int] = {}
        self._room = CONSTANT_LIMIT

    def graph(self, module: torch.fx.GraphModule) -> GraphDocument:
        made = GraphDocument(nodes=[], modules={}, constants={}, lost=[])
        for node in module.graph.nodes:
            try:
                made["nodes"].append(self._node(module, node, made))
            except _Lost as lost:
                made["lost"].append(f"{node.name}: {lost}")
        for inner in made["modules"].values():
            made["lost"] += inner["lost"]
        return made

    def _node(self, module: torch.fx.GraphModule, node: torch.fx.Node, made: GraphDocument) -> GraphNode:
        target = node.target
        if node.op == "call_function":
            target = function_name(node.target)
        elif node.op == "get_attr":
            self._attribute(module, str(target), made)
        elif node.op == "call_module":
            raise _Lost(f"it calls a module of class {type(module.get_submodule(str(target))).__name__}")
        found = GraphNode(
            name=node.name,
            op=node.op,
            target=str(target),
            args=[self._value(part) for part in node.args] if node.op != "placeholder" else [],
            kwargs={key: self._value(part) for key, part in node.kwargs.items()},
        )
        if node.op == "placeholder" and isinstance(
            node.meta.get("example_value"), (torch.SymInt, torch.SymFloat, torch.SymBool)
        ):
            found["symbolic"] = True
        trace = node.meta.get("stack_trace")
        if trace and node.op not in ("placeholder", "output"):
            found["stack"] = self._stack(trace)
        return found

    def _attribute(self, module: torch.fx.GraphModule, path: str, made: GraphDocument) -> None:
        held: Any = module
        for part in path.split("."):
            held = getattr(held, part)
        if isinstance(held, torch.fx.GraphModule):
            made["modules"][path] = self.graph(held)
        elif isinstance(held, torch.Tensor) and type(held) in (torch.Tensor, torch.nn.Parameter):
            made["constants"][path] = self._constant(held)
        else:
            raise _Lost(f"a constant of class {type(held).__name__}")

    def _constant(self, tensor: torch.Tensor) -> Constant:
        size = tensor.numel() * tensor.element_size()
        if size > self._room:
            raise _Lost(f"a constant of {size} bytes; {CONSTANT_LIMIT} are kept of a graph")
        self._room -= size
        own = tensor.detach().to("cpu", copy=True).contiguous()
        data = bytes(own.flatten().view(torch.uint8).tolist()) if own.numel() else b""
        return Constant(
            dtype=str(own.dtype).replace("torch.", ""), shape=list(own.shape), data=base64.b64encode(data).decode()
        )

    def _stack(self, trace: str) -> int:
        """Number of a place."""
        frames = list(_frames(trace))[-FRAME_LIMIT:]
        known = self._known.setdefault(str(frames), len(self.stacks))
        if known == len(self.stacks):
            self.stacks.append(frames)
        return known

    def _value(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return {"node": value.name}
        if isinstance(value, float) and type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) in _PLAIN:
            return value
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, torch.Size) and all(type(part) is int for part in value):
            return {"size": list(value)}
        if isinstance(value, slice):
            return {"slice": [self._value(part) for part in (value.start, value.stop, value.step)]}
        if value is ...:
            return {"ellipsis": True}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        for kind, key in _NAMED:
            if isinstance(value, kind):
                return {key: str(value).replace("torch.", "")}
        if isinstance(value, tuple):
            return {"tuple": [self._value(part) for part in value]}
        if isinstance(value, list):
            return [self._value(part) for part in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self._value(part) for key, part in value.items()}}
        if callable(value):
            return {"function": function_name(value)}
        raise _Lost(f"an argument of class {type(value).__name__}")


def function_name(function: Any) -> str:
    """Dotted name by which a function is found again: "torch.ops.aten.add.Tensor". Raises _Lost where there is none."""
    for name in _names(function):
        if _find(name) is function:
            return name
    raise _Lost(f"{getattr(function, '__name__', type(function).__name__)}, a function that no name finds")


def _names(function: Any) -> Iterator[str]:
    operators: Any = torch._ops
    if isinstance(function, operators.OpOverload):
        name = function.name().replace("::", ".")
        yield f"torch.ops.{name}" if function._overloadname != "default" else f"torch.ops.{name}.default"
    elif isinstance(function, operators.OpOverloadPacket):
        yield f"torch.ops.{function._qualified_op_name.replace('::', '.')}"
    elif isinstance(function, operators.HigherOrderOperator):
        yield f"torch.ops.higher_order.{function.name()}"
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module and name:
        yield f"{module}.{name}"
    try:
        yield torch.fx.node._get_qualified_name(function)
    except Exception:  # it raises what it likes for what it does not know
        return


def _find(name: str) -> Any:
    """What a dotted name stands for among the modules that are loaded, None if nothing."""
    parts = name.split(".")
    for place in range(len(parts) - 1, 0, -1):
        held: Any = sys.modules.get(".".join(parts[:place]))
        if held is not None:
            for part in parts[place:]:
                held = getattr(held, part, None)
            if held is not None:
                return held
    return None


def _frames(trace: str) -> Iterator[Frame]:
    for found in _FRAME.finditer(trace):
        yield Frame(file=found["file"], line=int(found["line"]), function=found["function"], code=found["code"].strip())
