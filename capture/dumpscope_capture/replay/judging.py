"""Judges whether a result is as accurate as its type allows: its error against the effect of rounding the inputs once.

The reference is computed a second time with every input changed by half a unit in the last place. The change of its result shows
how ill-conditioned the call is. `units` is the error divided by this change plus half a unit of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from dumpscope_capture.replay.measures import Measures, measure

PASS: Final = "pass"
WARNING: Final = "warning"
ERROR: Final = "error"
SKIP: Final = "SKIP"
LIMITS: Final = {torch.float16: (4.0, 32.0), torch.bfloat16: (4.0, 32.0)}
USUAL_LIMITS: Final = (64.0, 1024.0)
"""Units up to which a result passes, and above which it is wrong. 16-bit results are rounded once from a wider sum."""
FEW: Final = 100
SHARE: Final = 0.1
"""Random results with fewer than FEW elements are not judged; otherwise the shares of zeros may differ by SHARE."""
ORDER: Final = (SKIP, PASS, WARNING, ERROR)


@dataclass(frozen=True)
class Judgement:
    """Verdict on one result. units: see above, 0 if not used"""

    verdict: str
    reason: str
    units: float = 0.0
    measures: Measures | None = None

    def document(self) -> dict[str, Any]:
        units = self.units if self.units < 1e300 else "inf"
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "units": units,
            "measures": self.measures.document() if self.measures else None,
        }


def worst(verdicts: list[str]) -> str:
    """The worst of several verdicts, SKIP if there is none."""
    return max(verdicts, key=ORDER.index, default=SKIP)


def judge(
    tensor: torch.Tensor,
    reference: torch.Tensor,
    moved: torch.Tensor | None,
    *,
    kind: str = "number",
    working: torch.dtype | None = None,
) -> Judgement:
    """Judge a result. moved: the reference with shaken inputs; kind: "number", "random" or "unwritten"
    working: type in which autocast computed
    """
    if tensor.shape != reference.shape:
        return Judgement(verdict=ERROR, reason=f"shape {list(tensor.shape)}, the reference has {list(reference.shape)}")
    if not tensor.numel():
        return Judgement(verdict=SKIP, reason="empty")
    if kind == "unwritten":
        return Judgement(verdict=SKIP, reason="memory that nobody has written")
    if kind == "random":
        return _by_zeros(tensor, reference)
    found = measure(tensor, reference)
    if found.nonfinite:
        if moved is not None and measure(moved, reference).nonfinite:
            return Judgement(verdict=WARNING, reason="on the edge of infinity: rounding decides", measures=found)
        return Judgement(verdict=ERROR, reason=f"NaN or infinity disagree at {found.nonfinite} places", measures=found)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        if not found.unequal:
            return Judgement(verdict=PASS, reason="equal", measures=found)
        near = moved is not None and moved.shape == reference.shape and not torch.equal(moved, reference)
        said = f"{found.unequal} of {found.elements} differ"
        if near:
            return Judgement(
                verdict=WARNING, reason=f"{said}; rounding the inputs changes them as well", measures=found
            )
        return Judgement(verdict=ERROR, reason=said, measures=found)
    own = working or (tensor.dtype if tensor.is_floating_point() else torch.float32)
    room = torch.finfo(own).eps / 2
    if moved is not None and moved.shape == reference.shape:
        sway = measure(moved.to(reference.dtype), reference)
        room += max(sway.rel_l2, sway.peak)
    units = max(found.rel_l2, found.peak) / room
    passes, fails = LIMITS.get(own, USUAL_LIMITS)
    verdict = PASS if units <= passes else ERROR if units > fails else WARNING
    return Judgement(
        verdict=verdict,
        reason=f"off by {units:.3g} times what rounding the inputs does (passes to {passes:g}, wrong from {fails:g})",
        units=units,
        measures=found,
    )


def _by_zeros(tensor: torch.Tensor, reference: torch.Tensor) -> Judgement:
    if tensor.numel() < FEW:
        return Judgement(verdict=PASS, reason=f"random, and fewer than {FEW} elements: not judged")
    mine, right = (float((one == 0).double().mean()) for one in (tensor, reference))
    verdict = PASS if abs(mine - right) < SHARE else ERROR
    return Judgement(verdict=verdict, reason=f"random: {mine:.1%} zeros, the reference has {right:.1%}")
