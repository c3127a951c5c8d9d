"""Folders of tensor files that are named by what they hold, one file a tensor or many in one, as people and engines write them.

    step=0___rank=0___dump_index=2___name=attn_output___layer_id=0.pt     SGLang, slime, Megatron: keys and values
    003_layers.0.mlp.npy, layers.0.mlp.input.pt, layers.0.mlp.output.pt   a number for the order, the part of the call
    acts.npz, acts.safetensors                                            several tensors, by name
    Pass00003.pt                                                          SGLang: a dict of one pass

The order of calls is that of `dump_index`, of leading numbers, of an index file (`order.txt`, `order.json`: names), or else of
the times of the files; where none tells, that of names, and the dump says so.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from dumpscope.domain.records import RankDump, RankRef, Role, Traits
from dumpscope.errors import TensorError
from dumpscope.readers.formats import DumpFormat, Note, Place
from dumpscope.readers.recordings.rank_builder import RankBuilder, tensor_record
from dumpscope.readers.regular_file import open_regular, refusal
from dumpscope.readers.tensors import tensor_file
from dumpscope.readers.tensors.members import MANY, MEMBER, open_members
from dumpscope.texts import say
from dumpscope_format.naming import DirectionWord, split_item
from dumpscope_format.paths import natural_key, rank_number

LAYOUT: Final = "tensor files"
FILE_LIMIT: Final = 1_000_000
"""Files of a folder that are read."""
INDEX_LIMIT: Final = 64 << 20
"""Bytes of an index file."""

ALONE: Final = (".pt", ".pth", ".npy")
INDEX_FILES: Final = ("order.txt", "order.json", "index.txt", "index.json")

_SEPARATOR: Final = "___"
_STEP_KEYS: Final = ("step", "forward_pass_id")
_SILENT_KEYS: Final = frozenset({"dump_index", "name", "layer_id", "rank", *_STEP_KEYS})
"""Keys whose values have a place of their own; any other is a part of the name where it is not the same in all files."""
_ORDINARY: Final = frozenset({"recompute_status=disabled", "recompute_status=original"})
_GRADIENT: Final = "grad__"
_VALUE: Final = "value"
_PASS: Final = re.compile(r"Pass([0-9]{1,9})")
_NUMBERED: Final = re.compile(r"([0-9]{1,9})[_.-](.+)", re.DOTALL)
_PART: Final = re.compile(r"(.+?)[._](input|output)s?(?:[._]([0-9]{1,4}))?", re.DOTALL)
_CHECKPOINTS: Final = re.compile(
    r"\.metadata|.*\.distcp|.*\.index\.json|latest_checkpointed_iteration\.txt|config\.json"
)
_SHARD: Final = re.compile(r"(?:model|pytorch_model|diffusion_pytorch_model|adapter_model|optimizer|consolidated).*")


@dataclass(frozen=True, slots=True)
class _File:
    """One tensor, or several of one file. order: number that names tell, None without one; member: "" for a file of its own"""

    name: str
    label: str
    way: DirectionWord
    step: int
    rank: int | None
    order: int | None
    changed: int


@dataclass(slots=True)
class _Call:
    """What was saved of one call: (role, path) -> data name"""

    label: str
    way: DirectionWord
    tensors: list[tuple[Role, str, str]] = field(default_factory=list)


class TensorFolderFormat(DumpFormat):
    name = LAYOUT
    traits = Traits(all_arguments=False, bare_modules=True, steps_are_passes=True)
    file_words = say("readers.file_of_tensors")
    no_rerun = say("readers.tensor_files_hold_no_calls")

    def find_rank(self, place: Place) -> RankRef | None:
        files = _listed(place.folder)
        if place.alone or not files or len({(file.step, file.rank) for file in files}) > 1:
            return None
        return self.rank_at(place, place.folder)

    def find_ranks(self, folder: str, root: str, note: Note) -> list[RankRef]:
        label = os.path.basename(folder)
        own = rank_number(label)
        places = sorted({(file.step, file.rank if own is None else own) for file in _listed(folder)}, key=_place_key)
        return [
            self.rank_at(
                Place(folder=folder, root=root, step=step, rank=rank, label=label, note=note, alone=True), folder
            )
            for step, rank in places
        ]

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        if not path.lower().endswith(MANY) and not _PASS.fullmatch(_stem(path)):
            return None
        folder, label = os.path.split(path)
        place = Place(folder=folder, root=folder, step=0, rank=None, label=label, note=note, alone=True)
        return self.rank_at(place, path)

    def names_file(self, name: str) -> bool:
        return name.lower().endswith(".npz") or _PASS.fullmatch(_stem(name)) is not None

    def marks_folder(self, name: str) -> bool:
        return _SEPARATOR in name and name.endswith(ALONE)

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return _Reader(ref).read()

    def has_data(self, ref: RankRef) -> bool:
        return True


class _Reader:
    def __init__(self, ref: RankRef) -> None:
        self.rank = RankBuilder(ref)
        self.folder = ref.folder
        self.calls: dict[tuple[str, DirectionWord], _Call] = {}
        self.done: list[_Call] = []

    def read(self) -> RankDump:
        ref = self.rank.ref
        if os.path.isdir(ref.dump_json):
            found = [
                file
                for file in _listed(ref.folder)
                if file.step == ref.step and (file.rank is None or ref.rank is None or file.rank == ref.rank)
            ]
            for file in self._in_order(found):
                self._file(file)
        else:
            name = os.path.basename(ref.dump_json)
            self._members(_parsed(name, 0))
        for call in sorted(self.done, key=lambda one: one.way == "backward"):
            self._call(call)
        if not len(self.rank):
            self.rank.note("no_data", say("readers.folder_holds_no_tensor"))
        return self.rank.build(level="L0", framework="", layout=LAYOUT, data_dir=ref.folder)

    def _in_order(self, files: list[_File]) -> list[_File]:
        if all(file.order is not None for file in files):
            return sorted(files, key=lambda file: (file.order, natural_key(file.name)))
        places = self._index()
        if places:
            unknown = [file.name for file in files if _known(file, places) is None]
            if unknown:
                self.rank.note("missing", say("readers.index_lacks", count=len(unknown), name=f"{unknown[0]!r}"))
            return sorted(files, key=lambda file: (_known(file, places) or 0, natural_key(file.name)))
        times = {file.changed for file in files}
        if len(times) == len(files):
            return sorted(files, key=lambda file: file.changed)
        if len(files) > 1:
            self.rank.note("order", say("readers.order_by_names"))
        return sorted(files, key=lambda file: natural_key(file.name))

    def _index(self) -> dict[str, int]:
        """Place of each name in the index file of the folder; empty where there is none."""
        for name in INDEX_FILES:
            path = os.path.join(self.folder, name)
            if not os.path.isfile(path) or refusal(path, self.folder) is not None:
                continue
            with open_regular(path) as stream:
                text = stream.read(INDEX_LIMIT).decode("utf-8", "replace")
            try:
                names = json.loads(text) if name.endswith(".json") else text.split("\n")
            except (ValueError, RecursionError):
                names = None
            if type(names) is list and all(type(one) is str for one in names):
                return {one.strip(): place + 1 for place, one in enumerate(names) if one.strip()}
            self.rank.note("structure", say("readers.index_no_list", name=name))
        return {}

    def _file(self, file: _File) -> None:
        if file.name.lower().endswith(MANY) or _PASS.fullmatch(_stem(file.name)):
            self._members(file)
        elif _SEPARATOR in file.name:
            self._value(file)
        else:
            self._take(file.label, file.way, file.name)

    def _value(self, file: _File) -> None:
        """A file of SGLang's dumper: a tensor, or a dict with `value`, which may hold several, and `meta`."""
        try:
            tensor_file.load(os.path.join(self.folder, file.name), root=self.folder)
        except TensorError as error:
            if error.kind != "not_a_tensor":
                self.rank.note("tensor_unreadable", say("problem.of", name=file.name, message=error))
                return
            names = self._names(file)
            inner = [name for name in names if name == _VALUE or name.startswith(f"{_VALUE}.")] or names
            for name in inner:
                below = name.removeprefix(_VALUE)
                self._take(f"{file.label}{below}", file.way, f"{file.name}{MEMBER}{name}")
            return
        self._take(file.label, file.way, file.name)

    def _members(self, file: _File) -> None:
        for name in self._names(file):
            self._take(name, "forward", f"{file.name}{MEMBER}{name}")

    def _names(self, file: _File) -> list[str]:
        try:
            return open_members(os.path.join(self.folder, file.name), root=self.folder)
        except TensorError as error:
            self.rank.note("tensor_unreadable", say("problem.of", name=file.name, message=error))
            return []

    def _take(self, label: str, way: DirectionWord, data_name: str) -> None:
        part = _PART.fullmatch(label)
        label = part[1] if part else label
        role = Role.INPUT if part and part[2] == "input" else Role.OUTPUT
        path = part[3] or "0" if part else "0"
        call = self.calls.get((label, way))
        if call is None or any(one[:2] == (role, path) for one in call.tensors):
            call = self.calls[label, way] = _Call(label, way)
            self.done.append(call)
        elif role is Role.OUTPUT:  # a call ends with its result
            self.done.remove(call)
            self.done.append(call)
        call.tensors.append((role, path, data_name))

    def _call(self, call: _Call) -> None:
        node = self.rank.leave(self.rank.enter(call.label, way=call.way))
        for role, path, data_name in sorted(call.tensors, key=lambda one: (one[0] is Role.OUTPUT, natural_key(one[1]))):
            try:
                tensor = tensor_file.load(os.path.join(self.folder, data_name), root=self.folder)
            except TensorError as error:
                self.rank.note("tensor_unreadable", say("problem.of", name=data_name, message=error))
                continue
            self.rank.put(node, role, path, tensor_record(tensor.dtype, tensor.shape, data_name=data_name))


def _listed(folder: str) -> Sequence[_File]:
    """The tensor files of a folder; empty where they are a checkpoint, or the tensors of a dump of another format."""
    try:
        changed = os.stat(folder).st_mtime_ns
    except OSError:
        return ()
    return _list(folder, changed)


@lru_cache(maxsize=4)
def _list(folder: str, _changed: int) -> Sequence[_File]:
    found: list[_File] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _CHECKPOINTS.fullmatch(entry.name):
                    return ()
                if not entry.name.lower().endswith((*ALONE, *MANY)) or not entry.is_file(follow_symlinks=False):
                    continue
                if split_item(entry.name) is not None or len(found) >= FILE_LIMIT:
                    return ()  # dump_tensor_data
                found.append(_parsed(entry.name, entry.stat(follow_symlinks=False).st_mtime_ns))
    except OSError:
        return ()
    if all(_SHARD.fullmatch(file.name) for file in found):
        return ()
    if len(found) == 1 and found[0].name.lower().endswith(ALONE) and not _is_named(found[0].name):
        return ()  # one tensor is no dump
    return tuple(found)


def _is_named(name: str) -> bool:
    return _SEPARATOR in name or _PASS.fullmatch(_stem(name)) is not None


def _parsed(name: str, changed: int) -> _File:
    stem = _stem(name)
    if _SEPARATOR in stem and "=" in stem:
        return _with_keys(name, stem, changed)
    if found := _PASS.fullmatch(stem):
        return _File(name, stem, "forward", int(found[1]), None, 0, changed)
    if found := _NUMBERED.fullmatch(stem):
        return _File(name, found[2], "forward", 0, None, int(found[1]), changed)
    return _File(name, stem, "forward", 0, None, None, changed)


def _with_keys(name: str, stem: str, changed: int) -> _File:
    keys = dict(part.split("=", 1) for part in stem.split(_SEPARATOR) if "=" in part)
    label = keys.get("name") or stem
    way: DirectionWord = "backward" if label.startswith(_GRADIENT) else "forward"
    label = label.removeprefix(_GRADIENT)
    if _is_number(keys.get("layer_id")):
        label = f"layers.{keys['layer_id']}.{label}"
    tags = [f"{key}={value}" for key, value in keys.items() if key not in _SILENT_KEYS and not key.endswith("_rank")]
    label += "".join(f"[{tag}]" for tag in tags if tag not in _ORDINARY)
    step = next((int(keys[key]) for key in _STEP_KEYS if _is_number(keys.get(key))), 0)
    rank = int(keys["rank"]) if _is_number(keys.get("rank")) else None
    order = int(keys["dump_index"]) if _is_number(keys.get("dump_index")) else None
    return _File(name, label, way, step, rank, order, changed)


def _is_number(text: Any) -> bool:
    return type(text) is str and text.isascii() and text.isdigit() and len(text) < 10


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _known(file: _File, places: dict[str, int]) -> int | None:
    """Place of a file in an index, by its name with or without the ending."""
    return places.get(file.name) or places.get(_stem(file.name))


def _place_key(place: tuple[int, int | None]) -> tuple[int, int]:
    return place[0], -1 if place[1] is None else place[1]


TENSOR_FOLDER: Final = TensorFolderFormat()
