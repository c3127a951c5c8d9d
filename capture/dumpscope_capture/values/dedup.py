"""Deduplication: a tensor recorded before reuses its statistics and hashes, and within a step its file.

Most recorded tensors are the same memory again: a result that is the next call's argument, the input of a module and of its
function, or a view of either (the order of elements changes no statistic). Memory counts as unchanged if storage, offset, version
and a checksum of its bytes agree. Versions alone miss writes past autograd (`.data`, numpy, custom kernels, collectives). Small
tensors are recognised by their bytes, which takes a sixth of the time of measuring them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from dumpscope_capture.values.host_memory import Survey, checksum, flat, survey
from dumpscope_capture.values.live_memory import read
from dumpscope_capture.values.statistics import SURVEYED, Statistics
from dumpscope_format.older_python import dataclass

if TYPE_CHECKING:
    from typing import TypeAlias

_SURVEYED: Final = frozenset(
    (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
)

_SMALL: Final = 2048
"""Largest number of elements of a tensor that is recognised by its bytes."""
_SMALL_BYTES: Final = 4 << 20
"""Bytes of small tensors that are kept; with more, all are forgotten."""

_Key: TypeAlias = "tuple[int, Any, Any, torch.dtype]"
_Content: TypeAlias = "tuple[torch.dtype, torch.Size, bytes]"
_File: TypeAlias = "tuple[bool, tuple[int, ...], tuple[int, ...]]"


@dataclass(slots=True, kw_only=True)
class KnownMemory:
    """A piece of memory with its current content, for views of any shape.

    check: checksum of its bytes in memory order; surveyed: numbers found while looking it up
    statistics, crc: None until computed; files: names of its files by `file_key`
    """

    key: _Key
    reference: StorageWeakRef
    version: int
    check: tuple[int, ...]
    surveyed: Survey | None = None
    statistics: Statistics | None = None
    crc: int | None = None
    files: dict[_File, str] = field(default_factory=dict)


class Dedup:
    """Memory recorded in a run. Threads may race: at worst a tensor is measured twice.

    thorough: the order of elements matters, as for files and hashes
    """

    def __init__(self, *, thorough: bool) -> None:
        self._thorough = thorough
        self._known: dict[_Key, KnownMemory] = {}
        self._small: dict[_Content, Statistics] = {}
        self._small_bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    def end_step(self) -> None:
        """Forget the files of the step, and memory that was freed."""
        known = self._known
        self._known = {key: memory for key, memory in known.items() if not memory.reference.expired()}  # type: ignore[no-untyped-call]
        for memory in self._known.values():
            memory.files.clear()

    def find(self, tensor: torch.Tensor) -> KnownMemory | None:
        """What is known of the memory of a detached CPU tensor, new if it has changed; None where a change would be missed."""
        numel, dtype = tensor.numel(), tensor.dtype
        if numel < SURVEYED or tensor.is_inference() or tensor.is_neg():
            return None
        plain = dtype in _SURVEYED
        if not plain and (tensor.is_quantized or tensor.is_conj()):
            return None
        memory = flat(tensor)
        if memory is None:
            return None
        storage = tensor.untyped_storage()
        # While the weak reference lives, no other storage gets this address.
        key = (storage._cdata, tensor.storage_offset(), numel, dtype)
        version = tensor._version
        check = checksum(memory, thorough=self._thorough)
        known = self._known.get(key)
        if known is not None and known.version == version and known.check == check:
            return known
        surveyed = survey(memory) if plain else None
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        fresh = KnownMemory(key=key, reference=reference, version=version, check=check, surveyed=surveyed)
        self._known[key] = fresh
        return fresh

    def measure_small(self, tensor: torch.Tensor, measure: Callable[[torch.Tensor], Statistics]) -> Statistics:
        """Statistics of a detached CPU tensor that `find` does not look up; equal bytes of equal shape are measured once."""
        size = tensor.numel()
        if not 1 < size <= _SMALL or tensor.dtype not in _SURVEYED or not tensor.is_contiguous() or tensor.is_neg():
            return measure(tensor)
        content = (tensor.dtype, tensor.shape, read(tensor, bytes))
        found = self._small.get(content)
        if found is None:
            found = measure(tensor)
            if self._small_bytes > _SMALL_BYTES:
                self._small, self._small_bytes = {}, 0
            self._small[content] = found
            self._small_bytes += len(content[2])
        return found


def file_key(tensor: torch.Tensor, *, requires_grad: bool) -> _File:
    """What distinguishes two files of the same memory."""
    return requires_grad, tuple(tensor.shape), tensor.stride()
