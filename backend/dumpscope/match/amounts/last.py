"""Runs that both take the whole text in each pass, of which one then computes the last position alone (a cache holds keys and
values of those before), and the other computes all of it again.

Known from shapes: words of one shape on both sides; what calls with a weight take and make has all positions on one side and one
on the other, and these become more from pass to pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Bool, Direction, Int32, Int64, Kind, RankDump, Role
from dumpscope.match.amounts.data import EXPLAINED, shapes_of, whole_numbers
from dumpscope.match.amounts.kept import WEIGHTED, makes_longer

_PASSES: Final = 2
"""Lengths of the text at least: a single pass of which one side computes one position is one of another amount of data."""

_HIDES: Final = ("causal", "mask", "cache")
"""Words in the names of arguments by which a call hides positions, or is given those of before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """larger: "target" or "golden", which computes all positions again; lengths: of the text, pass by pass
    rows: item pairs whose shapes differ for that reason; dimension: of each, that of the positions
    """

    larger: str
    lengths: tuple[int, ...]
    rows: Int64
    dimension: Int64


def find_last(target: RankDump, golden: RankDump, context: Context) -> Last | None:
    """The side that computes all positions again; None where none does, or shapes differ for another reason."""
    if not len(target.items) or not context.shape_differs.any():
        return None
    tensor = (context.kind == Kind.TENSOR) & ~context.kind_differs & ~context.unread & (context.target >= 0)
    tensor &= target.nodes.direction[target.items.node[context.target]] == Direction.FORWARD
    rows = np.flatnonzero(tensor & context.shape_differs)
    found: dict[str, list[tuple[int, int, int]]] = {"target": [], "golden": []}
    for row in rows.tolist():
        shapes = shapes_of(target, golden, context, row)
        most = max(map(len, shapes))
        shapes = (1,) * (most - len(shapes[0])) + shapes[0], (1,) * (most - len(shapes[1])) + shapes[1]
        apart = [place for place, sizes in enumerate(zip(*shapes, strict=True)) if sizes[0] != sizes[1]]
        if len(apart) == 1:
            sizes = shapes[0][apart[0]], shapes[1][apart[0]]
            if min(sizes) == 1:
                found["target" if sizes[0] > sizes[1] else "golden"].append((row, apart[0], max(sizes)))
    larger = max(found, key=lambda side: len(found[side]))
    explained = np.array(found[larger], np.int64).reshape(-1, 3)
    lengths = np.unique(explained[:, 2])
    if len(explained) < EXPLAINED * len(rows) or len(lengths) < _PASSES or (np.diff(explained[:, 2]) < 0).any():
        return None
    weighted = np.array([api in WEIGHTED for api in context.apis] + [False])[context.api]
    if not weighted[context.pair[explained[:, 0]]].any() or not _take_texts(target, context, lengths, tensor):
        return None
    made = makes_longer(target, context, explained[:, 0])
    if made[0]:
        return None
    explained = explained[~made]
    return Last(larger=larger, lengths=tuple(lengths.tolist()), rows=explained[:, 0], dimension=explained[:, 1])


def _take_texts(target: RankDump, context: Context, lengths: Int64, tensor: Bool) -> bool:
    """Whether both sides received words of each of these lengths. tensor: item pairs of tensors of the forward pass"""
    words = np.array(["int" in name for name in context.dtypes] + [False])[context.t_dtype]
    items = target.items
    received = tensor & words & ~context.shape_differs & np.isin(context.role, (Role.INPUT, Role.KWARG))
    taken = {size for code in np.unique(items.shape[context.target[received]]) for size in items.shapes[code][1:]}
    return taken.issuperset(lengths.tolist())


def find_last_arguments(target: RankDump, golden: RankDump, context: Context, facts: Facts, last: Last) -> Int64:
    """Arguments that say how much a pass took: the number of positions, or a shape with it; and, of a call that takes these
    positions, what hides some of them or holds others (`is_causal`, a mask, a cache)."""
    given = context.role != Role.OUTPUT
    told = (facts.outcome == Outcome.SCALAR) & (facts.equal == 0)
    form = np.isin(facts.outcome, (Outcome.KIND, Outcome.TARGET_ONLY, Outcome.GOLDEN_ONLY, Outcome.FORM))
    takes = np.zeros(context.nodes, bool)
    takes[context.pair[last.rows]] = True
    own = takes[context.pair] & (_names(target, context.target) | _names(golden, context.golden))
    found = []
    for row in np.flatnonzero(given & (told | (form & own))).tolist():
        values = [
            whole_numbers(dump, int(items[row])) for dump, items in ((target, context.target), (golden, context.golden))
        ]
        many, one = values if last.larger == "target" else values[::-1]
        sized = bool(many) and len(many) == len(one) and all(
            mine == other or (mine in last.lengths and other == 1) for mine, other in zip(many, one, strict=True)
        )  # fmt: skip
        if own[row] or sized:
            found.append(row)
    return np.array(found, np.int64)


def _names(dump: RankDump, items: Int32) -> Bool:
    """Which of these items have a name of what hides positions, or holds them."""
    known = np.array([any(word in path for word in _HIDES) for path in dump.items.paths] + [False])
    found: Bool = known[np.where(items >= 0, dump.items.path[items], -1)] if len(dump.items) else items < -1
    return found
