"""A metric that dumpscope does not have: the peak signal-to-noise ratio."""

from __future__ import annotations

import numpy as np

from dumpscope.metrics import Measured, Metric


def _derive(measured: Measured) -> np.ndarray:
    peak = np.maximum(np.abs(measured.golden("max")), np.abs(measured.golden("min")))
    elements = measured.count("elements")
    distance = np.where(elements > 1, measured.metric("euclidean"), measured.metric("max_abs"))
    return 20 * np.log10(peak * np.sqrt(elements) / distance)


PSNR = Metric(
    name="psnr",
    label="PSNR",
    label_zh="峰值信噪比",
    unit="dB",
    formula="20 log10(max abs(g) / sqrt(mean(d^2)))",
    higher_is_worse=False,
    derive=_derive,
)
