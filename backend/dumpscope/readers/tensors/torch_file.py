"""Tensor files written by torch.save, read without torch: zip form and the older stream of pickles. See docs/tensors.md."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import layout_cache, pickle_machine, torch_globals, zip_directory
from dumpscope.readers.tensors.arrays import DEFAULT_BUDGET, Bytes, ElementType, LoadedTensor, check_budget, strided
from dumpscope.readers.tensors.mapped_file import read_bytes
from dumpscope.readers.tensors.torch_globals import StorageRef, StorageType, TensorSpec
from dumpscope.readers.tensors.zip_directory import DEFLATED, STORED, Directory

_LEGACY_MAGIC: Final = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL: Final = 1001
_COUNT: Final = struct.Struct("<q")


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
                f"the file holds {_word(value)}, not a tensor",
                kind="not_a_tensor",
                hint="a dumped item is one tensor a file: torch.save(tensor, path)",
            )
        loaded = reader.tensor(value)
        if isinstance(reader.storages, _ZipStorages):
            layout_cache.learn(buffer, reader.storages.directory, reader.storages.prefix, loaded)
        return loaded
    except TensorError as error:
        error.where = error.where or str(path)
        raise


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
        element = spec.element
        needed = check_budget(spec.shape, element.size, self.left) * element.size
        if ref.nbytes == 0 and needed == 0:
            place: tuple[Bytes, int, int] = (b"", 0, 0)
        else:
            place = self.storages.place(ref)
        buffer, start, stored = place
        array, notes = strided(
            buffer, start, stored // element.size, element=element, shape=spec.shape, stride=spec.stride,
            offset=spec.offset, budget=self.left, swapped=self.storages.big_endian, conj=spec.conj, neg=spec.neg,
        )  # fmt: skip
        loaded = LoadedTensor(
            dtype=element.name, shape=spec.shape, array=array, device=ref.device,
            requires_grad=spec.requires_grad, parameter=spec.parameter, notes=notes,
        )  # fmt: skip
        self.left -= needed
        self.done[id(spec)] = (spec, loaded)
        return loaded


def _open(buffer: Bytes, budget: int) -> tuple[Any, _Reader]:
    head = buffer[:4]
    storages: _Storages
    if head in (b"PK\x03\x04", b"PK\x05\x06"):
        value, storages = _open_zip(buffer, budget)
    elif not buffer:
        raise TensorError(
            "the file is empty", kind="truncated", hint="the run was killed or the disk was full: dump again"
        )
    elif head[:1] == b"\x80":
        value, storages = _open_legacy(buffer)
    else:
        raise _foreign(buffer)
    return value, _Reader(storages=storages, left=budget)


def _foreign(buffer: Bytes) -> TensorError:
    if buffer[:6] == b"\x93NUMPY":
        return TensorError("this is a numpy file under a wrong name", kind="damaged", hint="rename it to .npy")
    if buffer[257:262] == b"ustar":
        return TensorError(
            "this is a tar file of torch before 0.1.10", kind="unsupported", hint="save it with a newer torch"
        )
    if not any(buffer[:4096]):
        return TensorError(
            "the file holds zero bytes only", kind="damaged", hint="the disk lost its content: dump again"
        )
    return TensorError("this is no file of torch.save", kind="damaged", hint="copy or dump the file again")


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
            raise TensorError("the storage of the tensor is not in the file", kind="truncated", hint="dump it again")
        if entry.size < ref.nbytes:
            raise TensorError(
                f"the tensor claims {ref.nbytes:,} bytes but the file holds {entry.size:,}",
                kind="truncated",
                hint="copy the file again, or dump it again if the run was killed",
            )
        if entry.method == STORED:
            return self.buffer, zip_directory.locate(self.buffer, self.directory, entry), ref.nbytes
        data = self.inflated.get(name)
        if data is None:
            if entry.size > ref.nbytes:  # a stored surplus costs nothing, an inflated one does
                raise TensorError(
                    f"the tensor claims {ref.nbytes:,} bytes but its member would inflate to {entry.size:,}",
                    kind="refused",
                    hint="save with torch.save, which stores without compression",
                )
            data = zip_directory.member_bytes(self.buffer, self.directory, entry, self.budget)
            self.budget -= len(data)
            self.inflated[name] = data
        return data, 0, ref.nbytes


def _open_zip(buffer: Bytes, budget: int) -> tuple[Any, _Storages]:
    directory = zip_directory.read_directory(buffer)
    entries = directory.entries
    prefix = next(iter(entries), "").partition("/")[0] + "/"
    entry = entries.get(f"{prefix}data.pkl")
    if entry is None:
        raise TensorError("the zip file holds no torch.save data", kind="damaged", hint="is this a dumped tensor?")
    if f"{prefix}constants.pkl" in entries:
        raise TensorError(
            "this is a TorchScript program, not a tensor", kind="refused", hint="save the tensor itself with torch.save"
        )
    if entry.method not in (STORED, DEFLATED):
        raise TensorError(f"compression method {entry.method} is not known", kind="unsupported")
    data = zip_directory.member_bytes(buffer, directory, entry, pickle_machine.MAX_BYTES)
    order = entries.get(f"{prefix}byteorder")
    big_endian = order is not None and zip_directory.member_bytes(buffer, directory, order, 16) == b"big"
    value, _ = pickle_machine.run(
        data, torch_globals.TABLE, torch_globals.storage_ref, unknown=torch_globals.unknown_global
    )
    return value, _ZipStorages(buffer=buffer, directory=directory, prefix=prefix, big_endian=big_endian, budget=budget)


# ---- the stream of pickles before torch 1.6 (and _use_new_zipfile_serialization=False since)


@dataclass(slots=True, kw_only=True)
class _LegacyStorages:
    buffer: Bytes
    places: dict[str, tuple[int, int]]
    big_endian: bool = False  # the format is little-endian on every host

    def place(self, ref: StorageRef) -> tuple[Bytes, int, int]:
        if ref.key not in self.places:
            raise TensorError("the storage of the tensor is not in the file", kind="truncated", hint="dump it again")
        start, stored = self.places[ref.key]
        if ref.view is None:
            return self.buffer, start, stored
        size = ref.element.size if ref.element else 1
        first, count = ref.view
        if (first + count) * size > stored:
            raise pickle_machine.damaged("a storage view leaves its storage")
        return self.buffer, start + first * size, count * size


def _open_legacy(buffer: Bytes) -> tuple[Any, _Storages]:
    refs: dict[str, StorageRef] = {}

    def persistent(saved: Any) -> StorageRef:
        ref = torch_globals.storage_ref(saved)
        known = refs.setdefault(ref.key, ref)
        if (known.element, known.count) != (ref.element, ref.count):
            raise pickle_machine.damaged("one storage is described in two ways")
        return ref

    head = buffer[: pickle_machine.MAX_BYTES]
    at = 0
    values: list[Any] = []
    for _ in range(3):
        value, at = _step(head, at, torch_globals.storage_ref)
        values.append(value)
        if values[0] != _LEGACY_MAGIC:
            raise TensorError(
                "this is a pickle but no file of torch.save", kind="refused", hint="dump the tensor again"
            )
    if values[1] != _LEGACY_PROTOCOL:
        raise TensorError("the torch.save protocol is not known", kind="unsupported", hint="save it with a newer torch")
    value, at = _step(head, at, persistent)
    keys, at = _step(head, at, torch_globals.storage_ref)
    if type(keys) is not list or len(keys) > zip_directory.MAX_ENTRIES:
        raise pickle_machine.damaged("no list of storages")
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        ref = refs.get(key) if type(key) is str else None
        if ref is None or key in places:
            raise pickle_machine.damaged("a list of storages that no tensor uses")
        if at + _COUNT.size > len(buffer):
            raise _cut_off()
        (count,) = _COUNT.unpack_from(buffer, at)
        at += _COUNT.size
        if count != ref.count:
            raise pickle_machine.damaged("a storage of another size than its tensor names")
        places[key] = (at, ref.nbytes)
        at += ref.nbytes
        if at > len(buffer):
            raise _cut_off()
    return value, _LegacyStorages(buffer=buffer, places=places)


def _step(data: bytes, at: int, persistent: Callable[[Any], Any]) -> tuple[Any, int]:
    if at >= len(data):
        raise _cut_off()
    return pickle_machine.run(data, torch_globals.TABLE, persistent, start=at, unknown=torch_globals.unknown_global)


def _cut_off() -> TensorError:
    return TensorError(
        "the file was cut off", kind="truncated", hint="copy the file again, or dump it again if the run was killed"
    )


def _word(value: Any) -> str:
    kind = type(value)
    if kind in (dict, list, tuple):
        return f"a {kind.__name__} of {len(value)}"
    if kind in (StorageRef, StorageType):
        return "a bare storage"
    if kind is ElementType:
        return "a dtype"
    if kind is pickle_machine.Builder:
        return "a function"
    return "None" if value is None else f"a value of type {kind.__name__}"
