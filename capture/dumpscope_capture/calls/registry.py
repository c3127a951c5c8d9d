"""Calls beyond the shipped list, taken from torch's own registry of functions that can be overridden.

The shipped list is msprobe's. Libraries call more: `x /= n`, `torch.fft.rfft`, `torch.scatter_reduce`, and what a later torch
brings. Every built-in function of the registry is a node, but for what only asks, views or moves. A Python function is none: it
runs with its calls observed, so what it calls is. The registry leaves out functions whose names begin with `_`. torch's own code
in Python computes with them (`torch._foreach_mul_` clips gradients, `torch._weight_norm` makes a weight), so those are nodes
whose operators give or change a tensor.
"""

from __future__ import annotations

import re
import types
from functools import lru_cache
from typing import Any, Final

import torch

from dumpscope_capture.calls.callsite import OPERATORS
from dumpscope_capture.older_torch import overridable_functions, overridable_name

_OWN: Final = frozenset((
    "aten", "prim", "prims", "quantized", "_quantized", "quantized_decomposed", "c10d", "_c10d_functional",
    "_c10d_functional_autograd", "profiler", "inductor", "higher_order", "debugprims", "rngprims", "prepacked", "sparse",
    "mkldnn", "mkl", "mkldnn_prepacked", "onednn", "xnnpack", "static_runtime", "streaming", "fsdp", "symm_mem", "dtensor",
    "cuda", "profiler_test", "_native", "inductor_prims", "rng_prims",
))  # fmt: skip
"""Namespaces of `torch.ops` that torch itself uses."""

_ASKS: Final = re.compile(
    r"is_.*|q_.*|sym_.*|_.*|fbgemm_.*|dim|dim_order|size|stride|ndimension|numel|nelement|element_size|get_device|data_ptr|const_data_ptr"
    r"|storage.*|untyped_storage|record_stream|register_.*|retain_grad|requires_grad_|backward|item|tolist|qscheme|sparse_dim"
    r"|dense_dim|module_load|apply_|set_|share_memory_|pin_memory|autocast|names|can_cast|result_type|promote_types|allclose"
)
"""Last names of functions that ask, or change no number; special methods are no functions unless `OPERATORS` has them."""

_MOVES: Final = re.compile(
    r".*_copy|adjoint|alias|as_strided_?|ccol_indices|cdouble|chalf|clone|coalesce|col_indices|conj|contiguous|copy_|cpu|crow_indices"
    r"|cuda|dequantize|detach_?|empty_like|fftshift|ifftshift|imag|index|indices|int_repr|ipu|mtia|ones_like|positive|real|resize"
    r"|resize_as|resize_as_sparse_|resolve_conj|resolve_neg|row_indices|slice_inverse|swapaxes_|to_dense|to_mkldnn|to_sparse"
    r"|sparse_resize_.*|sparse_mask|type|values|view|view_as_complex|view_as_real|xpu|zero_|zeros_like|__getitem__|__pos__"
)
"""Last names of functions that only move, view, cast or make data: nodes at risk level ALL."""

_PRIVATE_ASKS: Final = re.compile(
    r"_(_.*|add_batch_dim|remove_batch_dim|assert_.*|foobar|functional_.*|is_.*|make_dual.*|fw_primal.*|nested_.*|shape_as_tensor|test_.*"
    r"|validate_.*|convolution_mode|efficientzerotensor|cudnn_init_dropout_state|cudnn_rnn_flatten_weight|mps_.*|lstm_mps)"
)
"""Names, beginning with `_`, of operators that are no nodes: they ask, serve torch's transforms and tests, or another device."""

_PRIVATE_MOVES: Final = re.compile(
    r"_(cast_.*|chunk_cat|coalesce|conj|.*_copy|convert_.*|copy_from.*|dim_arange|empty_.*|indices|lazy_clone|make_per_.*|mkldnn_.*"
    r"|neg_view|pack_padded_sequence|pad_packed_sequence|pin_memory|reshape_.*|resize_.*|stack|foreach_copy_|foreach_zero_|foreach_clone"
    r"|sparse_broadcast_to|to_.*|values|wrapped_linear_prepack)"
)
"""Those that only move, cast or make data: nodes at risk level ALL."""

_NPU: Final = ("one_", "empty_with_format", "empty_strided_with_format")
"""Functions of torch_npu whose names have no common form."""

_PLACES: Final = {
    torch: ("torch", ""),
    torch.functional: ("torch", ""),
    torch.linalg: ("torch", "linalg."),
    torch.fft: ("torch", "fft."),
    torch.special: ("torch", "special."),
    torch.nn.functional: ("functional", ""),
    torch.Tensor: ("tensor", ""),
}
"""Owner in the registry -> category of the shipped list, and what stands before the name there."""


def beyond(*, moves: bool) -> dict[str, tuple[str, ...]]:
    """Names by category of the shipped list. moves: also those that only move data"""
    found: dict[str, list[str]] = {"torch": [], "functional": [], "tensor": [], "torch_npu": list(_NPU)}
    for owner, functions in overridable_functions().items():
        place = _PLACES.get(owner) if isinstance(owner, (types.ModuleType, type)) else None
        for function in functions if place is not None else ():
            name = _own_name(owner, function)
            if name is not None and (moves or not _MOVES.fullmatch(name)):
                found[place[0]].append(f"{place[1]}{name}")  # type: ignore[index]
    found["torch"] += [
        f"sparse.{name}"  # which the registry does not know
        for name, function in vars(torch.sparse).items()
        if isinstance(function, types.BuiltinFunctionType) and not name.startswith("_")
    ]
    found["torch"] += [name for name in _private() if moves or not _PRIVATE_MOVES.fullmatch(name)]
    found["tensor"] += [name for name in OPERATORS.values() if moves or not _MOVES.fullmatch(name)]
    if moves:
        found["tensor"].append("__getitem__")
    return {category: tuple(names) for category, names in found.items()}


@lru_cache(maxsize=None)
def _private() -> tuple[str, ...]:
    """Built-in functions of torch whose names begin with `_` and whose operators give or change a tensor, and no view."""
    return tuple(
        name
        for name, function in vars(torch).items()
        if name.startswith("_")
        and isinstance(function, types.BuiltinFunctionType)
        and not _PRIVATE_ASKS.fullmatch(name)
        and any(map(_changes, torch._C._jit_get_schemas_for_operator(f"aten::{name}")))
    )


def _changes(schema: Any) -> bool:
    """Whether an operator takes tensors and gives or changes some."""
    written = [one.alias_info is not None and one.alias_info.is_write for one in schema.arguments]
    given = [one for one in schema.returns if "Tensor" in str(one.type)]
    views = any(one.alias_info is not None and not one.alias_info.is_write for one in given)
    return any("Tensor" in str(one.type) for one in schema.arguments) and not views and (bool(given) or any(written))


def moving(name: str) -> bool:
    """Whether a part of a list may mean a call that is a node at risk level ALL only: `__getitem__`, `Tensor.view.3`."""
    return any(_MOVES.fullmatch(part) or _PRIVATE_MOVES.fullmatch(part) for part in name.split("."))


def is_torchs_own(namespace: str) -> bool:
    """Whether torch itself uses a namespace of `torch.ops`."""
    return namespace in _OWN


def seen_name(function: Any) -> str | None:
    """Name of a function for a report of calls that are no nodes: `torch.Tensor.view`, `aten.add`. None for one that only asks,
    and for a Python function, whose own calls are observed."""
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        packet: Any = getattr(function, "overloadpacket", function)
        return str(packet._qualified_op_name).replace("::", ".")
    if isinstance(function, types.FunctionType):
        return None
    last = getattr(function, "__name__", "")
    if _ASKS.fullmatch(last) and last not in OPERATORS.values() and last not in _private():
        return "torch.Tensor.__getitem__" if last == "__getitem__" else None
    try:
        named = overridable_name(function)
    except (TypeError, AttributeError):
        named = None
    return named or (f"torch.{last}" if last else None)


def _own_name(owner: Any, function: Any) -> str | None:
    """Name of a built-in function as an attribute of its owner; None for what is no call that computes."""
    if isinstance(function, (types.FunctionType, types.MethodWrapperType)):
        return None
    name = getattr(function, "__name__", "")
    for prefix in ("linalg_", "fft_", "special_"):
        if owner is not torch.Tensor and name.startswith(prefix):
            name = name[len(prefix) :]
    if not name or _ASKS.fullmatch(name) or getattr(owner, name, None) is None:
        return None
    return name
