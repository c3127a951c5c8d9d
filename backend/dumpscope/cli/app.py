"""The list of commands, their exit statuses, and one clear line per error.

Each command is in its own file, which is imported only when the command runs or its help is shown: starting must be fast.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from dumpscope.cli.exit_codes import BAD_USAGE, COMPARED, INTERRUPTED, OUTPUT_CLOSED
from dumpscope.cli.options import repeat_options
from dumpscope.cli.parser import HELP, Command, help_text
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.gc_tuning import collect_rarely
from dumpscope.texts import LANGUAGES, has, say, speaking, tell, translate, wished_language

COMMANDS: Final = (
    "info", "compare", "explain", "overflow", "calibrate", "trends", "parse", "serve", "demo", "reproduce", "precheck",
    "precheck-compare", "bisect", "msprobe", "handover", "upload", "mcp", "diff-checkpoints", "monitor",
    "health",
)  # fmt: skip
"""Every command, in the order of the list. Command `name` is the function `name` of a module `name`; its help is in the
catalogue: `help.name`, `help.name.more`, and `help.name.option` or `help.any.option`."""
PROOF: Final = frozenset({"reproduce", "precheck", "precheck-compare", "bisect", "handover"})
"""Those that are in `dumpscope.cli.commands.proof`."""
ROOT_OPTIONS: Final = (("--version", "help.version"), ("--lang en|zh", "help.lang"), (HELP, "help.show"))
"""The options of `dumpscope` itself, and the ids of what they mean."""


def load_command(name: str) -> Command:
    """The parser of one command, with its options and their help; imports the command's module."""
    word = name.replace("-", "_")
    folder = "dumpscope.cli.commands.proof" if name in PROOF else "dumpscope.cli.commands"
    command = Command(name, getattr(import_module(f"{folder}.{word}"), word))
    more = [tell(f"help.{name}.more")] if has(f"help.{name}.more") else []
    command.help = "\n\n".join([tell(f"help.{name}"), *more])
    for one in command.params:
        own = f"help.{name}.{one.name}"
        one.help = tell(own if has(own) else f"help.any.{one.name}")
    return command


def get_help() -> str:
    """The help of `dumpscope` itself: its options and commands; imports no command."""
    return help_text(
        f"dumpscope {tell('help.word.command')}",
        tell("help.dumpscope"),
        ("help.word.options", [(option, tell(id)) for option, id in ROOT_OPTIONS]),
        ("help.word.commands", [(name, tell(f"help.{name}")) for name in COMMANDS]),
    )


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
        answer = _run(repeat_options(arguments) or [HELP])
        sys.stdout.flush()
    except DumpscopeError as error:
        return _complain(translate(str(error)), BAD_USAGE)
    except KeyboardInterrupt:
        return _complain(tell("cli.interrupted"), INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has closed it: discard what is still buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
        return OUTPUT_CLOSED
    except OSError as error:
        return _complain(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "), BAD_USAGE)
    except Exception as error:
        if os.environ.get("DUMPSCOPE_DEBUG"):
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        return _complain(
            tell("cli.internal_error_dumpscope_debug_1_shows_where", name=type(error).__name__, error=error),
            BAD_USAGE,
        )
    if answer == INTERRUPTED:
        return _complain(tell("cli.interrupted"), INTERRUPTED)
    return answer


def _run(arguments: list[str]) -> int:
    """Run the command that the first word names. Raises UsageError for a line that cannot be understood."""
    name, *rest = arguments
    if name == HELP:
        print(get_help())
        return COMPARED
    if name == "--version":
        from dumpscope import __version__  # noqa: PLC0415

        print(__version__)
        return COMPARED
    if name.startswith("-"):
        raise UsageError(say("help.no_such_option", option=name), hint=say("help.lists_commands"))
    if name not in COMMANDS:
        raise _unknown(name)
    command = load_command(name)
    if name != "serve" and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # see __main__; `serve` has its own (cli.ending)
    return command.run(rest)


def _unknown(name: str) -> UsageError:
    """There is no such command; names one that is written like it."""
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, COMMANDS, 1)
    told = (
        say("cli.no_such_command_near", command=name, near=near[0])
        if near
        else say("cli.no_such_command", command=name)
    )
    return UsageError(told, hint=say("help.lists_commands"))


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"dumpscope: {' '.join(text.split())}\n")
    return code
