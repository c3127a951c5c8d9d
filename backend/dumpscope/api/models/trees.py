"""Models of a module tree: its rows, the path to a node, and the rows beside the path."""

from __future__ import annotations

from typing import Literal

from dumpscope.api.models.base import Page, Real, VerdictWord, Wire


class TreeCounts(Wire):
    no: int
    warning: int
    yes: int
    na: int
    origin: int


class TreeRow(Wire):
    """`nodes`: dumped nodes (node pairs) of the subtree; `match`, `confidence`, `leftover`, `out_score`: as in `NodeRow`,
    null if nothing was dumped. A dump's tree has neither verdict nor match, score or counts."""

    entry: int
    name: str
    address: str
    label: str
    parent: int | None
    order: int
    kind: Literal["module", "api", "gradient", "debug", "other", "virtual"]
    direction: Literal["forward", "backward", "none"]
    children: int
    nodes: int
    verdict: VerdictWord | None
    cls: str | None
    match: str | None
    confidence: float | None
    leftover: str | None
    out_score: Real
    counts: TreeCounts | None


class TreePath(Wire):
    path: list[int]


class TreeLevel(Page[TreeRow]):
    """Children of `parent` (null: the top) around the one on the path."""

    parent: int | None


class TreeLevels(Wire):
    """`depth`: levels of the whole path; `next`: value of `from` for the next request, null if the path is complete."""

    levels: list[TreeLevel]
    depth: int
    next: int | None
