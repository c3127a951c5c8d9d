"""Commands, their options, and what a shell sees: exit statuses and one clear line per error."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.gc_tuning import collect_rarely

FINE: Final = 0
DIVERGED: Final = 1
BAD_INPUT: Final = 2
INCOMPLETE: Final = 3
INTERRUPTED: Final = 130
UNREAD: Final = 141
"""The reader of a pipe has gone, as a shell counts it."""

_LISTS: Final = {"--step": re.compile(r"-?\d+"), "--rank": re.compile(r"-?\d+"), "--root": re.compile(r"[^-].*")}
"""Options that take several values in a row, and what such a value looks like."""

app = typer.Typer(
    name="dumpscope",
    help="Find the operator that made two PyTorch runs diverge, from their dumps.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print one strict JSON document on stdout and nothing else.")]
Dump = Annotated[
    Path,
    typer.Argument(help="Dump root, step folder, rank folder, dump.json, debug.json, or a .zip/.tar of one."),
]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Where the database and uploads live. [env: DUMPSCOPE_DATA_DIR]")
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


@app.command()
def info(path: Dump, json: Json = False) -> int:
    """What is in a dump: framework, task, level, steps, ranks, nodes, items, problems."""
    from dumpscope.cli.commands.info import run  # noqa: PLC0415

    return run(path, as_json=json)


@app.command()
def compare(
    target: Annotated[Path, typer.Argument(help="Dump of the run in doubt.")],
    golden: Annotated[Path, typer.Argument(help="Dump of the run that is right.")],
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference", help="Dump of an absolute reference (CPU, float64): which side is farther from it?"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for result files and result.db.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="csv, xlsx, json, html, ptdbg; several with commas. Default csv."),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", help="How to judge: default, ptdbg, msprobe, or a policy file.")
    ] = "default",
    fuzzy: Annotated[bool, typer.Option("--fuzzy", help="Match calls whatever their call index.")] = False,
    data_mapping: Annotated[
        Path | None, typer.Option("--data-mapping", help="yaml: target item name to golden item name.")
    ] = None,
    cell_mapping: Annotated[
        Path | None, typer.Option("--cell-mapping", help="yaml: target module to golden module.")
    ] = None,
    layer_mapping: Annotated[
        Path | None, typer.Option("--layer-mapping", help="yaml: renamed layers by class.")
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option("--rename", metavar="PATTERN=REPLACEMENT", help="Regex over the target's labels; repeatable."),
    ] = None,
    fusion: Annotated[
        Path | None, typer.Option("--fusion", help="yaml: fused calls and the runs that do the same.")
    ] = None,
    matches: Annotated[
        Path | None, typer.Option("--matches", help="yaml: matches made by hand, as the server exports them.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="yaml: which ranks are joined, as --dry-run prints it; `{}` finds one."),
    ] = None,
    step: Annotated[list[int] | None, typer.Option("--step", help="Only these steps.")] = None,
    rank: Annotated[list[int] | None, typer.Option("--rank", help="Only these ranks.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes to use; 0 means one per core.")] = 0,
    json: Json = False,
    pairs: Annotated[bool, typer.Option("--pairs", help="Add every item pair to the JSON.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be matched, rule by rule, and what would be left.")
    ] = False,
    fail_on: Annotated[
        str, typer.Option("--fail-on", help="Verdict from which the exit status is 1: no, warning or never.")
    ] = "no",
) -> int:
    """Compare two dumps and name the causal first wrong operator.

    Exit status: 0 nothing at or above --fail-on, 1 a divergence, 2 bad usage or unreadable input, 3 compared but some
    items could not be read.
    """
    from dumpscope.cli.commands.compare import Request, run  # noqa: PLC0415

    return run(
        Request(
            target=target,
            golden=golden,
            reference=reference,
            output=output,
            formats=_split(formats or []),
            policy=policy,
            fuzzy=fuzzy,
            data_mapping=data_mapping,
            cell_mapping=cell_mapping,
            layer_mapping=layer_mapping,
            rename=tuple(rename or ()),
            fusion=fusion,
            matches=matches,
            plan=plan,
            steps=tuple(step or ()),
            ranks=tuple(rank or ()),
            jobs=jobs,
            as_json=json,
            pairs=pairs,
            fail_on=fail_on,
            dry_run=dry_run,
        )
    )


@app.command()
def overflow(path: Dump, json: Json = False) -> int:
    """First NaN or infinity per rank and step: where it was born, and what only passed it on.

    Exit status: 1 where one was found that nobody asked for.
    """
    from dumpscope.cli.commands.overflow import run  # noqa: PLC0415

    return run(path, as_json=json)


@app.command()
def calibrate(
    one: Annotated[Path, typer.Argument(metavar="HEALTHY", help="A dump of code that is known to be right.")],
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="A second run of it, or the same on other hardware.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Policy file to write.")] = Path("policy.yaml"),
) -> int:
    """Measure the noise of a healthy pair and write floors for `compare --policy`."""
    from dumpscope.cli.commands.calibrate import run  # noqa: PLC0415

    return run(one, other, output)


@app.command()
def trends(
    target: Dump,
    golden: Annotated[
        Path | None, typer.Argument(help="Dump to compare with; without one the numbers of TARGET are shown.")
    ] = None,
    statistic: Annotated[
        str | None,
        typer.Option("--statistic", help="norm, max, min or mean. Default: norm of one dump, the error of two."),
    ] = None,
    inputs: Annotated[
        bool, typer.Option("--inputs", help="Of what the calls received, not of what they gave.")
    ] = False,
    kind: Annotated[str, typer.Option("--kind", help="Calls to list: module, api or all.")] = "module",
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Only calls with this in their name.")] = "",
    node: Annotated[str | None, typer.Option("--node", metavar="NAME", help="Only this call.")] = None,
    by_rank: Annotated[
        bool, typer.Option("--by-rank", help="Of two dumps: a row per rank, not the worst of all.")
    ] = False,
    step: Annotated[list[int] | None, typer.Option("--step", help="Only these steps.")] = None,
    rank: Annotated[list[int] | None, typer.Option("--rank", help="Only these ranks.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows to print.")] = 40,
    json: Json = False,
) -> int:
    """How calls go over steps and ranks: numbers of one dump or errors of two, growth, first bad step."""
    from dumpscope.cli.commands.trends import Request, run  # noqa: PLC0415

    return run(
        Request(
            target=target,
            golden=golden,
            statistic=statistic,
            inputs=inputs,
            kind=kind,
            find=find,
            node=node,
            by_rank=by_rank,
            steps=tuple(step or ()),
            ranks=tuple(rank or ()),
            limit=limit,
            as_json=json,
        )
    )


@app.command()
def parse(
    path: Annotated[
        Path | None,
        typer.Argument(help="A dump, as for `info`. Without one commands of ptdbg's parse tool are read from stdin."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Argument(metavar="[NODE_PREFIX]", help="Beginning of the node names to show.")
    ] = None,
) -> int:
    """Statistics and call stack of the nodes whose name begins with NODE_PREFIX; alone, a prompt."""
    if path is None:
        from dumpscope.ptdbg.prompt import run as prompt  # noqa: PLC0415

        return prompt()
    if prefix is None:
        raise UsageError("parse PATH needs a NODE_PREFIX", hint="dumpscope parse PATH NODE_PREFIX")
    from dumpscope.cli.commands.parse import run  # noqa: PLC0415

    return run(path, prefix)


@app.command()
def serve(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RESULT]...", help="result.db of a comparison, or its folder: shows a copy of it."),
    ] = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    root: Annotated[
        list[Path] | None, typer.Option("--root", help="Folders whose dumps may be opened. Default: the current one.")
    ] = None,
) -> int:
    """Serve the web UI and the REST interface, of the data folder or of result files."""
    from dumpscope.cli.ending import Ending  # noqa: PLC0415

    with Ending() as ending:
        from dumpscope.cli.commands.serve import run  # noqa: PLC0415

        return run(ending, results=results or [], host=host, port=port, data_dir=data_dir, roots=root or [])


@app.command()
def demo(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    no_serve: Annotated[bool, typer.Option("--no-serve", help="Compare and print the answer only.")] = False,
) -> int:
    """Compare two bundled real dumps that hold a known fault, and serve the result."""
    from dumpscope.cli.commands.demo import run  # noqa: PLC0415

    return run(host=host, port=port, data_dir=data_dir, serve=not no_serve)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from dumpscope import __version__  # noqa: PLC0415

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand != "serve" and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # see __main__; `serve` has its own (cli.ending)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `dumpscope` command; ends the process with the contract's exit status."""
    collect_rarely()
    sys.exit(status(list(sys.argv[1:] if arguments is None else arguments)))


def status(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    try:
        answer = typer.main.get_command(app).main(
            spread(arguments) or ["--help"], prog_name="dumpscope", standalone_mode=False
        )
        sys.stdout.flush()
    except DumpscopeError as error:
        return _say(str(error), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # the reader of our output has gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
        return UNREAD
    except OSError as error:
        return _say(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "), BAD_INPUT)
    except Exception as error:
        say = getattr(error, "format_message", None)  # a usage error, whichever click raised it
        if say is not None:
            return _say(" ".join(str(say()).split()), BAD_INPUT)
        if os.environ.get("DUMPSCOPE_DEBUG"):
            traceback.print_exc()
        return _say(
            f"internal error: {type(error).__name__}: {error} (DUMPSCOPE_DEBUG=1 shows where; please report it)",
            BAD_INPUT,
        )
    if answer == INTERRUPTED:
        return _say("interrupted", INTERRUPTED)
    return answer if isinstance(answer, int) else FINE


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"dumpscope: {' '.join(text.split())}\n")
    return code


def _split(values: list[str]) -> tuple[str, ...]:
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def spread(arguments: list[str]) -> list[str]:
    """`--step 0 1` and `--step 0,1` as `--step 0 --step 1`: the parser takes one value per option."""
    out: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            return out + arguments[at - 1 :]
        option, equals, value = word.partition("=")
        form = _LISTS.get(option)
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
