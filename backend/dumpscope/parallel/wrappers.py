"""Wrappers around a model (data parallel, mixed precision): often only one of two runs has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.domain.records import RankDump
from dumpscope.parallel.columns import keep_nodes
from dumpscope.parallel.evidence import module_paths
from dumpscope_format import naming

_NAME: Final = "module"
"""Names that wrappers of torch and Megatron give to the model inside them."""


def depth(dump: RankDump) -> int:
    """Number of wrappers around all modules."""
    paths = {path for path in module_paths(dump) if path}
    count = 0
    while paths and all(path == _NAME or path.startswith(f"{_NAME}.") for path in paths):
        count += 1
        paths = {path[len(_NAME) + 1 :] for path in paths} - {""}
    return count


def without_wrappers(dump: RankDump, count: int) -> RankDump:
    """The dump without the outermost `count` wrappers: without their names and their own records."""
    if count == 0:
        return dump
    head = f"{_NAME}." * count
    names = [_without_head(name, head) for name in dump.tree.names]
    keep = np.array([name is not None for name in names[: len(dump.nodes)]], bool)
    fresh = [name if name is not None else old for name, old in zip(names, dump.tree.names, strict=True)]
    labels = [label[len(head) :] if label.startswith(head) else label for label in dump.nodes.labels]
    nodes = replace(dump.nodes, names=fresh[: len(dump.nodes)], labels=labels)
    return keep_nodes(replace(dump, nodes=nodes, tree=replace(dump.tree, names=fresh)), keep)


def _without_head(name: str, head: str) -> str | None:
    """The name without `head`; None for the module `head` itself and those around it."""
    parsed = naming.parse(name)
    if parsed.kind not in ("module", "gradient"):
        return name
    if parsed.label.startswith(head) and "." in parsed.label[len(head) :]:
        return naming.build(replace(parsed, label=parsed.label[len(head) :]))
    return None
