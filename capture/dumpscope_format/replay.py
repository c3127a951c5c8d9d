"""The JSON document of one call: what `dumpscope reproduce` writes into a script and `dumpscope precheck` sends to a worker.

A value is a number, text, true, false, null or a list of values; anything else is an object with a key that names its type:

    {"tensor": ITEM, "dtype": "float32", "shape": [2, 8], ...}   see TensorValue
    {"float": "nan" | "inf" | "-inf"}   {"complex": [real, imaginary]}   {"tuple": [VALUE...]}   {"dict": {KEY: VALUE}}
    {"dtype": "float16"}   {"device": "npu:0"}   {"slice": [start, stop, step]}   {"ellipsis": true}
    {"size": [2, 3]}   {"memory_format": "channels_last"}   {"layout": "strided"}

The same text is a Python literal once true, false and null are True, False and None.
"""

from __future__ import annotations

from typing import Any, Final, TypedDict, final

Value = Any

NO_DEVICE: Final = 4
"""Exit status of a worker of the pre-check whose torch has not the device that it was told; its last line of stderr says why."""

RUNTIME: Final = ("arguments", "targets", "running", "measures", "judging", "reporting", "cells", "matrix", "command")
"""Modules of dumpscope_capture.replay in the order in which a script carries their text."""

REGION_RUNTIME: Final = (
    "arguments", "targets", "running", "measures", "judging", "reporting", "graphs", "regions", "narrowing", "region_reports",
    "region_command",
)  # fmt: skip
"""The same for the script of a region of compiled code."""


class _AnyTensor(TypedDict):
    tensor: str
    dtype: str
    shape: list[int]


class TensorValue(_AnyTensor, total=False):
    """A tensor of the call. Without a file its numbers are made up between min and max.

    tensor: its item, `input.0`, `kwargs.mask`, `grad.0`, `output.0`
    file: name below the data folder, or an absolute path; min, max: numbers or "nan", "inf", "-inf"
    stride, offset: in elements, if it was not row-major
    start, total: the file holds bytes of a storage of `total` bytes from byte `start` on; tensors of one such file share memory
    counts: numbers of `nan`, `inf` and `-inf` elements; device: where it was; format: number of its storage format on an NPU
    """

    requires_grad: bool
    file: str
    min: Any
    max: Any
    counts: dict[str, int]
    stride: list[int]
    offset: int
    start: int
    total: int
    device: str
    format: int


class _Replayed(TypedDict):
    """What a call and a region have in common.

    name: of its node without direction; target: the function, or one that replaces a module
    args, kwargs: of the call; names: of positional arguments
    grads: gradients of its results, null where there was none; results, gradients: recorded results of forward and backward
    backward: "recorded" (the dump has one), "sum" (of the results) or "none"
    modes: switches at the call: grad, autocast, deterministic...; seen: versions, devices and what else is known of the run
    notes: what was assumed
    """

    name: str
    target: str
    args: list[Value]
    kwargs: dict[str, Value]
    names: list[str]
    grads: list[Value]
    results: list[Value]
    gradients: list[Value]
    backward: str
    modes: dict[str, Any]
    seen: dict[str, Any]
    notes: list[str]


@final
class CallDocument(_Replayed):
    """One call: "Functional.group_norm.3".

    gradients_of: "arguments" where there is one of each argument that requires it, "node" where they are the last autograd node's
    """

    gradients_of: str


@final
class RegionDocument(_Replayed):
    """One region of compiled code: "Compiled.Net.0". There is an argument for each input of the graph, a gradient for each of
    them, and of the results the inputs written to.

    graph: see dumpscope_format.compiled_graph; backend_name: "inductor"
    changed: inputs that the region writes to; random: states of the generators before it by device, base64, null where it drew
    none or the dump keeps none
    """

    graph: dict[str, Any]
    backend_name: str
    changed: list[str]
    random: dict[str, str] | None
