"""What the numbers of a pair of tensors are: labels, units and formulas."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dumpscope.api.models.metrics import Metric, Metrics
from dumpscope.api.replies import reply
from dumpscope.metrics import all_metrics

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_model=Metrics)
def list_metrics() -> Response:
    """Metrics of pairs of tensors in the order in which they are shown, those of other installed packages last."""
    names = Metric.model_fields
    listed = [Metric(**{name: getattr(metric, name) for name in names}) for metric in all_metrics()]
    return reply(Metrics(items=listed))
