"""Tensors that were recorded before in the same step: their statistics and files are used again.

Most of what is recorded is the same memory once more (a result that is the next call's argument, a module's and its function's
input, a view of either: the order of elements changes no statistic). It counts as the same where storage, place in it, version
and a checksum of its present bytes agree: versions alone miss what is written past autograd (`.data`, numpy, custom kernels,
collectives).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from dumpscope_capture.statistics import Statistics, flat

WORTH: Final = 4096
"""Elements from which looking is cheaper than measuring."""

_Key = tuple[int, int, int, torch.dtype]
_File = tuple[bool, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True, kw_only=True)
class Sight:
    """A piece of memory as it is now, whatever shape its views have.

    check: of its bytes in their own order; statistics: what was found out before
    files: names of its files by `file_key`
    """

    key: _Key
    reference: StorageWeakRef
    version: int
    check: int
    statistics: Statistics | None = None
    files: dict[_File, str] = field(default_factory=dict)


class Seen:
    """Tensors of one step. Threads may race: the worst that comes of it is a tensor measured twice.

    strong: check by CRC-32, for files and hashes; else by a sum, at a tenth of the cost, for statistics
    """

    def __init__(self, *, strong: bool) -> None:
        self._strong = strong
        self._sights: dict[_Key, Sight] = {}

    def look(self, tensor: torch.Tensor) -> Sight | None:
        """The sight of a detached CPU tensor, the old one where it is unchanged; None where that cannot be told."""
        if (
            tensor.numel() < WORTH
            or tensor.is_inference()
            or tensor.is_quantized
            or tensor.is_conj()
            or tensor.is_neg()
        ):
            return None
        memory = flat(tensor)
        if memory is None:
            return None
        storage = tensor.untyped_storage()
        # The weak reference keeps the address of the storage from being given to another one.
        key = (storage._cdata, tensor.storage_offset(), tensor.numel(), tensor.dtype)
        data = memory.view(torch.uint8).numpy()
        check = crc32(data.data) if self._strong else _sum(data)
        version = tensor._version
        known = self._sights.get(key)
        if known is not None and known.version == version and known.check == check:
            return known
        sight = Sight(key=key, reference=StorageWeakRef(storage), version=version, check=check)
        self._sights[key] = sight
        return sight


def file_key(tensor: torch.Tensor, *, requires_grad: bool) -> _File:
    """What two files of the same memory may differ by."""
    return requires_grad, tuple(tensor.shape), tensor.stride()


def _sum(data: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    """Sum of all 8-byte words and of the bytes that are left."""
    whole = len(data) - len(data) % 8
    return int(data[:whole].view(np.uint64).sum()) + (int(data[whole:].sum()) << 64)
