"""Facts about numbers: pure functions over arrays, no I/O. What each metric means: docs/metrics.md."""

from dumpscope.metrics.native.loader import prepare
from dumpscope.metrics.native.small_pairs import WHOLE, Laid, Sort, compare_many, sort_of
from dumpscope.metrics.statistics import compare_statistics, exact_integer_diff
from dumpscope.metrics.table import METRICS, Measured, Metric, all_metrics, derive_metrics
from dumpscope.metrics.tensors import compare_tensors

__all__ = [
    "METRICS", "WHOLE", "Laid", "Measured", "Metric", "Sort", "all_metrics", "compare_many", "compare_statistics",
    "compare_tensors", "derive_metrics", "exact_integer_diff", "prepare", "sort_of",
]  # fmt: skip
