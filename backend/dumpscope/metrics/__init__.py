"""Facts about numbers: pure functions over arrays, no I/O. What each metric means: docs/metrics.md."""

from dumpscope.metrics.native.loader import load_kernel
from dumpscope.metrics.native.small_pairs import LARGEST_READ_WHOLE, ElementLayout, PairKind, compare_many, pair_kind
from dumpscope.metrics.statistics import compare_statistics, exact_integer_diff
from dumpscope.metrics.table import METRICS, Measured, Metric, all_metrics, derive_metrics
from dumpscope.metrics.tensors import compare_tensors

__all__ = [
    "LARGEST_READ_WHOLE",
    "METRICS",
    "ElementLayout",
    "Measured",
    "Metric",
    "PairKind",
    "all_metrics",
    "compare_many",
    "compare_statistics",
    "compare_tensors",
    "derive_metrics",
    "exact_integer_diff",
    "load_kernel",
    "pair_kind",
]  # fmt: skip
