"""Run an unchanged training script, with calls counted, saved or run differently.

    python -m dumpscope_capture.run [options] script.py [arguments of the script]
    python -m dumpscope_capture.run [options] -m package.module [arguments]
    python -m dumpscope_capture.run --as msprobe script.py    its imports of msprobe (or ptdbg_ascend) are this package

The script is `__main__`, has its own `sys.argv` and `sys.path[0]`, and its exceptions and exit status are its own.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dumpscope_capture import old_names
from dumpscope_capture.calls import observers
from dumpscope_capture.context import rank
from dumpscope_capture.interventions import activate
from dumpscope_capture.proof.backward_failures import HOWS, Explainer
from dumpscope_capture.proof.call_counter import CALL_COUNTER
from dumpscope_capture.proof.call_saving import CallSaver
from dumpscope_capture.proof.recipe import Recipe, RecipeError, follow
from dumpscope_format.interventions import REPORT_VARIABLE, VARIABLE, InterventionError
from dumpscope_format.paths import rank_folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Apply the options and run the script. Exits with status 2 for unusable options."""
    parser = _parser()
    given = parser.parse_args(arguments)
    program = list(given.program)
    if program[:1] == ["--"]:
        del program[0]
    if not program and not given.module:
        parser.error("which script? python -m dumpscope_capture.run script.py")
    recipe = _recipe(parser, given.recipe) if given.recipe else None
    for variable, value in ((VARIABLE, given.intervene), (REPORT_VARIABLE, given.report)):
        if value is not None:
            os.environ[variable] = value
    try:
        activate()
    except InterventionError as error:
        parser.error(str(error))
    saver = _saver(parser, given.save_call, _output(given.output, recipe)) if given.save_call else None
    if saver is not None:
        observers.OBSERVERS.append(saver)
        CALL_COUNTER.retain()
    if given.explain_backward:
        Explainer(given.explain_backward).__enter__()
    if not given.module and not os.path.isfile(program[0]):
        parser.error(f"{program[0]} is no file")
    for name in given.stands_for:
        if old_names.is_installed(name) and not given.replace:
            parser.error(f"the real {name} is installed here: add --replace to use dumpscope_capture in its place")
        old_names.stand_in(name)
    try:
        _run(given.module, program)
    except BaseException as error:
        if recipe is not None:
            recipe.note_exception(error)
        raise
    finally:
        if saver is not None:
            saver.warn_of_unmet()


def _run(module: str | None, program: list[str]) -> None:
    if module:
        sys.argv = [module, *program]
        sys.path[0] = os.getcwd()
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    sys.argv = program
    sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
    runpy.run_path(program[0], run_name="__main__")


def _recipe(parser: argparse.ArgumentParser, base: str) -> Recipe:
    try:
        return follow(base)
    except RecipeError as error:
        parser.error(str(error))


def _output(given: str | None, recipe: Recipe | None) -> str:
    return given or ("." if recipe is None else str(recipe.folder))


def _saver(parser: argparse.ArgumentParser, names: Sequence[str], output: str) -> CallSaver:
    folder = Path(output, rank_folder(rank(), os.getpid()))
    try:
        return CallSaver(names, lambda: folder)
    except InterventionError as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dumpscope_capture.run",
        description="Run a script with some of its PyTorch calls counted, saved or run differently.",
    )
    parser.add_argument(
        "--intervene",
        metavar="JSON",
        help=f"patterns of calls and treatments, or a file with them; sets {VARIABLE}",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help=f"write the names of all calls and what was done, as JSON, at the end; sets {REPORT_VARIABLE}",
    )
    parser.add_argument(
        "--save-call",
        metavar="NAME",
        action="append",
        help="save a call, or the calls of a pattern, before it executes; may be given again",
    )
    parser.add_argument(
        "--explain-backward",
        choices=HOWS,
        help="name the call behind a backward that fails or makes NaN",
    )
    parser.add_argument(
        "--recipe",
        metavar="DIR",
        help="wait for every kernel, allow one process, keep environment, versions and logs of the run in a folder below DIR",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="where saved_calls/ is made (default: that of --recipe, or here)"
    )
    parser.add_argument(
        "--as",
        dest="stands_for",
        choices=old_names.OLD,
        action="append",
        default=[],
        help="imports of this package in the script give dumpscope_capture; may be given again",
    )
    parser.add_argument("--replace", action="store_true", help="with --as: also where the real package is installed")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead of a file")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the script and its arguments")
    return parser


if __name__ == "__main__":
    main()
