"""The one way to read the bytes of a tensor that the program may still use.

`Tensor.numpy()` and `np.asarray(tensor)` mark the storage as not resizable for good. A program that frees and refills a storage
(`storage.resize_(0)`, as sharded training does with every parameter) then fails. Here the bytes are read at their address, and
nothing is noted in the storage. Reductions of torch, copies and `item()` are harmless too, and need no function of this module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, TypeVar

import torch

T = TypeVar("T")

_READ_ONLY: Final = 0x100  # PyBUF_READ
_memoryview: Final[Any] = ctypes.pythonapi.PyMemoryView_FromMemory
_memoryview.restype = ctypes.py_object
_memoryview.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def read(tensor: torch.Tensor, function: Callable[..., T], *more: Any) -> T:
    """`function(bytes, *more)` with the bytes of a contiguous tensor in host memory, which are not copied.

    The function must not keep the bytes, nor a view of them: the memory is held until it returns, and no longer.
    """
    nbytes = tensor.numel() * tensor.element_size()
    return function(_memoryview(tensor.data_ptr(), nbytes, _READ_ONLY) if nbytes else memoryview(b""), *more)


def is_freed(tensor: torch.Tensor) -> bool:
    """Whether the storage of a strided tensor is smaller than its elements need: a sharded parameter while it is not in use.
    Reading such a tensor may end the process."""
    try:
        held = tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):  # a tensor without a storage of its own
        return False
    size, offset, numel = tensor.element_size(), tensor.storage_offset(), tensor.numel()
    if held >= (offset + numel) * size and tensor.is_contiguous():
        return False
    reach = sum(map(lambda count, step: (count - 1) * step, tensor.shape, tensor.stride()))
    return numel > 0 and held < (offset + reach + 1) * size
