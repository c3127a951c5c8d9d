"""Runs of which one keeps keys and values at their full length from the first pass on and hides what is not filled yet (a static
cache), while the other holds those so far.

Known from shapes: what calls with a weight take and make has one shape on both sides; keys, scores and masks are longer on one
side, always up to the same length, while those of the other side grow from pass to pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Bool, Direction, Int64, Kind, NodeKind, RankDump, Role
from dumpscope.match.amounts.data import EXPLAINED, shapes_of, whole_numbers
from dumpscope.match.forms import is_added

_LENGTHS: Final = 2
"""Full lengths in one run at most: layers that see a part of the text only keep less."""
WEIGHTED: Final = frozenset({
    "addmm", "conv1d", "conv2d", "conv3d", "linear", "layer_norm", "rms_norm", "Linear", "Conv1D", "Conv1d", "Conv2d", "Conv3d",
    "LayerNorm", "RMSNorm",
})  # fmt: skip
"""Calls that apply weights to activations: of these no tensor is kept between passes."""
_TAKEN: Final = (Role.INPUT, Role.KWARG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """larger: "target" or "golden", which keeps the full length; length: that length
    rows: item pairs whose shapes differ for that reason; dimension: of each, the one that is longer
    """

    larger: str
    length: int
    rows: Int64
    dimension: Int64


def find_kept(target: RankDump, golden: RankDump, context: Context) -> Kept | None:
    """The side that keeps its cache at full length; None where none does, or shapes differ for another reason."""
    if not len(target.items) or not context.shape_differs.any():
        return None
    forward = (target.nodes.direction[target.items.node[context.target]] == Direction.FORWARD) & (context.target >= 0)
    tensor = context.shape_differs & (context.kind == Kind.TENSOR) & ~context.kind_differs & ~context.unread
    rows = np.flatnonzero(tensor & forward)
    if len(rows) < 2:
        return None
    found: dict[str, list[tuple[int, int, int, int]]] = {"target": [], "golden": []}
    attends = np.array([api == "scaled_dot_product_attention" for api in context.apis] + [False])[context.api]
    for row in rows.tolist():
        shapes = shapes_of(target, golden, context, row)
        apart = [place for place, sizes in enumerate(zip(*shapes, strict=False)) if sizes[0] != sizes[1]]
        heads = attends[context.pair[row]] and apart == [len(shapes[0]) - 3]  # repeated for grouped queries
        if len(shapes[0]) == len(shapes[1]) and len(apart) == 1 and not heads:
            sizes = shapes[0][apart[0]], shapes[1][apart[0]]
            found["target" if sizes[0] > sizes[1] else "golden"].append((row, apart[0], max(sizes), min(sizes)))
    larger = max(found, key=lambda side: len(found[side]))
    explained = np.array(found[larger], np.int64).reshape(-1, 4)
    if len(explained) < max(2, EXPLAINED * len(rows)) or not _grows(explained):
        return None
    weighted = np.array([api in WEIGHTED for api in context.apis] + [False])[context.api]
    if weighted[context.pair[explained[:, 0]]].any():
        return None
    made = makes_longer(target, context, explained[:, 0])
    if made[0]:
        return None
    explained = explained[~made]
    lengths, counts = np.unique(explained[:, 2], return_counts=True)
    length = int(lengths[counts.argmax()])
    return Kept(larger=larger, length=length, rows=explained[:, 0], dimension=explained[:, 1])


def _grows(explained: Int64) -> bool:
    """Whether the longer sizes are one or two, and the shorter ones beside each never fall from one call to the next."""
    lengths = np.unique(explained[:, 2])
    if len(lengths) > _LENGTHS:
        return False
    return all((np.diff(explained[explained[:, 2] == length, 3]) >= 0).all() for length in lengths.tolist())


def makes_longer(target: RankDump, context: Context, rows: Int64) -> Bool:
    """By these item pairs: the result of a function that received the same shapes and arguments on both sides: it is at fault."""
    received = np.isin(context.role, _TAKEN)
    taken, other = np.zeros(context.nodes, bool), np.zeros(context.nodes, bool)
    taken[context.pair[received & context.both & (context.kind == Kind.TENSOR)]] = True
    other[context.pair[received & (context.shape_differs | context.kind_differs | ~context.both)]] = True
    function = target.nodes.kind[target.items.node[context.target[rows]]] == NodeKind.API
    pairs = context.pair[rows]
    found: Bool = ~received[rows] & function & taken[pairs] & ~other[pairs]
    return found


def find_kept_masks(target: RankDump, golden: RankDump, context: Context, facts: Facts, kept: Kept) -> Int64:
    """Item pairs that hold a mask over the full length beside None, or beside no argument: the other side sees all it holds."""
    lonely = Outcome.TARGET_ONLY if kept.larger == "target" else Outcome.GOLDEN_ONLY
    rows = np.flatnonzero(np.isin(context.role, _TAKEN) & np.isin(facts.outcome, (Outcome.KIND, lonely)))
    dump, items = (target, context.target) if kept.larger == "target" else (golden, context.golden)
    own = dump.items
    dtypes = context.t_dtype if kept.larger == "target" else context.g_dtype
    masks = is_added(context, golden=kept.larger == "golden")
    masks |= np.array([name == "torch.bool" for name in context.dtypes] + [False])[dtypes]
    found = [
        row
        for row, item in zip(rows.tolist(), items[rows].tolist(), strict=True)
        if own.kind[item] == Kind.TENSOR and own.shape[item] >= 0
        and own.shapes[own.shape[item]][-1:] == (kept.length,) and (masks[row] or "mask" in own.paths[own.path[item]])
    ]  # fmt: skip
    return np.array(found, np.int64)


def find_kept_sizes(target: RankDump, golden: RankDump, context: Context, facts: Facts, kept: Kept) -> Int64:
    """Arguments that are the length of what is kept, or a shape with it."""
    rows = np.flatnonzero((facts.outcome == Outcome.SCALAR) & (facts.equal == 0) & (context.role != Role.OUTPUT))
    found = []
    for row in rows.tolist():
        values = [
            whole_numbers(dump, int(items[row])) for dump, items in ((target, context.target), (golden, context.golden))
        ]
        full, other = values if kept.larger == "target" else values[::-1]
        if full and len(full) == len(other) and all(
            one == two or one == kept.length > two for one, two in zip(full, other, strict=True)
        ):  # fmt: skip
            found.append(row)
    return np.array(found, np.int64)
