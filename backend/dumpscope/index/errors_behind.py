"""The relative error that is shown beside a node's score: what a person would call "how far off"."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.facts import TENSOR_METRICS, Facts, ItemPairs
from dumpscope.domain.records import Float64, Int8, Role, State, UInt8

_REL_L2 = TENSOR_METRICS.index("rel_l2")
_MAX, _MIN, _NORM = 0, 1, 3


def item_errors(facts: Facts) -> Float64:
    """(n,) relative L2 error of the tensors where they were read, else of Norm, else the larger of Max and Min; -1 where
    nothing was compared, nan where the comparison itself is not a number. Mean is left out: near zero it says nothing."""
    errors = np.full(len(facts), -1.0)
    for values, states in (
        (
            np.maximum(facts.rel[:, _MAX], facts.rel[:, _MIN]),
            np.maximum(facts.rel_state[:, _MAX], facts.rel_state[:, _MIN]),
        ),
        (facts.rel[:, _NORM], facts.rel_state[:, _NORM]),
        (facts.tensor[:, _REL_L2], facts.tensor_state[:, _REL_L2]),
    ):
        known = states != State.ABSENT
        errors[known] = values[known]
    errors[(errors < 0) & (facts.equal == 1)] = 0.0
    return errors


def node_errors(nodes: int, pairs: ItemPairs, roles: Int8, facts: Facts) -> tuple[Float64, UInt8]:
    """Largest item error on the input and on the output side of each node pair, with states; both (nodes, 2)."""
    errors = item_errors(facts)
    worst = np.full((nodes, 2), -1.0)
    output = np.isin(roles, (Role.OUTPUT, Role.GRADIENT, Role.DEBUG))
    for side, mask in enumerate((~output, output)):
        np.fmax.at(worst[:, side], pairs.pair[mask], errors[mask])
        lost = mask & np.isnan(errors)
        worst[pairs.pair[lost], side] = np.nan
    states = np.full(worst.shape, State.FINITE, dtype=np.uint8)
    states[worst < 0] = State.ABSENT
    states[np.isnan(worst)] = State.NAN
    states[np.isposinf(worst)] = State.POS_INF
    return worst, states
