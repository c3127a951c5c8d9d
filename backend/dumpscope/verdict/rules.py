"""The rules by their ids. docs/verdicts.md explains each; a test checks that none is missing there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    title: str


RULES: Final = (
    Rule("E-1", "equal: every number, byte or hash that was stored agrees"),
    Rule("S-1", "shapes differ"),
    Rule("S-2", "a tensor against something else"),
    Rule("N-1", "non-finite values at different places"),
    Rule("V-1", "an argument differs"),
    Rule("I-1", "integers or booleans differ"),
    Rule("T-1", "tensors agree within the floor of their dtype"),
    Rule("T-2", "tensors differ by more than the floor of their dtype"),
    Rule("M-1", "statistics agree within the floor of their dtype"),
    Rule("M-2", "statistics differ by more than the floor of their dtype"),
    Rule("H-1", "hashes differ"),
    Rule("X-1", "only the target has this item"),
    Rule("X-2", "only the golden has this item"),
    Rule("X-3", "the tensor could not be read"),
    Rule("X-4", "no comparable number was stored"),
    Rule("X-5", "uninitialised memory is not judged"),
    Rule("P-1", "ptdbg: Cosine < 0.99 and MaxAbsErr > 0.001, or Cosine < 0.9, or MaxAbsErr > 1"),
    Rule("P-2", "ptdbg: within its thresholds"),
    Rule("P-3", "ptdbg: a statistic differs by more than half of its size"),
    Rule("Q-1", "msprobe: error"),
    Rule("Q-2", "msprobe: warning"),
    Rule("Q-3", "msprobe: pass"),
    Rule("D-1", "another dtype, numbers within the floor of the coarser one"),
)

CODES: Final = {rule.id: code for code, rule in enumerate(RULES)}
