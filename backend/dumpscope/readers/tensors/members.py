"""One of the tensors of a file that holds several: `.npz`, `.safetensors`, or a dict of torch.save.

Such a tensor is named by its file and its own name: `acts.npz::layers.0.mlp`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from dumpscope.domain.checkpoints.tensors import CheckpointTensor
from dumpscope.errors import TensorError
from dumpscope.readers.checkpoints import safetensors_file, torch_save
from dumpscope.readers.checkpoints.files import Files
from dumpscope.readers.tensors import npy_file, zip_directory
from dumpscope.readers.tensors.arrays import DEFAULT_BUDGET, LoadedTensor
from dumpscope.readers.tensors.mapped_file import read_bytes
from dumpscope.texts import say

MEMBER: Final = "::"
"""Between the name of a file and that of a tensor in it."""

MANY: Final = (".npz", ".safetensors")
"""Ends of files that hold tensors by name, even if it is one."""
_NAME: Final = re.compile(r"(.+?\.(?:npz|safetensors|pt|pth|bin))::(.*)", re.DOTALL | re.IGNORECASE)
_OPEN_FILES: Final = 8

Read = Callable[[int], LoadedTensor]
"""Reads one tensor within a budget of bytes."""


def split_member(path: str) -> tuple[str, str] | None:
    """(file, name of the tensor in it), None for a path of a file alone."""
    found = _NAME.fullmatch(path)
    return None if found is None else (found[1], found[2])


def open_members(path: str, *, root: Path | str | None = None) -> list[str]:
    """Names of the tensors of a file, in its order. Raises TensorError."""
    return list(_opened(path, root))


def load_member(
    path: str, member: str, *, budget: int = DEFAULT_BUDGET, root: Path | str | None = None
) -> LoadedTensor:
    """The tensor with this name. Raises TensorError, as `tensor_file.load`, and where the file holds none of this name."""
    read = _opened(path, root).get(member)
    if read is None:
        raise TensorError(
            say("readers.no_tensor_of_this_name", name=f"{member!r}"), kind="missing", where=path,
            hint=say("readers.copy_whole_dump_folder"),
        )  # fmt: skip
    try:
        return read(budget)
    except TensorError as error:
        error.where = error.where or path
        raise


def load_only(path: str, *, budget: int = DEFAULT_BUDGET, root: Path | str | None = None) -> LoadedTensor:
    """The tensor of a file that holds one. Raises TensorError."""
    names = open_members(path, root=root)
    if len(names) != 1:
        raise TensorError(
            say("readers.file_holds_tensors", count=len(names)), kind="not_a_tensor", where=path,
            hint=say("readers.dumped_item_one_tensor_file_torch"),
        )  # fmt: skip
    return load_member(path, names[0], budget=budget, root=root)


def _opened(path: str, root: Path | str | None) -> Mapping[str, Read]:
    try:
        status = os.stat(path)
    except OSError:
        stamp = (0, 0)  # reading says why
    else:
        stamp = (status.st_mtime_ns, status.st_size)
    return _open(path, None if root is None else os.fspath(root), stamp)


@lru_cache(maxsize=_OPEN_FILES)
def _open(path: str, root: str | None, _stamp: tuple[int, int]) -> Mapping[str, Read]:
    if path.lower().endswith(".npz"):
        return _open_npz(path, root)
    folder, name = os.path.split(path)
    files = Files(Path(folder), root or os.sep)
    one = safetensors_file if path.lower().endswith(".safetensors") else torch_save
    tensors, _ = one.read_file(files, name)
    return {tensor.name: _reader(tensor) for tensor in tensors if tensor.pieces}


def _reader(tensor: CheckpointTensor) -> Read:
    (piece,) = tensor.pieces
    return lambda _budget: LoadedTensor(dtype=tensor.dtype, shape=tensor.shape, array=piece.read())


def _open_npz(path: str, root: str | None) -> Mapping[str, Read]:
    buffer = read_bytes(path, root=root)
    if buffer[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
        raise TensorError(
            say("readers.no_npz_file"), kind="damaged", where=path, hint=say("readers.copy_dump_file_again")
        )
    directory = zip_directory.read_directory(buffer)

    def reader(entry: zip_directory.Entry) -> Read:
        return lambda budget: npy_file.parse(zip_directory.member_bytes(buffer, directory, entry, budget), budget)

    return {name.removesuffix(".npy"): reader(entry) for name, entry in directory.entries.items()}
