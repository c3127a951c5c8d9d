"""The table of metrics and the columns in which measured ones are stored."""

from __future__ import annotations

import dataclasses

from dumpscope.domain.facts import TENSOR_METRICS, TensorFacts
from dumpscope.index.store import tables
from dumpscope.metrics import METRICS


def test_every_measured_metric_has_its_column_in_the_stored_order() -> None:
    measured = {metric.name for metric in METRICS if metric.measure is not None}
    assert measured == set(TENSOR_METRICS)
    assert [column.name for column in tables.tensor_fact.columns][1 : len(TENSOR_METRICS) + 1] == list(TENSOR_METRICS)
    assert measured <= {field.name for field in dataclasses.fields(TensorFacts)}


def test_the_first_nine_columns_are_those_of_every_stored_database() -> None:
    assert TENSOR_METRICS[:9] == (
        "cosine", "euclidean", "max_abs", "max_rel", "ratio_1e3", "ratio_5e3", "rel_l2", "max_ulp", "median_ulp",
    )  # fmt: skip


def test_a_metric_is_measured_or_derived_and_its_names_are_its_own() -> None:
    for metric in METRICS:
        assert (metric.measure is None) != (metric.derive is None), metric.name
    for field in ("name", "label", "label_zh"):
        assert len({getattr(metric, field) for metric in METRICS}) == len(METRICS)
