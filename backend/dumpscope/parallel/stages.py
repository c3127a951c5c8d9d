"""Joins pipeline stages into one dump, as if one process had run them all.

Forward runs stage by stage, backward in the opposite order, one micro-batch after the other, for every schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dumpscope.domain.records import Direction, Kind, RankDump, Role, Tree
from dumpscope.parallel.columns import Pool, pool, take_items, take_nodes
from dumpscope.parallel.evidence import Print, fingerprint, has_model_index, layer_place, module_paths
from dumpscope.parallel.plan import SidePlan
from dumpscope_format import naming

_END: Final = 1 << 40
"""Micro-batch number of calls that run after all micro-batches."""
_OUTSIDE: Final = ("optimizer", "clip_grad")
"""Entries of the tree that are no modules; calls below them run when every stage has ended."""

Moment = tuple[int, int, int, int]
"""Micro-batch, phase (forward, backward, end), position of the stage in this phase, position in the stage's own run."""


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A tree entry of one stage under its new name. started, ended: when it began, and when it was recorded"""

    stage: int
    number: int
    name: str
    started: Moment
    ended: Moment
    parent: int  # among all entries, -1 at the top


def join_stages(dumps: Sequence[RankDump], side: SidePlan) -> RankDump:
    """Join the stages `dumps` (in their order) of `side`. Items are not changed, so tensor files keep their names.

    If several stages recorded the same name (for example a wrapper around the model), it becomes one node: inputs from the
    stage that ran it first, outputs from the last.
    """
    if len(dumps) == 1 and side.chunks == 1 and not any(side.offsets):
        return dumps[0]
    entries: list[_Entry] = []
    for stage, dump in enumerate(dumps):
        entries += _entries(dump, stage, side, first=len(entries))
    _number_calls(entries, dumps)
    groups = _merge_entries(entries, dumps)
    together = pool(dumps)
    return _assembled(together, entries, groups, dumps)


def _entries(dump: RankDump, stage: int, side: SidePlan, first: int) -> list[_Entry]:
    tree, nodes = dump.tree, dump.nodes
    indexed = has_model_index(module_paths(dump))
    count = len(tree)
    parents = tree.parent.tolist()
    names: list[str] = list(tree.names)
    known: dict[str, tuple[str, int]] = {}
    chunk = [-1] * count
    top: list[int] = [-1] * count
    in_order = np.argsort(tree.order, kind="stable").tolist()
    parsed = [naming.parse(name) for name in names]
    for entry in in_order:
        parent = parents[entry]
        above = top[parent] if parent >= 0 else -1
        if parsed[entry].kind in ("module", "gradient"):
            label = parsed[entry].label
            if label not in known:
                known[label] = _relabel(label, side, stage, indexed=indexed)
            fresh, chunk[entry] = known[label]
            names[entry] = naming.build(replace(parsed[entry], label=fresh))
        elif parent >= 0:
            chunk[entry] = chunk[parent]
        outermost = parsed[entry].kind == "module" or names[entry] in _OUTSIDE
        top[entry] = above if above >= 0 else (entry if outermost else -1)
    out = []
    owners = _weight_owners(dump, chunk) if side.chunks > 1 else {}
    micro, phase, number = 0, 0, 0
    moments: list[Moment] = [(0, 0, 0, 0)] * count
    for place, entry in enumerate(in_order):
        head = top[entry]
        number = chunk[entry] if chunk[entry] >= 0 else number
        if head >= 0 and names[head] in _OUTSIDE:
            number = owners.get(entry, number)
            moments[entry] = _END, 2, side.stages * number + stage, place
            continue
        if head >= 0:
            micro, phase = parsed[head].index, int(parsed[head].direction == "backward")
        elif entry < len(nodes) and nodes.direction[entry] == Direction.BACKWARD:
            phase = 1
        virtual = side.stages * number + stage
        moments[entry] = micro, phase, -virtual if phase else virtual, place
    for entry in range(count):
        moment = moments[entry]
        out.append(
            _Entry(
                stage=stage,
                number=entry,
                name=names[entry],
                started=moment,
                ended=(*moment[:3], entry),
                parent=first + parents[entry] if parents[entry] >= 0 else -1,
            )
        )
    return out


def _weight_owners(dump: RankDump, chunk: Sequence[int]) -> dict[int, int]:
    """Calls outside all modules (for example of an optimizer) that take a weight -> the chunk whose module holds this weight."""
    items = dump.items
    tensors = np.flatnonzero(items.kind == Kind.TENSOR).tolist()
    held: dict[Print, int] = {}
    for item in tensors:
        if items.role[item] == Role.PARAMETER and chunk[items.node[item]] >= 0:
            held.setdefault(fingerprint(dump, item), chunk[items.node[item]])
    owners: dict[int, int] = {}
    for item in tensors:
        node = int(items.node[item])
        if items.role[item] == Role.INPUT and chunk[node] < 0 and node not in owners:
            found = held.get(fingerprint(dump, item))
            if found is not None:
                owners[node] = found
    return owners


def _relabel(label: str, side: SidePlan, stage: int, *, indexed: bool) -> tuple[str, int]:
    """A module's label in the whole model, and the chunk that it belongs to."""
    words = label.split(".")
    chunk = 0
    if indexed and side.chunks > 1:
        chunk = min(int(words[0]), side.chunks - 1)
    place = layer_place(words[:-1], indexed=indexed)
    if place is not None:
        words[place] = str(int(words[place]) + side.offsets[side.stages * chunk + stage])
    if indexed and side.chunks > 1:
        words = words[1:]
    return ".".join(words), chunk


def _number_calls(entries: list[_Entry], dumps: Sequence[RankDump]) -> None:
    """Number the calls of every API on from stage to stage."""
    counts: dict[str, int] = {}
    numbers: dict[tuple[int, str, int], int] = {}
    calls = [(entry, naming.parse(entry.name)) for entry in entries]
    calls = [(entry, parsed) for entry, parsed in calls if parsed.kind == "api"]
    calls.sort(key=lambda call: (call[1].direction == "backward", call[0].started))
    for entry, parsed in calls:
        key = entry.stage, parsed.label, parsed.index
        if key not in numbers:
            numbers[key] = counts.get(parsed.label, 0)
            counts[parsed.label] = numbers[key] + 1
        entry.name = naming.build(replace(parsed, index=numbers[key]))


def _merge_entries(entries: list[_Entry], dumps: Sequence[RankDump]) -> list[list[int]]:
    """Entries by their new name, nodes in the order in which they ended, then virtual ones."""
    named: dict[str, list[int]] = {}
    for number, entry in enumerate(entries):
        named.setdefault(entry.name, []).append(number)
    groups = list(named.values())
    for group in groups:
        group.sort(key=lambda number: entries[number].started)

    def ended(group: list[int]) -> tuple[bool, Moment]:
        virtual = all(_is_virtual(entries[number], dumps) for number in group)
        return virtual, max(entries[number].ended for number in group)

    return sorted(groups, key=ended)


def _is_virtual(entry: _Entry, dumps: Sequence[RankDump]) -> bool:
    return entry.number >= len(dumps[entry.stage].nodes)


def _assembled(together: Pool, entries: list[_Entry], groups: list[list[int]], dumps: Sequence[RankDump]) -> RankDump:
    new = {number: place for place, group in enumerate(groups) for number in group}
    rows = [
        together.first_node[entries[held[0]].stage] + entries[held[0]].number
        for group in groups
        if (held := [number for number in group if not _is_virtual(entries[number], dumps)])
    ]
    nodes = take_nodes(together.nodes, np.array(rows, np.int64))
    names = [entries[group[0]].name for group in groups]
    parsed = [naming.parse(name) for name in names[: len(rows)]]
    known: dict[str, int] = {}
    labels = [known.setdefault(one.label, len(known)) for one in parsed]
    nodes = replace(
        nodes,
        names=names[: len(rows)],
        label=np.where(nodes.label >= 0, np.array(labels, np.int32), np.int32(-1)),
        labels=list(known),
        index=np.array([one.index for one in parsed], np.int32),
    )
    items, owner = _items(together, entries, groups[: len(rows)], dumps)
    started = sorted(range(len(groups)), key=lambda place: entries[groups[place][0]].started)
    order = np.empty(len(groups), np.int32)
    order[started] = np.arange(len(groups))
    parents = (next((p for number in group if (p := entries[number].parent) >= 0), -1) for group in groups)
    tree = Tree(
        names=names,
        parent=np.array([new[parent] if parent >= 0 else -1 for parent in parents], np.int32),
        order=order,
        inferred=any(dump.tree.inferred for dump in dumps),
    )
    return replace(
        dumps[0],
        nodes=nodes,
        items=take_items(together.items, items, owner),
        tree=tree,
        problems=[problem for dump in dumps for problem in dump.problems],
    )


def _items(
    together: Pool, entries: list[_Entry], groups: Sequence[Sequence[int]], dumps: Sequence[RankDump]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int32]]]:
    edges = np.searchsorted(together.items.node, np.arange(len(together.nodes) + 1)).tolist()
    rows: list[int] = []
    owner: list[int] = []
    for place, group in enumerate(groups):
        held = [entries[number] for number in group if not _is_virtual(entries[number], dumps)]
        spans = [together.first_node[entry.stage] + entry.number for entry in held]
        found: Iterable[int] = range(edges[spans[0]], edges[spans[0] + 1])
        if len(spans) > 1:
            found = _pick_items(together, [range(edges[span], edges[span + 1]) for span in spans])
        before = len(rows)
        rows.extend(found)
        owner.extend([place] * (len(rows) - before))
    return np.array(rows, np.int64), np.array(owner, np.int32)


def _pick_items(together: Pool, spans: Sequence[range]) -> list[int]:
    """Items of a node that several stages recorded: inputs of the first stage, outputs of the last, other items of all."""
    role = together.items.role
    chosen: dict[tuple[int, str], int] = {}
    for span in spans:
        for item in span:
            key = int(role[item]), together.items.paths[together.items.path[item]]
            if role[item] == Role.OUTPUT:
                chosen[key] = item
            else:
                chosen.setdefault(key, item)
    return sorted(chosen.values(), key=lambda item: int(role[item]))
