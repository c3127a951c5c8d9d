"""`dumpscope parse` alone: a prompt with the commands of ptdbg's parse tool, or the same commands from stdin."""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from dumpscope.cli.exit_codes import BAD_USAGE, COMPARED
from dumpscope.cli.printing import line
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.export.words import plural
from dumpscope.metrics.differing_elements import find_differing
from dumpscope.ptdbg import calls
from dumpscope.readers.tensors import npy_file
from dumpscope.texts import say

PROMPT: Final = "Parse >>> "
ROWS: Final = 16
COLUMNS: Final = 8
_ENDS: Final = ("exit", "quit")
_HELP: Final = """\
pk -f FILE.pkl [-n PREFIX]                        statistics and stacks of records by the beginning of their names
pt -n FILE.npy                                    summary and first values of a tensor; all of it goes to a text file here
cn -m MINE.npy -g GOLDEN.npy [-p 20] [-al 0.001] [-rl 0.001]
                                                  elements with |m - g| > al + rl * |g|, the farthest apart first
run COMMAND                                       a command of the shell
help, exit
vc, dc, cad                                       refused: kernel files of a device are read with CANN's msaccucmp.py"""
_CANN: Final = {
    "vc": say("cann.compares_files"),
    "dc": say("cann.converts_files"),
    "cad": say("cann.converts_folders"),
}


def run() -> int:
    """Read commands until the end. A failed one is told and the next is read; from a pipe or file the status is then 2."""
    asked = sys.stdin.isatty()
    failed = False
    for text in _typed() if asked else sys.stdin:
        try:
            words = _words(text)
            if words and words[0] in _ENDS:
                break
            if words:
                _command(words, text)
        except (DumpscopeError, calls.CompareException, OSError) as error:
            failed = True
            sys.stdout.flush()
            sys.stderr.write(f"dumpscope: {' '.join(str(error).split())}\n")
    return BAD_USAGE if failed and not asked else COMPARED


def _typed() -> Iterator[str]:
    import readline  # noqa: F401, PLC0415  (gives `input` its editing and history)

    line("Commands of ptdbg's parse tool; help lists them, exit ends.")
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            line()
            return


def _words(text: str) -> list[str]:
    if text.split(maxsplit=1)[:1] == ["run"]:
        return ["run"]
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise UsageError(f"{text.strip()!r}: {error}") from error


def _command(words: list[str], text: str) -> None:
    name, given = words[0], words[1:]
    if name in _CANN:
        raise UsageError(
            say("cli.which_needs_canns_msaccucmp_py_not", name=name, cann=_CANN[name]),
            hint=say("cli.call_msaccucmp_py_machine_cann_dumpscope"),
        )
    done = _COMMANDS.get(name)
    if done is not None:
        done(given)
    elif name == "run":
        _shell(text)
    elif name in ("help", "?"):
        line(_HELP)
    else:
        raise UsageError(say("cli.there_no_command", name=f"{name!r}"), hint=say("cli.help_lists_them"))


class _Options(argparse.ArgumentParser):
    """Options of one command; a wrong one is an error of the command, not the end of the program."""

    def __init__(self, name: str) -> None:
        super().__init__(prog=name, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=say("cli.help_lists_commands"))


# -- commands --------------------------------------------------------------------------------------------------------


def _records(given: list[str]) -> None:
    options = _Options("pk")
    options.add_argument("-f", required=True)
    options.add_argument("-n", default="")
    found = options.parse_args(given)
    calls.parse(found.f, found.n, write=line)


def _tensor(given: list[str]) -> None:
    options = _Options("pt")
    options.add_argument("-n", type=Path, required=True)
    path: Path = options.parse_args(given).n
    loaded = npy_file.load(path)
    flat = np.ravel(loaded.array)
    line(f"{path.name}: {loaded.dtype} {list(loaded.shape)}, {plural(flat.size, 'element')}")
    if flat.size:
        line(_summary(flat))
    for start in range(0, min(flat.size, ROWS * COLUMNS), COLUMNS):
        line("  ".join(f"{_shown(value):>12}" for value in flat[start : min(start + COLUMNS, ROWS * COLUMNS)]))
    saved = _saved(path, loaded.array)
    line(f"all of it is in {saved}")


def _elements(given: list[str]) -> None:
    options = _Options("cn")
    options.add_argument("-m", type=Path, required=True)
    options.add_argument("-g", type=Path, required=True)
    options.add_argument("-p", type=_count, default=20)
    options.add_argument("-al", type=_bound, default=0.001)
    options.add_argument("-rl", type=_bound, default=0.001)
    found = options.parse_args(given)
    mine, golden = npy_file.load(found.m), npy_file.load(found.g)
    first, second = np.ravel(mine.array), np.ravel(golden.array)
    line(f"m: {mine.dtype} {list(mine.shape)}   g: {golden.dtype} {list(golden.shape)}")
    if first.size != second.size:
        line("The sizes differ: the shorter one is filled up with zeros.")
    told = find_differing(first, second, absolute=found.al, relative=found.rl, limit=found.p)
    line(
        f"{told.count} of {plural(told.total, 'element')} with |m - g| > {found.al:g} + {found.rl:g} * |g|; "
        f"largest |m - g| {told.largest:.6g}"
    )
    if not told.places:
        return
    line(f"{'place':>12}  {'m':>14}  {'g':>14}  {'|m - g|':>12}  {'relative':>12}")
    for place in told.places:
        one, other = _at(first, place), _at(second, place)
        with np.errstate(all="ignore"):
            gap = np.abs(one - other)
            share = gap / np.abs(other)
        line(f"{place:>12}  {_shown(one):>14}  {_shown(other):>14}  {_shown(gap):>12}  {_shown(share):>12}")


def _shell(text: str) -> None:
    command = text.split(maxsplit=1)[1:]
    if not command:
        raise UsageError(say("cli.run_there_no_command"), hint=say("cli.run_command"))
    sys.stdout.flush()
    status = subprocess.run(command[0], shell=True, stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        raise UsageError(say("cli.run_command_ended_status", status=status))


_COMMANDS: Final[dict[str, Callable[[list[str]], None]]] = {"pk": _records, "pt": _tensor, "cn": _elements}


# -- values ----------------------------------------------------------------------------------------------------------


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def _bound(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance")
    return value


def _at(flat: np.ndarray[Any, Any], place: int) -> Any:
    """An element in float64, 0 behind the end."""
    kind = np.complex128 if flat.dtype.kind == "c" else np.float64
    return kind(flat[place] if place < flat.size else 0)


def _summary(flat: np.ndarray[Any, Any]) -> str:
    """max, min and mean of the finite elements, by magnitude where they are complex, and how many are not finite."""
    values = np.abs(flat) if flat.dtype.kind == "c" else flat
    finite = values[np.isfinite(values)]
    out = []
    if finite.size:
        out += [f"max {_shown(finite.max())}", f"min {_shown(finite.min())}"]
        out += [f"mean {_shown(finite.mean(dtype=np.float64))}"]
    if finite.size < values.size:
        out.append(f"{values.size - finite.size} not finite")
    return "  ".join(out)


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, np.inexact) else str(value)


def _saved(path: Path, array: np.ndarray[Any, Any]) -> Path:
    """Write all elements, the last dimension a line, to the first free name in the working directory."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim and array.size else array.reshape(-1, 1)
    number = 1
    while True:
        name = Path(f"{path.stem}.txt" if number == 1 else f"{path.stem}_{number}.txt")
        try:
            with name.open("x", encoding="utf-8") as out:
                for row in rows:
                    out.write(" ".join(str(value) for value in row.tolist()) + "\n")
            return name.absolute()
        except FileExistsError:
            number += 1
