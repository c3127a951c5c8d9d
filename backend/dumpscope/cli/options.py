"""Arguments and options of several commands, and the ways to give lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

from dumpscope.cli.parser import Argument, Option

Json = Annotated[bool, Option("--json")]
Dump = Annotated[
    Path,
    Argument(),
]
Steps = Annotated[list[int] | None, Option("--step")]
Ranks = Annotated[list[int] | None, Option("--rank")]
DataDir = Annotated[Path | None, Option("--data-dir")]
Port = Annotated[
    int | None,
    Option("--port", min=0, max=65535),
]
Host = Annotated[
    str | None,
    Option("--host"),
]

_VALUES: Final = {"--step": re.compile(r"-?\d+"), "--rank": re.compile(r"-?\d+"), "--root": re.compile(r"[^-].*")}
"""Options that take several values in a row, and the form of a value."""


def split_commas(values: Iterable[str] | None) -> tuple[str, ...]:
    """The words of options that may hold several words, separated by commas."""
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def repeat_options(arguments: list[str]) -> list[str]:
    """`--step 0 1` and `--step 0,1` as `--step 0 --step 1`: the parser takes one value per option."""
    out: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            return out + arguments[at - 1 :]
        option, equals, value = word.partition("=")
        form = _VALUES.get(option)
        if form is None:
            out.append(word)
            continue
        values = [value] if equals else []
        while not equals and at < len(arguments) and (not values or form.fullmatch(arguments[at])):
            values.append(arguments[at])
            at += 1
        if option != "--root":
            values = [number for one in values for number in one.split(",")]
        for one in values or [""]:
            out += [option, one]
    return out
