"""The relative error that is shown beside a node's score."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.facts import Facts
from dumpscope.domain.records import Bool, Float64, Int8, Role, State, UInt8
from dumpscope.domain.result import Unit

_MAX, _MIN, _NORM = 0, 1, 3


def item_errors(facts: Facts, endless: Bool) -> Float64:
    """(n,) relative L2 error of the tensors where they were read, else of Norm, else the larger of Max and Min; -1 where
    nothing was compared, nan where the comparison itself is not a number. Mean is left out: near zero it says nothing.
    endless: (n,) the golden Norm is infinite, as behind a mask: equal ones say nothing of the rest, the ends do."""
    errors = np.full(len(facts), -1.0)
    ends = np.maximum(facts.rel[:, _MAX], facts.rel[:, _MIN])
    ends_known = np.maximum(facts.rel_state[:, _MAX], facts.rel_state[:, _MIN]) != State.ABSENT
    norms = facts.rel[:, _NORM]
    for values, known in (
        (ends, ends_known),
        (norms, (facts.rel_state[:, _NORM] != State.ABSENT) & ~(endless & ends_known & (norms == 0))),
        (facts.metric("rel_l2"), facts.metric_state("rel_l2") != State.ABSENT),
    ):
        errors[known] = values[known]
    errors[(errors < 0) & (facts.equal == 1)] = 0.0
    return errors


def node_errors(unit: Unit, roles: Int8) -> tuple[Float64, UInt8]:
    """Largest item error on the input and on the output side of each node pair, with states; both (nodes, 2)."""
    pairs, golden = unit.items, unit.golden.items
    endless = np.zeros(len(pairs.golden), dtype=bool)
    paired = np.flatnonzero(pairs.golden >= 0)
    endless[paired] = golden.stat_state[pairs.golden[paired], _NORM] == State.POS_INF
    errors = item_errors(unit.facts, endless)
    worst = np.full((len(unit.pairs.target), 2), -1.0)
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
