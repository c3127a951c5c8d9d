"""Statistics of one tensor: Max, Min, Mean, Norm and the counts of zeros, NaN, +inf and -inf, in few passes.

CPU tensors are measured at once. Everything else stays on its device: a `Chunk` holds the scalars of many tensors and fetches
them in one transfer, so nothing waits for the device until a chunk is full or the step ends.

Accumulation is in float32 for float32 and below (the numbers msprobe gives for float32), in float64 for float64, integers and
`precision="high"`. Norms of float16 and bfloat16 never overflow: they are taken in float64, or of values scaled to at most 1
where a device has no float64.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch

from dumpscope_capture.context import peek
from dumpscope_capture.older_torch import UINT64
from dumpscope_capture.optional_numpy import np
from dumpscope_capture.values.host_memory import Survey, flat, survey
from dumpscope_capture.values.live_memory import is_freed, read
from dumpscope_format.older_python import dataclass, without_prefix

if TYPE_CHECKING:
    from typing import TypeAlias

Number: TypeAlias = "float | int | bool"

SURVEYED: Final = 4096
"""Number of elements from which a tensor is looked up in `Dedup`, and its squares are summed in float64."""

_SHAKY: Final = 1e-24  # sums of float32 squares below it lose digits
_HALF: Final = frozenset((torch.float16, torch.bfloat16))
_NO_DOUBLE: Final = frozenset(("mps", "npu", "xpu"))
_WIDE_UNSIGNED: Final = frozenset(
    getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)
)
_PACKED: Final = frozenset(
    getattr(torch, name) for name in ("float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")
    if hasattr(torch, name)
)  # fmt: skip


_NUMPY: Final[dict[torch.dtype, Any]] = {
    torch.float32: np.float32, torch.float64: np.float64, torch.int64: np.int64, torch.int32: np.int32, torch.int16: np.int16,
    torch.int8: np.int8, torch.uint8: np.uint8,
} if np is not None else {}  # fmt: skip


class Statistics(NamedTuple):
    """Statistics of one tensor. None where a statistic has no meaning; counts are of elements."""

    max: Number
    min: Number
    mean: Number | None
    norm: Number | None
    zeros: int = 0
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0


Fill: TypeAlias = "Callable[[Statistics], None]"


class Chunk:
    """Statistics that are still on devices, in order. Safe for threads.

    since: time.monotonic() of the oldest entry, None where nothing is pending
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[ChunkEntry] = []
        self.since: float | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: ChunkEntry) -> None:
        with self._lock:
            if self.since is None:
                self.since = time.monotonic()
            self._entries.append(entry)

    def resolve(self) -> None:
        """Fetch everything, one transfer a device, and fill the records."""
        with self._lock:
            entries, self._entries, self.since = self._entries, [], None
        by_device: dict[torch.device, list[ChunkEntry]] = {}
        for entry in entries:
            by_device.setdefault(entry.device, []).append(entry)
        for device, some in by_device.items():
            _wait_streams(device, some)
            rows = _fetch(some)
            for entry, row in zip(some, rows):
                entry.fill(_from_row(entry, row))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntry:
    """Scalars of one tensor: `numbers` are two to four statistics, `counts` zero or four int64 scalars on the device."""

    device: torch.device
    stream: Any
    numbers: tuple[torch.Tensor, ...]
    counts: tuple[torch.Tensor, ...]
    numel: int
    scalar: bool
    bool_: bool
    fill: Fill


def reason_absent(tensor: torch.Tensor) -> str | None:
    """Why a tensor has no statistics, None where it has."""
    if tensor.layout is not torch.strided:
        return f"layout {without_prefix(str(tensor.layout), 'torch.')}"
    if tensor.is_meta:
        return "no data (meta)"
    if tensor.dtype in _PACKED:
        return f"no arithmetic for {without_prefix(str(tensor.dtype), 'torch.')}"
    if torch._is_functional_tensor(tensor):  # what looks like its memory is none
        return "inside a graph capture"
    if tensor.numel() == 0:
        return "empty"
    if is_freed(tensor):
        return "storage is freed"
    return None


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a dtype that has arithmetic."""
    dtype = tensor.dtype
    if dtype.is_complex:
        return tensor.abs() if dtype is not torch.complex32 else tensor.to(torch.complex64).abs()
    if tensor.is_quantized:
        return tensor.dequantize()
    if dtype in _WIDE_UNSIGNED:
        return tensor.to(torch.int64 if dtype is not UINT64 else torch.float64)
    if dtype.is_floating_point and dtype.itemsize == 1:
        return tensor.to(torch.float32)
    return tensor


# -- CPU ---------------------------------------------------------------------------------------------------------------


def measure_now(tensor: torch.Tensor, *, high: bool, surveyed: Survey | None = None) -> Statistics:
    """Statistics of a CPU tensor with at least one element. surveyed: facts that are known before"""
    dtype = tensor.dtype
    if dtype is torch.bool:
        return _of_bools(tensor)
    if dtype is UINT64:
        return _of_uint64(tensor)
    value = tensor if dtype is torch.float32 else _plain(tensor)
    if value.dim() == 0:
        return _of_number(value.item())
    if value.dtype in _HALF:
        value = value.float()
    if value.is_neg():
        value = value.resolve_neg()
    low, top, zeros, squares = _survey(value) if surveyed is None else surveyed
    if not value.is_floating_point():
        double = value.to(torch.float64)
        return Statistics(
            max=top, min=low, mean=double.mean().item(), norm=torch.linalg.vector_norm(double).item(), zeros=zeros
        )
    wider = torch.float64 if high and value.dtype is torch.float32 else None
    mean = value.sum(dtype=wider).item() / value.numel()
    if value.dtype is torch.float32 and wider is None:
        mean = ctypes.c_float(mean).value  # the same bits as torch.mean, in half the time
    if squares is not None and wider is None and _SHAKY < squares < math.inf:
        norm = math.sqrt(squares)
    else:
        norm = torch.linalg.vector_norm(value, dtype=wider).item()
    if low - low == 0 and top - top == 0:
        if dtype in _HALF and not _SHAKY < norm * norm < math.inf:
            norm = torch.linalg.vector_norm(value, dtype=torch.float64).item()
        return Statistics(max=top, min=low, mean=mean, norm=norm, zeros=zeros)
    return Statistics(
        max=top, min=low, mean=mean, norm=norm, zeros=zeros,
        nan=int(value.isnan().sum()), pos_inf=int((value == math.inf).sum()), neg_inf=int((value == -math.inf).sum()),
    )  # fmt: skip


def _survey(value: torch.Tensor) -> Survey:
    """Survey of a CPU tensor that has dimensions."""
    if value.numel() < SURVEYED:
        ends = torch.aminmax(value)
        low, top = ends.min.item(), ends.max.item()
        zeros = 0 if low > 0 or top < 0 else value.numel() - _count_nonzero(value)
        return Survey(low, top, zeros, None)
    memory = flat(value)
    return survey(value.contiguous().view(-1) if memory is None else memory)


def _count_nonzero(value: torch.Tensor) -> int:
    """Count in few numbers, for which numpy is faster than torch."""
    kind = _NUMPY.get(value.dtype)
    if kind is None:
        return int(torch.count_nonzero(value))
    return read(value.contiguous(), _count_in, kind)


def _count_in(data: memoryview, kind: Any) -> int:
    return int(np.count_nonzero(np.frombuffer(data, kind)))


def _of_number(value: float) -> Statistics:
    """Statistics of a tensor without dimensions: all four are its value, as in msprobe."""
    return Statistics(
        max=value, min=value, mean=value, norm=value, zeros=int(value == 0), nan=int(math.isnan(value)),
        pos_inf=int(value == math.inf), neg_inf=int(value == -math.inf),
    )  # fmt: skip


def _of_bools(tensor: torch.Tensor) -> Statistics:
    true = int(torch.count_nonzero(tensor))
    numel = tensor.numel()
    return Statistics(max=true > 0, min=true == numel, mean=None, norm=None, zeros=numel - true)


def _of_uint64(tensor: torch.Tensor) -> Statistics:
    return read(tensor.contiguous(), _of_uint64_bytes, tensor.dim() == 0)


def _of_uint64_bytes(data: memoryview, lone: bool) -> Statistics:
    value = data.cast("B").cast("Q")
    if lone:
        return _of_number(value[0])
    double = torch.tensor(value.tolist(), dtype=torch.float64)
    return Statistics(
        max=max(value), min=min(value), mean=double.mean().item(), norm=torch.linalg.vector_norm(double).item(),
        zeros=value.tolist().count(0),
    )  # fmt: skip


# -- other devices -----------------------------------------------------------------------------------------------------


def measure_later(tensor: torch.Tensor, *, high: bool, fill: Fill) -> ChunkEntry:
    """Measure a plain strided tensor with data on its device, for a `Chunk`."""
    device = tensor.device
    double = device.type not in _NO_DOUBLE
    is_bool = tensor.dtype is torch.bool
    half = tensor.dtype in _HALF
    value = tensor if is_bool else _plain(tensor)
    counts: tuple[torch.Tensor, ...] = ()
    if value.dim() == 0:
        numbers: tuple[torch.Tensor, ...] = (value.clone(),)
    elif is_bool:
        numbers = (torch.count_nonzero(value),)
    else:
        low, top = torch.aminmax(value)
        nonzero = torch.count_nonzero(value)
        if value.is_floating_point():
            wide = torch.float64 if double and (high or half) else None
            mean = value.mean(dtype=torch.float32 if half else wide)
            if half and not double:
                norm = scaled_norm(value.float(), low.float(), top.float())
            else:
                norm = torch.linalg.vector_norm(value, dtype=wide)
            counts = (nonzero, value.isnan().sum(), value.isposinf().sum(), value.isneginf().sum())
        else:
            real = value.to(torch.float64 if double else torch.float32)
            mean, norm = real.mean(), torch.linalg.vector_norm(real)
            counts = (nonzero,)
        numbers = (top, low, mean, norm)
    return ChunkEntry(
        device=device, stream=_stream(device), numbers=numbers, counts=counts, numel=value.numel(),
        scalar=value.dim() == 0, bool_=is_bool, fill=fill,
    )  # fmt: skip


def scaled_norm(value: torch.Tensor, low: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
    """Norm of finite values without overflow and without float64: the largest magnitude times the norm of the scaled values.

    inf or NaN if a value is."""
    scale = torch.maximum(low.abs(), top.abs())
    safe = torch.where((scale > 0) & scale.isfinite(), scale, torch.ones_like(scale))
    norm: torch.Tensor = torch.linalg.vector_norm(value / safe)
    return norm * safe


def _stream(device: torch.device) -> Any:
    """The stream in use on a device, None where its kind has none."""
    find = None if device.type == "cpu" else peek(peek(torch, device.type), "current_stream")
    return None if find is None else find(device)


def _wait_streams(device: torch.device, entries: list[ChunkEntry]) -> None:
    """Make the current stream wait for the streams of all entries. The host does not wait."""
    current = _stream(device)
    for stream in {entry.stream for entry in entries}:
        if stream is not None and stream != current:
            current.wait_stream(stream)


def _fetch(entries: list[ChunkEntry]) -> list[list[Number]]:
    """Scalars of all entries of one device, in one transfer: all dtypes are viewed as bytes and concatenated."""
    by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
    for entry in entries:
        for scalar in (*entry.numbers, *entry.counts):
            by_dtype.setdefault(scalar.dtype, []).append(scalar)
    groups = [(dtype, torch.stack(scalars)) for dtype, scalars in by_dtype.items()]
    joined = torch.cat([group.view(torch.uint8) for _, group in groups]).cpu()
    values: dict[torch.dtype, list[Number]] = {}
    start = 0
    for dtype, group in groups:
        size = group.numel() * dtype.itemsize
        part = torch.empty(group.numel(), dtype=dtype)
        part.view(torch.uint8).copy_(joined[start : start + size])
        values[dtype] = part.tolist()
        start += size
    places = dict.fromkeys(by_dtype, 0)
    rows: list[list[Number]] = []
    for entry in entries:
        row: list[Number] = []
        for scalar in (*entry.numbers, *entry.counts):
            row.append(values[scalar.dtype][places[scalar.dtype]])
            places[scalar.dtype] += 1
        rows.append(row)
    return rows


def _from_row(entry: ChunkEntry, row: list[Number]) -> Statistics:
    if entry.bool_:
        true = int(row[0])
        return Statistics(max=true > 0, min=true == entry.numel, mean=None, norm=None, zeros=entry.numel - true)
    if entry.scalar:
        return _of_number(row[0])
    counts = [int(part) for part in row[4:]]
    nan, pos_inf, neg_inf = counts[1:] or (0, 0, 0)
    return Statistics(
        max=row[0], min=row[1], mean=row[2], norm=row[3], zeros=entry.numel - counts[0],
        nan=nan, pos_inf=pos_inf, neg_inf=neg_inf,
    )  # fmt: skip
