"""Copies of tensors for files and hashes that are made later, in reused host buffers.

New memory is slow: the kernel clears every page on first touch, which costs several times the copy. So buffers return to a pool
after use.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Final

import torch

from dumpscope_capture.values.live_memory import read
from dumpscope_format.older_python import dataclass

KEPT_BYTES: Final = 64 << 20
"""Largest number of bytes of free buffers that a pool keeps."""

_SMALLEST: Final = 1 << 9


class Buffers:
    """Pool of host buffers by size class. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[tuple[int, bool], list[torch.Tensor]] = {}
        self._kept = 0

    def take(self, nbytes: int, *, pinned: bool) -> torch.Tensor:
        """A uint8 tensor of at least `nbytes` bytes with undefined content."""
        size = _class_of(nbytes)
        with self._lock:
            free = self._free.get((size, pinned))
            if free:
                self._kept -= size
                return free.pop()
        return torch.empty(size, dtype=torch.uint8, pin_memory=pinned)

    def hold(self, snapshot: Snapshot) -> None:
        with self._lock:
            snapshot.holders += 1

    def drop(self, snapshot: Snapshot) -> None:
        size = snapshot.buffer.numel()
        with self._lock:
            snapshot.holders -= 1
            if not snapshot.holders and self._kept + size <= KEPT_BYTES:
                self._kept += size
                self._free.setdefault((size, snapshot.event is not None), []).append(snapshot.buffer)


def _class_of(nbytes: int) -> int:
    """Size class in bytes: the next of four sizes between two powers of two."""
    if nbytes <= _SMALLEST:
        return _SMALLEST
    step: int = 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLink:
    """A tensor whose content was written before: `name` becomes a link to the file `first`."""

    name: str
    first: str
    nbytes: int = 0


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """A copy on the host, complete after `event`.

    name: file it goes to, "" for none; nbytes: its bytes, from the start of `buffer`
    stride: in elements; 0 in expanded dimensions
    check: CRC-32 of its bytes if known
    holders: number of uses still to come: a file, a hash
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    nbytes: int
    buffer: torch.Tensor
    whole: torch.Tensor | None
    event: Any
    pool: Buffers
    check: int | None = None
    holders: int = 1

    def hold(self) -> None:
        """Add a use."""
        self.pool.hold(self)

    def wait(self) -> memoryview:
        """The bytes. Waits until the device has copied them."""
        if self.event is not None:
            self.event.synchronize()
        return read(self.buffer[: self.nbytes], memoryview)  # this object holds the memory

    def tensor(self) -> torch.Tensor:
        """The copy as a tensor over the buffer. Call `wait` first."""
        if self.whole is not None:
            return self.whole
        return self.buffer[: self.nbytes].view(self.dtype).as_strided(self.shape, self.stride)

    def release(self) -> None:
        """End a use. After the last one the buffer returns to the pool and the snapshot must not be used."""
        if self.whole is None:
            self.pool.drop(self)


def take(tensor: torch.Tensor, name: str, *, requires_grad: bool, pool: Buffers) -> Snapshot:
    """Copy a detached strided tensor. Later changes do not affect the copy; expanded dimensions (stride 0) stay expanded.

    CUDA tensors are copied into pinned memory in stream order, so the host does not wait; other devices copy at once.
    """
    if tensor.is_quantized:
        copy = tensor.to("cpu", copy=True).contiguous()
        return Snapshot(
            name=name, dtype=copy.dtype, shape=tuple(copy.shape), stride=copy.stride(), requires_grad=False,
            nbytes=copy.numel() * copy.element_size(), buffer=copy.int_repr().view(-1).view(torch.uint8), whole=copy, event=None,
            pool=pool,
        )  # fmt: skip
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    dtype, shape = tensor.dtype, tuple(tensor.shape)
    repeated = [dim for dim, step in enumerate(tensor.stride()) if step == 0 and shape[dim] > 1]
    for dim in repeated:
        tensor = tensor.narrow(dim, 0, 1)
    stride = _row_major(tuple(tensor.shape))
    pinned = tensor.device.type == "cuda"
    nbytes = math.prod(tensor.shape) * dtype.itemsize
    buffer = pool.take(nbytes, pinned=pinned)
    buffer[:nbytes].view(dtype).as_strided(tensor.shape, stride).copy_(tensor, non_blocking=pinned)
    event = None
    if pinned:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(tensor.device))
    stride = tuple(0 if dim in repeated else step for dim, step in enumerate(stride))
    return Snapshot(
        name=name, dtype=dtype, shape=shape, stride=stride, requires_grad=requires_grad, nbytes=nbytes, buffer=buffer,
        whole=None, event=event, pool=pool,
    )  # fmt: skip


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    stride = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))
