"""The terms of results that are sums, forward and backward: their size, beside which an error of the sum counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from dumpscope.analysis.unit.left_over import identify
from dumpscope.analysis.unit.noise import JUMP
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int32, Int64, Items, Kind, NodeKind, Role, State
from dumpscope.match.operators.operations import operation
from dumpscope.verdict.score import MAX, MEAN, MIN, NORM, is_exact_kind

_WRITTEN_MEANS: Final = ("written.input.1", "written.running_mean", "written.buffers.running_mean")
_SUM, _MEAN, _DIFFERENCE, _PRODUCT, _ADDED_PRODUCT = range(1, 6)
_SUMS: Final = {
    **dict.fromkeys(("sum", "nansum", "sum_to_size", "trace"), _SUM),
    **dict.fromkeys(("mean", "nanmean", "avg_pool1d", "avg_pool2d", "avg_pool3d"), _MEAN),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"), _MEAN),
    **dict.fromkeys(("add", "sub"), _DIFFERENCE),
    **dict.fromkeys(("matmul", "linear", "dot", "vdot", "inner", "mv", "einsum", "tensordot"), _PRODUCT),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _PRODUCT),
    **dict.fromkeys(("addmm", "addmv", "baddbmm"), _ADDED_PRODUCT),
}
"""Operations whose result is a sum of products, of operands or of elements."""
_REPEATS: Final = frozenset({"add", "sub", "expand", "expand_as", "broadcast_to"})
"""Operations that repeat an operand along its dimensions of size 1 and do not multiply it."""
_NORMS: Final = frozenset(
    {
        "layer_norm", "batch_norm", "group_norm", "instance_norm", "LayerNorm", "BatchNorm1d", "BatchNorm2d",
        "BatchNorm3d", "SyncBatchNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    }
)  # fmt: skip
"""Calls that take the mean away and divide by the deviation."""
_OVER_ROWS: Final = frozenset({"batch_norm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"})
_OVER_FEATURES: Final = frozenset({"layer_norm", "LayerNorm"})
"""Those that take the mean of all rows for each element of the weight, and those that take it of all elements of the weight."""
_ROOTS: Final = frozenset({"rms_norm", "RMSNorm"})
"""Those that divide by the size alone."""
_SHARES: Final = frozenset({"softmax", "Softmax"})
_EPSILON: Final = 1e-5
"""What torch's norms add to the variance, where nothing else is asked for."""
_THIRD_POWER: Final = 3.0
"""Of two values the gradient falls with the third power of their distance: it has the relative error of that three times."""
_AS_LARGE: Final = 0.01
"""What rounding to 16 bits may add to the largest element of a result."""
CANCELS: Final = 30.0
"""How many times the result the terms of a forward call are, at least. Where they are fewer, noise stays below its floor, and
what is estimated of the terms may be off by as much. The terms of a difference are known: there JUMP times count."""
_ATTENTION: Final = "attention"
"""Part of the names of fused calls of attention."""
_PARTS: Final = 16
"""Gradients of a size that wait for the sum they are part of, at most."""
_CLOSE: Final = 1e-6
"""Relative difference of two norms that their own rounding makes."""
_HIDES: Final = -1e4
"""What an additive mask adds to hide an element is no larger than this."""
_ACCUMULATED: Final = ("torch.float32", "torch.float64", "Float32", "Float64")
"""Dtypes that are summed in their own precision; the sums of shorter ones are rounded once."""


def score_against_terms(
    context: Context,
    score: Float64,
    kind: Int8,
    direction: Int8,
    names: list[str],
    label: Int64,
    flat: Bool,
    mean: Bool,
    read: Bool,
) -> Float64:
    """Scores, by item pair, with those of sums measured against their terms where these are larger than the sum.

    A sum is a vector that a backward call computes from a gradient with more elements (as for a bias): its terms have the norm
    of the gradient that arrives. So is a parameter's gradient: its terms have the norm of what arrives at its module, times the
    largest input of the module's forward for a parameter of more than one dimension. A running mean that a norm writes is the
    mean of what the norm takes. The result of a forward call may be a sum, too: see `_terms_of_results`. So may what a norm or a
    softmax makes, forward and backward: see `_terms_of_norms`.

    kind, direction, names, label: by node pair; nodes with the same label are one API or module
    flat: by item pair, at most one dimension; mean: by item pair, such a running mean; read: by item pair, tensors were compared
    """
    norm = largest_magnitude(context, [NORM])
    peak = largest_magnitude(context, [MAX, MIN])
    backward, forward = direction == Direction.BACKWARD, direction == Direction.FORWARD
    module, gradient = kind == NodeKind.MODULE, kind == NodeKind.GRADIENT
    received = ((context.role == Role.INPUT) | (context.role == Role.KWARG)) & (context.kind == Kind.TENSOR)
    arriving = _fold_largest(context, norm, received & backward[context.pair])
    count = _fold_largest(context, context.elements.astype(np.float64), received & backward[context.pair])
    entering = _fold_largest(context, peak, received & forward[context.pair])
    factor = np.where(flat, 1.0, np.nan_to_num(_share_largest(label, entering, module), nan=1.0)[context.pair])
    of_module = _share_largest(label, arriving, module)[context.pair] * factor
    sums = (context.role == Role.OUTPUT) & backward[context.pair] & flat & (context.elements < count[context.pair])
    terms = np.where(gradient[context.pair], of_module, np.where(sums, arriving[context.pair], np.nan))
    if mean.any():
        taken = received & forward[context.pair]
        whole = _fold_largest(context, norm, taken)[context.pair]
        length = _fold_largest(context, context.elements.astype(np.float64), taken)[context.pair]
        terms = np.where(mean, whole * np.sqrt(np.maximum(context.elements, 0) / np.maximum(length, 1)), terms)
    terms = np.fmax(terms, _terms_of_results(context, norm, score, forward & (kind == NodeKind.API)))
    terms = np.fmax(terms, _terms_of_norms(context, norm, score, read, kind, direction, names))
    with np.errstate(invalid="ignore", divide="ignore"):
        cancels = np.isfinite(score) & (terms > norm)
        measured: Float64 = np.where(cancels, score * norm / terms, score)
    return _as_put_out(context, measured, np.flatnonzero(sums & cancels), np.flatnonzero(gradient[context.pair]))


def _as_put_out(context: Context, score: Float64, sums: Int64, gradients: Int64) -> Float64:
    """The scores with those of parameters' gradients no higher than that of the sum of a backward call that holds the same
    numbers: where a function alone takes the parameter, nothing is known of what arrives at its module."""
    if not len(sums) or not len(gradients):
        return score
    codes = identify(context)
    order = np.argsort(codes[sums], kind="stable")
    known, first = np.unique(codes[sums][order], return_index=True)
    lowest = np.minimum.reduceat(score[sums][order], first)
    place = np.minimum(np.searchsorted(known, codes[gradients]), len(known) - 1)
    same = known[place] == codes[gradients]
    found: Float64 = score.copy()
    found[gradients[same]] = np.fmin(score[gradients[same]], lowest[place[same]])
    return found


def _terms_of_results(context: Context, norm: Float64, score: Float64, called: Bool) -> Float64:
    """By item pair the norm of the terms that a forward call sums for its result, nan for other items.

    The terms of a sum are the elements that are summed, those of a difference the operands, those of a product of matrices the
    products of elements, about as many as the sizes of the operands and the result say. Equal operands have one difference, and
    a sum that is rounded once is measured against itself: there, nothing but a fault makes results differ.

    called: by node pair, the forward call of an API
    """
    words = np.array([*(_SUMS.get(operation(name), 0) for name in context.apis), 0], np.int8)
    word = np.where(called, words[context.api], 0)
    found = np.full(len(context), np.nan)
    tensor = context.kind == Kind.TENSOR
    taken = tensor & ((context.role == Role.INPUT) | (context.role == Role.KWARG)) & (word[context.pair] > 0)
    made = np.flatnonzero(tensor & (context.role == Role.OUTPUT) & (word[context.pair] > 0) & (context.elements > 0))
    if not len(made) or not taken.any():
        return found
    pair = context.pair[made]
    elements = context.elements.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = norm / np.sqrt(elements)
        total = _fold_largest(context, norm, taken)[pair]
        count = _fold_largest(context, elements, taken)[pair]
        operand = _fold_largest(context, spread, taken)[pair] * np.sqrt(elements[made])
        product = _sizes_of_products(context, spread, elements, np.flatnonzero(taken), word == _ADDED_PRODUCT)
        pairs, sizes = product[0][pair], product[1][pair]
        matrix = pairs * np.sqrt(np.sqrt(sizes / elements[made])) * np.sqrt(elements[made])
        differ = _fold_largest(context, score, taken)[pair] > 0
    one = np.isin(context.t_dtype[made], [code for code, name in enumerate(context.dtypes) if name in _ACCUMULATED])
    fewer = elements[made] < count
    kinds = word[pair]
    rounded = differ | one
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = np.select(
            [
                (kinds == _SUM) & fewer & rounded, (kinds == _MEAN) & fewer & rounded, (kinds == _DIFFERENCE) & differ,
                (kinds >= _PRODUCT) & rounded,
            ],
            [total, total * elements[made] / count, operand, matrix],
            np.nan,
        )  # fmt: skip
        least = np.where(kinds == _DIFFERENCE, JUMP, CANCELS)
        found[made] = np.where(terms > least * norm[made], terms, np.nan)
    return found


def terms_of_reduced(context: Context, norm: Float64, kind: Int8, direction: Int8, names: list[str]) -> Float64:
    """By item pair the norm of the terms of a gradient that is summed over dimensions in which its argument was repeated, as for
    the mean that a norm written by hand takes away; nan for other items. The gradient of the factor of a product has the
    elements of the other factor in its terms."""
    found = np.full(len(context), np.nan)
    words = [operation(name) for name in context.apis]
    repeats = np.array([*(word in _REPEATS for word in words), False])[context.api]
    products = np.array([*(word == "mul" for word in words), False])[context.api]
    calls = (kind == NodeKind.API) & (repeats | products)
    backward, forward = calls & (direction == Direction.BACKWARD), calls & (direction == Direction.FORWARD)
    tensor = (context.kind == Kind.TENSOR) & (context.elements > 0)
    received = tensor & np.isin(context.role, (Role.INPUT, Role.KWARG))
    made = np.flatnonzero(tensor & (context.role == Role.OUTPUT) & backward[context.pair])
    if not len(made):
        return found
    elements = context.elements.astype(np.float64)
    arriving = _fold_largest(context, norm, received & backward[context.pair])
    count = _fold_largest(context, elements, received & backward[context.pair])
    factor = np.ones(context.nodes)
    if products.any():
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = norm / np.sqrt(elements)
        largest = _fold_largest(context, elements, received & forward[context.pair])
        whole = received & forward[context.pair] & (elements == largest[context.pair])
        sizes = _fold_largest(context, spread, whole)
        of = {names[pair]: pair for pair in np.flatnonzero(forward & products).tolist()}
        for pair in np.flatnonzero(backward & products).tolist():
            call = of.get(names[pair].replace("backward", "forward"))
            factor[pair] = sizes[call] if call is not None else np.nan
    pair = context.pair[made]
    fewer = elements[made] < count[pair]
    found[made[fewer]] = (arriving * factor)[pair[fewer]]
    return found


def terms_of_parts(
    context: Context, facts: Facts, norm: Float64, score: Float64, kind: Int8, direction: Int8
) -> Float64:
    """By item pair the norm of the two gradients that cancel in one that no recorded call made, as those of the two uses of the
    input of a norm written by hand; nan for other items. What cancels has norms that differ by no more than the sum."""
    found = np.full(len(context), np.nan)
    codes = identify(context)
    tensor = (context.kind == Kind.TENSOR) & context.both & (direction == Direction.BACKWARD)[context.pair]
    calls = (kind == NodeKind.API)[context.pair]
    made = tensor & calls & (context.role == Role.OUTPUT)
    with np.errstate(invalid="ignore"):
        loud = tensor & (score > 1) & (facts.equal == 0)
    if not loud.any():
        return found
    seen = np.flatnonzero(tensor)
    known, first = np.unique(codes[seen], return_index=True)
    sums = loud & np.isin(codes, known[~made[seen[first]]])  # no call made it before one received it
    if not sums.any():
        return found
    wanted = set(codes[sums].tolist())
    rows = np.flatnonzero((tensor & calls | sums) & np.isin(context.elements, context.elements[sums]))
    waiting: dict[int, dict[int, float]] = {}
    terms: dict[int, float] = {}
    columns = codes[rows].tolist(), norm[rows].tolist(), context.elements[rows].tolist(), made[rows].tolist()
    for code, size, count, put_out in zip(*columns, strict=True):
        here = waiting.setdefault(count, {})
        if put_out:
            here[code] = size
        elif code in wanted and code not in terms:
            parts = sorted((part, key) for key, part in [*here.items()][-_PARTS:] if part > CANCELS * size)
            for (less, one), (more, other) in pairwise(parts):
                if more - less <= size + _CLOSE * more:
                    terms[code] = more
                    del here[one], here[other]
                    break
        else:
            here.pop(code, None)
    if terms:
        found = np.array([terms.get(code, np.nan) for code in codes.tolist()])
    return np.where(tensor | (kind == NodeKind.GRADIENT)[context.pair], found, np.nan)


def terms_of_attention(context: Context, norm: Float64, names: list[list[str]]) -> Float64:
    """By item pair the norm of the terms of the gradients of queries and keys, from which the softmax in it takes a mean:
    nothing is left where all positions have the same value, or there is one alone. nan for other items.

    names: by node pair, of each side: one of them may have made attention of single calls
    """
    found = np.full(len(context), np.nan)
    calls: dict[int, int] = {}  # backward -> forward
    for side in names:
        of = {name: pair for pair, name in enumerate(side) if _ATTENTION in name and name.endswith(".forward")}
        backward = [
            (pair, name.replace("backward", "forward")) for pair, name in enumerate(side) if of and "backward" in name
        ]
        calls.update((pair, of[name]) for pair, name in backward if name in of)
    if not calls:
        return found
    back, forward = np.array([*calls]), np.array([*calls.values()])
    tensor = (context.kind == Kind.TENSOR) & (context.elements > 0)
    received = tensor & np.isin(context.role, (Role.INPUT, Role.KWARG))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = norm / np.sqrt(context.elements.astype(np.float64))
    masks = (np.fmin(context.t_stats[:, MIN], context.g_stats[:, MIN]) <= _HIDES) | ~np.isfinite(norm)
    taken = received & ~is_exact_kind(context) & ~masks
    size, arriving = np.full((2, context.nodes), np.nan)
    size[back] = _fold_largest(context, spread, taken)[forward]
    arriving[back] = _fold_largest(context, spread, received)[back]
    made = np.flatnonzero(tensor & (context.role == Role.OUTPUT) & np.isfinite(arriving)[context.pair])
    pair = context.pair[made]
    found[made] = arriving[pair] * size[pair] ** 2 * np.sqrt(context.elements[made])
    return found


def _terms_of_norms(
    context: Context, norm: Float64, score: Float64, read: Bool, kind: Int8, direction: Int8, names: list[str]
) -> Float64:
    """By item pair the norm of the terms of what a norm or a softmax makes, nan for other items.

    A norm takes the mean away from its input and divides by the deviation: where the input is nearly constant, as in a run on
    made-up data, what is left is rounding, divided by next to nothing. Its backward takes the mean away from the gradient, and
    what lies along the result, divided by the same; that of a softmax takes a mean away, too. Nothing is left of a gradient that
    is constant, as of a loss that no norm lets change.

    The deviation is at most that of the whole input. Where the result is much smaller than the weight makes it, the variance
    is smaller than what is added to it. Of two values (a batch norm over two rows) a norm makes 1 and -1, whatever they are: only
    where they are nearly equal does anything follow from them, so the deviation is that of what is added.
    """
    found = np.full(len(context), np.nan)
    words = [operation(name) for name in context.apis]
    groups = [np.array([*(word in group for word in words), False])[context.api] for group in (_NORMS, _ROOTS, _SHARES)]
    known = np.logical_or.reduce(groups)
    if not known.any():
        return found
    tensor = (context.kind == Kind.TENSOR) & known[context.pair] & (context.elements > 0)
    given = tensor & np.isin(context.role, (Role.INPUT, Role.KWARG))
    taken, made = _first_of(context, given), _first_of(context, tensor & (context.role == Role.OUTPUT))
    count = np.bincount(context.pair[given], minlength=context.nodes)
    weight = _first_of(context, given, np.where(count >= 4, 3, 1))  # a batch norm's means and variances stand before it
    module = kind == NodeKind.MODULE
    own = context.role == Role.PARAMETER
    weight = np.where(module, _first_of(context, tensor & own), weight)
    unknown = module & ~own.any()  # a dump that holds those of other modules holds those of this one
    elements = np.append(context.elements.astype(np.float64), np.nan)  # the last is that of no item
    norm_of, mean_of = np.append(norm, np.nan), np.append(largest_magnitude(context, [MEAN]), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = norm_of / np.sqrt(elements)
        factor = np.where(weight >= 0, size[weight], np.where(unknown, np.nan, 1.0))
        variance = size[taken] ** 2 - np.where(groups[1], 0.0, np.nan_to_num(mean_of[taken])) ** 2
        left = size[made] / factor
        small = np.where(groups[0] & (left < 1 / CANCELS), left**2 * _EPSILON, np.inf)
        two = _norms_two_values(context, words, made, taken, weight) & (np.append(score, np.nan)[taken] > 0)
        variance = np.where(two, 0.0, variance)
        scale = factor / np.sqrt(np.minimum(np.maximum(variance, 0), small) + _EPSILON)
        scale = np.where(groups[2], size[made], scale)
        forward = direction == Direction.FORWARD
        calls = {names[pair]: pair for pair in np.flatnonzero(known & forward).tolist()}
        back = np.flatnonzero(known & (direction == Direction.BACKWARD))
        of = np.array([calls.get(names[pair].replace("backward", "forward"), -1) for pair in back.tolist()], np.int64)
        scale[back] = np.where(of >= 0, scale[of], np.nan)
        terms = np.where(forward, size[taken] * np.sqrt(elements[made]), norm_of[taken]) * scale
        terms = np.where(forward & ~groups[0], np.nan, terms)
        apart, shown = np.append(score, np.nan), np.append(read, False)
        arriving = apart[taken]
        two[back] = two[of] & (of >= 0)
        arriving[back] = np.fmax(arriving[back], np.where(of >= 0, arriving[of], np.nan))
        steep = _THIRD_POWER * size[taken[of]] / np.sqrt(_EPSILON) * norm_of[made[back]]
        terms[back] = np.fmax(terms[back], np.where(two[back], steep, np.nan))
        # Tensors show how far apart what comes in is: what is more than a norm of two values makes of that is no noise.
        terms[two & shown[made] & (apart[made] * norm_of[made] > JUMP * arriving * terms)] = np.nan
        fine = np.isin(context.t_dtype, [code for code, name in enumerate(context.dtypes) if name in _ACCUMULATED])
        rounded = (_fold_largest(context, score, given) > 0) | np.append(fine, False)[made]
        pairs = np.flatnonzero((made >= 0) & rounded & (terms > CANCELS * norm_of[made]))
    found[made[pairs]] = terms[pairs]
    return found


def _norms_two_values(context: Context, words: list[str], made: Int64, taken: Int64, weight: Int64) -> Bool:
    """By node pair: a norm that takes each mean of two values: no result is larger than its weight and its bias make 1.

    words: by code of an API; made, taken, weight: by node pair the item pair of the result, the input and the weight, -1 for none
    """
    rows, features = (
        np.array([*(word in group for word in words), False])[context.api] for group in (_OVER_ROWS, _OVER_FEATURES)
    )
    known = (made >= 0) & (taken >= 0) & (weight >= 0)
    count = np.append(context.elements, -1)
    peak = np.append(largest_magnitude(context, [MAX, MIN]), np.nan)
    behind = np.minimum(weight + 1, len(context))
    bias = np.where(known & (count[behind] == count[weight]), np.nan_to_num(peak[behind]), 0.0)
    two = (rows & (count[taken] == 2 * count[weight])) | (features & (count[weight] == 2))
    with np.errstate(invalid="ignore"):
        found: Bool = known & two & (peak[made] <= (peak[weight] + bias) * (1 + _AS_LARGE))
    return found


def _first_of(context: Context, rows: Bool, place: Int64 | int = 0) -> Int64:
    """By node pair: the first of `rows`, or the one at a place among them; -1 where there is none."""
    items = np.flatnonzero(rows)
    pair = context.pair[items]
    nodes = np.arange(context.nodes)
    at = np.searchsorted(pair, nodes) + place
    there = at < np.searchsorted(pair, nodes, side="right")
    first: Int64 = np.where(there, np.append(items, -1)[np.where(there, at, -1)], -1)
    return first


def _sizes_of_products(
    context: Context, spread: Float64, elements: Float64, taken: Int64, added: Bool
) -> tuple[Float64, Float64]:
    """By node pair, of the two operands that are multiplied: the product of their sizes by element, and of their elements."""
    pair = context.pair[taken]
    place = np.arange(len(taken)) - np.searchsorted(pair, pair) - added[pair]
    sizes, counts = np.full((2, context.nodes), np.nan), np.full((2, context.nodes), np.nan)
    for operand in (0, 1):
        rows = place == operand
        sizes[operand, pair[rows]] = spread[taken[rows]]
        counts[operand, pair[rows]] = elements[taken[rows]]
    return sizes[0] * sizes[1], counts[0] * counts[1]


def are_running_means(items: Items, rows: Int32) -> Bool:
    """By item number, -1 for none: what a norm wrote as its running mean."""
    written = np.array([path in _WRITTEN_MEANS for path in items.paths] + [False])
    found: Bool = written[np.where(rows >= 0, items.path[rows] if len(items) else -1, -1)]
    return found


def largest_magnitude(context: Context, columns: list[int]) -> Float64:
    """Largest finite magnitude of some statistics on either side; nan where there is none."""
    sides = [
        np.where(state[:, columns] == State.FINITE, np.abs(stats[:, columns]), np.nan)
        for stats, state in ((context.t_stats, context.t_state), (context.g_stats, context.g_state))
    ]
    size: Float64 = np.fmax.reduce(np.concatenate(sides, axis=1), axis=1)
    return size


def _fold_largest(context: Context, size: Float64, rows: Bool) -> Float64:
    out = np.full(context.nodes, np.nan)
    np.fmax.at(out, context.pair[rows], size[rows])
    return out


def _share_largest(key: Int64, value: Float64, rows: Bool) -> Float64:
    """For every node the largest value of those in `rows` that have its key, nan where there is none."""
    keys, code = np.unique(key, return_inverse=True)
    best = np.full(len(keys), np.nan)
    np.fmax.at(best, code[rows], value[rows])
    found: Float64 = best[code]
    return found
