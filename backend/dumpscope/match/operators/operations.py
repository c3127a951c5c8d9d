"""The operation of a call, from its label: one word for all spellings of an operation."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_ALIASES: Final = {
    "absolute": "abs", "addbmm": "baddbmm", "bmm": "matmul", "divide": "div", "iadd": "add", "imatmul": "matmul",
    "imul": "mul", "ipow": "pow", "isub": "sub", "itruediv": "div", "log_softmax_": "log_softmax", "mm": "matmul",
    "multiply": "mul", "negative": "neg", "radd": "add", "rmatmul": "matmul", "rmul": "mul", "rpow": "pow",
    "rsub": "sub", "rtruediv": "div", "subtract": "sub", "true_divide": "div", "truediv": "div",
}  # fmt: skip

MOVERS: Final = frozenset(
    {
        "alias", "arange", "as_strided", "bfloat16", "broadcast_to", "cat", "chunk", "clone", "concat",
        "contiguous", "copy", "cpu", "cuda", "detach", "double", "empty", "empty_like", "expand", "expand_as",
        "eye", "flatten", "flip", "float", "full", "full_like", "getitem", "half", "index_select", "int",
        "lift_fresh", "local_scalar_dense", "long", "movedim", "narrow", "new_empty", "new_full", "new_ones", "new_tensor",
        "new_zeros", "npu", "ones", "ones_like", "permute", "repeat", "reshape", "reshape_alias", "select",
        "setitem", "size", "slice", "split", "squeeze", "stack", "swapaxes", "t", "tile", "to", "to_copy",
        "transpose", "tril", "triu", "type", "type_as", "unbind", "unflatten", "unsafe_split", "unsafe_view",
        "unsqueeze", "view", "view_as", "zeros", "zeros_like",
    }
)  # fmt: skip
"""Operations that only move, cast or make data: risk levels leave them out of dumps, and implementations use them differently."""

REGION: Final = "Compiled."
"""Beginning of the labels of regions of compiled code."""

_BACKENDS: Final = ("npu", "cuda", "cudnn", "flash", "xformers", "triton", "mlu", "musa", "mkldnn", "miopen", "hpu")


@lru_cache(1 << 16)
def operation(label: str) -> str:
    """ "Tensor.__mul__", "Torch.mul_" and "Aten.mul.Tensor" are all "mul"."""
    parts = label.split(".")
    word = parts[1] if parts[0] == "Aten" and len(parts) > 1 else parts[-1]
    word = word.strip("_") or word
    return _ALIASES.get(word, word)


def moves_data(label: str) -> bool:
    return operation(label) in MOVERS and not is_region(label)


def is_region(label: str) -> bool:
    """Whether a call is a region of compiled code, whatever the function is called that was compiled."""
    return label.startswith(REGION)


def backend(label: str) -> str | None:
    """The hardware or library in a call's label, or None."""
    words = label.lower().replace(".", "_").split("_")
    return next((name for name in _BACKENDS if name in words), None)
