"""The JSON document of a compiled graph: `compiled_graphs/NAME.json` of a step, beside the text that a person reads.

It holds all that is needed to run the graph again. Values are those of a call document (dumpscope_format.replay), and

    {"node": NAME}         the result of a node
    {"function": NAME}     a function among the arguments: "torch.ops.aten.add.Tensor"
"""

from __future__ import annotations

from typing import Any, Final, TypedDict

SUFFIX: Final = ".json"
CONSTANT_LIMIT: Final = 1 << 20
"""Bytes of all constant tensors that a document may hold."""
FRAME_LIMIT: Final = 4
"""Frames that are kept of the place of a node."""


class Frame(TypedDict):
    """A line of the user's program. file: its path; function: "forward"; code: its text"""

    file: str
    line: int
    function: str
    code: str


class _AnyNode(TypedDict):
    name: str
    op: str
    target: str
    args: list[Any]
    kwargs: dict[str, Any]


class GraphNode(_AnyNode, total=False):
    """A node of torch.fx. op: "placeholder", "get_attr", "call_function", "call_method" or "output"

    target: "torch._C._nn.gelu", a method, or an attribute; symbolic: whether a placeholder is a size, not a tensor
    stack: number of its place in `stacks`
    """

    symbolic: bool
    stack: int


class Constant(TypedDict):
    """A tensor that the graph holds. data: its bytes in row-major order, base64"""

    dtype: str
    shape: list[int]
    data: str


class _AnyGraph(TypedDict):
    nodes: list[GraphNode]
    modules: dict[str, Any]
    constants: dict[str, Constant]
    lost: list[str]


class GraphDocument(_AnyGraph, total=False):
    """A graph. modules: inner graphs, by attribute; lost: what the document cannot hold, so that the graph cannot run

    stacks: places of nodes, innermost frame last; inner graphs have none of their own
    """

    stacks: list[list[Frame]]
