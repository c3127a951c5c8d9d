"""Gradients of which only rounding is left: a norm's backward pass, or a loss that was not recorded, took nearly all away."""

from __future__ import annotations

from collections import deque
from typing import Final, cast

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int32, Int64, Kind, NodeKind, Role, State
from dumpscope.verdict.score import MAX, MIN, NORM

NORMS: Final = frozenset(
    {
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
        "LayerNorm", "RMSNorm", "batch_norm", "group_norm", "instance_norm", "layer_norm", "native_batch_norm",
        "native_group_norm", "native_layer_norm", "npu_rms_norm", "rms_norm",
    }
)  # fmt: skip
"""Calls whose backward pass takes away the parts of a gradient along the mean and along the result."""
LEFT: Final = 0.1
"""Share of a gradient that is left, at most, for errors to be measured against the whole."""
ROUNDING: Final = {
    "torch.float64": 2.0**-53,
    "torch.float32": 2.0**-24,
    "torch.float16": 2.0**-11,
    "torch.bfloat16": 2.0**-8,
}
"""What rounding makes of a number, relative to it."""
VANISHED: Final = 0.25
"""Rounding alone is smaller than this part of what rounding makes of the largest gradient of the run, element by element."""
UNLIKE: Final = 0.05
"""Rounding alone differs by this part of its largest element, or by more."""
SUMMED: Final = 1.01
"""A sum is no larger than this times its parts together, by their norms."""
RECENT: Final = 16
"""Gradients that were put out last, of which a gradient of another size may be a part."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


def identify(context: Context) -> Int64:
    """By item pair a number for what both sides stored of it, by which the same tensors are known again. Without statistics none
    is."""
    known = context.memo.get(identify)
    if known is None:
        known = context.memo[identify] = _identify(context)
    return cast("Int64", known)


def _identify(context: Context) -> Int64:
    mixed = context.elements.astype(np.uint64)
    for stats in (context.t_stats, context.g_stats):
        for column in range(stats.shape[1]):
            mixed ^= np.ascontiguousarray(stats[:, column], np.float64).view(np.uint64)
            mixed *= _MIX
            mixed ^= mixed >> np.uint64(29)
    alone = np.ascontiguousarray(context.t_state).view(np.uint32)[:, 0] == 0  # State.ABSENT is 0
    mixed[alone] ^= np.flatnonzero(alone).astype(np.uint64) * _MIX
    found: Int64 = mixed.view(np.int64)
    return found


def find_left_over(context: Context, facts: Facts, names: list[str], kind: Int8, direction: Int8) -> Float64:
    """By item pair: the share that a norm's backward pass left of a gradient, for what it put out, for what holds the same
    numbers later, and for what the backward calls behind it made of these; where only modules were recorded, that of gradients
    that vanish beside the others (`_find_vanished`); 1 elsewhere.

    An error of such a gradient is an error of the whole, of which little is left, so it is as many times larger beside it.
    names, kind, direction: by node pair
    """
    share = np.ones(len(context))
    if not (kind == NodeKind.API).any():
        share = _find_vanished(context, facts, names, kind, direction)
    norms = np.array([api in NORMS for api in context.apis] + [False])[context.api]
    begun = norms & (direction == Direction.BACKWARD)
    rows = np.flatnonzero(norms[context.pair] & (context.kind == Kind.TENSOR))
    pair, received = context.pair[rows], np.isin(context.role[rows], (Role.INPUT, Role.KWARG))
    made = ~received & begun[pair] & (facts.equal[rows] == 0)
    if not made.any():
        return share
    size, elements = _norms(context, rows), context.elements[rows].astype(np.float64)
    taken, most = _fold(context, pair[received], size[received]), _fold(context, pair[received], elements[received])
    put = _fold(context, pair[~received], size[~received])
    forward = {names[one]: one for one in np.flatnonzero(norms & (direction == Direction.FORWARD)).tolist()}
    whole = np.full(context.nodes, np.nan)
    for one in np.unique(pair[made]).tolist():
        call = forward.get(names[one].replace("backward", "forward"), -1)
        if call >= 0 and taken[call] > 0:
            whole[one] = taken[one] * put[call] / taken[call]
    with np.errstate(invalid="ignore"):
        left = made & (size < LEFT * whole[pair]) & (elements == most[pair])
    if left.any():
        share[rows[left]] = size[left] / whole[pair[left]]
        _pass_on(context, share, rows[left], kind, direction)
        _give_parameters(context, share, names, kind, direction)
    return share


def _find_vanished(context: Context, facts: Facts, names: list[str], kind: Int8, direction: Int8) -> Float64:
    """By item pair the size of a gradient beside the largest that arrives at any module, for what arrives at a module from calls
    that were not recorded, for what the module makes of it and for the gradients of its parameters; 1 where that is no rounding.

    A loss that is constant (experts that all take the same share) has no gradient but rounding, which another order of the same
    sums makes anew: it differs by its own size, and nothing that was recorded shows of what it was left.
    """
    share = np.ones(len(context))
    backward = (kind == NodeKind.MODULE) & (direction == Direction.BACKWARD)
    tensor = (context.kind == Kind.TENSOR) & context.both
    rows = np.flatnonzero(tensor & backward[context.pair])
    received = np.isin(context.role[rows], (Role.INPUT, Role.KWARG))
    if not (received & (facts.equal[rows] == 0)).any():
        return share
    size = _norms(context, rows) / np.sqrt(np.maximum(context.elements[rows], 1))
    largest = float(np.nanmax(size[received], initial=0.0))
    unit = np.array([ROUNDING.get(name, 0.0) for name in context.dtypes] + [0.0])[context.t_dtype[rows]]
    codes = identify(context)[rows]
    made = set(codes[~received].tolist())
    with np.errstate(invalid="ignore"):
        tiny = received & (size < VANISHED * unit * largest)
    tiny &= np.array([code not in made for code in codes.tolist()], bool)
    tiny &= _are_unlike(context, facts, rows) | (facts.equal[rows] == 1)
    labels = _modules(names, backward)
    arrives, vanishes = np.zeros(context.nodes, bool), np.zeros(context.nodes, bool)
    arrives[context.pair[rows[received & ~tiny]]] = True
    vanishes[context.pair[rows[tiny]]] = True
    others = {labels[pair] for pair in np.flatnonzero(arrives).tolist()}
    vanished = {labels[pair] for pair in np.flatnonzero(vanishes).tolist()} - others
    if vanished:
        hit = np.array([label in vanished for label in labels], bool) & (backward | (kind == NodeKind.GRADIENT))
        own = np.flatnonzero(hit[context.pair] & tensor)
        share[own] = float(np.nanmax(size[tiny], initial=0.0)) / largest
    return share


def _are_unlike(context: Context, facts: Facts, rows: Int64) -> Bool:
    """Which of these differ by a large part of their own size."""
    ends = [MAX, MIN]
    known = ((context.t_state[rows] == State.FINITE) & (context.g_state[rows] == State.FINITE))[:, ends].all(axis=1)
    t, g = context.t_stats[rows][:, ends], context.g_stats[rows][:, ends]
    with np.errstate(all="ignore"):
        apart = np.abs(t - g).max(axis=1) / np.maximum(np.abs(t), np.abs(g)).max(axis=1)
        found: Bool = (known & (apart > UNLIKE)) | (facts.metric("rel_l2")[rows] > UNLIKE)
    return found


def _pass_on(context: Context, share: Float64, begun: Int64, kind: Int8, direction: Int8) -> None:
    """Give every later backward call that received such a gradient, and the parameters' gradients made of it, its share. Of what
    a norm received of one, it left a share again.

    A gradient that no recorded call made is a sum of what calls before made and no call received: where all of these that are
    small enough to be in it are left over, and no smaller than the sum, it is, too.
    """
    codes = identify(context)
    wanted = ((direction == Direction.BACKWARD) | (kind == NodeKind.GRADIENT))[context.pair]
    given = np.isin(context.role, (Role.INPUT, Role.KWARG))
    # What one side alone received is one of the calls that the other side made as one.
    rows = np.flatnonzero(wanted & (context.kind == Kind.TENSOR) & (context.both | ~given))
    received = given[rows].tolist()
    gradient = (kind[context.pair[rows]] == NodeKind.GRADIENT).tolist()
    outer = ((kind == NodeKind.MODULE) & (kind == NodeKind.API).any())[context.pair[rows]].tolist()
    norms = np.isin(rows, begun).tolist()
    shares = share[rows].tolist()
    waiting = _Waiting()
    last, before, taken = 1.0, -1, -1.0
    columns = context.pair[rows].tolist(), codes[rows].tolist(), context.elements[rows].tolist()
    sizes = np.nan_to_num(_norms(context, rows)).tolist()
    for place, (pair, code, count, norm) in enumerate(zip(*columns, sizes, strict=True)):
        if pair != before:  # `last` stays that of the backward call before, until this one has shown what it received
            before, taken = pair, -1.0
        if gradient[place]:
            here = waiting.left.get(code, last)
        elif received[place]:
            here = waiting.take(code, count, norm)
            last = taken = here if here > taken else taken
        else:
            if taken < 0:
                last = 1.0
            # What a module puts out is a sum of what the calls in it made.
            here = waiting.find(code, count, norm) if outer[place] else waiting.left.get(code, 1.0)
            here = min(here, last * shares[place] if norms[place] else min(last, shares[place]))
            waiting.put_out(code, count, norm, here)
        shares[place] = min(shares[place], here)
    share[rows] = shares


class _Waiting:
    """Gradients that calls put out, for those that no recorded call made: sums and parts of these.

    left: the share of those that are left over, by their numbers; small: by elements the largest share, and all norms of these
    whole: by elements, of the others that no call received yet, the norms by their numbers
    recent: share, norm and elements of the last that were put out
    """

    def __init__(self) -> None:
        self.left: dict[int, float] = {}
        self.small: dict[int, tuple[float, float]] = {}
        self.whole: dict[int, dict[int, float]] = {}
        self.recent: deque[tuple[float, float, int]] = deque(maxlen=RECENT)

    def put_out(self, code: int, count: int, norm: float, share: float) -> None:
        self.recent.append((min(share, self.left.get(code, 1.0)), norm, count))
        if code in self.left or share < 1:
            self.left.setdefault(code, share)
            most, total = self.small.get(count, (0.0, 0.0))
            self.small[count] = max(most, self.left[code]), total + norm
        else:
            self.whole.setdefault(count, {})[code] = norm

    def take(self, code: int, count: int, norm: float) -> float:
        """The share of a gradient that a call receives."""
        share = self.find(code, count, norm)
        self.whole.get(count, {}).pop(code, None)
        return share

    def find(self, code: int, count: int, norm: float) -> float:
        """The share of a gradient: what is known of it, of the sum, or of that of which it is a part."""
        if code in self.left:
            return self.left[code]
        waiting = self.whole.get(count, {})
        most, total = self.small.get(count, (1.0, 0.0))
        if code in waiting or min(waiting.values(), default=np.inf) <= norm + total:
            return 1.0
        if norm <= SUMMED * total:
            return most
        # A part of what came last, or a sum over one of its dimensions.
        parts = [
            one for one, all_of, more in self.recent if more > count and norm <= SUMMED * all_of * np.sqrt(more / count)
        ]
        return max(parts, default=1.0)


def _give_parameters(context: Context, share: Float64, names: list[str], kind: Int8, direction: Int8) -> None:
    """Give gradients of parameters, recorded before the backward pass of their module, the share of what arrives there."""
    backward = (kind == NodeKind.MODULE) & (direction == Direction.BACKWARD)
    labels = _modules(names, backward)
    taken = np.flatnonzero(backward[context.pair] & np.isin(context.role, (Role.INPUT, Role.KWARG)))
    arriving: dict[str, float] = {}
    for pair, here in zip(context.pair[taken].tolist(), share[taken].tolist(), strict=True):
        arriving[labels[pair]] = max(arriving.get(labels[pair], 0.0), here)
    rows = np.flatnonzero((kind == NodeKind.GRADIENT)[context.pair] & (context.kind == Kind.TENSOR))
    share[rows] = np.minimum(share[rows], [arriving.get(labels[pair], 1.0) for pair in context.pair[rows].tolist()])


def _modules(names: list[str], backward: Bool) -> list[str]:
    """By node the module whose backward pass or whose parameters' gradients it holds. backward: by node"""
    return [
        name.rpartition(".backward" if back else ".parameters_grad")[0]
        for name, back in zip(names, backward, strict=True)
    ]


def _fold(context: Context, pair: Int32, size: Float64) -> Float64:
    """By node pair the largest; nan where there is none."""
    out = np.full(context.nodes, np.nan)
    np.fmax.at(out, pair, size)
    return out


def _norms(context: Context, rows: Int64) -> Float64:
    """The larger norm of the two sides, nan where none is stored."""
    sides = [
        np.where(state[rows, NORM] == State.FINITE, np.abs(stats[rows, NORM]), np.nan)
        for stats, state in ((context.t_stats, context.t_state), (context.g_stats, context.g_state))
    ]
    size: Float64 = np.fmax(*sides)
    return size
