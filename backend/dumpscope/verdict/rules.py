"""Ids of the rules of the item verdict, each with the sentence `rule.{id}`. docs/verdicts.md explains them, and a test checks it.

A module of its own, since the index stores the order of this table.
"""

from __future__ import annotations

from typing import Final

VERDICT_RULES: Final = (
    "E-1", "S-1", "S-2", "N-1", "V-1", "I-1", "T-1", "T-2", "M-1", "M-2",
    "H-1", "X-1", "X-2", "X-3", "X-4", "X-5", "P-1", "P-2", "P-3", "Q-1",
    "Q-2", "Q-3", "D-1", "X-6", "R-1", "R-2", "P-4", "M-3", "V-2", "F-1", "C-1", "C-2", "V-3", "C-3",
    "H-2", "V-4", "C-4",
)  # fmt: skip
"""In the order of their codes, which the index stores: new ones go to the end."""

CODES: Final = {rule: code for code, rule in enumerate(VERDICT_RULES)}
