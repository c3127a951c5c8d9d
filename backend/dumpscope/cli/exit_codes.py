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
FAIL_ON: Final = ("no", "warning", "never")
"""From which verdict on a comparison ends with DIVERGED."""


def of_comparison(fail_on: str, *, diverged: bool, doubtful: int, incomplete: bool) -> int:
    """Status of a comparison. doubtful: warnings and calls without a partner. A divergence counts more than unreadable parts:
    it is real whatever could not be read."""
    if fail_on != "never" and (diverged or (fail_on == "warning" and doubtful > 0)):
        return DIVERGED
    return NOT_FULLY_JUDGED if incomplete else COMPARED


INTERRUPTED: Final = 130
"""Ctrl-C, as shells count it."""
OUTPUT_CLOSED: Final = 141
"""The program that reads our output has ended, as shells count it."""
