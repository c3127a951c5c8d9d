"""Reads yaml that a user wrote, in bounded time and memory. Importing this imports yaml."""

from __future__ import annotations

from typing import Any, Final

import yaml

from dumpscope.errors import LimitError
from dumpscope.texts import say

TEXT_BYTES: Final = 4 << 20
NODES: Final = 250_000
"""Scalars, lists and mappings of one text: read in about two seconds."""
DEPTH: Final = 50
"""Lists and mappings inside each other; files of ours need four."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """The text is not valid yaml. line, column: where, from 1 on; None if unknown"""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column


def read_yaml(text: str, name: str) -> Any:
    """Plain data of a yaml text (None where it is empty), without any of yaml's object tags. name: of the option that holds it

    Raises YamlError for what is no yaml, LimitError for a text that is longer, deeper or larger than a file of ours can be.
    """
    if len(text.encode("utf-8", "replace")) > TEXT_BYTES:
        raise LimitError(say("yaml.too_long", limit=TEXT_BYTES >> 20), where=name, hint=say("yaml.split"))
    try:
        _measure(text, name)
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = " ".join(str(error).split()).replace('in "<unicode string>",', "at")
        raise YamlError(reason, *((mark.line + 1, mark.column + 1) if mark else ())) from error
    except (ValueError, RecursionError) as error:  # an impossible date, nesting without end
        raise YamlError(" ".join(str(error).split())) from error


def _measure(text: str, name: str) -> None:
    """Raise LimitError before anything of a too large text is built."""
    nodes = depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            continue
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
        if depth > DEPTH:
            raise LimitError(say("yaml.too_deep", limit=DEPTH), where=name, hint=say("yaml.flatten"))
        if nodes > NODES:
            raise LimitError(say("yaml.too_many", limit=NODES), where=name, hint=say("yaml.split"))
