"""Values into records: any argument or result of a call becomes JSON-ready data in msprobe's form.

    tensor        {type, dtype, shape, Max, Min, Mean, Norm, requires_grad[, data_name][, md5]} and our extra keys
    plain value   {type, value}; None and unknown types: null; a dtype or device under an unexpected keyword: {}
    container     list, tuple: list; dict, named tuple, dataclass: object

Extra keys, which msprobe ignores: `counts` {zeros, nan, inf, -inf} of elements, without the zero counts; `stride` if it is not
row-major; `absent`: why statistics or a file are missing; `whole_shape`: of a tensor of which only a part was recorded.

Nothing here changes autograd, random state or the tensors, and nothing raises for unusual values: the record says what could not
be recorded.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import torch

from dumpscope_capture.context import Unobserved
from dumpscope_capture.optional_numpy import ARRAYS, NUMBERS, tensor_of
from dumpscope_capture.values import hashing, tensor_subclasses
from dumpscope_capture.values.dedup import Dedup, KnownMemory, file_key
from dumpscope_capture.values.distributed_objects import distributed_record, is_operation, operation_record
from dumpscope_capture.values.slices import Slices
from dumpscope_capture.values.snapshots import Buffers, FileLink, Snapshot, take
from dumpscope_capture.values.statistics import Chunk, Statistics, measure_later, measure_now, reason_absent
from dumpscope_format.older_python import without_prefix
from dumpscope_format.paths import TENSOR_SUFFIX, file_name
from dumpscope_format.schema import ARRAY_TYPE, STATISTIC_KEYS, TENSOR_TYPE

if TYPE_CHECKING:
    import numpy

Record = Any
"""A dict, list or None that `json.dumps` takes as it is, once the statistics in it have been resolved."""

DEPTH_LIMIT: Final = 100
DEVICE_WORDS: Final = frozenset(("device",))
DTYPE_WORDS: Final = frozenset(("dtype", "output_dtype"))
HOST_LIMIT: Final = 256 << 20
"""Largest number of bytes of device tensors that wait on the host for their hash."""

_PLAIN: Final = (bool, int, float, str)
_FORMAT_WORDS: Final = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
_FORMATS: Final = {getattr(torch, word): word for word in _FORMAT_WORDS}
_EMPTY: Final[dict[str, Any]] = dict.fromkeys(STATISTIC_KEYS)
_EMPTY_XOR: Final[dict[str, Any]] = {"md5": None}
_POOL: Final = Buffers()  # lives longer than the recorder of one step
_ORDINARY: Final = frozenset((torch.Tensor, torch.nn.Parameter))
_DTYPES: Final = {kind: str(kind) for kind in vars(torch).values() if isinstance(kind, torch.dtype)}


def _no_file(item: str) -> bool:
    """`wants_tensor` for dumps without tensor files."""
    return False


class Frozen(Protocol):
    """Tells which tensors are frozen parameters."""

    def leaves_out(self, tensor: torch.Tensor) -> bool: ...


class Recorder:
    """Turns values into records. Safe for threads.

    task: "statistics", "tensor" or "structure" (whose records are all None)
    summary: "statistics", "md5" (statistics and CRC-32) or "xor" (XOR without statistics)
    precision: "high" accumulates float32 in float64
    wants_tensor: whether the tensor of an item name gets a file
    deferred: defer the statistics of CPU tensors too, as on other devices
    dedup: tensors recorded before, by recorders of the same task, summary and precision
    frozen: tells which tensors get no file as they are frozen parameters; None where all get one
    slices: which parts of tensors are recorded; None for whole tensors
    """

    suffix: str = TENSOR_SUFFIX

    def __init__(
        self,
        *,
        task: Literal["statistics", "tensor", "structure"] | str,
        summary: Literal["statistics", "md5", "xor"] | str = "statistics",
        precision: Literal["low", "high"] | str = "low",
        wants_tensor: Callable[[str], bool] | None = None,
        deferred: bool = False,
        dedup: Dedup | None = None,
        frozen: Frozen | None = None,
        slices: Slices | None = None,
    ) -> None:
        self._slices = slices
        self.task = task
        self.frozen = frozen
        self.summary = summary
        self.high = precision == "high"
        self.wants_tensor = wants_tensor or _no_file
        self.deferred = deferred
        self.chunk = Chunk()
        self.dedup = Dedup(thorough=self.writes_files or summary == "md5") if dedup is None else dedup
        self._lock = threading.Lock()
        self._snapshots: list[Snapshot | FileLink] = []
        self._hashes: list[tuple[dict[str, Any], Snapshot]] = []
        self._held = 0

    def record(self, value: Any, item: str, *, keyword: str | None = None) -> Record:
        """Record of a value. item: its full item name, `Functional.linear.0.forward.input.0`; keyword: of a keyword argument."""
        with Unobserved():
            return self.record_unobserved(value, item, keyword=keyword)

    def record_unobserved(self, value: Any, item: str, *, keyword: str | None = None) -> Record:
        """As `record`, for a caller inside `Unobserved`."""
        return None if self.task == "structure" else self._walk(value, item, keyword, 0, ())

    # -- deferred work -------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        """Whether a returned record is still incomplete."""
        return bool(len(self.chunk) or self._hashes)

    @property
    def writes_files(self) -> bool:
        """Whether any tensor may get a file."""
        return self.task == "tensor" or self.wants_tensor is not _no_file

    @property
    def full(self) -> bool:
        return self._held > HOST_LIMIT

    def resolve(self) -> None:
        """Complete all records returned so far."""
        with Unobserved():
            self.chunk.resolve()
        with self._lock:
            hashes, self._hashes, self._held = self._hashes, [], 0
        for record, snapshot in hashes:
            snapshot.wait()
            record["md5"] = self._hash(snapshot.tensor())
            snapshot.release()

    def take_snapshots(self) -> list[Snapshot | FileLink]:
        """Snapshots that are to be written to files; each is returned once."""
        if not self._snapshots:
            return []
        with self._lock:
            snapshots, self._snapshots = self._snapshots, []
        return snapshots

    # -- walking -------------------------------------------------------------------------------------------------------

    def _walk(self, value: Any, item: str, keyword: str | None, depth: int, above: tuple[int, ...]) -> Record:
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            return self._tensor(value, item)
        kind = type(value)
        if kind in _PLAIN:
            return {"type": kind.__name__, "value": value}
        if isinstance(value, (tuple, list, dict, Mapping)) or _is_dataclass(value):
            return self._container(value, item, depth, above)
        return self._other(value, item, keyword)

    def _container(self, value: Any, item: str, depth: int, above: tuple[int, ...]) -> Record:
        if isinstance(value, torch.Size):
            return {"type": "torch.Size", "value": [int(size) for size in value]}
        if depth >= DEPTH_LIMIT:
            return {"type": type(value).__name__, "value": f"nested deeper than {DEPTH_LIMIT}"}
        if id(value) in above:
            return {"type": type(value).__name__, "value": "holds itself"}
        above = (*above, id(value))
        depth += 1
        members = _members(value)
        if members is not None:
            return {str(key): self._walk(part, f"{item}.{key}", str(key), depth, above) for key, part in members}
        return [self._walk(part, f"{item}.{place}", None, depth, above) for place, part in enumerate(value)]

    def _other(self, value: Any, item: str, keyword: str | None) -> Record:
        """A value that is neither tensor, container nor plain."""
        if isinstance(value, _PLAIN):  # a subclass: IntEnum, np.float64, np.str_
            if isinstance(value, NUMBERS):
                return {"type": type(value).__name__, "value": value.item()}
            plain = next(kind for kind in _PLAIN if isinstance(value, kind))
            return {"type": type(value).__name__, "value": plain(value)}
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        if isinstance(value, slice):
            return {"type": "slice", "value": [_bound(value.start), _bound(value.stop), _bound(value.step)]}
        if isinstance(value, torch.dtype):
            return {"type": "torch.dtype", "value": str(value)} if keyword in DTYPE_WORDS else {}
        if isinstance(value, torch.device):
            return {"type": "torch.device", "value": str(value)} if keyword in DEVICE_WORDS else {}
        if isinstance(value, torch.memory_format):
            return {"type": "torch.memory_format", "format": _FORMATS.get(value, without_prefix(str(value), "torch."))}
        if isinstance(value, ARRAYS):
            return self._array(value, item)
        if isinstance(value, NUMBERS):
            number = value.item()
            return {"type": type(value).__name__, "value": number} if isinstance(number, _PLAIN) else None
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return {"type": type(value).__name__, "value": str(value)}
        if is_operation(value):
            return operation_record(value, self._walk(value.tensor, item, None, 0, ()))
        return distributed_record(value)

    # -- tensors -------------------------------------------------------------------------------------------------------

    def _tensor(self, tensor: torch.Tensor, item: str) -> dict[str, Any]:
        name, absent = TENSOR_TYPE, None
        extra: dict[str, Any] = {}
        grad, given = tensor.requires_grad, tensor
        if type(tensor) not in _ORDINARY:
            name, tensor, extra, absent = tensor_subclasses.unwrap(tensor)
        if absent is None and (wrapped := tensor_subclasses.outside_transforms(tensor)) is not None:
            name, tensor = wrapped
            absent = "inside a function transform" if tensor_subclasses.outside_transforms(tensor) else None
        dtype = tensor.dtype
        record: dict[str, Any] = {
            "type": name, "dtype": _DTYPES.get(dtype) or str(dtype), "shape": tensor_subclasses.shape_of(tensor),
        }  # fmt: skip
        if absent is None and tensor.is_nested:
            tensor = tensor_subclasses.components(tensor)
        elif absent is None and self._slices is not None and self._slices.now and tensor.layout is torch.strided:
            tensor = self._cut(tensor, record)
        if absent is None and tensor.layout is not torch.strided:
            record["layout"] = without_prefix(str(tensor.layout), "torch.")
            try:
                tensor = tensor_subclasses.with_zeros(tensor)
            except Exception as error:  # no memory for it, say
                absent = f"{type(error).__name__}: {str(error)[:120]}"
        if absent is None:
            absent = reason_absent(tensor)
        record.update(_EMPTY_XOR if self.summary == "xor" else _EMPTY)
        record["requires_grad"] = grad
        if extra:
            record.update(extra)
        if absent is not None:
            if self.summary != "statistics":
                empty = "00000000" if self.summary == "md5" else 0
                record["md5"] = empty if absent == "empty" else None
            record["absent"] = absent
            return record
        try:
            frozen = not grad and self.frozen is not None and self.writes_files and self.frozen.leaves_out(given)
            self._content(tensor.detach() if tensor.requires_grad else tensor, record, item, frozen=frozen)
        except Exception as error:  # an unusual tensor must not stop training
            record["absent"] = f"{type(error).__name__}: {str(error)[:120]}"
        return record

    def _cut(self, tensor: torch.Tensor, record: dict[str, Any]) -> torch.Tensor:
        assert self._slices is not None
        part = self._slices.cut(tensor)
        if part.shape != tensor.shape:
            record["shape"], record["whole_shape"] = list(part.shape), record["shape"]
        return part

    def _content(self, tensor: torch.Tensor, record: dict[str, Any], item: str, *, frozen: bool) -> None:
        """Statistics, hash and file of a plain tensor with data and without a graph. frozen: without the file"""
        here = tensor.is_cpu and not self.deferred
        known: KnownMemory | None = None
        if self.summary != "xor":
            if not here:
                self.chunk.add(measure_later(tensor, high=self.high, fill=partial(fill, record)))
            elif (known := self.dedup.find(tensor)) is None:
                fill(record, self.dedup.measure_small(tensor, self._measure))
            else:
                if known.statistics is None:
                    known.statistics = measure_now(tensor, high=self.high, surveyed=known.surveyed)
                fill(record, known.statistics)
        snapshot: Snapshot | None = None
        hashed = self._hash_now(tensor, known) if here and self.summary != "statistics" else None
        if not frozen and self.wants_tensor(item):
            snapshot = self._add_file(tensor, record, item, known)
        if hashed is not None:
            record["md5"] = hashed
        elif self.summary != "statistics":
            self._add_hash(tensor, record, snapshot)
        if snapshot is not None:
            with self._lock:
                self._snapshots.append(snapshot)
            if known is not None:  # only now: a file must be queued before links to it
                known.files.setdefault(file_key(tensor, requires_grad=snapshot.requires_grad), snapshot.name)
        if not tensor.is_contiguous():
            record["stride"] = list(tensor.stride())

    def _measure(self, tensor: torch.Tensor) -> Statistics:
        return measure_now(tensor, high=self.high)

    def _add_file(
        self, tensor: torch.Tensor, record: dict[str, Any], item: str, known: KnownMemory | None
    ) -> Snapshot | None:
        """Take the snapshot to be written; None where a file with the same content is linked."""
        name = record["data_name"] = file_name(item, self.suffix)
        grad = bool(record["requires_grad"])
        if known is not None:
            first = known.files.get(file_key(tensor, requires_grad=grad))
            if first is not None:
                with self._lock:
                    self._snapshots.append(FileLink(name=name, first=first))
                return None
        snapshot = take(tensor, name, requires_grad=grad, pool=_POOL)
        if known is not None and tensor.is_contiguous():
            snapshot.check = known.crc
        return snapshot

    def _hash_now(self, tensor: torch.Tensor, known: KnownMemory | None) -> str | float | int | bool:
        if known is None or not tensor.is_contiguous():
            return self._hash(tensor)
        if known.crc is None:
            known.crc = hashing.crc_of(tensor)
        return hashing.digits(known.crc)

    def _add_hash(self, tensor: torch.Tensor, record: dict[str, Any], snapshot: Snapshot | None) -> None:
        """Compute the hash of a tensor on another device when the chunk is resolved."""
        record["md5"] = None
        if snapshot is None:
            snapshot = take(tensor, "", requires_grad=False, pool=_POOL)
        else:
            snapshot.hold()
        with self._lock:
            self._hashes.append((record, snapshot))
            self._held += snapshot.nbytes

    def _hash(self, tensor: torch.Tensor) -> str | float | int | bool:
        return hashing.xor(tensor) if self.summary == "xor" else hashing.digits(hashing.crc_of(tensor))

    def _array(self, array: numpy.ndarray[Any, Any], item: str) -> dict[str, Any]:
        record: dict[str, Any] = {"type": ARRAY_TYPE, "dtype": str(array.dtype), "shape": list(array.shape)}
        record.update(dict.fromkeys(STATISTIC_KEYS))
        try:
            tensor = tensor_of(array)
        except TypeError:
            record["absent"] = "not numbers"
            return record
        if not tensor.numel():
            record["absent"] = "empty"
            return record
        statistics = measure_now(tensor, high=self.high)
        fill(record, statistics)
        if tensor.dtype is torch.bool:
            true = tensor.numel() - statistics.zeros
            record["Mean"], record["Norm"] = true / tensor.numel(), math.sqrt(true)
        if self.wants_tensor(item):
            record["data_name"] = file_name(item)
            with self._lock:
                self._snapshots.append(take(tensor, record["data_name"], requires_grad=False, pool=_POOL))
        return record


def fill(record: dict[str, Any], found: Statistics) -> None:
    """Put statistics into a tensor's record."""
    record["Max"], record["Min"], record["Mean"], record["Norm"] = found.max, found.min, found.mean, found.norm
    if found.zeros or found.nan or found.pos_inf or found.neg_inf:
        counts = {"zeros": found.zeros, "nan": found.nan, "inf": found.pos_inf, "-inf": found.neg_inf}
        record["counts"] = {word: count for word, count in counts.items() if count}


def _is_dataclass(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


def _members(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """(key, value) of a container with names, None for a list or plain tuple."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return zip(fields, value) if type(fields) is tuple else None
    if _is_dataclass(value):
        return [(field, getattr(value, field, None)) for field in type(value).__dataclass_fields__]
    return None


def _bound(value: Any) -> Any:
    """A bound of a slice as a whole number or None; a text if reading it would wait for a device."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        return "tensor"
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return str(value)
