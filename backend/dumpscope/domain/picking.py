"""Calls that sort or pick elements (`topk`, `sort`, `argmax`...): what each was asked for, and what a wrong pick looks like."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from dumpscope.domain.records import INTEGERS, Kind, RankDump, Role

PLACES: Final[dict[str, tuple[str, ...]]] = {
    "argmax": ("dim",),
    "argmin": ("dim",),
    "argsort": ("dim", "descending"),
    "kthvalue": ("k", "dim"),
    "max": ("dim",),
    "min": ("dim",),
    "sort": ("dim", "descending"),
    "topk": ("k", "dim", "largest", "sorted"),
}
"""Arguments of a call behind its tensor, by position."""
SORTING: Final = ("argsort", "sort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """One recorded call that picks. api: of PLACES; source, values, indices: numbers of its items, values -1 without them

    dim: along which it picks, None for the flat tensor; count: elements of each row that it picks; descending: largest first
    """

    api: str
    source: int
    values: int
    indices: int
    dim: int | None
    count: int
    descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongPick:
    """An index that the values of the input disprove. reason: "repeated" in its row, "outside" of it, "other" than the element
    that was asked for, or "value": what was put out is not the element that it names

    at: place of the index in its tensor; picked: the value it points to; expected: the one that belongs there
    """

    reason: Literal["repeated", "outside", "other", "value"]
    at: tuple[int, ...]
    index: int
    picked: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PickCheck:
    """What the tensors of a call show. target, golden: the first wrong pick of each side, None where all are right"""

    target: WrongPick | None
    golden: WrongPick | None


def picking_of(dump: RankDump, node: int) -> Picking | None:
    """What a node picks; None for other calls, and where an argument is missing or of another form."""
    nodes, items = dump.nodes, dump.items
    label = int(nodes.label[node])
    api = nodes.labels[label].rpartition(".")[2] if label >= 0 else ""
    places = PLACES.get(api)
    if places is None:
        return None
    first, last = np.searchsorted(items.node, [node, node + 1]).tolist()
    given: dict[str, Any] = {}
    source = values = indices = -1
    for item in range(first, last):
        path, role, tensor = items.paths[items.path[item]], items.role[item], items.kind[item] == Kind.TENSOR
        if role == Role.OUTPUT and tensor:
            if items.dtypes[items.dtype[item]].startswith(INTEGERS):
                indices = item
            elif values < 0:
                values = item
        elif (role == Role.INPUT and path == "0") or path in ("input", "self"):
            source = item if tensor else source
        elif role == Role.INPUT and path.isdigit() and int(path) <= len(places):
            given[places[int(path) - 1]] = value_of(dump, item)
        elif role == Role.KWARG:
            given[path] = value_of(dump, item)
    shape = items.shapes[items.shape[source]] if source >= 0 and items.shape[source] >= 0 else ()
    dim = given.get("dim", None if api in ("argmax", "argmin", "max", "min") else -1)
    count = given.get("k", 1) if api == "topk" else 1
    if indices < 0 or not shape or not _is_whole(dim, -len(shape), len(shape) - 1) or not _is_whole(count, 0, 2**31):
        return None
    if api in SORTING:
        count = shape[dim]
    if api == "kthvalue" or (api in ("max", "min") and dim is None):
        return None
    return Picking(
        api=api,
        source=source,
        values=values,
        indices=indices,
        dim=dim,
        count=int(count),
        descending=bool(given.get("largest", True) if api == "topk" else given.get("descending", "max" in api)),
    )


def _is_whole(value: Any, least: int, most: int) -> bool:
    return value is None or (type(value) is int and least <= value <= most)


def value_of(dump: RankDump, item: int) -> Any:
    """The number, text or list that an item holds; None for a tensor."""
    code = int(dump.items.value[item])
    return json.loads(dump.items.values[code]) if code >= 0 and dump.items.kind[item] == Kind.SCALAR else None
