"""Places (role and path) of the items of a call, if one format numbers them (ptdbg) and the other keeps names (msprobe).

* A single result has no number in ptdbg, and is number 0 in msprobe.
* ptdbg 6.0 counts arguments given by name after the others, msprobe keeps their names.
* ptdbg records the gradients that the last autograd node inside a call returned, so their number and order may differ.
  Of these, gradients of equal shape are paired.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumpscope.domain.records import Direction, Int8, Int32, Int64, NodeKind, RankDump, Role
from dumpscope.match.operators.arguments import argument_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Role and path of each item. path: code into `paths`"""

    role: Int8
    path: Int32
    paths: list[str]


def places_differ(target: RankDump, golden: RankDump) -> bool:
    """Whether one side numbers all its items and the other keeps the names of arguments."""
    return target.ref.traits.numbered_items != golden.ref.traits.numbered_items


def common_places(dump: RankDump) -> Places:
    """Places with a number for every item, also for arguments given by name, as both sides can have them."""
    items = dump.items
    codes = {path: code for code, path in enumerate(items.paths)}
    role, path = items.role.copy(), items.path.copy()
    lone = np.isin(items.path, [codes.get("", -1)]) & (items.role == Role.OUTPUT)
    path[lone] = codes.setdefault("0", len(codes))
    given: dict[int, int] = {}
    for item in np.flatnonzero(items.role == Role.INPUT).tolist():
        first = items.paths[items.path[item]].partition(".")[0]
        if first.isdecimal():
            node = int(items.node[item])
            given[node] = max(given.get(node, 0), int(first) + 1)
    named: dict[int, dict[str, int]] = {}
    for item in np.flatnonzero(items.role == Role.KWARG).tolist():
        node, text = int(items.node[item]), items.paths[items.path[item]]
        name, dot, rest = text.partition(".")
        numbers = named.setdefault(node, {})
        number = given.get(node, 0) + numbers.setdefault(name, len(numbers))
        role[item], path[item] = Role.INPUT, codes.setdefault(f"{number}{dot}{rest}", len(codes))
    return Places(role=role, path=path, paths=list(codes))


def by_shape(target: RankDump, golden: RankDump, pair: Int64, t: Int64, g: Int64) -> tuple[Int64, Int64, Int64]:
    """The pairs, with all returned gradients of a call paired by shape if a pair of places has different shapes."""
    rows = list(zip(pair.tolist(), t.tolist(), g.tolist(), strict=True))
    handed: dict[int, list[tuple[int, int]]] = {}
    kept = []
    for number, one, other in rows:
        if _handed_back(target, one) or _handed_back(golden, other):
            handed.setdefault(number, []).append((one, other))
        else:
            kept.append((number, one, other))
    for number, pairs in handed.items():
        fit = all(one < 0 or other < 0 or _shape(target, one) == _shape(golden, other) for one, other in pairs)
        kept += [(number, one, other) for one, other in (pairs if fit else _pair_by_shape(target, golden, pairs))]
    columns = np.array(kept, np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def by_name(target: RankDump, golden: RankDump, pair: Int64, t: Int64, g: Int64) -> tuple[Int64, Int64, Int64]:
    """The pairs, with an argument that one side gives by its place and the other by its name as one pair."""
    lonely = (t < 0) ^ (g < 0)
    if not lonely.any():
        return pair, t, g
    waiting: dict[tuple[int, str], int] = {}
    partner = g.copy()
    gone = np.zeros(len(pair), bool)
    for row in np.flatnonzero(lonely & (t < 0)).tolist():
        name = _argument(golden, int(g[row]))
        if name:
            waiting[int(pair[row]), name] = row
    for row in np.flatnonzero(lonely & (g < 0)).tolist():
        name = _argument(target, int(t[row]))
        other = waiting.pop((int(pair[row]), name), -1) if name else -1
        if other >= 0:
            partner[row], gone[other] = g[other], True
    return pair[~gone], t[~gone], partner[~gone]


def _argument(dump: RankDump, item: int) -> str:
    """Name of an argument and its place inside it, whether it was given by place or by name; "" for what is none, or unknown."""
    items, nodes = dump.items, dump.nodes
    node = int(items.node[item])
    path: str = items.paths[items.path[item]]
    if items.role[item] == Role.KWARG:
        return path
    if (
        items.role[item] != Role.INPUT
        or nodes.kind[node] != NodeKind.API
        or nodes.direction[node] == Direction.BACKWARD
    ):
        return ""
    name = argument_name(nodes.labels[nodes.label[node]], path)
    return f"{name}{path[path.index('.') :] if '.' in path else ''}" if name else ""


def _pair_by_shape(target: RankDump, golden: RankDump, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pair each item with the first free one of the other side that has the same shape."""
    free = sorted(other for _, other in pairs if other >= 0)
    out = []
    for one in sorted(one for one, _ in pairs if one >= 0):
        found = next((other for other in free if _shape(golden, other) == _shape(target, one)), -1)
        if found >= 0:
            free.remove(found)
        out.append((one, found))
    return [*out, *((-1, other) for other in free)]


def _handed_back(dump: RankDump, item: int) -> bool:
    items = dump.items
    return (
        item >= 0 and items.role[item] == Role.OUTPUT and dump.nodes.direction[items.node[item]] == Direction.BACKWARD
    )


def _shape(dump: RankDump, item: int) -> tuple[int, ...] | None:
    code = int(dump.items.shape[item])
    return dump.items.shapes[code] if code >= 0 else None
