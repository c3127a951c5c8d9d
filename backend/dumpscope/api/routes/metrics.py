"""The metrics of a pair of tensors: labels, units and formulas; and the rules that judge it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dumpscope.api.models.metrics import Metric, Metrics, Rule, Rules
from dumpscope.api.replies import reply
from dumpscope.metrics import all_metrics
from dumpscope.texts import template
from dumpscope.verdict.rules import VERDICT_RULES

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_model=Metrics)
def list_metrics() -> Response:
    """Metrics of a pair of tensors, in the order of display; metrics of other installed packages come last."""
    names = Metric.model_fields
    listed = [Metric(**{name: getattr(metric, name) for name in names}) for metric in all_metrics()]
    return reply(Metrics(items=listed))


@router.get("/rules", response_model=Rules)
def list_rules() -> Response:
    """The rules of verdicts (docs/verdicts.md), each with what it says."""
    said = [(rule, f"rule.{rule}") for rule in VERDICT_RULES]
    return reply(Rules(items=[Rule(rule=rule, text=template(id), text_zh=template(id, "zh")) for rule, id in said]))
