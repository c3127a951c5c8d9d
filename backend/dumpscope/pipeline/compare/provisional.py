"""A first answer from the stored statistics, while tensors are still being read."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.job import PROVISIONAL_MARK
from dumpscope.domain.options import Options
from dumpscope.domain.result import Side, Unit
from dumpscope.pipeline.compare.conclusion import Conclusion

WORTH: Final = 1 << 28
"""Bytes of tensors, both sides, from which they take long enough to read for an answer before to help."""

MARK: Final = PROVISIONAL_MARK


def worth_telling(context: Context) -> bool:
    """Whether the tensors of a unit hold so much that reading them lasts. Elements count as four bytes."""
    return int(np.maximum(context.elements, 0)[context.both].sum()) * 8 >= WORTH


def first_origin(unit: Unit, options: Options) -> str | None:
    """Node of the first origin of a unit that was measured by statistics alone, None where there is none."""
    conclusion = Conclusion(options.policy)
    conclusion.add(unit)
    nobody = Side(path="", framework="", task="", level="", steps=[], ranks=[])
    origins = conclusion.answer(target=nobody, golden=nobody).origins
    return origins[0].node if origins else None
