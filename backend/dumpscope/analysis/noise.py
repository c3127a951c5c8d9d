"""How loud the rounding noise of a pair of runs is: from which score on a value counts as different."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Bool, Float64, Int8, NodeKind, Role
from dumpscope.verdict.score import is_exact_kind

QUIET: Final = 0.02
"""Threshold, in floors, where the runs are bit-equal up to the first difference: there any visible error is a finding."""
ROUNDED: Final = 0.2
"""Largest score, in floors, of a 16-bit tensor of which every element was rounded once more."""
COARSE: Final = 2e-3
"""Bulk floors from here on are those of 16-bit numbers, and of what is computed from them."""
JUMP: Final = 3.0
"""Healthy noisy runs grew by at most 2.65 from one call to the next on held-out pairs (kinks apart)."""
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
        "MaxPool2d", "MaxPool3d", "Hardtanh", "Hardswish",
    }
)  # fmt: skip
"""Calls whose derivative jumps."""
LOUD: Final = 8.0
"""Threshold where the two runs use different dtypes: rounding grows along the net, so only a large step is a finding."""


def threshold(facts: Facts, worst: Float64, own_in: Float64, labels: list[str], backward: Bool, bulk: float) -> float:
    """Score above which a value of a noisy pair counts as different.

    What came before tells how loud noise is: a difference counts from JUMP times the largest score before it.
    """
    tensors = facts.outcome == Outcome.COMPARED
    base = LOUD if tensors.any() and (facts.dtype_differs[tensors] == 1).mean() > 0.25 else 1.0
    known = np.where(np.isfinite(worst), worst, 0.0)
    if backward.any():
        bends = [pair for pair in np.flatnonzero(backward).tolist() if labels[pair].rpartition(".")[2] in KINKED]
        first = max(0, (bends[0] if bends else int(np.argmax(backward))) - 1)  # what bends may differ itself
        known[first] = max(known[first], _kinks(own_in, labels, backward, bulk))
    level = np.maximum.accumulate(np.concatenate([[0.0], known]))[:-1]
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(worst > np.maximum(base, JUMP * level))
    before = float(level[wrong[0]]) if len(wrong) else float(level.max(initial=0.0))
    return max(base, JUMP * before)


def is_quiet(context: Context, facts: Facts, worst: Float64, labels: list[str], kind: Int8, bulk: float) -> bool:
    """Enough rounding calls gave equal bits before the first difference. Equal statistics of a 16-bit dtype are weak evidence.

    A first difference of no more than another rounding to 16 bits is none: some kernels of an otherwise bit-equal pair may
    add in another order.
    """
    tensors = facts.outcome == Outcome.COMPARED
    first = np.flatnonzero(worst > 0)
    before = int(first[0]) if len(first) else len(worst)
    faint = np.flatnonzero(worst > QUIET)
    if bulk >= COARSE and len(faint):  # a parameter's gradient is a long sum of such numbers
        most = 1.0 if kind[faint[0]] == NodeKind.GRADIENT else ROUNDED
        if worst[faint[0]] <= most:
            return False
    fine = np.array(
        [name in ("torch.float32", "torch.float64", "torch.complex64") for name in context.dtypes] + [False]
    )
    strong = (facts.unequal == 0) | (fine[context.t_dtype] & fine[context.g_dtype])
    outputs = tensors & (context.role == Role.OUTPUT) & (facts.equal == 1) & ~is_exact_kind(context)
    weight: dict[int, int] = {}
    for pair, sure in zip(context.pair[outputs].tolist(), strong[outputs].tolist(), strict=True):
        if pair >= before:
            break
        if kind[pair] in (NodeKind.API, NodeKind.MODULE) and labels[pair].rpartition(".")[2] not in REPRODUCIBLE:
            weight[pair] = WEAK if sure else 1
            if sum(weight.values()) >= QUIET_NODES * WEAK:
                return True
    return False


def _kinks(own_in: Float64, labels: list[str], backward: Bool, bulk: float) -> float:
    """Level that a backward pass may show because its forward had kinks (ReLU, pooling): a relative error e flips the mask
    of about e of the elements, so the gradient differs by about the square root of e."""
    if not bulk:
        return 0.0
    bends = [
        own_in[pair]
        for pair in np.flatnonzero(~backward & np.isfinite(own_in) & (own_in > 0)).tolist()
        if labels[pair].rpartition(".")[2] in KINKED
    ]
    return float(np.sqrt(max(bends) * bulk) / bulk) if bends else 0.0
