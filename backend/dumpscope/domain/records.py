"""One rank of one step, as columns: what a reader returns and everything downstream computes on.

A dump of 100 000 nodes has some 400 000 leaf records. Objects per record would cost a gigabyte and seconds, so a rank is a
handful of numpy columns; strings that repeat (dtypes, shapes, paths, stacks) are stored once and referred to by code.
A code of -1 always means "absent".
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.run import Run
from dumpscope.errors import Problem
from dumpscope_format import naming
from dumpscope_format.journal import JOURNAL

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
UInt8 = NDArray[np.uint8]
Bool = NDArray[np.bool_]

STATISTICS: Final = ("Max", "Min", "Mean", "Norm")


class Role(IntEnum):
    """What a leaf record is to its node. In a backward node INPUT is grad_output and OUTPUT is grad_input."""

    INPUT = 0
    KWARG = 1
    PARAMETER = 2
    OUTPUT = 3
    GRADIENT = 4  # a parameters_grad record
    DEBUG = 5  # a record of debug.json


ROLE_WORDS: Final = ("input", "kwargs", "parameters", "output", "parameters_grad", "debug")


class Kind(IntEnum):
    TENSOR = 0  # has dtype and shape (torch.Tensor and relatives, numpy.ndarray)
    SCALAR = 1  # int, float, bool, str, numpy scalar, dtype, device, slice, Size...: compared by `value`
    NONE = 2  # null
    OPAQUE = 3  # {} or an object of a kind we do not know: shown, never judged


class NodeKind(IntEnum):
    API = 0
    MODULE = 1
    GRADIENT = 2  # Module....parameters_grad[.n]
    DEBUG = 3
    OTHER = 4  # a name of no known form: kept, matched by equality only


class Direction(IntEnum):
    FORWARD = 0
    BACKWARD = 1
    NONE = 2


class State(IntEnum):
    """State of one stored number. SQLite, JSON and FastAPI each lose NaN or infinity silently; this does not."""

    ABSENT = 0
    FINITE = 1
    NAN = 2
    POS_INF = 3
    NEG_INF = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Nodes of one rank in file order (completion order for msprobe: a module stands after its children).

    label: code into `labels`: "Functional.softmax" for an API, "layers.1.attn.Attn" for a module (model index kept in front)
    index: call index (forward/backward), firing number (parameters_grad), -1 where the name has none
    stack: code into `stacks`; frames as written in the dump, innermost first
    micro: Megatron micro step or -1
    """

    names: list[str]
    kind: Int8
    direction: Int8
    label: Int32
    labels: list[str]
    index: Int32
    stack: Int32
    stacks: list[tuple[str, ...]]
    micro: Int32

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Leaf records in file order, grouped by node: `node` never decreases. All arrays have shape (n,) or (n, 4).

    path: code into `paths`: "0", "1.0", "mask", "weight", "0.key"; the item's place below its role
    type: code into `types` ("torch.Tensor", "int", "torch.Size", "null", ...)
    stats: Max, Min, Mean, Norm as float64; meaningful only where `stat_state` is FINITE
    wide: exact integers for statistics that float64 cannot hold, keyed by (item, statistic)
    value: code into `values`: canonical JSON text of a non-tensor's value; for a tensor of its extra keys (device_mesh...)
    data_name: code into `data_names`: file name below dump_tensor_data
    requires_grad: 1, 0 or -1
    producer: number of the record, an output of an earlier node, that the dump says this tensor still is; -1 where it does not
    """

    node: Int32
    role: Int8
    path: Int32
    paths: list[str]
    kind: Int8
    type: Int32
    types: list[str]
    dtype: Int32
    dtypes: list[str]
    shape: Int32
    shapes: list[tuple[int, ...]]
    stats: Float64
    stat_state: UInt8
    wide: dict[tuple[int, int], int]
    requires_grad: Int8
    hash: Int32
    hashes: list[str]
    value: Int32
    values: list[str]
    data_name: Int32
    data_names: list[str]
    producer: Int32

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The module tree. Entries 0..n-1 are the dumped nodes (same numbers), then virtual ones (named but without data).

    parent: entry number or -1 at the top
    order: place of the entry when the run is walked in time: parents before children, stray APIs between modules kept
    inferred: the dump had no construct.json (or an empty one) and the tree comes from names and stacks
    """

    names: list[str]
    parent: Int32
    order: Int32
    inferred: bool

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Head of dump.json. task: statistics, tensor, structure...; summary: "statistics", "md5" or "xor", seen from the leaves.

    run: how it was run, None where nothing beside the dump tells
    layout: dump format as people are told it, with its version where there are several: "msprobe", "ptdbg 4.0"
    """

    task: str
    level: str
    framework: str
    summary: str
    data_dir: str | None  # folder of the tensor files that really exists, derived from the JSON's own place
    run: Run | None = None
    layout: str = "msprobe"

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Header:
        """Inverse of `asdict` and JSON."""
        run = data.get("run")
        return cls(**{**data, "run": None if run is None else Run.from_json(run)})


def join_words(words: Iterable[str]) -> str:
    """What the heads of several ranks say of one thing, without those that say nothing."""
    return ", ".join(sorted({word for word in words if word}))


UNKNOWN_CLASS: Final = "Module"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a dump format can record. Matching, judging and tables ask these, never for the format's name.

    all_arguments: every argument of a call is recorded; without it one that is missing beside another format is no difference
    numbered_items: arguments given by name are counted behind the others, and a lone result has no number (`match.item_places`)
    ptdbg_names: names of nodes are ptdbg's; they match other formats in msprobe's form
    filtered: a switch leaves out numbers, tensors of whole numbers, and those without dimensions, of every call
    stacks_inside: call stacks stand between the records, not in a file of their own
    bare_modules: of modules the paths are known and not the classes, in whose place UNKNOWN_CLASS stands
    steps_are_passes: every run of a model may be a step of its own, as of an engine that serves requests
    magnitude_sum: Norm is the sum of the magnitudes, which is not compared with the Norm of other formats
    """

    all_arguments: bool = True
    numbered_items: bool = False
    ptdbg_names: bool = False
    filtered: bool = False
    stacks_inside: bool = False
    bare_modules: bool = False
    magnitude_sum: bool = False
    steps_are_passes: bool = False


_PTDBG: Final = Traits(all_arguments=False, numbered_items=True, ptdbg_names=True, filtered=True, stacks_inside=True)
TRAITS_BEFORE: Final = {"msprobe": Traits(), "ptdbg": _PTDBG, "cases": replace(_PTDBG, stacks_inside=False)}
"""Traits of the ranks that were stored before traits were stored with them, by their layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedPasses:
    """Passes of a model that were put together to one. word: what they divided, "rows" of a batch or "positions" of a sequence
    sizes: how many of them every pass took; gradients: what gradients of the passes were multiplied by
    compared: how many of them both sides have, where that was told by request and position; -1: it was not
    weighted: the losses of the passes are no sum and no mean of each other, so nothing that follows from them is compared
    mixed: the first call, with a backward pass, that made of all rows of a pass what is none of the whole: the same; "": none
    anew: each pass took what the one before had taken, and more (a loop without a cache); sizes: how many more"""

    word: str
    sizes: tuple[int, ...]
    gradients: float = 1.0
    compared: int = -1
    weighted: bool = False
    mixed: str = ""
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRef:
    """Where one rank of one step lies.

    rank: number, or None for `proc{pid}` and bare `rank` folders and for lone files (a single-process run)
    label: folder name as found ("rank0", "proc1234"), "" for a lone file
    joined: the ranks that it was joined from, () for one that was dumped as it is; passes: of its model, put together
    layout: name of its dump format; traits: of that format
    dump_json: file of its records, of whatever format, or the folder of its tensors where that is all there is
    parts: further files of its records; tensors: folder of its tensor files where `dump_json` does not tell it
    """

    step: int
    rank: int | None
    label: str
    folder: str
    dump_json: str
    stack_json: str | None
    construct_json: str | None
    debug: bool = False
    joined: tuple[int, ...] = ()
    layout: str = "msprobe"
    traits: Traits = Traits()
    parts: tuple[str, ...] = ()
    tensors: str | None = None
    passes: JoinedPasses | None = None

    @property
    def number(self) -> int:
        """The rank as results report it: a single-process run counts as 0."""
        return self.rank if self.rank is not None else 0

    @property
    def has_stacks(self) -> bool:
        """Whether call stacks may come with it: from a file of their own, or between the records of one."""
        inside = self.traits.stacks_inside or os.path.basename(self.dump_json) == JOURNAL
        return inside or self.stack_json is not None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RankRef:
        """Inverse of `asdict` and JSON."""
        stored = data.get("traits")
        traits = TRAITS_BEFORE[data.get("layout", "msprobe")] if stored is None else Traits(**stored)
        held = data.get("passes")
        passes = None if held is None else JoinedPasses(**{**held, "sizes": tuple(held["sizes"])})
        tuples = {name: tuple(data.get(name, ())) for name in ("joined", "parts")}
        return cls(**{**data, **tuples, "traits": traits, "passes": passes})


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpIndex:
    """What discovery found under a path, before any record is parsed."""

    root: str
    ranks: list[RankRef]
    problems: list[Problem]

    @property
    def steps(self) -> list[int]:
        return sorted({ref.step for ref in self.ranks})

    @property
    def rank_numbers(self) -> list[int]:
        """Ranks as results report them."""
        return sorted({ref.number for ref in self.ranks})


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDump:
    ref: RankRef
    header: Header
    nodes: Nodes
    items: Items
    tree: Tree
    problems: list[Problem] = field(default_factory=list)


def module_around(dump: RankDump, entry: int) -> str:
    """Path and class of the module that an entry of the tree is, or of the innermost one around it; "" where there is none."""
    while entry >= 0:
        kind, _, label, _, _ = naming.split(dump.tree.names[entry])
        if kind == "module":
            return label
        entry = int(dump.tree.parent[entry])
    return ""


def modules_around(dump: RankDump) -> list[str]:
    """By entry of the tree: path and class of the module that it is, or of the innermost one around it, as "layers.1.attn.Attn";
    "" where there is none."""
    tree = dump.tree
    found = [""] * len(tree)
    for entry in np.argsort(tree.order, kind="stable").tolist():  # parents before children
        kind, _, label, _, _ = naming.split(tree.names[entry])
        parent = int(tree.parent[entry])
        found[entry] = label if kind == "module" else found[parent] if parent >= 0 else ""
    return found


def names_item(data_name: str, node: str) -> bool:
    """Whether a tensor file's name tells which item of `node` it holds; a path to somewhere else does not."""
    return data_name.startswith((f"{node}.", f"{node}_"))


def item_name(dump: RankDump, item: int) -> str:
    """Full item name: the stored data name without its extension, else as `derived_name` tells."""
    items = dump.items
    code = int(items.data_name[item])
    node = dump.nodes.names[items.node[item]]
    if code >= 0 and names_item(items.data_names[code], node):
        return items.data_names[code].rsplit(".", 1)[0]
    return derived_name(node, int(items.role[item]), items.paths[items.path[item]])


def derived_name(node: str, role: int, path: str) -> str:
    """The name an item has by its place, `{node}.{role}.{path}`; parameters_grad and debug: no role."""
    if role in (Role.GRADIENT, Role.DEBUG):
        return naming.item_name(node, "", path)
    return naming.item_name(node, ROLE_WORDS[Role.INPUT if role == Role.KWARG else role], path)


Number = float | int | str | bool | None
"""A number as it was recorded; text where a non-tensor is compared; None where there is none. nan and infinities are floats."""

INTEGERS: Final = ("int", "uint", "short", "long", "torch.int", "torch.uint", "torch.short", "torch.long")
"""Beginnings of the names of integer dtypes."""
_FINITE: Final = int(State.FINITE)
_NOT_FINITE: Final[dict[int, float | None]] = {
    int(State.ABSENT): None, int(State.NAN): math.nan, int(State.POS_INF): math.inf, int(State.NEG_INF): -math.inf,
}  # fmt: skip


def as_stored(value: float, state: int, dtype: str | None, wide: int | None = None) -> Number:
    """A stored statistic as it was before it became a float64: exact integers, truth values, infinities, or None."""
    if state == _FINITE:
        if wide is not None:
            return wide
        if dtype is None or not float(value).is_integer():
            return value
        if dtype.endswith("bool"):
            return bool(value)
        return int(value) if dtype.startswith(INTEGERS) else value
    return _NOT_FINITE[state]
