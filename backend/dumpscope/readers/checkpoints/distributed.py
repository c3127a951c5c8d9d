"""torch's distributed checkpoints: `.metadata` says which part of a tensor is where in the `.distcp` files.

Each part is a stream of torch.save of its own, inside of a larger file.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Shape, find_gap
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints.files import Files, damaged, problem_of
from dumpscope.readers.checkpoints.inert_pickle import DIALECT, Foreign
from dumpscope.readers.checkpoints.optimizer_names import split_flat_name
from dumpscope.readers.checkpoints.safetensors_file import view
from dumpscope.readers.tensors import zip_directory
from dumpscope.readers.tensors.arrays import ElementType, strided
from dumpscope.readers.tensors.torch_file import open_contents
from dumpscope.readers.tensors.torch_globals import TensorSpec, storage_ref
from dumpscope.texts import say

METADATA: Final = ".metadata"
MAX_METADATA: Final = 1 << 30
_HEAD: Final = 64 << 10
"""Bytes at each end of a part that hold all but the tensor's own bytes."""
_MAX_PARTS: Final = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Where a part lies: a file and bytes in it."""

    file: str
    start: int
    length: int
    packed: bool


def read_folder(files: Files) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of a folder, by name. Raises TensorError where `.metadata` cannot be read."""
    tensors, problems, _ = read_all(files)
    return tensors, problems


def read_all(files: Files) -> tuple[list[CheckpointTensor], list[Problem], list[str]]:
    """As read_folder, and the names of what is no tensor."""
    content = files.content(METADATA)
    if len(content) > MAX_METADATA:
        raise damaged(METADATA, say("checkpoints.index_too_large", count=f"{MAX_METADATA:,}"))
    try:
        value, _ = DIALECT.run(content[: len(content)], storage_ref)
    except TensorError as error:
        error.where = error.where or METADATA
        raise
    table = value.attributes.get("state_dict_metadata") if type(value) is Foreign else None
    if type(table) is not dict:
        raise damaged(METADATA, say("checkpoints.no_distributed_metadata"))
    places = dict(_places(value.attributes.get("storage_data")))
    tensors: list[CheckpointTensor] = []
    problems: list[Problem] = []
    others: list[str] = []
    for name, entry in table.items():
        if type(entry) is not Foreign or type(name) is not str:
            continue
        if not entry.name.endswith("TensorStorageMetadata"):
            others.append(name)  # bytes: settings and random states
            continue
        tensor, problem = _tensor(files, name, entry, places)
        tensors.append(tensor)
        if problem is not None:
            problems.append(problem)
    return tensors, problems, others


def _places(table: Any) -> Iterator[tuple[tuple[str, Shape], _Stored]]:
    """Where the part of a name at an offset lies."""
    for index, entry in table.items() if type(table) is dict else ():
        if type(index) is not Foreign or type(entry) is not Foreign:
            continue
        key, place = _member(index, "fqn", 0), _sizes(_member(index, "offset", 1))
        file, start, length = (
            _member(entry, word, at) for at, word in enumerate(("relative_path", "offset", "length"))
        )
        if type(key) is str and place is not None and type(file) is str and _is_size(start) and _is_size(length):
            packed = bool(_member(entry, "transform_descriptors", 3))
            yield (key, place), _Stored(file=file, start=start, length=length, packed=packed)


def _member(one: Foreign, word: str, place: int) -> Any:
    """An attribute, or the argument at its place."""
    if word in one.attributes:
        return one.attributes[word]
    return one.arguments[place] if place < len(one.arguments) else None


def _sizes(value: Any) -> Shape | None:
    if type(value) is Foreign:
        value = value.arguments[0] if value.arguments else ()
    if type(value) not in (tuple, list) or not all(_is_size(one) for one in value):
        return None
    return tuple(value)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _tensor(
    files: Files, name: str, entry: Foreign, places: dict[tuple[str, Shape], _Stored]
) -> tuple[CheckpointTensor, Problem | None]:
    split = split_flat_name(name)
    section: Any = "weights" if split is None else "optimizer"
    parameter, slot = split if split and split[0] else (name, "")
    shape = _sizes(_member(entry, "size", 1)) or ()
    element = _dtype(_member(entry, "properties", 0))
    made: list[Piece] = []
    try:
        if element is None:
            raise damaged(f"{METADATA}: {name}", say("readers.tensor_without_dtype"))
        chunks = _member(entry, "chunks", 2)
        if type(chunks) is not list or not chunks or len(chunks) > _MAX_PARTS:
            raise damaged(f"{METADATA}: {name}", say("checkpoints.tensor_without_parts"))
        for chunk in chunks:
            made.append(_piece(files, name, chunk, shape, element, places))
        gap = find_gap([(piece.place or (), piece.shape) for piece in made], shape)
        if gap is not None:
            raise damaged(
                f"{METADATA}: {name}",
                say("checkpoints.parts_do_not_cover", at=str(list(gap[0])), parts=gap[1]),
            )
    except TensorError as error:
        return CheckpointTensor(
            name=name, dtype=element.name if element else "", shape=shape, pieces=(), section=section,
            parameter=parameter, slot=slot, problem=error.detail,
        ), problem_of(error)  # fmt: skip
    return CheckpointTensor(
        name=name, dtype=element.name, shape=shape, pieces=tuple(made), section=section, parameter=parameter, slot=slot
    ), None


def _dtype(properties: Any) -> ElementType | None:
    """The dtype among the properties of a tensor, which are attributes or one tuple of them."""
    if type(properties) is not Foreign:
        return None
    state = properties.state if properties.state is not None else properties.arguments
    values = state.values() if type(state) is dict else state if type(state) in (tuple, list) else ()
    flat = [inner for one in values for inner in (one.values() if type(one) is dict else [one])]
    return next((one for one in flat if type(one) is ElementType), None)


def _piece(
    files: Files,
    name: str,
    chunk: Any,
    whole: Shape,
    element: ElementType,
    places: dict[tuple[str, Shape], _Stored],
) -> Piece:
    place = _sizes(_member(chunk, "offsets", 0)) if type(chunk) is Foreign else None
    shape = _sizes(_member(chunk, "sizes", 1)) if type(chunk) is Foreign else None
    where = f"{METADATA}: {name[:200]}"
    if place is None or shape is None or not len(place) == len(shape) == len(whole):
        raise damaged(where, say("checkpoints.entry_no_known_form"))
    if any(at + size > all_ for at, size, all_ in zip(place, shape, whole, strict=True)):
        raise damaged(where, say("checkpoints.part_beyond_tensor"))
    stored = places.get((name, place))
    if stored is None:
        raise damaged(where, say("checkpoints.part_not_stored"), kind="missing")
    if not _is_inside(stored.file):
        raise TensorError(
            say("readers.tensor_file_leads_outside_dump_folder"), kind="refused", where=where,
            hint=say("checkpoints.save_or_copy_again"),
        )  # fmt: skip
    if stored.packed:
        raise TensorError(
            say("checkpoints.part_is_packed"), kind="unsupported", where=where,
            hint=say("checkpoints.save_without_compression"),
        )  # fmt: skip
    return Piece(
        shape=shape, place=place, read=_reader(files, stored, shape, element), source=stored.file,
        stored=(str(files.folder), stored.file, stored.start),
    )  # fmt: skip


def _is_inside(name: str) -> bool:
    return bool(name) and not name.startswith("/") and "\0" not in name and ".." not in name.split("/")


def _reader(files: Files, stored: _Stored, shape: Shape, element: ElementType) -> Callable[[], Raw]:
    def read() -> Raw:
        try:
            return _read_part(files, stored, shape, element)
        except TensorError as error:
            error.where = error.where or f"{stored.file}:{stored.start}"
            raise

    return read


def _read_part(files: Files, stored: _Stored, shape: Shape, element: ElementType) -> Raw:
    """A view of the tensor inside of the stream that begins at a byte of a file."""
    content = files.content(stored.file)
    if stored.start + stored.length > len(content):
        raise damaged(stored.file, say("readers.file_cut_off"), kind="truncated")
    if stored.length <= 2 * _HEAD:
        value, load = open_contents(content[stored.start : stored.start + stored.length], DIALECT, budget=_HEAD * 4)
        if type(value) is not TensorSpec or value.shape != shape or value.element is not element:
            raise damaged(stored.file, say("checkpoints.part_of_another_form"))
        return load(value).array
    sketch = mmap.mmap(-1, stored.length)  # its pages between the two ends are never touched, and take no memory
    sketch[:_HEAD] = content[stored.start : stored.start + _HEAD]
    end = stored.start + stored.length
    sketch[stored.length - _HEAD :] = content[end - _HEAD : end]
    value, _ = open_contents(sketch, DIALECT, budget=_HEAD)
    if type(value) is not TensorSpec or value.shape != shape or value.element is not element:
        raise damaged(stored.file, say("checkpoints.part_of_another_form"))
    directory = zip_directory.read_directory(sketch)
    prefix = next(iter(directory.entries), "").partition("/")[0]
    entry = directory.entries.get(f"{prefix}/data/{value.storage.key}")
    if entry is None or entry.method != zip_directory.STORED:
        raise damaged(stored.file, say("readers.storage_tensor_not_file"), kind="truncated")
    start = stored.start + zip_directory.locate(sketch, directory, entry)
    plain = tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
    if value.offset == 0 and value.stride == plain:
        return view(files, stored.file, start, element, shape)
    return strided(
        content,
        start,
        entry.size // element.size,
        element=element,
        shape=shape,
        stride=value.stride,
        offset=value.offset,
    )[0]
