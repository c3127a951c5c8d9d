"""Tensor files written by torch.save, read without torch: zip form and the older stream of pickles. See docs/tensors.md."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import layout_cache, pickle_machine, torch_globals, zip_directory
from dumpscope.readers.tensors.arrays import (
    DEFAULT_BUDGET,
    Array,
    Bytes,
    ElementType,
    LoadedTensor,
    check_budget,
    strided,
)
from dumpscope.readers.tensors.mapped_file import read_bytes
from dumpscope.readers.tensors.torch_globals import Quantizer, StorageRef, StorageType, TensorSpec
from dumpscope.readers.tensors.zip_directory import DEFLATED, STORED, Directory
from dumpscope.texts import say

_LEGACY_MAGIC: Final = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL: Final = 1001
_COUNT: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the pickle of a file may hold: known globals, what stands for others, opcodes, and how many of them."""

    table: Mapping[bytes, Any]
    unknown: Callable[[bytes], Any] = torch_globals.unknown_global
    operations: Sequence[pickle_machine.Operation | None] = ()
    steps: int = pickle_machine.MAX_STEPS

    def run(self, data: bytes, persistent: Callable[[Any], Any], start: int = 0) -> tuple[Any, int]:
        """The value of one pickle, and the byte after it. Raises TensorError."""
        return pickle_machine.run(
            data, self.table, persistent,
            start=start, unknown=self.unknown, operations=self.operations, steps=self.steps,
        )  # fmt: skip


_TENSORS: Final = Dialect(table=torch_globals.TABLE)


def load(path: Path | str, *, budget: int = DEFAULT_BUDGET, root: Path | str | None = None) -> LoadedTensor:
    """The one tensor (or parameter) of a `.pt` file, as a read-only array over the file's own bytes where they allow it.

    budget: logical bytes (elements times element size) allowed, checked before anything is read or allocated
    root: folder the file must lie in after symlinks are resolved
    Raises TensorError, whose kind is: missing, unreadable, refused, truncated, damaged, unsupported, over_budget, no_data,
    not_a_tensor.
    """
    try:
        buffer = read_bytes(path, root=root)
        known = layout_cache.find(buffer, budget)
        if known is not None:
            return known
        value, reader = _open(buffer, budget)
        if type(value) is not TensorSpec:
            raise TensorError(
                say("readers.file_holds_not_tensor", word=_word(value)),
                kind="not_a_tensor",
                hint=say("readers.dumped_item_one_tensor_file_torch"),
            )
        loaded = reader.tensor(value)
        if isinstance(reader.storages, _ZipStorages):
            layout_cache.learn(buffer, reader.storages.directory, reader.storages.prefix, loaded)
        return loaded
    except TensorError as error:
        error.where = error.where or str(path)
        raise


def open_contents(
    buffer: Bytes, dialect: Dialect, *, budget: int = DEFAULT_BUDGET
) -> tuple[Any, Callable[[TensorSpec], LoadedTensor]]:
    """All that a file of torch.save holds: its value, in which `TensorSpec`s stand for tensors, and what reads one of them.

    budget: bytes of one tensor, more only if the file is larger; and of members that must be inflated
    Raises TensorError like `load`.
    """
    value, reader = _open(buffer, budget, dialect)

    def read(spec: TensorSpec) -> LoadedTensor:
        return _Reader(storages=reader.storages, left=max(budget, len(buffer))).tensor(spec)

    return value, read


class _Storages(Protocol):
    big_endian: bool

    def place(self, ref: StorageRef) -> tuple[Bytes, int, int]:
        """(buffer, first byte, bytes there) of a storage."""


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Turns specs into arrays; `left` is what remains of the budget in bytes."""

    storages: _Storages
    left: int
    done: dict[int, tuple[TensorSpec, LoadedTensor]] = field(default_factory=dict)

    def tensor(self, spec: TensorSpec) -> LoadedTensor:
        known = self.done.get(id(spec))
        if known:
            return known[1]
        ref = spec.storage
        if ref.device == "meta":
            raise torch_globals.no_data()
        element, quantizer = spec.element, spec.quantizer
        size = element.size if quantizer is None else max(element.size, np.dtype(np.float32).itemsize)
        needed = check_budget(spec.shape, size, self.left) * size
        if ref.nbytes == 0 and needed == 0:
            place: tuple[Bytes, int, int] = (b"", 0, 0)
        else:
            place = self.storages.place(ref)
        buffer, start, stored = place
        array, notes = strided(
            buffer, start, stored // element.size, element=element, shape=spec.shape, stride=spec.stride,
            offset=spec.offset, budget=self.left, swapped=self.storages.big_endian, conj=spec.conj, neg=spec.neg,
        )  # fmt: skip
        name = element.name
        if quantizer is not None:
            array, name, notes = self._dequantized(array, quantizer), quantizer.dtype, (*notes, "dequantized")
        loaded = LoadedTensor(
            dtype=name, shape=spec.shape, array=array, device=ref.device,
            requires_grad=spec.requires_grad, parameter=spec.parameter, notes=notes,
        )  # fmt: skip
        self.left -= needed
        self.done[id(spec)] = (spec, loaded)
        return loaded

    def _dequantized(self, array: Array, quantizer: Quantizer) -> Array:
        """float32, as `Tensor.dequantize` gives it."""
        scale, zero = (
            self.tensor(one).array if isinstance(one, TensorSpec) else one
            for one in (quantizer.scale, quantizer.zero_point)
        )
        if quantizer.axis is not None:
            along = (-1, *(1,) * (array.ndim - 1 - quantizer.axis))
            scale, zero = np.reshape(scale, along), np.reshape(zero, along)
        values = np.subtract(array, zero, dtype=np.float32) * np.asarray(scale, np.float32)
        values.flags.writeable = False
        return values


def _open(buffer: Bytes, budget: int, dialect: Dialect = _TENSORS) -> tuple[Any, _Reader]:
    head = buffer[:4]
    storages: _Storages
    if head in (b"PK\x03\x04", b"PK\x05\x06"):
        value, storages = _open_zip(buffer, budget, dialect)
    elif not buffer:
        raise TensorError(
            say("readers.file_empty"), kind="truncated", hint=say("readers.run_killed_disk_full_dump_again")
        )
    elif head[:1] == b"\x80":
        value, storages = _open_legacy(buffer, dialect)
    else:
        raise _foreign(buffer)
    return value, _Reader(storages=storages, left=budget)


def _foreign(buffer: Bytes) -> TensorError:
    if buffer[:6] == b"\x93NUMPY":
        return TensorError(say("readers.numpy_file_under_wrong_name"), kind="damaged", hint=say("readers.rename_npy"))
    if buffer[257:262] == b"ustar":
        return TensorError(
            say("readers.tar_file_torch_before_0_1"), kind="unsupported", hint=say("readers.save_newer_torch")
        )
    if not any(buffer[:4096]):
        return TensorError(
            say("readers.file_holds_zero_bytes_only"), kind="damaged", hint=say("readers.disk_lost_content_dump_again")
        )
    return TensorError(say("readers.no_file_torch_save"), kind="damaged", hint=say("readers.copy_dump_file_again"))


# ---- zip form


@dataclass(slots=True, kw_only=True)
class _ZipStorages:
    buffer: Bytes
    directory: Directory
    prefix: str
    big_endian: bool
    budget: int
    inflated: dict[str, bytes] = field(default_factory=dict)

    def place(self, ref: StorageRef) -> tuple[Bytes, int, int]:
        name = f"{self.prefix}data/{ref.key}"
        entry = self.directory.entries.get(name)
        if entry is None:
            raise TensorError(say("readers.storage_tensor_not_file"), kind="truncated", hint=say("readers.dump_again"))
        if entry.size < ref.nbytes:
            raise TensorError(
                say("readers.tensor_claims_bytes_but_file_holds", nbytes=f"{ref.nbytes:,}", size=f"{entry.size:,}"),
                kind="truncated",
                hint=say("readers.copy_file_again_dump_again_if"),
            )
        if entry.method == STORED:
            return self.buffer, zip_directory.locate(self.buffer, self.directory, entry), ref.nbytes
        data = self.inflated.get(name)
        if data is None:
            if entry.size > ref.nbytes:  # a stored surplus costs nothing, an inflated one does
                raise TensorError(
                    say(
                        "readers.tensor_claims_bytes_but_member_would", nbytes=f"{ref.nbytes:,}", size=f"{entry.size:,}"
                    ),
                    kind="refused",
                    hint=say("readers.save_torch_save_which_stores_without"),
                )
            data = zip_directory.member_bytes(self.buffer, self.directory, entry, self.budget)
            self.budget -= len(data)
            self.inflated[name] = data
        return data, 0, ref.nbytes


def _open_zip(buffer: Bytes, budget: int, dialect: Dialect) -> tuple[Any, _Storages]:
    directory = zip_directory.read_directory(buffer)
    entries = directory.entries
    prefix = next(iter(entries), "").partition("/")[0] + "/"
    entry = entries.get(f"{prefix}data.pkl")
    if entry is None:
        raise TensorError(
            say("readers.zip_file_holds_no_torch_save"), kind="damaged", hint=say("readers.dumped_tensor")
        )
    if f"{prefix}constants.pkl" in entries:
        raise TensorError(
            say("readers.torchscript_program_not_tensor"),
            kind="refused",
            hint=say("readers.save_tensor_itself_torch_save"),
        )
    if entry.method not in (STORED, DEFLATED):
        raise TensorError(say("readers.compression_method_not_known", method=entry.method), kind="unsupported")
    data = zip_directory.member_bytes(buffer, directory, entry, pickle_machine.MAX_BYTES)
    order = entries.get(f"{prefix}byteorder")
    big_endian = order is not None and zip_directory.member_bytes(buffer, directory, order, 16) == b"big"
    value, _ = dialect.run(data, torch_globals.storage_ref)
    return value, _ZipStorages(buffer=buffer, directory=directory, prefix=prefix, big_endian=big_endian, budget=budget)


# ---- the stream of pickles before torch 1.6 (and _use_new_zipfile_serialization=False since)


@dataclass(slots=True, kw_only=True)
class _LegacyStorages:
    buffer: Bytes
    places: dict[str, tuple[int, int]]
    big_endian: bool = False  # the format is little-endian on every host

    def place(self, ref: StorageRef) -> tuple[Bytes, int, int]:
        if ref.key not in self.places:
            raise TensorError(say("readers.storage_tensor_not_file"), kind="truncated", hint=say("readers.dump_again"))
        start, stored = self.places[ref.key]
        if ref.view is None:
            return self.buffer, start, stored
        size = ref.element.size if ref.element else 1
        first, count = ref.view
        if (first + count) * size > stored:
            raise pickle_machine.damaged(say("readers.storage_view_leaves_storage"))
        return self.buffer, start + first * size, count * size


def _open_legacy(buffer: Bytes, dialect: Dialect) -> tuple[Any, _Storages]:
    refs: dict[str, StorageRef] = {}

    def persistent(saved: Any) -> StorageRef:
        ref = torch_globals.storage_ref(saved)
        known = refs.setdefault(ref.key, ref)
        if (known.element, known.count) != (ref.element, ref.count):
            raise pickle_machine.damaged(say("readers.one_storage_described_two_ways"))
        return ref

    head = buffer[: pickle_machine.MAX_BYTES]
    at = 0
    values: list[Any] = []
    for _ in range(3):
        value, at = _step(dialect, head, at, torch_globals.storage_ref)
        values.append(value)
        if values[0] != _LEGACY_MAGIC:
            raise TensorError(
                say("readers.pickle_but_no_file_torch_save"), kind="refused", hint=say("readers.dump_tensor_again")
            )
    if values[1] != _LEGACY_PROTOCOL:
        raise TensorError(
            say("readers.torch_save_protocol_not_known"), kind="unsupported", hint=say("readers.save_newer_torch")
        )
    value, at = _step(dialect, head, at, persistent)
    keys, at = _step(dialect, head, at, torch_globals.storage_ref)
    if type(keys) is not list or len(keys) > zip_directory.MAX_ENTRIES:
        raise pickle_machine.damaged(say("readers.no_list_storages"))
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        ref = refs.get(key) if type(key) is str else None
        if ref is None or key in places:
            raise pickle_machine.damaged(say("readers.list_storages_no_tensor_uses"))
        if at + _COUNT.size > len(buffer):
            raise _cut_off()
        (count,) = _COUNT.unpack_from(buffer, at)
        at += _COUNT.size
        if count != ref.count:
            raise pickle_machine.damaged(say("readers.storage_another_size_than_tensor_names"))
        places[key] = (at, ref.nbytes)
        at += ref.nbytes
        if at > len(buffer):
            raise _cut_off()
    return value, _LegacyStorages(buffer=buffer, places=places)


def _step(dialect: Dialect, data: bytes, at: int, persistent: Callable[[Any], Any]) -> tuple[Any, int]:
    if at >= len(data):
        raise _cut_off()
    return dialect.run(data, persistent, at)


def _cut_off() -> TensorError:
    return TensorError(say("readers.file_cut_off"), kind="truncated", hint=say("readers.copy_file_again_dump_again_if"))


def _word(value: Any) -> str:
    kind = type(value)
    if kind in (dict, list, tuple):
        return say("readers.a_of", name=kind.__name__, count=len(value))
    if kind in (StorageRef, StorageType):
        return say("readers.bare_storage")
    if kind is ElementType:
        return say("readers.dtype")
    if kind is pickle_machine.Builder:
        return say("readers.function")
    return "None" if value is None else say("readers.value_type", name=kind.__name__)
