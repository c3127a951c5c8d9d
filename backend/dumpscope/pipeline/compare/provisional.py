"""A first answer: from the stored statistics while tensors are still being read, and before a result is stored."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.job import PROVISIONAL_MARK
from dumpscope.domain.options import Options
from dumpscope.domain.result import Side, Unit
from dumpscope.pipeline.compare.conclusion import Conclusion
from dumpscope.texts import say

WORTH: Final = 1 << 28
"""Bytes of tensors, both sides, from which reading takes so long that an early answer helps."""


def worth_telling(context: Context) -> bool:
    """Whether reading the tensors of a unit takes long. Elements count as four bytes."""
    return int(np.maximum(context.elements, 0)[context.both].sum()) * 8 >= WORTH


def with_early(text: str, node: str | None) -> str:
    """What is being done, and the node of the first origin where one is known."""
    return text if node is None else say("jobs.early", text=text, early=f"{PROVISIONAL_MARK}{node}")


def first_origin(unit: Unit, options: Options) -> str | None:
    """Node of the first origin of a unit that was measured by statistics alone, None where there is none."""
    conclusion = Conclusion(options.policy)
    conclusion.add(unit)
    unnamed = Side(path="", framework="", task="", level="", steps=[], ranks=[])
    origins = conclusion.answer(target=unnamed, golden=unnamed).origins
    return origins[0].node if origins else None
