"""Arguments and options of several commands, and the ways to give lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one strict JSON document on stdout and nothing else.")]
Dump = Annotated[
    Path,
    typer.Argument(help="Dump root, step folder, rank folder, dump.json, debug.json, or a .zip/.tar of one."),
]
Steps = Annotated[list[int] | None, typer.Option("--step", help="Only these steps.")]
Ranks = Annotated[list[int] | None, typer.Option("--rank", help="Only these ranks.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the database and the uploads. [env: DUMPSCOPE_DATA_DIR]")
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one. [default: 8000]"),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host", help="Address to listen on; anything but loopback needs DUMPSCOPE_TOKEN. [default: 127.0.0.1]"
    ),
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
