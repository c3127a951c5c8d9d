"""When Python looks for cycles of garbage."""

from __future__ import annotations

import gc
from typing import Final

NEWCOMERS: Final = 200_000
"""Objects made, less those freed, before a collection. The default of 700 costs a fifth of a comparison: reading a dump makes
millions of objects, hardly any of them in a cycle."""


def collect_rarely() -> None:
    """For processes that read dumps: the command line and a server's workers."""
    gc.set_threshold(NEWCOMERS, 20, 50)
