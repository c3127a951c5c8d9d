"""Models of the metrics of a pair of tensors."""

from __future__ import annotations

from dumpscope.api.models.base import Wire


class Metric(Wire):
    """A number of a pair of tensors. name: its key in `metrics`; unit: "" for a ratio or the unit of the data
    formula: with t the target, g the golden, d = t - g; label_zh: "" if it has no Chinese label"""

    name: str
    label: str
    label_zh: str
    unit: str
    formula: str
    higher_is_worse: bool


class Metrics(Wire):
    items: list[Metric]


class Rule(Wire):
    """What gives an item its verdict. rule: its id, as in `rule` of a pair; text: what it says"""

    rule: str
    text: str
    text_zh: str


class Rules(Wire):
    items: list[Rule]
