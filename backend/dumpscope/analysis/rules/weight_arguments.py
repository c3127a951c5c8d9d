"""Which arguments of a call are weights: loaded, or left by the step before, and made by no call of this step."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.records import Bool, Int8, NodeKind, RankDump, Role

WEIGHT_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "linear": ("1", "2", "weight", "bias"),
    "bilinear": ("2", "3", "weight", "bias"),
    "embedding": ("1", "weight"),
    "embedding_bag": ("1", "weight"),
    "conv1d": ("1", "2", "weight", "bias"),
    "conv2d": ("1", "2", "weight", "bias"),
    "conv3d": ("1", "2", "weight", "bias"),
    "conv_transpose1d": ("1", "2", "weight", "bias"),
    "conv_transpose2d": ("1", "2", "weight", "bias"),
    "conv_transpose3d": ("1", "2", "weight", "bias"),
    "layer_norm": ("2", "3", "weight", "bias"),
    "rms_norm": ("2", "weight"),
    "npu_rms_norm": ("1",),
    "group_norm": ("2", "3", "weight", "bias"),
    "batch_norm": ("1", "2", "3", "4", "running_mean", "running_var", "weight", "bias"),
    "instance_norm": ("1", "2", "3", "4", "running_mean", "running_var", "weight", "bias"),
    "prelu": ("1", "weight"),
    "npu_linear": ("1", "2"),
    "lstm": ("2",),
    "gru": ("2",),
    "rnn_tanh": ("2",),
    "rnn_relu": ("2",),
    "lstm_cell": ("2", "3", "4", "5"),
    "gru_cell": ("2", "3", "4", "5"),
    "rnn_tanh_cell": ("2", "3", "4", "5"),
    "rnn_relu_cell": ("2", "3", "4", "5"),
}
"""Arguments of an API that hold parameters or buffers, or lists of them, by position or keyword."""


def holds_weight(target: RankDump, context: Context, kind: Int8) -> Bool:
    """By item pair: a parameter of a module, or such an argument of an API. kind: by node pair"""
    wanted = [WEIGHT_ARGUMENTS.get(api, ()) for api in context.apis]
    takes = np.array([bool(places) for places in wanted] + [False])
    api = context.api[context.pair]
    argument = takes[api] & (kind[context.pair] == NodeKind.API) & (context.target >= 0)
    argument &= (context.role == Role.INPUT) | (context.role == Role.KWARG)
    first = [path.partition(".")[0] for path in target.items.paths]
    for row in np.flatnonzero(argument).tolist():
        argument[row] = first[target.items.path[context.target[row]]] in wanted[api[row]]
    found: Bool = (context.role == Role.PARAMETER) | argument
    return found
