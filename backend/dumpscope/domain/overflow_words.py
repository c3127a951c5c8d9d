"""Sentences about NaN, infinities and saturation in one dump, in English."""

from __future__ import annotations

from typing import Final

OVERFLOW: Final[dict[str, str]] = {
    "overflow.word.nan": "nan",
    "overflow.word.inf": "inf",
    "overflow.word.-inf": "-inf",
    "overflow.word.limit": "the largest number of its dtype",
    "overflow.word.-limit": "the most negative number of its dtype",
    "overflow.saturated": "inputs are larger than the output's dtype can hold, which stands at its limit",
    "overflow.growth": "the norm of an output is more than {factor} times that of the inputs",
    "overflow.absorbed": "inputs hold {came}, outputs are finite",
    "overflow.absorbed_partly": "inputs hold {came}, outputs {went}",
    "overflow.contains": "a call inside this module is where {went} starts",
    "overflow.intended": "an argument is {given}, so {went} in the output was asked for",
    "overflow.after": "holds {went} after {node}",
    "overflow.alone": "holds {went}, and nothing dumped before it does",
    "overflow.born": "every recorded input is finite, the output holds {went}",
    "overflow.born_backward": "{what}; {node} holds none, so it was born in the backward pass",
    "overflow.propagated": "inputs already hold {came}; it started at {node}",
    "overflow.came_up": "inputs hold {came}, the output holds {went}",
    "overflow.mask": "inputs hold {came} and the output still does: a mask on its way",
    "overflow.masked": "inputs hold {came} but no NaN, the output holds NaN",
    "overflow.masked_from": "inputs hold {came} (from {node}) but no NaN, the output holds NaN",
    "overflow.from_weight": "a parameter already holds {came}, and no dumped call produced it",
    "overflow.from_data": "an input already holds {came}, and no dumped call produced it",
    "overflow.advice.weight": "the weight itself is broken: look at its initialisation, loading or last update",
    "overflow.advice.data": "it comes from the data or from a call that was not dumped",
    "overflow.advice.value": "look at what computed this value",
    "overflow.advice.scale": "the scale of this tensor is out of date: look at its amax history, or scale with a margin",
    "overflow.advice.born_backward": (
        "the forward is finite, its derivative is not: look for a root, norm or log at 0, or a division by a small number "
        "behind a where; add an epsilon there, then run this backward alone"
    ),
    "overflow.advice.mask": (
        "a row that is -inf throughout has no softmax: look for a mask that hides a whole row, not at this operator"
    ),
    "overflow.advice.clipped": (
        "the result was clipped at the limit of its dtype: scale it down or use a wider dtype; where inf should show, "
        "switch the device to inf/nan mode"
    ),
    "overflow.advice.invalid": (
        "an invalid operation (0/0, log or root of a negative number, inf - inf) inside this call: run it alone"
    ),
    "overflow.advice.range": (
        "the result left the range of its dtype, or a division by zero: check the input's magnitude, run it alone"
    ),
}
