"""The parser of the command line: the options and arguments of a command are the annotated parameters of its function.

click splits the line. typer, which reads such annotations too, imports pydantic: a quarter of the time of a small comparison.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Sequence
from inspect import Parameter as Declared, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import click

from dumpscope.errors import UsageError
from dumpscope.texts import say, tell

HELP: Final = "--help"
_WIDEST: Final = 78
_LEFT: Final = 30
"""Columns of the names in a list at most; longer names have a line of their own."""
_SHOWN: Final = {Path: "PATH", int: "INTEGER", float: "NUMBER", str: "TEXT"}


class Option:
    """Marks a parameter as an option: `Annotated[int, Option("--jobs", min=0)]`. A bool is a flag; a list is given repeatedly."""

    __slots__ = ("max", "metavar", "min", "names")

    def __init__(self, *names: str, metavar: str = "", min: int | None = None, max: int | None = None) -> None:
        self.names = names
        self.metavar = metavar
        self.min = min
        self.max = max


class Argument:
    """Marks a parameter as an argument, which is given by its place; a list takes all that are left."""

    __slots__ = ("metavar",)

    def __init__(self, *, metavar: str = "") -> None:
        self.metavar = metavar


class Parameter:
    """An option or an argument of a command.

    kind: the type of one value; many: whether the function gets a list; opts: names of an option, () for an argument
    """

    __slots__ = ("default", "help", "kind", "many", "marked", "name", "opts", "required")

    def __init__(self, name: str, hint: Any, default: Any) -> None:
        declared, self.marked = get_args(hint)
        whole = next(one for one in get_args(declared) if one is not NoneType) if default is None else declared
        self.many = get_origin(whole) is list
        self.kind: Any = get_args(whole)[0] if self.many else whole
        self.name = name
        self.opts: tuple[str, ...] = self.marked.names if isinstance(self.marked, Option) else ()
        self.required = default is Declared.empty
        self.default = None if self.required else default
        self.help = ""

    @property
    def label(self) -> str:
        """How messages call it."""
        return " / ".join(self.opts) or self.name.upper()

    def read(self, word: str) -> Any:
        """The value that a word stands for. Raises UsageError."""
        if self.kind is str:
            return word
        if self.kind is Path:
            return Path(word)
        try:
            value = self.kind(word)
        except ValueError:
            why = "cli.no_integer" if self.kind is int else "cli.no_number"
            raise self.wrong(say(why, word=f"{word!r}")) from None
        low, high = self.marked.min, self.marked.max
        if low is not None and value < low:
            raise self.wrong(say("cli.number_too_small", number=value, limit=low))
        if high is not None and value > high:
            raise self.wrong(say("cli.number_too_large", number=value, limit=high))
        return value

    def parsed(self) -> click.Parameter:
        """What click reads it by. click shows no message of its own, so that every message is in the catalogue."""
        if not self.opts:
            return click.Argument(
                [self.name], type=self.read, required=False, nargs=-1 if self.many else 1, default=self.default
            )
        if self.kind is bool:
            return click.Option([self.name, *self.opts], is_flag=True, default=self.default)
        return click.Option([self.name, *self.opts], type=self.read, multiple=self.many, default=self.default)

    def wrong(self, why: str) -> UsageError:
        return UsageError(say("help.bad_value", name=self.label, why=why))

    def shown(self) -> str:
        """Its name and value in the list of a help text."""
        value = self.marked.metavar or _SHOWN.get(self.kind, "")
        if not self.opts:
            return self.in_usage()
        return f"{', '.join(sorted(self.opts, key=len))} {value}".rstrip()

    def in_usage(self) -> str:
        """An argument as the line of usage shows it."""
        word = self.marked.metavar or self.name.upper()
        return word if self.required or word.startswith("[") else f"[{word}]{'...' if self.many else ''}"

    def explained(self) -> str:
        """Its help with its default and its limits."""
        low, high = (self.marked.min, self.marked.max) if self.opts else (None, None)
        notes = []
        if self.default is not None and self.default is not False:
            notes.append(tell("help.word.default", value=self.default))
        if high is not None:
            notes.append(f"{'' if low is None else low}..{high}")
        elif low is not None:
            notes.append(f">= {low}")
        return self.help + (f" [{'; '.join(notes)}]" if notes else "")


class Command:
    """A function as a command."""

    def __init__(self, name: str, function: Callable[..., int]) -> None:
        self.name = name
        self.help = ""
        self._function = function
        hints = get_type_hints(function, include_extras=True)
        declared = signature(function).parameters.values()
        self._own = next((one.name for one in declared if hints[one.name] is Command), None)
        self.params = [
            Parameter(one.name, hints[one.name], one.default)
            for one in declared
            if get_origin(hints[one.name]) is Annotated
        ]
        self._arguments = [one for one in self.params if not one.opts]

    def run(self, words: Sequence[str]) -> int:
        """Call the function with what the words say, or print the help. Returns the exit status. Raises UsageError."""
        given = self._read(words)
        if given.pop("help"):
            print(self.get_help())
            return 0
        for one in self.params:
            if one.required and given[one.name] is None:
                raise UsageError(say("help.missing", name=one.label), hint=self._usage_hint())
        return self._function(**given, **({} if self._own is None else {self._own: self}))

    def _read(self, words: Sequence[str]) -> dict[str, Any]:
        """Values by the names of their parameters. Raises UsageError."""
        help = click.Option([HELP], is_flag=True)
        command = click.Command(self.name, params=[*(one.parsed() for one in self.params), help], add_help_option=False)
        try:
            context = command.make_context(self.name, list(words), allow_extra_args=True)
        except click.NoSuchOption as error:
            raise self._no_such_option(error.option_name) from None
        except click.BadOptionUsage as error:
            one = next(one for one in self.params if error.option_name in one.opts)
            raise one.wrong(say("cli.flag_takes_no_value" if one.kind is bool else "cli.value_missing")) from None
        if context.args and not context.params["help"]:
            raise UsageError(say("cli.unexpected_argument", word=context.args[0]), hint=self._usage_hint())
        return {
            name: list(value) or None if isinstance(value, tuple) else value for name, value in context.params.items()
        }

    def _no_such_option(self, given: str) -> UsageError:
        """There is no such option; names one that is written like it."""
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(given, [word for one in self.params for word in one.opts], 1)
        told = say("help.no_such_option", option=given)
        if near:
            told = say("help.no_such_option_near", option=given, near=near[0])
        return UsageError(told, hint=say("help.lists_options", command=self.name))

    def _usage_hint(self) -> str:
        return say("help.usage_is", usage=self._usage(), command=self.name)

    def _usage(self) -> str:
        words = (one.in_usage() for one in self._arguments)
        return " ".join(["dumpscope", self.name, tell("help.word.placeholder"), *words])

    def get_help(self) -> str:
        """The help text, in the language of this context."""
        options = [one for one in self.params if one.opts]
        return help_text(
            self._usage(),
            self.help,
            ("help.word.arguments", [(one.shown(), one.explained()) for one in self._arguments]),
            ("help.word.options", [*((one.shown(), one.explained()) for one in options), (HELP, tell("help.show"))]),
        )


def help_text(usage: str, about: str, *lists: tuple[str, list[tuple[str, str]]]) -> str:
    """A help text. lists: id of a heading, and names with what they mean; an empty list is left out"""
    width = _line_width()
    lines = [f"{tell('help.word.usage')} {usage}", ""]
    for paragraph in about.split("\n\n"):
        lines += [*("  " + line for line in wrap(" ".join(paragraph.split()), width - 2)), ""]
    for heading, rows in lists:
        if not rows:
            continue
        left = min(_LEFT, max(columns(name) for name, _ in rows)) + 2
        lines.append(tell(heading))
        for name, meaning in rows:
            told = wrap(meaning, width - 2 - left) or [""]
            if columns(name) > left - 2:
                lines.append(f"  {name}")
            else:
                lines.append(f"  {name}{' ' * (left - columns(name))}{told.pop(0)}".rstrip())
            lines += [" " * (left + 2) + line for line in told]
        lines.append("")
    return "\n".join(lines[:-1])


def _line_width() -> int:
    try:
        return max(40, min(_WIDEST, os.get_terminal_size().columns - 2))
    except OSError:
        return _WIDEST


def columns(text: str) -> int:
    """Columns of a terminal that a text takes: Chinese characters take two."""
    return sum(map(_columns_of, text))


def _columns_of(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns: broken at blanks, and behind characters that are two columns wide."""
    lines: list[str] = []
    line = word = ""
    for letter in [*text, " "]:
        if letter != " ":
            word += letter
        if letter != " " and _columns_of(letter) == 1:
            continue
        if line and columns(line) + columns(word) > width:
            lines.append(line.rstrip())
            line = ""
        line += word + (" " if letter == " " else "")
        word = ""
    return [*lines, line.rstrip()] if line.strip() else lines
