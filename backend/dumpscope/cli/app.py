"""The list of commands, their exit statuses, and one clear line per error.

Each command is in its own file, which is imported only when the command runs or its help is shown: starting must be fast.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from dumpscope.cli.exit_codes import BAD_USAGE, COMPARED, INTERRUPTED, OUTPUT_CLOSED
from dumpscope.cli.options import repeat_options
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.gc_tuning import collect_rarely
from dumpscope.texts import LANGUAGES, has, say, speaking, tell, template, translate, wished_language

COMMANDS: Final = (
    "info", "compare", "overflow", "calibrate", "trends", "parse", "serve", "demo", "reproduce", "precheck",
    "precheck-compare", "bisect", "msprobe", "handover",
)  # fmt: skip
"""Every command, in the order of the list. Command `name` is the function `name` of `dumpscope.cli.commands.name`; its help is in
the catalogue: `help.name`, `help.name.more`, and `help.name.option` or `help.any.option`."""
_WORDS: Final = ("help.word.usage", "help.word.options", "help.word.arguments", "help.word.commands", "help.show")
"""What the parser itself writes into each help text."""


class _Command(TyperCommand):
    def get_help(self, ctx: Any) -> str:
        return _in_own_words(super().get_help(ctx))


class _Commands(TyperGroup):
    """Lists the commands without importing them, and imports only the requested one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed if name is None else load_command(name), rest

    def get_help(self, ctx: Any) -> str:
        self.help = tell("help.dumpscope")
        for name, command in self.commands.items():
            command.short_help = tell(f"help.{name}")
        for option in self.params:
            option.help = tell(f"help.{option.name}")  # type: ignore[attr-defined]
        return _in_own_words(super().get_help(ctx))


def _in_own_words(text: str) -> str:
    """A help text with the words of the parser in the language of this context."""
    for id in _WORDS:
        text = text.replace(template(id), tell(id))
    return text


app = typer.Typer(
    name="dumpscope",
    cls=_Commands,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def load_command(name: str) -> Any:
    """The parser of one command, with its options and their help; imports the command's module."""
    word = name.replace("-", "_")
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(name, cls=_Command)(getattr(import_module(f"dumpscope.cli.commands.{word}"), word))
    command: Any = typer.main.get_command(alone)
    more = [tell(f"help.{name}.more")] if has(f"help.{name}.more") else []
    command.help = "\n\n".join([tell(f"help.{name}"), *more])
    for one in command.params:
        own = f"help.{name}.{one.name}"
        one.help = tell(own if has(own) else f"help.any.{one.name}")
    return command


def _list_only() -> None:
    """Placeholder for a command in the list; load_command returns the real one."""


for _name in COMMANDS:
    app.command(_name)(_list_only)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", is_eager=True)] = False,
    lang: Annotated[
        str | None,
        typer.Option("--lang", metavar="en|zh"),
    ] = None,
) -> None:
    assert lang is None, "taken out of the arguments by take_language"
    if version:
        from dumpscope import __version__  # noqa: PLC0415

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand != "serve" and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # see __main__; `serve` has its own (cli.ending)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `dumpscope` command; ends the process with a documented exit status."""
    collect_rarely()
    sys.exit(status(list(sys.argv[1:] if arguments is None else arguments)))


def status(arguments: list[str]) -> int:
    """Run the command line in the language it asks for and return its exit status."""
    rest, language = take_language(arguments)
    if language is not None and language not in LANGUAGES:
        allowed = UsageError(say("cli.unknown_language", language=f"{language!r}", languages=", ".join(LANGUAGES)))
        return _complain(str(allowed), BAD_USAGE)
    with speaking(wished_language(language)):
        try:
            return _status(_own_words(rest))
        except DumpscopeError as error:
            return _complain(translate(str(error)), BAD_USAGE)


def take_language(arguments: list[str]) -> tuple[list[str], str | None]:
    """The arguments without `--lang LANGUAGE` (anywhere before a `--`), and the language, None if it is not given."""
    out: list[str] = []
    language = None
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*out, argument, *rest], language
        if argument == "--lang":
            language = next(rest, "")
        elif argument.startswith("--lang="):
            language = argument.removeprefix("--lang=")
        else:
            out.append(argument)
    return out, language


def _own_words(arguments: list[str]) -> list[str]:
    """The arguments, those of a line of msprobe in our words; `-f FRAMEWORK` begins such a line too."""
    own, rest = arguments[:1], arguments[1:]
    if own in (["-f"], ["--framework"]):
        rest = arguments
    elif own != ["msprobe"] or not rest or "--help" in rest or "-h" in rest:
        return arguments
    from dumpscope.cli.commands.msprobe import translate_line  # noqa: PLC0415

    line = translate_line(rest)
    sys.stderr.write(tell("cli.msprobe_same_line", line=shlex.join(["dumpscope", *line])) + "\n")
    return line


def _status(arguments: list[str]) -> int:
    try:
        answer = typer.main.get_command(app).main(
            repeat_options(arguments) or ["--help"], prog_name="dumpscope", standalone_mode=False
        )
        sys.stdout.flush()
    except DumpscopeError as error:
        return _complain(translate(str(error)), BAD_USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return _complain(tell("cli.interrupted"), INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # the reader of our output has closed it: discard what is still buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
        return OUTPUT_CLOSED
    except OSError as error:
        return _complain(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "), BAD_USAGE)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # typer has its own click or uses the installed one
        if usage is not None:
            return _complain(_bad_use(error, " ".join(str(usage()).split())), BAD_USAGE)
        if os.environ.get("DUMPSCOPE_DEBUG"):
            traceback.print_exc()
        return _complain(
            tell("cli.internal_error_dumpscope_debug_1_shows_where", name=type(error).__name__, error=error),
            BAD_USAGE,
        )
    if answer == INTERRUPTED:
        return _complain(tell("cli.interrupted"), INTERRUPTED)
    return answer if isinstance(answer, int) else COMPARED


def _bad_use(error: Exception, why: str) -> str:
    """What is wrong in a command line. why: the parser's own sentence, in English"""
    if hasattr(error, "option_name"):
        return tell("help.no_such_option", option=error.option_name)
    parameter = getattr(error, "param", None)
    if parameter is None:
        return tell("help.bad_use", why=why)
    options = [word for word in parameter.opts if word.startswith("-")]
    name = " / ".join(options) or str(parameter.name).upper()
    if type(error).__name__ == "MissingParameter":
        return tell("help.missing", name=name)
    return tell("help.bad_value", name=name, why=getattr(error, "message", why))


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"dumpscope: {' '.join(text.split())}\n")
    return code
