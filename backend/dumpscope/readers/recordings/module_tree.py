"""Trees of module calls that transformers' `model_addition_debugger_context` writes: `{Model}_debug_tree_FULL_TENSORS.json`.

    {"module_path": "Llama.model.layers.0.mlp", "inputs": {"args": [TENSOR], "kwargs": {...}}, "outputs": TENSOR,
     "children": [...]}
    TENSOR: {"shape": "torch.Size([1, 6, 16])", "dtype": "torch.float32", "value": [lines] or "./NAME.safetensors",
             "mean": "tensor(-1.1641e-03)", "std": ..., "min": ..., "max": ...}

Numbers are printed with five digits; Norm follows from mean and std. With `use_repr=False` the tensors are in files, which are
compared instead. The file without values (`_SUMMARY.json`) is read where it is the only one, or is named.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import UNKNOWN_CLASS, RankDump, RankRef, Role, Traits
from dumpscope.errors import UnreadableError
from dumpscope.readers.formats import DumpFormat, Note, Place
from dumpscope.readers.recordings.literals import read_literal
from dumpscope.readers.recordings.rank_builder import RankBuilder, tensor_record
from dumpscope.readers.regular_file import open_regular, read_head, refusal
from dumpscope.texts import say

LAYOUT: Final = "transformers"
SIZE_LIMIT: Final = 1 << 30
"""Largest file that is read, in bytes."""
DEPTH_LIMIT: Final = 400

_FILE: Final = re.compile(r"(.+)_debug_tree_(FULL_TENSORS|SUMMARY)\.json")
_HEAD: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"module_path"\s*:\s*"')
_SIZES: Final = re.compile(r"torch\.Size\(\[([0-9, ]*)\]\)")
_NAME: Final = re.compile(r"[\w.]{1,200}")
_SAVED: Final = ".safetensors"


class ModuleTreeFormat(DumpFormat):
    name = LAYOUT
    traits = Traits(bare_modules=True)
    file_words = say("readers.debug_tree")
    no_rerun = say("readers.debug_tree_holds_modules")

    def find_rank(self, place: Place) -> RankRef | None:
        try:
            names = sorted(name for name in os.listdir(place.folder) if _FILE.fullmatch(name))
        except OSError:
            return None
        names = [name for name in names if refusal(os.path.join(place.folder, name), place.root) is None]
        full = [name for name in names if name.endswith("FULL_TENSORS.json")]
        chosen = (full or names)[:1]
        for name in full[1:]:
            path = os.path.join(place.folder, name)
            place.note(path, "several_runs", say("readers.other_log_read", label=chosen[0]))
        return self.rank_at(place, os.path.join(place.folder, chosen[0])) if chosen else None

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        if not _HEAD.match(head):
            return None
        folder, label = os.path.split(path)
        place = Place(folder=folder, root=folder, step=0, rank=None, label=label, note=note, alone=True)
        return self.rank_at(place, path)

    def names_file(self, name: str) -> bool:
        return _FILE.fullmatch(name) is not None

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return _Reader(ref).read()

    def has_data(self, ref: RankRef) -> bool:
        return bool(_HEAD.match(read_head(ref.dump_json)))


class _Reader:
    def __init__(self, ref: RankRef) -> None:
        self.rank = RankBuilder(ref)
        self.told = False

    def read(self) -> RankDump:
        self._call(self._load(), None, 0)
        if not len(self.rank):
            self.rank.note("no_data", say("readers.tree_holds_no_module"))
        return self.rank.build(
            level="L0", framework="pytorch", layout=LAYOUT, data_dir=self.rank.ref.folder, told=self.told
        )

    def _load(self) -> Any:
        path = self.rank.ref.dump_json
        with open_regular(path) as stream:
            if os.fstat(stream.fileno()).st_size > SIZE_LIMIT:
                raise UnreadableError(say("readers.file_too_large", gib=SIZE_LIMIT >> 30), where=path)
            content = stream.read()
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            where = f"{path}:{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else path
            raise UnreadableError(
                say("readers.json_damaged", reason=str(error)), where=where, hint=say("readers.copy_dump_file_again")
            ) from error

    def _call(self, tree: Any, inside: str | None, depth: int) -> None:
        """A call of a module: its children come first."""
        path = tree.get("module_path") if type(tree) is dict else None
        if type(path) is not str or depth > DEPTH_LIMIT:
            kind = "structure" if depth <= DEPTH_LIMIT else "nesting"
            self.rank.note(kind, say("readers.tree_entry_no_module", entry=str(tree)[:60]))
            return
        model, _, below = path.partition(".")
        entry = self.rank.enter(below, UNKNOWN_CLASS if below else model, inside=inside)
        children = tree.get("children")
        for child in children if type(children) is list else ():
            self._call(child, entry, depth + 1)
        if not below and children:
            return  # the whole model: no other tool records its call, and what it got its parts got
        node = self.rank.leave(entry)
        given = tree.get("inputs")
        given = given if type(given) is dict else {}
        for place, value in enumerate(given.get("args") or ()):
            self.rank.put(node, Role.INPUT, str(place), self._record(value))
        for key, value in (given.get("kwargs") or {}).items():
            self.rank.put(node, Role.KWARG, key, self._record(value))
        results = tree.get("outputs")
        for place, value in enumerate(results if type(results) is list else [] if results is None else [results]):
            self.rank.put(node, Role.OUTPUT, str(place), self._record(value))

    def _record(self, value: Any) -> Any:
        """A value of the tree as a record of dump.json."""
        if type(value) is list:
            return [self._record(part) for part in value]
        if type(value) is str:
            return None if value == "None" else _scalar(value)
        if type(value) is not dict or type(value.get("shape")) is not str:
            return {key: self._record(part) for key, part in value.items()} if type(value) is dict else value
        sizes = _SIZES.fullmatch(value["shape"])
        shape = None if sizes is None else [int(size) for size in sizes[1].split(",") if size.strip()]
        top, low, mean, std = (_number(value.get(key)) for key in ("max", "min", "mean", "std"))
        norm = _norm(shape, mean, std)
        if top is None and type(value.get("value")) is list:
            top, low, mean, norm = _statistics(value["value"])
        self.told = self.told or top is not None
        saved = value.get("value")
        name = saved.removeprefix("./") if type(saved) is str and saved.endswith(_SAVED) else None
        dtype = value.get("dtype")
        return tensor_record(
            dtype if type(dtype) is str else None,
            shape,
            Max=top, Min=low, Mean=mean, Norm=norm, data_name=name,
        )  # fmt: skip


def _number(text: Any) -> float | None:
    """`tensor(-1.1641e-03)` as a number, None for anything else."""
    if type(text) is not str:
        return None
    try:
        value = read_literal(text)
    except ValueError:
        return None
    return float(value) if type(value) in (int, float) else None


def _norm(shape: list[int] | None, mean: float | None, std: float | None) -> float | None:
    """Norm of a tensor with this mean and this standard deviation (by n - 1)."""
    if shape is None or mean is None or std is None:
        return None
    count = math.prod(shape)
    if count == 1:
        return abs(mean)
    return math.sqrt(count) * math.hypot(std * math.sqrt((count - 1) / count), mean) if count else None


def _statistics(lines: list[Any]) -> tuple[float | None, ...]:
    """Max, Min, Mean and Norm of a tensor that is printed whole; torch leaves them out for tensors of whole numbers."""
    try:
        values = np.array(read_literal("".join(map(str, lines))), dtype=np.float64)
    except (ValueError, TypeError):  # also one that is printed with dots for what is between
        return (None,) * 4
    if not values.size:
        return (None,) * 4
    return float(values.max()), float(values.min()), float(values.mean()), float(np.sqrt(np.square(values).sum()))


def _scalar(text: str) -> Any:
    """A number, truth value or text that was printed, or a name (`torch.float32`); any other object is one of which nothing is
    known."""
    try:
        value = read_literal(text)
    except ValueError:
        return text if _NAME.fullmatch(text) else {}
    return value if type(value) in (int, float, bool, str) else text


MODULE_TREE: Final = ModuleTreeFormat()
