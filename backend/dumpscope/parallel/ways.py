"""How the members' copies of an item become one."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Way(IntEnum):
    """How the members' copies of an item become one."""

    COPY = 0  # all are equal: taken once
    JOIN = 1  # each is a part: laid end to end along a dimension
    SUM = 2  # each is a part of a sum
    ODD = 3  # they should be equal and are not: the one that strays is taken
    SKIP = 4  # they do not go together: nothing is compared


WAY_WORDS: Final = ("copy", "join", "sum", "odd", "skip")
