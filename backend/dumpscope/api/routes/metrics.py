"""The metrics of a pair of tensors: labels, units and formulas."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dumpscope.api.models.metrics import Metric, Metrics
from dumpscope.api.replies import reply
from dumpscope.metrics import all_metrics

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_model=Metrics)
def list_metrics() -> Response:
    """Metrics of a pair of tensors, in the order of display; metrics of other installed packages come last."""
    names = Metric.model_fields
    listed = [Metric(**{name: getattr(metric, name) for name in names}) for metric in all_metrics()]
    return reply(Metrics(items=listed))
