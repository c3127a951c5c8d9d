"""Exit statuses of the `dumpscope` command. Scripts rely on the first four (docs/commands.md)."""

from __future__ import annotations

from typing import Final

COMPARED: Final = 0
"""Done: everything that matters was judged, and nothing is wrong."""
DIVERGED: Final = 1
"""Something is wrong: a divergence, a NaN, a failed call."""
BAD_USAGE: Final = 2
"""A wrong option, or input that cannot be read."""
NOT_FULLY_JUDGED: Final = 3
"""Nothing wrong was found, but something that matters could not be read or compared."""
INTERRUPTED: Final = 130
"""Ctrl-C, as shells count it."""
OUTPUT_CLOSED: Final = 141
"""The program that reads our output has ended, as shells count it."""
