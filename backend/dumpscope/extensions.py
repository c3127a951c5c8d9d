"""Dump formats, metrics and causal rules that other installed packages bring, found by entry point."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any, Final

from dumpscope.errors import DumpscopeError
from dumpscope.texts import say

FORMATS: Final = "dumpscope.formats"
METRICS: Final = "dumpscope.metrics"
RULES: Final = "dumpscope.rules"


@cache
def load(group: str) -> tuple[Any, ...]:
    """The objects that installed packages register under `group`, ordered by name; what each must be is said where it is used.

    Raises DumpscopeError where one cannot be imported: an answer without a rule that the user installed would be another answer.
    """
    found = []
    for entry in sorted(metadata.entry_points(group=group), key=lambda entry: entry.name):
        try:
            found.append(entry.load())
        except Exception as error:
            package = entry.dist.name if entry.dist else entry.value
            raise DumpscopeError(
                say(
                    "extensions.extension_package_cannot_loaded",
                    name=f"{entry.name!r}",
                    package=package,
                    error=f"{error!r}",
                ),
                hint=say("extensions.mend_remove_pip_uninstall", package=package),
            ) from error
    return tuple(found)
