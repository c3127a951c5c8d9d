"""The module tree of a dump or of a comparison: children of a row, the path to a node, and the rows beside the path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from fastapi import Response

from dumpscope.api.models.trees import TreePath, TreeRow
from dumpscope.api.replies import decode_cursor, levels_reply, page_reply, reply
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dumps.catalogue import StoredRank
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import END, Page
from dumpscope.index.trees.tree_levels import Levels, comparison_levels, dump_levels
from dumpscope.index.trees.trees import (
    TreeRow as StoredRow,
    comparison_reveal,
    comparison_tree,
    dump_reveal,
    dump_tree,
)

Owner_contra = TypeVar("Owner_contra", contravariant=True)
Of = TypeVar("Of")


class _Children(Protocol[Owner_contra]):
    def __call__(
        self,
        database: Database,
        owner: Owner_contra,
        /,
        *,
        parent: int | None,
        seek: Any,
        around: int | None,
        limit: int,
    ) -> Page[StoredRow]: ...


class _Levels(Protocol[Owner_contra]):
    def __call__(self, database: Database, owner: Owner_contra, name: str, /, *, first: int) -> Levels: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(Generic[Of]):
    """The functions of the index that read the tree of a rank of a dump, or of a unit of a comparison."""

    children: _Children[Of]
    way: Callable[[Database, Of, str], list[int]]
    levels: _Levels[Of]


DUMP_TREE: Final[Tree[StoredRank]] = Tree(children=dump_tree, way=dump_reveal, levels=dump_levels)
COMPARISON_TREE: Final[Tree[StoredUnit]] = Tree(
    children=comparison_tree, way=comparison_reveal, levels=comparison_levels
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePart:
    """The part of a tree that a request asks for: see the parameters of the same names in `api.parameters`"""

    parent: int | None
    reveal: str | None
    around: int | None
    end: bool
    cursor: str | None
    limit: int


def tree_reply(tree: Tree[Of], database: Database, owner: Of, asked: TreePart) -> Response:
    """Children of a row, or with `reveal` the entries on the path to a node."""
    if asked.reveal is not None:
        return reply(TreePath(path=tree.way(database, owner, asked.reveal)))
    seek = END if asked.end and asked.cursor is None else decode_cursor(asked.cursor)[0]
    page = tree.children(database, owner, parent=asked.parent, seek=seek, around=asked.around, limit=asked.limit)
    return page_reply(page, TreeRow.model_validate, walkable=True)


def tree_levels_reply(tree: Tree[Of], database: Database, owner: Of, name: str, *, first: int) -> Response:
    """The path to a node from the top, level by level, each with the neighbouring rows."""
    return levels_reply(tree.levels(database, owner, name, first=first), TreeRow.model_validate)
