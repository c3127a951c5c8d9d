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
from typer.core import TyperGroup

from dumpscope.cli.exit_codes import BAD_USAGE, COMPARED, INTERRUPTED, OUTPUT_CLOSED
from dumpscope.cli.options import repeat_options
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.gc_tuning import collect_rarely
from dumpscope.texts import LANGUAGES, say, speaking, tell, translate, wished_language

COMMANDS: Final = {
    "info": "Show what is in a dump: framework, task, level, steps, ranks, nodes, items, problems.",
    "compare": "Compare two dumps and name the operator that went wrong first.",
    "overflow": "Find the first NaN or infinity of each rank and step: where it started, and what only passed it on.",
    "calibrate": "Measure the noise of a healthy pair and write the tolerances for `compare --policy`.",
    "trends": "Show calls over steps and ranks: the numbers of one dump or the errors of two, and the first bad step.",
    "parse": "Print statistics and call stack of the nodes whose name begins with NODE_PREFIX.",
    "serve": "Serve the web UI and the REST interface, for the data folder or for result files.",
    "demo": "Compare two bundled real dumps that hold a known fault, and serve the result.",
    "reproduce": "Write a script that runs one call of a dump alone, forward and backward, and judges it.",
    "precheck": "Run every API of a dump alone against a higher-precision CPU reference.",
    "precheck-compare": "Compare the pre-checks of two devices: is the first one less accurate?",
    "bisect": "Find the smallest set of calls that must run differently to repair a program.",
    "msprobe": "Take a command line of msprobe, print the same in words of dumpscope, and run that.",
    "handover": "Pack one call for the owner of the operator: script, tensors, stack, environment, matrix.",
}
"""Every command and its line in the list. Command `name` is the function `name` of `dumpscope.cli.commands.name`."""


class _Commands(TyperGroup):
    """Lists the commands without importing them, and imports only the requested one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed if name is None else load_command(name), rest


app = typer.Typer(
    name="dumpscope",
    cls=_Commands,
    help="Find the operator that made two PyTorch runs diverge, from their dumps.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def load_command(name: str) -> Any:
    """The parser of one command, with its options; imports the command's module."""
    word = name.replace("-", "_")
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(getattr(import_module(f"dumpscope.cli.commands.{word}"), word))
    return typer.main.get_command(alone)


def _list_only() -> None:
    """Placeholder for a command in the list; load_command returns the real one."""


for _name, _line in COMMANDS.items():
    app.command(_name, help=_line)(_list_only)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
    lang: Annotated[
        str | None,
        typer.Option("--lang", metavar="en|zh", help="Language of what is printed. [env: DUMPSCOPE_LANG, LANG]"),
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
            return _complain(" ".join(str(usage()).split()), BAD_USAGE)
        if os.environ.get("DUMPSCOPE_DEBUG"):
            traceback.print_exc()
        return _complain(
            tell("cli.internal_error_dumpscope_debug_1_shows_where", name=type(error).__name__, error=error),
            BAD_USAGE,
        )
    if answer == INTERRUPTED:
        return _complain(tell("cli.interrupted"), INTERRUPTED)
    return answer if isinstance(answer, int) else COMPARED


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"dumpscope: {' '.join(text.split())}\n")
    return code
