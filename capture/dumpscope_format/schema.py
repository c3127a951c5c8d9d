"""Record types of dump.json, stack.json, construct.json and debug.json, as msprobe writes and reads them.

dump.json and debug.json are one object with the keys of `HEADER_KEYS`, in that order, indented by one space; `data` maps
node names to bodies in completion order. They are Python's JSON dialect: NaN, Infinity and -Infinity stand as bare words.
"""

from __future__ import annotations

from typing import Any, Final, NotRequired, TypedDict

HEADER_KEYS: Final = ("task", "level", "framework", "dump_data_dir", "data")
INDENT: Final = 1
MICRO_STEP_KEY: Final = "megatron_micro_step_number"
"""A key of construct.json that is a number, not a node."""

PSEUDO_PARENTS: Final = ("optimizer", "clip_grad")
"""Parents in construct.json that no call ever is."""

STATISTIC_KEYS: Final = ("Max", "Min", "Mean", "Norm")
TENSOR_KEYS: Final = ("type", "dtype", "shape", *STATISTIC_KEYS, "requires_grad")
"""Keys of every tensor record with statistics, in file order; `md5` and `data_name` may follow."""

NODE_KEYS: Final = ("producers", "containers", "absent", "storage")
"""Keys of ours in the body of a forward node, behind msprobe's; each is an object of texts by item, `input.0`."""

TENSOR_TYPE: Final = "torch.Tensor"
ARRAY_TYPE: Final = "numpy.ndarray"


class TensorRecord(TypedDict):
    """A tensor; a record without statistics (xor) has `md5` instead of Max...Norm."""

    type: str
    dtype: str
    shape: list[int]
    Max: NotRequired[float | int | bool | None]
    Min: NotRequired[float | int | bool | None]
    Mean: NotRequired[float | None]
    Norm: NotRequired[float | None]
    requires_grad: NotRequired[bool]
    device_mesh: NotRequired[list[Any]]
    placements: NotRequired[list[dict[str, Any]]]
    md5: NotRequired[str]
    data_name: NotRequired[str]


class ValueRecord(TypedDict):
    """A value that is no tensor: number, text, slice, Size, dtype, device..."""

    type: str
    value: Any


class ForwardBody(TypedDict):
    input_args: list[Any]
    input_kwargs: dict[str, Any]
    output: list[Any] | dict[str, Any]
    parameters: NotRequired[dict[str, Any]]
    producers: NotRequired[dict[str, str]]
    containers: NotRequired[dict[str, str]]
    absent: NotRequired[dict[str, str]]
    storage: NotRequired[dict[str, str]]
    substituted: NotRequired[str]


class BackwardBody(TypedDict):
    """`input` holds gradients of the forward outputs, `output` gradients of the forward inputs."""

    input: list[Any]
    output: list[Any]


class DumpFile(TypedDict):
    task: str
    level: str
    framework: str
    dump_data_dir: str | None
    data: dict[str, Any]
