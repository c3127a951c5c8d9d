"""Uninitialised memory with other bytes in every run."""

from __future__ import annotations

import ctypes
import random
from contextlib import suppress
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

EMPTY: Final = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")


class Garbage(TorchDispatchMode):
    """Fills new memory with random bytes, as it may hold them after other work of the process."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.bytes = random.Random(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in EMPTY and isinstance(made, torch.Tensor) and made.numel():
            size = made.untyped_storage().nbytes()
            with suppress(RuntimeError):  # the memory of a wrapper or a fake tensor is not there
                ctypes.memmove(made.untyped_storage().data_ptr(), self.bytes.randbytes(size), size)
        return made
