"""Dump formats, metrics and causal rules that other installed packages bring, found by entry point."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import PathFinder
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
    if not declared():
        return ()
    from importlib import metadata  # noqa: PLC0415

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


@cache
def declared() -> bool:
    """Whether an installed package may register anything here. Reading what packages register by importlib.metadata takes ten
    times as long, as much as the comparison of two small dumps."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True  # packages that are no folders
    return any(map(_declares, sys.path))


def _declares(place: str) -> bool:
    """Whether a folder of modules has a package that registers something of dumpscope; True where it is no folder."""
    try:
        names = os.listdir(place or os.curdir)
    except NotADirectoryError:
        return True
    except OSError:
        return False
    for name in names:
        if name.endswith((".dist-info", ".egg-info", ".egg")):
            inside = ("EGG-INFO",) if name.endswith(".egg") else ()
            try:
                with open(os.path.join(place, name, *inside, "entry_points.txt"), "rb") as declared:
                    if b"[dumpscope." in declared.read():
                        return True
            except NotADirectoryError:
                return True
            except OSError:
                continue
    return False
