"""Tensor files like one that was read before: one comparison of bytes instead of a walk through zip and pickle.

A dump holds thousands of files that torch.save wrote with the same code for the same few shapes. Two of one size that agree in
every byte but the tensor's own, the archive's name and the check-sums lay out the same tensor in the same place, so what was
checked and found for the first holds for the second. Anything else takes the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import numpy as np

from dumpscope.readers.tensors.arrays import Bytes, LoadedTensor
from dumpscope.readers.tensors.zip_directory import STORED, Directory, variable_bytes

MAX_KNOWN: Final = 4096
"""Most layouts kept; then all are forgotten."""
END: Final = 2048
"""Bytes at each end of a file; together they hold all that torch.save writes except the tensor, in a file with short names."""
MAX_FIXED: Final = 1 << 14
"""Most bytes besides the tensor for which a layout is kept; torch.save writes some 1.5 KB."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FileLayout:
    """size: bytes of a file; stem: bytes 26 and 27, the length of the first member's name
    pick: the parts of a buffer that must equal `fixed` when joined
    pick_ends: the same from the first and last END bytes of a file put together, None if a part is between them
    model: the tensor first found; start: byte of its first element; steps: its strides in bytes; nbytes: logical bytes
    """

    size: int
    stem: bytes
    pick: Callable[[Bytes], tuple[bytes, ...]]
    pick_ends: Callable[[Bytes], tuple[bytes, ...]] | None
    fixed: bytes
    model: LoadedTensor
    start: int
    steps: tuple[int, ...]
    nbytes: int


_known: dict[int, list[FileLayout]] = {}


def find(buffer: Bytes, budget: int) -> LoadedTensor | None:
    """The tensor of a file laid out like one learnt; None if there was none, or if it is larger than `budget` bytes."""
    size = len(buffer)
    head = buffer[:END]
    stem = bytes(head[26:28])
    layouts = [layout for layout in _known.get(size, ()) if layout.stem == stem]
    ends = head + buffer[size - END :] if layouts and size >= 2 * END else b""
    for layout in layouts:
        found = layout.pick(buffer) if layout.pick_ends is None else layout.pick_ends(ends)
        if b"".join(found) == layout.fixed:
            _expect(layout)
            model = layout.model
            if layout.nbytes > budget:
                return None
            array: Any = np.ndarray(model.shape, model.array.dtype, buffer, layout.start, layout.steps)
            return LoadedTensor(model.dtype, model.shape, array, model.device, model.requires_grad, model.parameter)
    return None


def learn(buffer: Bytes, directory: Directory, prefix: str, loaded: LoadedTensor) -> None:
    """Remember the layout of a file whose tensor is a plain view of its bytes; any other is left alone."""
    array = loaded.array
    if loaded.notes or not array.size or array.dtype.kind == "b":  # the bytes of a bool tensor are looked at one by one
        return
    if any(entry.method != STORED for entry in directory.entries.values()):
        return
    whole = np.frombuffer(buffer, np.uint8)
    start = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    if not 0 <= start < len(buffer):
        return
    variable = variable_bytes(buffer, directory, prefix)
    if variable is None:
        return
    fixed: list[slice] = []
    at = 0
    for first, last in (*variable, (len(buffer), len(buffer))):
        if first > at:
            fixed.append(slice(at, first))
        at = last
    if len(fixed) < 2 or sum(part.stop - part.start for part in fixed) > MAX_FIXED:
        return
    pick = itemgetter(*fixed)
    model = LoadedTensor(
        loaded.dtype, loaded.shape, np.empty(0, array.dtype), loaded.device, loaded.requires_grad, loaded.parameter
    )
    if count() >= MAX_KNOWN:
        forget()
    joined = b"".join(pick(buffer))
    ends = _in_ends(fixed, len(buffer))
    _known.setdefault(len(buffer), []).insert(
        0,
        FileLayout(
            size=len(buffer),
            stem=bytes(buffer[26:28]),
            pick=pick,
            pick_ends=None if ends is None else itemgetter(*ends),
            fixed=joined,
            model=model,
            start=start,
            steps=array.strides,
            nbytes=array.nbytes,
        ),
    )


def _in_ends(parts: list[slice], size: int) -> list[slice] | None:
    """Where parts of a file are in its first and last END bytes, one behind the other; None if one is between."""
    between = size - 2 * END
    if between < 0 or any(part.stop > END and part.start < size - END for part in parts):
        return None
    return [part if part.stop <= END else slice(part.start - between, part.stop - between) for part in parts]


def _expect(layout: FileLayout) -> None:
    """Look for this layout first among those of its size: the next files will probably be like it."""
    layouts = _known.get(layout.size, [])
    if layouts and layouts[0] is not layout:
        _known[layout.size] = [layout, *(other for other in layouts if other is not layout)]


def count() -> int:
    """How many layouts are known."""
    return sum(len(layouts) for layouts in list(_known.values()))  # other threads learn meanwhile


def forget() -> None:
    """Take the long way again for every file."""
    _known.clear()
