"""Facts about numbers: pure functions over arrays, no I/O. What each metric means: docs/metrics.md."""

from dumpscope.metrics.native.loader import load_kernel
from dumpscope.metrics.statistics import compare_statistics, exact_integer_diff
from dumpscope.metrics.table import METRICS, Measured, Metric, all_metrics, derive_metrics
from dumpscope.metrics.tensors import compare_tensors

__all__ = [
    "METRICS",
    "Measured",
    "Metric",
    "all_metrics",
    "compare_statistics",
    "compare_tensors",
    "derive_metrics",
    "exact_integer_diff",
    "load_kernel",
]
