"""A module tree for dumps without construct.json: from dotted module paths, from call stacks, or two flat groups."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.records import Direction, NodeKind, Nodes
from dumpscope.readers.records.tree_builder import Outline
from dumpscope_format.naming import twin

_FRAME: Final = re.compile(r"File (.+?), line ([0-9]{1,9}), in ([^,\s]+)")
_TOOL: Final = "/ptdbg_ascend/"
"""Files of ptdbg itself: its wrappers have functions named `forward`, which are on the stacks of its dumps."""
TOP: Final = -1


def infer(outline: Outline, nodes: Nodes) -> None:
    """Set parents in `outline`, adding virtual entries for groups."""
    if bool((nodes.kind == NodeKind.MODULE).any()):
        _by_paths(outline, nodes)
    elif not _by_stacks(outline, nodes):
        _flat(outline, nodes)


def _by_paths(outline: Outline, nodes: Nodes) -> None:
    """A module's parent is the next module to complete whose path is the longest proper prefix of its own.

    Of an API only its own completion is known. It belongs to the next module to complete when that has children of its own
    or a class that sounds like the API (Linear, linear); otherwise to that module's parent.
    """
    kinds, ways = nodes.kind.tolist(), nodes.direction.tolist()
    split = [text.rpartition(".") for text in nodes.labels]
    labels = nodes.label.tolist()
    open_at: dict[tuple[int, str], int] = {}
    has_children = bytearray(len(nodes))
    for node in range(len(nodes) - 1, -1, -1):
        if kinds[node] != NodeKind.MODULE:
            continue
        path = split[labels[node]][0]
        open_at[ways[node], path] = node
        while "." in path:
            path = path.rpartition(".")[0]
            above = open_at.get((ways[node], path))
            if above is not None:
                outline.parent[node] = above
                has_children[above] = 1
                break
    following: dict[int, int] = {}
    for node in range(len(nodes) - 1, -1, -1):
        if kinds[node] == NodeKind.MODULE:
            following[ways[node]] = node
        elif kinds[node] == NodeKind.API:
            module = following.get(ways[node])
            if module is not None:
                own = has_children[module] or _sounds_like(split[labels[node]][2], split[labels[module]][2])
                outline.parent[node] = module if own else outline.parent[module]
    for node in range(len(nodes)):
        if kinds[node] == NodeKind.API and ways[node] == Direction.BACKWARD:
            found = _module_of_twin(outline, node)
            if found is not None:
                outline.parent[node] = found


def _module_of_twin(outline: Outline, node: int) -> int | None:
    """Backward of the module that contains the forward call: the forward call is the surer guide to the module."""
    other = twin(outline.names[node])
    entry = outline.table.get(other) if other else None
    if entry is None:
        return None
    above = outline.parent[entry]
    if above == TOP:
        return TOP
    name = twin(outline.names[above])
    return outline.table.get(name) if name else None


def _sounds_like(api: str, cls: str) -> bool:
    plain, large = api.replace("_", "").lower(), cls.lower()
    return len(plain) > 2 and (plain in large or large in plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One `forward` frame of a call stack."""

    file: str
    line: int


def _by_stacks(outline: Outline, nodes: Nodes) -> bool:
    """Group calls by the `forward` functions on their stacks; False where no stack holds one.

    Two calls lie in the same run of a function while its file is the same and its line does not go back; a line that goes
    back means that the function was entered anew (the next layer).
    """
    chains = [_forward_frames(stack) for stack in nodes.stacks]
    if not any(chains):
        return False
    open_frames: list[tuple[str, int, int]] = []  # file, line, entry
    counters: dict[str, int] = {}
    stacks = nodes.stack.tolist()
    for node in np.flatnonzero((nodes.kind == NodeKind.API) & (nodes.direction == Direction.FORWARD)).tolist():
        if stacks[node] < 0:
            outline.parent[node] = open_frames[-1][2] if open_frames else TOP
            continue
        chain = chains[stacks[node]]
        level = 0
        while level < min(len(chain), len(open_frames)):
            file, line, entry = open_frames[level]
            if file != chain[level].file or chain[level].line < line:
                break
            open_frames[level] = (file, chain[level].line, entry)
            level += 1
        del open_frames[level:]
        for frame in chain[level:]:
            name = os.path.basename(frame.file.replace("\\", "/"))
            number = counters[name] = counters.get(name, -1) + 1
            parent = open_frames[-1][2] if open_frames else TOP
            open_frames.append((frame.file, frame.line, outline.add(f"{name}/forward#{number}", parent)))
        outline.parent[node] = open_frames[-1][2] if open_frames else TOP
    _mirror(outline, nodes)
    return True


def _forward_frames(stack: tuple[str, ...]) -> list[Frame]:
    """`forward` frames, outermost first."""
    frames = []
    for text in reversed(stack):
        found = _FRAME.match(text)
        if found and found[3] == "forward" and _TOOL not in found[1]:
            frames.append(Frame(file=found[1], line=int(found[2])))
    return frames


def _mirror(outline: Outline, nodes: Nodes) -> None:
    """Hang backward calls under backward twins of the groups that their forward calls are in."""
    for node in np.flatnonzero((nodes.kind == NodeKind.API) & (nodes.direction == Direction.BACKWARD)).tolist():
        other = twin(outline.names[node])
        entry = outline.table.get(other) if other else None
        if entry is None:
            continue
        group = outline.parent[entry]
        chain = []
        while group != TOP:
            chain.append(group)
            group = outline.parent[group]
        parent = TOP
        for group in reversed(chain):
            name = outline.names[group].replace("/forward#", "/backward#")
            known = outline.table.get(name)
            parent = outline.add(name, parent) if known is None else known
        outline.parent[node] = parent


def _flat(outline: Outline, nodes: Nodes) -> None:
    groups: dict[int, int] = {}
    for node, (kind, way) in enumerate(zip(nodes.kind.tolist(), nodes.direction.tolist(), strict=True)):
        if kind != NodeKind.API or way == Direction.NONE:
            continue
        if way not in groups:
            word = "forward" if way == Direction.FORWARD else "backward"
            groups[way] = outline.add(word if word not in outline.table else f"{word}#")
        outline.parent[node] = groups[way]
