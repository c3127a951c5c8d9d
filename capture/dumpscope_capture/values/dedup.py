"""Tensors that were recorded before: their statistics and hashes are used again, and in the same step their files.

Most of what is recorded is the same memory once more (a result that is the next call's argument, a module's and its function's
input, a view of either: the order of elements changes no statistic). It counts as the same where storage, place in it, version
and a checksum of its present bytes agree: versions alone miss what is written past autograd (`.data`, numpy, custom kernels,
collectives).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from dumpscope_capture.values.host_memory import Survey, checksum, flat, survey
from dumpscope_capture.values.statistics import SURVEYED, Statistics

_SURVEYED: Final = frozenset(
    (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
)

_Key = tuple[int, Any, Any, torch.dtype]
_File = tuple[bool, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True, kw_only=True)
class Sight:
    """A piece of memory as it is now, whatever shape its views have.

    check: of its bytes in their own order; surveyed: what was found on the way
    statistics, crc: what was found out before; files: names of its files by `file_key`
    """

    key: _Key
    reference: StorageWeakRef
    version: int
    check: tuple[int, ...]
    surveyed: Survey | None = None
    statistics: Statistics | None = None
    crc: int | None = None
    files: dict[_File, str] = field(default_factory=dict)


class Seen:
    """Tensors of a run. Threads may race: the worst that comes of it is a tensor measured twice.

    thorough: the order of elements matters, as it does for files and hashes
    """

    def __init__(self, *, thorough: bool) -> None:
        self._thorough = thorough
        self._sights: dict[_Key, Sight] = {}

    def __len__(self) -> int:
        return len(self._sights)

    def end_step(self) -> None:
        """Forget the files, which belong to their step, and the tensors that are gone."""
        sights = self._sights
        self._sights = {key: sight for key, sight in sights.items() if not sight.reference.expired()}  # type: ignore[no-untyped-call]
        for sight in self._sights.values():
            sight.files.clear()

    def look(self, tensor: torch.Tensor) -> Sight | None:
        """The sight of a detached CPU tensor, the old one where it is unchanged; None where that cannot be told."""
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
        # The weak reference keeps the address of the storage from being given to another one.
        key = (storage._cdata, tensor.storage_offset(), numel, dtype)
        version = tensor._version
        check = checksum(memory, thorough=self._thorough)
        known = self._sights.get(key)
        if known is not None and known.version == version and known.check == check:
            return known
        surveyed = survey(memory) if plain else None
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        sight = Sight(key=key, reference=reference, version=version, check=check, surveyed=surveyed)
        self._sights[key] = sight
        return sight


def file_key(tensor: torch.Tensor, *, requires_grad: bool) -> _File:
    """What two files of the same memory may differ by."""
    return requires_grad, tuple(tensor.shape), tensor.stride()
