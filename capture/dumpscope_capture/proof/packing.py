"""Writes the values of a call: tensors as views of storages, everything else as JSON. See `dumpscope_format.saved_call`."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from dumpscope_capture.optional_numpy import ARRAYS, NUMBERS
from dumpscope_capture.values.hashing import crc
from dumpscope_capture.values.live_memory import is_freed, read
from dumpscope_capture.values.provenance import type_name
from dumpscope_capture.write.torch_file import TensorLayout, can_write, pack
from dumpscope_format.older_python import without_prefix
from dumpscope_format.saved_call import Storage, Tables, Tensor, Value

_PLAIN: Final = (bool, int, str, type(None))
_READABLE: Final = ("cpu", "cuda")
"""Devices whose storages can be read byte by byte."""

_ALIGNED: Final = 64
"""A saved range is extended to multiples of this many bytes."""

_FORMATS: Final = ("contiguous_format", "channels_last", "channels_last_3d")
_DEPTH: Final = 100


class Packer:
    """Turns values into JSON and writes the files they need. write() may be called again after more values.

    prefix: of the storages' files, "storage" gives storage.0.pt
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self.tables: Tables = {"tensors": [], "storages": []}
        self._folder = folder
        self._prefix = prefix
        self._places: dict[int, int] = {}
        self._groups: dict[int, list[tuple[int, torch.Tensor]]] = {}
        self._kept: list[Any] = []
        self._generators = 0

    def value(self, value: Any, depth: int = 0) -> Value:
        """JSON for a value. Its tensors are read by `write`."""
        if type(value) in _PLAIN:
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if type(value) is float:
            return value if math.isfinite(value) else {"type": "float", "value": _word(value)}
        if depth > _DEPTH:
            return _opaque(value)
        if isinstance(value, (tuple, list, Mapping)):
            return self._container(value, depth + 1)
        return self._other(value, depth + 1)

    def write(self) -> None:
        """Write the storages of all values since the last call."""
        for number, (_, members) in enumerate(self._groups.items(), start=len(self.tables["storages"])):
            name = f"{self._prefix}.{number}.pt"
            self.tables["storages"].append(_store(self._folder / name, [tensor for _, tensor in members], self.tables,
                                                  [place for place, _ in members], number))  # fmt: skip
        self._groups.clear()
        self._places.clear()
        self._kept.clear()

    # -- tensors -------------------------------------------------------------------------------------------------------

    def _tensor(self, tensor: torch.Tensor) -> Value:
        reason = _unsavable(tensor)
        if reason is not None:
            return {**_opaque(tensor), "text": reason}
        place = self._places.get(id(tensor))
        if place is None:
            place = self._places[id(tensor)] = len(self.tables["tensors"])
            self._kept.append(tensor)
            self.tables["tensors"].append(describe(tensor))
            self._groups.setdefault(_identity(tensor), []).append((place, tensor.detach()))
        return {"type": "tensor", "tensor": place}

    # -- everything else -----------------------------------------------------------------------------------------------

    def _container(self, value: Any, depth: int) -> Value:
        if isinstance(value, torch.Size):
            return {"type": "size", "value": [int(size) for size in value]}
        if isinstance(value, Mapping):
            items = [[self.value(key, depth), self.value(part, depth)] for key, part in value.items()]
            plain = {} if type(value) is dict else {"class": _class(value)}
            return {"type": "dict", **plain, "items": items}
        items = [self.value(part, depth) for part in value]
        if type(value) is list:
            return items
        if type(value) is tuple:
            return {"type": "tuple", "items": items}
        return {"type": "named_tuple", "class": _class(value), "items": items}

    def _other(self, value: Any, depth: int) -> Value:
        if isinstance(value, complex):
            return {"type": "complex", "value": [self.value(value.real), self.value(value.imag)]}
        if isinstance(value, slice):
            bounds = (value.start, value.stop, value.step)
            return {"type": "slice", "items": [self.value(part, depth) for part in bounds]}
        if value is Ellipsis:
            return {"type": "ellipsis"}
        for kind, word in ((torch.dtype, "dtype"), (torch.memory_format, "memory_format"), (torch.layout, "layout")):
            if isinstance(value, kind):
                return {"type": word, "value": without_prefix(str(value), "torch.")}
        if isinstance(value, torch.device):
            return {"type": "device", "value": str(value)}
        if isinstance(value, (bytes, bytearray)):
            return {"type": "bytes", "value": value.hex()}
        if isinstance(value, ARRAYS):
            with contextlib.suppress(TypeError, RuntimeError):  # RuntimeError: torch was built for another numpy
                return {"type": "array", "tensor": self._tensor(torch.from_numpy(value))["tensor"]}
        if isinstance(value, NUMBERS):
            return {"type": "number", "class": _class(value), "value": self.value(value.item(), depth)}
        if isinstance(value, (int, float, str)):
            plain = _base(value)(value)
            return {"type": "number", "class": _class(value), "value": self.value(plain, depth)}
        if isinstance(value, torch.Generator):
            name = f"{self._prefix}.generator.{self._generators}.pt"
            self._generators += 1
            write_bytes(self._folder / name, value.get_state())
            return {"type": "generator", "device": str(value.device), "file": name}
        return _opaque(value)


def describe(tensor: torch.Tensor) -> Tensor:
    """The table entry of a tensor. `storage` is filled in when its storage is written."""
    npu: Any = sys.modules.get("torch_npu")
    found: Tensor = {
        "storage": -1,
        "dtype": without_prefix(str(tensor.dtype), "torch."),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": int(tensor.storage_offset()),
        "device": str(tensor.device),
        "requires_grad": tensor.requires_grad,
        "leaf": tensor.is_leaf,
        "contiguous": tensor.is_contiguous(),
        "memory_format": _memory_format(tensor),
        "format": int(npu.get_npu_format(tensor)) if npu is not None and tensor.device.type == "npu" else None,
        "alignment": _alignment(tensor),
        "parameter": isinstance(tensor, torch.nn.Parameter),
    }
    if tensor.is_conj():
        found["conj"] = True
    if tensor.is_neg():
        found["neg"] = True
    return found


def _memory_format(tensor: torch.Tensor) -> str:
    for word in _FORMATS:
        needed = {"channels_last": 4, "channels_last_3d": 5}.get(word)
        if (needed is None or tensor.dim() == needed) and tensor.is_contiguous(memory_format=getattr(torch, word)):
            return word
    return "strided"


def _alignment(tensor: torch.Tensor) -> int:
    """Greatest power of two up to 4096 that divides the address; 0 without an address."""
    try:
        address = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0
    return min(address & -address, 4096)


def _unsavable(tensor: torch.Tensor) -> str | None:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return "a sparse, nested or quantized tensor"
    if tensor.is_meta or torch._C._functorch.maybe_get_level(tensor) != -1:
        return "a tensor without data, or of a function transform"
    if is_traceable_wrapper_subclass(tensor) or type(tensor).__name__ == "FakeTensor":
        return f"a wrapper: {type_name(tensor)}"
    if is_freed(tensor):
        return "a tensor whose storage is freed"
    return None


def _identity(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _store(path: Path, tensors: list[torch.Tensor], tables: Tables, places: list[int], number: int) -> Storage:
    """Write the part of a storage that tensors use."""
    entries = [tables["tensors"][place] for place in places]
    for entry in entries:
        entry["storage"] = number
    spans = [_span(tensor) for tensor in tensors]
    spans = [span for span in spans if span[1] > span[0]] or [(0, 0)]
    start = min(first for first, _ in spans) // _ALIGNED * _ALIGNED
    end = -(-max(last for _, last in spans) // _ALIGNED) * _ALIGNED
    exact = all(tensor.device.type in _READABLE for tensor in tensors) and not any(entry["format"] for entry in entries)
    if exact:
        storage = tensors[0].untyped_storage()
        total = storage.nbytes()
        end = min(end, total)
        whole = torch.empty(0, dtype=torch.uint8, device=tensors[0].device).set_(storage, 0, (total,), (1,))
        data = whole[start:end].cpu()
    else:
        total = end
        data = torch.zeros(end - start, dtype=torch.uint8)
        for tensor in tensors:
            _scatter(tensor, data, start)
    check = write_bytes(path, data)
    return {
        "file": path.name,
        "start": start,
        "nbytes": data.numel(),
        "total": total,
        "crc32": f"{check:08x}",
        "exact": exact,
    }


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """First and last byte of a tensor in its storage, the last excluded."""
    if not tensor.numel():
        return 0, 0
    reach = sum((int(size) - 1) * int(step) for size, step in zip(tensor.shape, tensor.stride()))
    first = int(tensor.storage_offset())
    return first * tensor.element_size(), (first + reach + 1) * tensor.element_size()


def _scatter(tensor: torch.Tensor, data: torch.Tensor, start: int) -> None:
    """Copy a tensor's elements to their positions in `data`, the bytes of its storage from `start` on."""
    if not tensor.numel():
        return
    offset = tensor.storage_offset() - start // tensor.element_size()
    for dim, (size, step) in enumerate(zip(tensor.shape, tensor.stride())):
        if step == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    shape, stride = tensor.shape, tensor.stride()
    host = tensor.conj() if tensor.is_conj() else tensor
    host = (torch._neg_view(host) if host.is_neg() else host).to("cpu")
    data.view(host.dtype).as_strided(shape, stride, offset).copy_(host)


def write_bytes(path: Path, data: torch.Tensor) -> int:
    """Write one-dimensional uint8 data as a `.pt` file. Returns its CRC-32."""
    data = data.contiguous()
    check = read(data, crc)
    layout = TensorLayout(dtype=torch.uint8, shape=(data.numel(),), stride=(1,), requires_grad=False)
    if not can_write(torch.uint8, data.numel()):
        torch.save(data.clone(), path)
        return check
    with open(path, "wb") as out:
        read(data, lambda content: out.writelines(pack(layout, content, check)))
    return check


def _base(value: int | float | str) -> type[int] | type[float] | type[str]:
    return int if isinstance(value, int) else float if isinstance(value, float) else str


def _word(value: float) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _class(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _opaque(value: Any) -> dict[str, Any]:
    try:
        text = repr(value)[:200]
    except Exception as error:  # the repr of a foreign object may raise anything
        text = f"{type(error).__name__}"
    return {"type": "opaque", "class": type_name(value), "text": text}


def replace_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
