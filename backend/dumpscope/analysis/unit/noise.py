"""How large the rounding noise of a pair of runs is, and from which score on a value counts as different."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dumpscope.analysis.unit.left_over import ROUNDING
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, Outcome
from dumpscope.domain.picking import PLACES
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int64, Kind, NodeKind, RankDump, Role, State
from dumpscope.domain.stored_counts import list_other_counts
from dumpscope.match.operators.operations import operation
from dumpscope.metrics.steps import BY_ELEMENT, CASTS, DIVIDED, STEPS
from dumpscope.verdict.rules import CODES
from dumpscope.verdict.score import MAX, MEAN, MIN, is_exact_kind

QUIET: Final = 0.02
"""Threshold, in floors, where the runs are bit-equal up to the first difference: there any visible error is a finding."""
ROUNDED: Final = 0.25
"""Largest score, in floors, that rounding makes of the statistics of 16-bit numbers: every element was rounded once more, or the
largest one the other way (a unit in its last place is a quarter of the peak floor)."""
OTHER_WAY: Final = 0.6
"""The same for tensors, of which every element may be rounded the other way (a unit in the last place of a bfloat16 is 0.57
floors, on average), and for statistics of so few elements that they show nearly as much."""
FEW: Final = 64
TRAIL: Final = 8
"""So many rounding calls that differ by no more than QUIET, before the first that does, are rounding noise of their own."""
COMMON: Final = 0.1
"""Share of tensors in another shape from which on runs count as written in other shapes."""
WIDE: Final = 0x1FFF
"""Bits of a float32 that neither bfloat16 nor float16 has."""
COARSE: Final = 2e-3
"""Bulk floors from here on are those of 16-bit numbers, and of what is computed from them."""
JUMP: Final = 3.0
"""Healthy noisy runs grew by at most 2.65 from one call to the next on held-out pairs (kinks apart)."""
FARTHER: Final = 10.0
"""The same behind weights that differ by more than rounding (an optimizer makes that of gradients that are pure rounding): what
is computed there is of other numbers."""
QUIET_NODES: Final = 2
"""Rounding calls whose outputs must be equal before the first difference for a pair of runs to count as quiet."""
MOVES: Final = frozenset(
    {
        "arange", "as_strided", "broadcast_to", "cat", "chunk", "clone", "concat", "contiguous", "detach", "empty",
        "empty_like", "expand", "expand_as", "eye", "flatten", "flip", "float", "full", "full_like", "half", "bfloat16",
        "index_select", "movedim", "narrow", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "ones",
        "ones_like", "permute", "repeat", "reshape", "select", "split", "squeeze", "stack", "swapaxes", "t", "tile", "to",
        "transpose", "tril", "triu", "type", "type_as", "unbind", "unflatten", "unsqueeze", "view", "view_as", "zeros",
        "zeros_like", "__getitem__", "__setitem__", "copy_",
    }
)  # fmt: skip
REPRODUCIBLE: Final = MOVES | {
    "__add__", "__iadd__", "__imul__", "__isub__", "__mul__", "__neg__", "__radd__", "__rmul__", "__rsub__",
    "__sub__", "__truediv__", "abs", "add", "add_", "clamp", "div", "dropout", "embedding", "gather", "hardtanh",
    "leaky_relu", "masked_fill", "masked_fill_", "max", "max_pool1d", "max_pool2d", "max_pool3d", "maximum", "min",
    "minimum", "mul", "mul_", "neg", "pad", "relu", "relu6", "relu_", "sort", "sub", "sub_", "threshold", "topk",
    "where", "Dropout", "Embedding", "Flatten", "Identity", "LeakyReLU", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "ReLU", "ReLU6",
}  # fmt: skip
"""Calls that give the same bits on any hardware (they copy, select, or round once): their equality proves nothing."""
WEAK: Final = 6
"""Calls known equal only by 16-bit statistics that weigh as much as one known equal by its bits."""
KINKED: Final = frozenset(
    {
        "relu", "relu_", "relu6", "leaky_relu", "threshold", "hardtanh", "hardswish", "hardsigmoid", "clamp",
        "clip", "abs", "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
        "maximum", "minimum", "max", "min", "topk", "sort", "where", "ReLU", "ReLU6", "LeakyReLU", "MaxPool1d",
        "MaxPool2d", "MaxPool3d", "Hardtanh", "Hardswish", "l1_loss", "hinge_embedding_loss", "margin_ranking_loss",
        "multi_margin_loss", "triplet_margin_loss", "hardshrink", "softshrink", "prelu", "rrelu", "L1Loss", "PReLU",
    }
)  # fmt: skip
"""Calls whose derivative jumps."""
FLIPPED: Final = 0.1
"""Elements that noise must move over a jump, at least, as far as may be expected."""
NEAR: Final = 32.0
"""Elements that differ by no more than so many roundings are equal but for rounding."""
ROUNDED_UP: Final = frozenset({*BY_ELEMENT, *DIVIDED, *CASTS}) - {"sign", "sgn", "signbit"}
"""Functions that jump at whole numbers, or half-way between them."""
LOUD: Final = 8.0
"""Threshold where the two runs use different dtypes: rounding grows along the net, so only a large step is a finding."""


def find_thresholds(
    context: Context,
    worst: Float64,
    weights: Float64,
    own_in: Float64,
    bent: Bool,
    backward: Bool,
    bulk: float,
) -> Float64:
    """By node, the score above which a value of a noisy pair counts as different.

    What came before shows how large noise is: a difference counts from JUMP times the largest score before it. A forward call
    owes nothing to a backward pass before it (of another micro-batch), so only forward calls show how large its noise may be.
    worst: largest score of a node, without weights that an optimizer may have made different; weights: the largest of these.
        What they explain counts as noise
    bent: `may_bend`
    """
    base = least_threshold(context)
    forward = ~backward & (np.arange(len(worst)) < context.end)
    known = np.where(np.isfinite(worst), worst, 0.0)
    before_forward = _running_maximum(np.where(forward, known, 0.0))
    if backward.any():
        bends = np.flatnonzero(backward & bent).tolist()
        first = max(0, (bends[0] if bends else int(np.argmax(backward))) - 1)  # what bends may differ itself
        known[first] = max(known[first], _kink_level(own_in, bent, backward, bulk))
    before = _running_maximum(known)
    with np.errstate(invalid="ignore"):
        unexplained = np.where(JUMP * weights > worst, np.nan, worst)
        wrong = np.flatnonzero(
            unexplained > np.maximum(base, JUMP * np.where(forward, before_forward[:-1], before[:-1]))
        )
    at = int(wrong[0]) if len(wrong) else len(worst)
    found: Float64 = np.maximum(base, JUMP * np.where(forward, before_forward[at], before[at]))
    return found


def find_growth(context: Context, weights: Float64) -> Float64:
    """By node, how many times larger one call may make an error of a noisy pair. weights: as in find_thresholds"""
    return np.where(_running_maximum(np.nan_to_num(weights))[1:] > least_threshold(context), FARTHER, JUMP)


def least_threshold(context: Context) -> float:
    """The least score above which a value of a noisy pair counts as different."""
    return LOUD if have_other_dtypes(context) else 1.0


def have_other_dtypes(context: Context) -> bool:
    """The two runs computed in different dtypes."""
    tensors = (context.t_dtype >= 0) & (context.g_dtype >= 0) & (context.pair < context.end)
    return bool(tensors.any() and (context.t_dtype != context.g_dtype)[tensors].mean() > 0.25)


def have_other_shapes(context: Context) -> bool:
    """One run holds dimensions as one that the other has apart, or lacks some of size 1: kernels add in another order there."""
    tensors = (context.t_dtype >= 0) & (context.g_dtype >= 0) & (context.pair < context.end)
    return bool(tensors.any() and context.reshaped[tensors].mean() >= COMMON)


def _running_maximum(known: Float64) -> Float64:
    """Largest value before each place, and before the end."""
    level: Float64 = np.maximum.accumulate(np.concatenate([[0.0], known]))
    return level


def is_quiet(
    context: Context,
    facts: Facts,
    score: Float64,
    worst: Float64,
    labels: list[str],
    kind: Int8,
    backward: Bool,
    bulk: float,
) -> bool:
    """Enough rounding calls gave equal bits before the first difference. Equal statistics of a 16-bit dtype are weak evidence.

    A first difference of no more than another rounding to 16 bits is none: some kernels of an otherwise bit-equal pair may
    add in another order; but a call that takes equal numbers of 32 bits and puts out such numbers rounds nothing to 16 bits,
    whatever the rest of the run computes in. Nor is a pair quiet in which call after call differs by the rounding of its last
    bits.
    """
    tensors = facts.outcome == Outcome.COMPARED
    first = np.flatnonzero(worst > 0)
    before = int(first[0]) if len(first) else len(worst)
    faint = np.flatnonzero(worst > QUIET)
    fine = np.array(
        [name in ("torch.float32", "torch.float64", "torch.complex64") for name in context.dtypes] + [False]
    )
    both_fine = fine[context.t_dtype] & fine[context.g_dtype]
    own = len(faint) > 0 and kind[faint[0]] == NodeKind.API and not backward[faint[0]]
    own = own and _rounds_finely(context, facts, both_fine, int(faint[0]))
    if bulk >= COARSE and len(faint) and not own:  # a parameter's gradient is a long sum of such numbers
        rows = (context.pair == faint[0]) & (score > QUIET)
        most = np.where((facts.unequal >= 0) | (context.elements <= FEW), OTHER_WAY, ROUNDED)
        if (score[rows] <= (1.0 if kind[faint[0]] == NodeKind.GRADIENT else most[rows])).all():
            return False
    rounding = np.array([label.rpartition(".")[2] not in REPRODUCIBLE for label in labels], bool)
    rounding &= (kind == NodeKind.API) | (kind == NodeKind.MODULE)
    if (rounding & (worst > 0))[: faint[0] if len(faint) else len(worst)].sum() >= TRAIL:
        return False
    strong = (facts.unequal == 0) | both_fine | _has_fine_digits(context)
    outputs = tensors & (context.role == Role.OUTPUT) & (facts.equal == 1) & ~is_exact_kind(context)
    weight: dict[int, int] = {}
    for pair, sure in zip(context.pair[outputs].tolist(), strong[outputs].tolist(), strict=True):
        if pair >= before:
            break
        if rounding[pair]:
            weight[pair] = WEAK if sure else 1
            if sum(weight.values()) >= QUIET_NODES * WEAK:
                return True
    return False


def _rounds_finely(context: Context, facts: Facts, fine: Bool, pair: int) -> bool:
    """A call received equal tensors, and all that it received and made are tensors of fine dtypes, integers apart."""
    rows = np.flatnonzero((context.pair == pair) & context.both & (context.kind == Kind.TENSOR) & ~context.unread)
    made = context.role[rows] == Role.OUTPUT
    exact = is_exact_kind(context, rows)
    return bool((~made & ~exact).any() and (fine[rows] | exact).all() and (facts.equal[rows[~made]] == 1).all())


def _has_fine_digits(context: Context) -> Bool:
    """By item pair: a mean or norm has more digits than a 16-bit number; where these agree, so do the elements."""
    both = np.stack([context.t_stats[:, MEAN:], context.g_stats[:, MEAN:]])
    finite = (context.t_state[:, MEAN:] == State.FINITE) & (context.g_state[:, MEAN:] == State.FINITE)
    with np.errstate(over="ignore", invalid="ignore"):
        bits = np.ascontiguousarray(both.astype(np.float32)).view(np.uint32)
    found: Bool = (((bits & WIDE) != 0).all(axis=0) & finite).any(axis=1)
    return found


def may_bend(labels: list[str], kind: Int8) -> Bool:
    """By node: its derivative jumps; where modules alone were recorded, that of any code between them may."""
    if not (kind == NodeKind.API).any():
        return np.ones(len(labels), bool)
    return np.array([label.rpartition(".")[2] in KINKED for label in labels], bool)


def find_flips(
    context: Context, facts: Facts, score: Float64, names: list[str], bent: Bool, direction: Int8, bulk: float
) -> Float64:
    """By item pair the factor of its score that leaves the distance of all elements and takes away that of the single largest,
    for what backward passes make behind calls whose derivative jumps (ReLU, pooling), where noise moves elements over the jump;
    1 elsewhere.

    An error of a part e of the inputs moves about e of the elements, each of them by as much as the gradient holds there: no
    floor for the largest difference allows that, and the distance does.
    score: by item pair, not yet lowered; names, bent (`may_bend`), direction: by node pair; bulk: the floor of distances
    """
    share = np.ones(len(context))
    received = (context.kind == Kind.TENSOR) & np.isin(context.role, (Role.INPUT, Role.KWARG))
    with np.errstate(invalid="ignore"):
        noisy = (score > 0) & (score <= JUMP) & (score * bulk * context.elements >= FLIPPED)
    bends = np.unique(context.pair[noisy & received & (bent & (direction == Direction.FORWARD))[context.pair]])
    flipped = {names[pair].replace("forward", "backward") for pair in bends.tolist()}
    begin = next((pair for pair, name in enumerate(names) if name in flipped), None)
    if begin is None:
        return share
    # Not the forward calls of another micro-batch or of a recomputation: what they make is no derivative.
    behind = (direction == Direction.BACKWARD)[context.pair] | (context.role == Role.GRADIENT)
    behind = (behind & (context.pair >= begin)) | (context.pair >= context.end)
    with np.errstate(all="ignore"):
        lower = np.where(np.isfinite(score), facts.metric("rel_l2") / bulk / score, np.nan)
        return np.where(behind & (score > 0) & np.isfinite(lower), np.minimum(lower, 1.0), share)


def find_crossed(
    target: RankDump,
    golden: RankDump,
    context: Context,
    facts: Facts,
    opinions: ItemOpinions,
    labels: list[str],
    kind: Int8,
    direction: Int8,
    bulk: float,
    weight: Bool,
    check: Callable[[int], bool | None],
) -> Bool:
    """By item pair: what a forward call that jumps (`sign`, `floor`, `>`, `%`, a cast, a pick) made of inputs that agree
    and are not equal, where noise explains the elements that stand on the other side of a jump.

    The tensors of the call show that the result of each side follows from its own input (check, by node pair; None where nothing
    is known). Without them no more elements may have crossed than noise of that size moves, unless all elements are equal but for
    rounding, and stand at the jump. Of a pick without tensors nothing is known but that the values that it put out agree.

    weight: weights that an optimizer may have made different; inputs agree up to what these explain
    """
    found, score = np.zeros(len(context), bool), opinions.score
    words = [operation(label) for label in labels]
    known = np.array([word in STEPS or word in PLACES for word in words], bool)
    known &= (kind == NodeKind.API) & (direction == Direction.FORWARD)
    tensor = (context.kind == Kind.TENSOR) & context.both & ~context.unread & known[context.pair]
    received = tensor & np.isin(context.role, (Role.INPUT, Role.KWARG))
    with np.errstate(invalid="ignore"):
        explained = JUMP * score[weight & np.isfinite(score)].max(initial=0.0)
        agrees = received & (~(score > max(least_threshold(context), explained)) | (opinions.rule == CODES["C-1"]))
        made = tensor & (context.role == Role.OUTPUT)
    exact = is_exact_kind(context)
    made &= exact | ~np.array([word in CASTS for word in words], bool)[context.pair]
    apart = np.zeros((2, context.nodes), bool)
    apart[0, context.pair[agrees & ~exact & (facts.equal == 0)]] = True  # differs, by rounding
    apart[1, context.pair[received & ~agrees]] = True
    made &= apart[0, context.pair] & ~apart[1, context.pair]
    with np.errstate(invalid="ignore"):
        wrong = made & ((score > 1) | ((facts.equal == 1) & (facts.unequal < 0)))
    pairs = np.unique(context.pair[wrong])
    first, last = np.searchsorted(context.pair, pairs), np.searchsorted(context.pair, pairs, side="right")
    for pair, begin, end in zip(pairs.tolist(), first.tolist(), last.tolist(), strict=True):
        rows = np.flatnonzero(made[begin:end]) + begin
        given = np.flatnonzero((agrees & ~exact)[begin:end]) + begin
        shown = check(pair) if (score[rows] > 1).any() else None
        if shown is None:
            # Whether what was picked is nearly equal, statistics do not show: such a pick is not judged (`verdict.coverage`).
            if words[pair] in PLACES:
                shown = bool((score[rows] > 1).any() and not (score[rows[~exact[rows]]] > 1).any())
            else:
                shown = _may_cross(target, golden, context, facts, score, given, rows, words[pair], bulk)
        if shown:
            found[rows[exact[rows]] if exact[rows].any() else rows] = True
    return found


def _may_cross(
    target: RankDump,
    golden: RankDump,
    context: Context,
    facts: Facts,
    score: Float64,
    given: Int64,
    made: Int64,
    word: str,
    bulk: float,
) -> bool:
    """Without the tensors of a call that jumps: noise may have moved as many elements over the jump as did.
    given, made: its floating inputs and its results"""
    most = int(np.argmax(context.elements[given]))
    row, count = int(given[most]), float(max(context.elements[given[most]], 1))
    sides = (context.t_stats, context.g_stats)
    if (context.t_state[row] != State.FINITE).any() or (context.g_state[row] != State.FINITE).any():
        return False
    values = np.array([stats[row, [MAX, MIN]] for stats in sides])
    size = float(np.abs(values).max())
    unit = max(ROUNDING.get(context.dtypes[int(code[row])], 0.0) for code in (context.t_dtype, context.g_dtype))
    near = NEAR * unit * size
    if values.max() - values.min() <= near and _stand_at_jump(context, given, values, word, near):
        return _are_beside_jump(context, made, values, word, near)
    noise = float(np.nanmax(score[given])) * bulk * min(np.sqrt(count), JUMP)
    moved = 0.0
    for one in made.tolist():
        stats = [side[one] for side in sides]
        height = (
            float(max(np.abs(side[[MAX, MIN]]).max() for side in stats)) if not is_exact_kind(context)[one] else 1.0
        )
        moved = max(moved, float(score[one] > 1))
        if facts.unequal[one] >= 0:
            moved = max(moved, float(facts.unequal[one]))
            continue
        counted = list_other_counts(target.items, golden.items, int(context.target[one]), int(context.golden[one]))
        moved = max([moved, *(abs(mine - other) for _, mine, other in counted)])
        if np.isfinite(stats[0][MEAN]) and np.isfinite(stats[1][MEAN]) and height > 0:
            moved = max(moved, abs(stats[0][MEAN] - stats[1][MEAN]) * context.elements[one] / height)
    expected = noise * count
    return bool(expected >= FLIPPED and 0 < moved <= max(1.0, JUMP * expected))


def _stand_at_jump(context: Context, given: Int64, values: Float64, word: str, near: float) -> bool:
    """Elements that are all equal but for rounding, and no farther from a jump than that."""
    low, high = values.min() - near, values.max() + near
    if word in ROUNDED_UP:
        return bool(np.ceil(2 * low) <= 2 * high)
    if word in ("sign", "sgn", "signbit"):
        return bool(low <= 0 <= high)
    others = given[1:] if len(given) > 1 else given[:0]
    return all(bool(context.t_stats[row, MIN] <= high and context.t_stats[row, MAX] >= low) for row in others.tolist())


def _are_beside_jump(context: Context, made: Int64, values: Float64, word: str, near: float) -> bool:
    """Results no farther apart than the jump is high, for functions that do not fall."""
    if word not in BY_ELEMENT or word in ("frac", "signbit"):
        return True
    low, high = BY_ELEMENT[word](np.array([values.min() - near, values.max() + near])).tolist()
    both = np.stack([context.t_stats[made][:, [MAX, MIN]], context.g_stats[made][:, [MAX, MIN]]])
    return bool(((both >= low) & (both <= high)).all())


def _kink_level(own_in: Float64, bent: Bool, backward: Bool, bulk: float) -> float:
    """Level that a backward pass may show because its forward had kinks (ReLU, pooling): a relative error e flips the mask
    of about e of the elements, so the gradient differs by about the square root of e."""
    if not bulk:
        return 0.0
    bends = own_in[~backward & np.isfinite(own_in) & (own_in > 0) & bent]
    return float(np.sqrt(bends.max() * bulk) / bulk) if len(bends) else 0.0
