"""The compiled kernel."""

from __future__ import annotations

from collections.abc import Callable

from dumpscope.metrics.partial import Partial
from dumpscope.metrics.ulps import Raw

Kernel = Callable[[Raw, Raw, float, int, bool], Partial]


def kernel_for(target: Raw, golden: Raw) -> Kernel | None:
    return None
