"""Reads the values of a saved call: views that shared memory share it again, and repeated objects are one object again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from dumpscope_capture.optional_numpy import NUMBERS, np, zero_bytes
from dumpscope_format.saved_call import SavedCallError, Tables, Tensor, Value


class Opaque:
    """A value that could not be saved."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text

    def __repr__(self) -> str:
        return f"<{self.kind} not saved: {self.text}>"


class Unpacker:
    """Rebuilds values. read: gives the bytes of a file; device: for tensors, None for the original device"""

    def __init__(
        self, tables: Tables, read: Callable[[str, str | None], torch.Tensor], device: torch.device | str | None = "cpu"
    ) -> None:
        self._tables = tables
        self._read = read
        self._device = device
        self._storages: dict[tuple[int, str], tuple[torch.Tensor, int]] = {}
        self._tensors: dict[int, torch.Tensor] = {}

    def value(self, value: Value) -> Any:
        if isinstance(value, list):
            return [self.value(part) for part in value]
        if not isinstance(value, dict):
            return value
        build = _BUILDERS.get(value.get("type", ""))
        if build is None:
            raise SavedCallError(f"a value of type {value.get('type')!r} is not known here")
        return build(self, value)

    def tensor(self, place: int) -> torch.Tensor:
        """The tensor at an index of the table; always the same object."""
        known = self._tensors.get(place)
        if known is None:
            known = self._tensors[place] = self._build(self._tables["tensors"][place])
        return known

    def _build(self, entry: Tensor) -> torch.Tensor:
        dtype: torch.dtype = of_torch(torch.dtype, entry["dtype"])
        device = entry["device"] if self._device is None else str(self._device)
        flat, skipped = self._storage(entry["storage"], device)
        with torch.no_grad():
            tensor = flat.view(dtype).as_strided(
                entry["shape"], entry["stride"], entry["offset"] - skipped // dtype.itemsize
            )
            tensor = tensor.data if type(tensor) is torch.Tensor else tensor.detach()
            if entry.get("conj"):
                tensor = torch.conj(tensor)
            if entry.get("neg"):
                tensor = torch._neg_view(tensor)
            npu: Any = sys.modules.get("torch_npu")
            if npu is not None and entry["format"] is not None and tensor.device.type == "npu":
                tensor = npu.npu_format_cast(tensor, entry["format"])
        if entry["parameter"]:
            return torch.nn.Parameter(tensor, requires_grad=entry["requires_grad"])
        return tensor.requires_grad_(entry["requires_grad"])

    def _storage(self, place: int, device: str) -> tuple[torch.Tensor, int]:
        """Bytes of a storage on a device, and how many bytes at its start are omitted."""
        key = place, device
        if key not in self._storages:
            entry = self._tables["storages"][place]
            saved = self._read(entry["file"], entry["crc32"])
            skipped = entry["start"] if entry["total"] > 2 * entry["nbytes"] + (64 << 20) else 0
            size = (entry["start"] + entry["nbytes"] if skipped else entry["total"]) - skipped
            flat = zero_bytes(-(-size // 16) * 16)
            flat[entry["start"] - skipped : entry["start"] - skipped + entry["nbytes"]] = saved
            self._storages[key] = flat.to(device), skipped
        return self._storages[key]


def _named_tuple(self: Unpacker, value: Mapping[str, Any]) -> Any:
    """A named tuple if its class is imported, else a plain tuple."""
    items = [self.value(part) for part in value["items"]]
    kind = _known_class(value["class"])
    if kind is None:
        return tuple(items)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _known_class(name: str) -> Any:
    """A tuple class of an imported module. A document never causes an import."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, tuple) else None


def _number(self: Unpacker, value: Mapping[str, Any]) -> Any:
    plain = self.value(value["value"])
    module, _, name = value["class"].partition(":")
    kind = getattr(np, name, None) if module == "numpy" and np is not None else None
    return kind(plain) if isinstance(kind, type) and issubclass(kind, NUMBERS) else plain


def _generator(self: Unpacker, value: Mapping[str, Any]) -> torch.Generator:
    device = value["device"] if self._device is None else str(self._device)
    made = torch.Generator(device)
    if kind_of(device) == kind_of(value["device"]):
        made.set_state(self._read(value["file"], None))
    return made


def kind_of(device: str) -> str:
    """Type of a device by its name, "npu" for "npu:0"; this torch need not know the device."""
    return device.partition(":")[0]


def of_torch(kind: type, word: str) -> Any:
    """A dtype, layout or memory format by its name. Raises SavedCallError where this torch has none."""
    found = getattr(torch, word, None)
    if not isinstance(found, kind):
        raise SavedCallError(f"this torch has no {kind.__name__} {word!r}")
    return found


def _items(self: Unpacker, parts: Sequence[Any]) -> list[Any]:
    return [self.value(part) for part in parts]


def _device(self: Unpacker, value: Mapping[str, Any]) -> torch.device:
    return torch.device(value["value"] if self._device is None else self._device)


_BUILDERS: Final[dict[str, Callable[[Unpacker, Any], Any]]] = {
    "tensor": lambda self, value: self.tensor(value["tensor"]),
    "array": lambda self, value: self.tensor(value["tensor"]).numpy(),
    "number": _number,
    "float": lambda self, value: float(value["value"]),
    "complex": lambda self, value: complex(*_items(self, value["value"])),
    "tuple": lambda self, value: tuple(_items(self, value["items"])),
    "named_tuple": _named_tuple,
    "dict": lambda self, value: {self.value(key): self.value(part) for key, part in value["items"]},
    "slice": lambda self, value: slice(*_items(self, value["items"])),
    "ellipsis": lambda self, value: ...,
    "dtype": lambda self, value: of_torch(torch.dtype, value["value"]),
    "memory_format": lambda self, value: of_torch(torch.memory_format, value["value"]),
    "layout": lambda self, value: of_torch(torch.layout, value["value"]),
    "device": _device,
    "size": lambda self, value: torch.Size(value["value"]),
    "bytes": lambda self, value: bytes.fromhex(value["value"]),
    "generator": _generator,
    "opaque": lambda self, value: Opaque(value["class"], value["text"]),
}
