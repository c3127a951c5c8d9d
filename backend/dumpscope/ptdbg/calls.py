"""The comparison calls of ptdbg_ascend for scripts written for it: `compare`, `compare_distributed`, `parse`.

They write ptdbg's tables (docs/tables.md) with this program's measurements and its causal origin as the advisor's suspect. Errors
are `CompareException`s with ptdbg's codes; nothing exits the process or asks on the terminal.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, RankRef
from dumpscope.domain.result import Answer, Unit
from dumpscope.errors import DumpscopeError, LimitError, UnreadableError, UsageError
from dumpscope.export.table.unit_table import Table
from dumpscope.pipeline.compare.in_process import Workers, compare_plan
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.pipeline.planning.comparison_plan import ComparisonPlan
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.ptdbg.export.files import write_ptdbg
from dumpscope.ptdbg.reader.files import Found, find_files, holds_arrays, rank_ref
from dumpscope.ptdbg.reader.lines import Data, Stack, read_lines
from dumpscope.readers import discover
from dumpscope.readers.regular_file import open_regular
from dumpscope_format.paths import rank_number
from dumpscope_format.ptdbg import Code, CompareException

__all__ = ["Code", "CompareException", "Compared", "compare", "compare_distributed", "parse"]

PATHS: Final = ("npu_pkl_path", "bench_pkl_path")
FOLDERS: Final = ("npu_dump_data_dir", "bench_dump_data_dir")
JSON_PATHS: Final = ("npu_json_path", "bench_json_path")
"""The same two by the names of msprobe's first guides, for its dump.json."""
STACK_PATH: Final = "stack_json_path"
"""Taken and not needed: stack.json is found beside dump.json."""
LOGGED: Final = "is_print_compare_log"
_RANK: Final = re.compile(r"rank[0-9]+")
_PLACE: Final = re.compile(r"^File (.+)(, line [0-9]+, in .+)$")
_log: Final = logging.getLogger("dumpscope.ptdbg")

Pair = tuple[RankRef, RankRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a comparison found, and the files that it wrote."""

    answer: Answer
    files: list[Path]


def compare(
    input_param: Mapping[str, Any],
    output_path: str | os.PathLike[str],
    stack_mode: bool | None = None,
    auto_analyze: bool = True,
    fuzzy_match: bool | str = False,
    suffix: str = "",
) -> Compared:
    """Compare two files of records, write `compare_result{suffix}_{time}.csv` and `.xlsx`, and print the advice.

    input_param: `npu_pkl_path` and `bench_pkl_path`, or `npu_json_path` and `bench_json_path` of msprobe's dump.json;
        `npu_dump_data_dir` and `bench_dump_data_dir` for tensors of a .pkl (without both the statistics are compared);
        `is_print_compare_log`: log what is done
    stack_mode: None shows call stacks where there are any, False leaves them out; that the files hold stacks is seen from them
    auto_analyze: write `advisor{suffix}_{time}.txt` and print it; fuzzy_match: match calls whatever their call index (a text is
        the suffix, which was the fifth argument in 2.3)
    Raises CompareException.
    """
    if isinstance(fuzzy_match, str):
        suffix, fuzzy_match = fuzzy_match, False
    _require_flags(stack_mode=stack_mode, auto_analyze=auto_analyze, fuzzy_match=fuzzy_match)
    if not isinstance(suffix, str) or re.search(r"[/\\\0]", suffix):
        raise CompareException(Code.INVALID_PARAM, f"suffix {suffix!r} is not a part of a file name")
    paths, folders = _inputs(input_param)
    output = _output(output_path)
    one, other = (_file_ref(path, folder) for path, folder in zip(paths, folders or (None, None), strict=True))
    chosen = _Chosen(
        stacks=stack_mode is not False, advice=auto_analyze, fuzzy=fuzzy_match, tensors=folders is not None
    )
    named = str(paths[0]), str(paths[1])
    return _compared([(one, other)], named, output, chosen, lambda _place: suffix, log=input_param.get(LOGGED, True))


def compare_distributed(
    npu_dump_dir: str | os.PathLike[str],
    bench_dump_dir: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    **kwargs: Any,
) -> Compared:
    """Compare two folders of `rank*` folders, paired by the order of their numbers, and write
    `compare_result_rank{X}-rank{Y}_{time}.csv`, `.xlsx` and the advisor's text for each pair.

    kwargs: stack_mode, auto_analyze, fuzzy_match as in `compare`; causes are looked for over all ranks together
    Raises CompareException.
    """
    unknown = sorted(kwargs.keys() - {"stack_mode", "auto_analyze", "fuzzy_match"})
    if unknown:
        raise CompareException(
            Code.INVALID_PARAM,
            f"{', '.join(unknown)} cannot be given here; known are stack_mode, auto_analyze, fuzzy_match",
        )
    stack_mode, advice = kwargs.get("stack_mode"), kwargs.get("auto_analyze", True)
    fuzzy = kwargs.get("fuzzy_match", False)
    _require_flags(stack_mode=stack_mode, auto_analyze=advice, fuzzy_match=fuzzy)
    output = _output(output_path)
    sides = [
        _ranks(Path(folder), word)
        for folder, word in ((npu_dump_dir, "npu_dump_dir"), (bench_dump_dir, "bench_dump_dir"))
    ]
    if len(sides[0]) != len(sides[1]):
        counts = f"{len(sides[0])} of {npu_dump_dir} against {len(sides[1])} of {bench_dump_dir}"
        raise CompareException(Code.INVALID_PATH, f"the numbers of ranks differ: {counts}")
    pairs = list(zip(*sides, strict=True))
    chosen = _Chosen(stacks=stack_mode is not False, advice=advice, fuzzy=fuzzy, tensors=True)
    return _compared(
        pairs, (str(npu_dump_dir), str(bench_dump_dir)), output, chosen,
        lambda place: f"_{pairs[place][0].label}-{pairs[place][1].label}",
    )  # fmt: skip


def parse(pkl_file: str | os.PathLike[str], prefix: str, *, write: Callable[[str], None] = print) -> None:
    """Print statistics and call stacks of every record whose name begins with `prefix`, stacks with the outermost call first.

    Raises CompareException.
    """
    if not isinstance(prefix, str):
        raise CompareException(Code.INVALID_PARAM, f"the prefix is a {type(prefix).__name__}, not a text")
    path = _existing(pkl_file, "pkl_file")
    titled = found = False

    def note(place: str, _kind: str, message: str) -> None:
        write(f"{path}: {place}: {message}")

    with _coded(Code.PARSE_FILE), open_regular(str(path)) as stream:
        for line in read_lines(stream, note):
            if not line.name.startswith(prefix):
                continue
            found = True
            if isinstance(line, Stack):
                write(f"{line.name}:\n{_traceback(line.frames)}")
                continue
            if not titled:
                titled = True
                write("Statistics (name, dtype, shape, max, min, mean):")
            write(_statistics(line))
    if not found:
        write(f"no record of {path} begins with {prefix!r}")


# -- inputs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    stacks: bool
    advice: bool
    fuzzy: bool
    tensors: bool


def _require_flags(**flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool) and not (name == "stack_mode" and value is None):
            raise CompareException(Code.INVALID_PARAM, f"{name} is {value!r}, not True or False")


def _inputs(given: Any) -> tuple[tuple[Path, Path], tuple[Path, Path] | None]:
    """(files of records, folders of tensors or None)"""
    if not isinstance(given, Mapping):
        raise CompareException(Code.INVALID_PARAM, f"input_param is a {type(given).__name__}, not a dict")
    unknown = sorted(str(key) for key in given.keys() - {*PATHS, *JSON_PATHS, STACK_PATH, *FOLDERS, LOGGED})
    if unknown:
        known = ", ".join((*PATHS, *JSON_PATHS, STACK_PATH, *FOLDERS, LOGGED))
        raise CompareException(Code.INVALID_PARAM, f"input_param has no {', '.join(unknown)}; known are {known}")
    if not isinstance(given.get(LOGGED, True), bool):
        raise CompareException(Code.INVALID_PARAM, f"{LOGGED} is {given[LOGGED]!r}, not True or False")
    names = (
        JSON_PATHS if any(name in given for name in JSON_PATHS) and not any(name in given for name in PATHS) else PATHS
    )
    paths = _existing(given.get(names[0]), names[0]), _existing(given.get(names[1]), names[1])
    if all(given.get(name) for name in FOLDERS):
        return paths, (_folder(given[FOLDERS[0]], FOLDERS[0]), _folder(given[FOLDERS[1]], FOLDERS[1]))
    if any(given.get(name) for name in FOLDERS):
        _log.warning("only one of %s is given: the statistics are compared, not the tensors", " and ".join(FOLDERS))
    return paths, None


def _existing(given: Any, name: str) -> Path:
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise CompareException(Code.INVALID_PATH, f"{name} is missing: {given!r} is no path")
    path = Path(given)
    if not path.exists():
        raise CompareException(Code.INVALID_PATH, f"{name}: there is no {path.absolute()}")
    return path


def _folder(given: Any, name: str) -> Path:
    path = _existing(given, name)
    if not path.is_dir():
        raise CompareException(Code.INVALID_PATH, f"{name}: {path.absolute()} is no folder")
    return path


def _output(given: Any) -> Path:
    path = _folder(given, "output_path")
    if not os.access(path, os.W_OK):
        raise CompareException(Code.PERMISSION, f"output_path: {path.absolute()} cannot be written to")
    return path


def _file_ref(path: Path, folder: Path | None) -> RankRef:
    if path.is_file() and not path.stat().st_size:
        raise CompareException(Code.INVALID_DUMP_FILE, f"{path} is empty: the run ended before OFF or stop()")
    with _coded(Code.INVALID_DUMP_FILE):
        ranks = discover(path).ranks
    if len(ranks) != 1:
        raise CompareException(Code.INVALID_DUMP_FILE, f"{path} holds {len(ranks)} ranks: name the file of one")
    return ranks[0] if folder is None or ranks[0].layout != "ptdbg" else replace(ranks[0], tensors=os.fspath(folder))


def _ranks(folder: Path, word: str) -> list[RankRef]:
    """Ranks of one side by their numbers."""
    path = _folder(folder, word)
    names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
    odd = [name for name in names if not _RANK.fullmatch(name)]
    if odd or not names:
        found = ", ".join(odd[:5]) or "nothing"
        raise CompareException(
            Code.INVALID_PATH,
            f"{path} must hold rank folders and nothing else, there is {found}; name the folder above them",
        )
    return [_rank(path / name) for name in sorted(names, key=lambda name: int(name[4:]))]


def _rank(folder: Path) -> RankRef:
    def note(where: str, _kind: str, message: str) -> None:
        _log.warning("%s: %s", where, message)

    if (folder / "dump.json").is_file():
        return replace(_file_ref(folder, None), step=0, rank=rank_number(folder.name), label=folder.name)
    with _coded(Code.INVALID_DUMP_FILE):
        found = find_files(str(folder), str(folder), note)
    if found is None or os.path.isdir(found.main):
        raise CompareException(Code.NO_DUMP_FILE, f"{folder} holds no .pkl of ptdbg and no dump.json")
    _require_folder(folder, found)
    number = rank_number(folder.name)
    return rank_ref(found, step=0, rank=number, label=folder.name, folder=str(folder))


def _require_folder(folder: Path, found: Found) -> None:
    others = [entry.name for entry in folder.iterdir() if entry.is_dir() and holds_arrays(str(entry))]
    if others and found.tensors is None and not found.parts:
        main = os.path.basename(found.main)
        raise CompareException(Code.INVALID_FILE, f"{folder}: the tensor folder {others[0]} does not go with {main}")


class _coded:  # noqa: N801 - reads as a statement
    """A block whose errors become CompareExceptions: `code` where a dump is unreadable."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, UnreadableError):
            raise CompareException(self.code, str(error)) from error
        if isinstance(error, LimitError):
            raise CompareException(Code.OVER_SIZE, str(error)) from error
        if isinstance(error, UsageError):
            raise CompareException(Code.INVALID_PARAM, str(error)) from error
        if isinstance(error, DumpscopeError):
            raise CompareException(Code.UNKNOWN, str(error)) from error
        if isinstance(error, OSError):
            raise CompareException(Code.WRITE_FILE, str(error)) from error


# -- comparing -------------------------------------------------------------------------------------------------------


def _compared(
    pairs: Sequence[Pair],
    named: tuple[str, str],
    output: Path,
    chosen: _Chosen,
    suffix: Callable[[int], str],
    *,
    log: bool = True,
) -> Compared:
    """Compare in this process (a script that calls this need not guard its main module), then write."""
    options = Options(policy="ptdbg", fuzzy=chosen.fuzzy, tensors=chosen.tensors)
    with _coded(Code.INVALID_DUMP_FILE):
        plan = ComparisonPlan(
            ranks=[
                RankPair(step=0, rank=place if target.rank is None else target.rank, target=target, golden=golden)
                for place, (target, golden) in enumerate(pairs)
            ]
        )
        target_side, golden_side = (
            DumpIndex(root=root, ranks=list(refs), problems=[])
            for root, refs in zip(named, zip(*pairs, strict=True), strict=True)
        )
        workers = Workers(processes=False, all_or_nothing=True)
        outcome = compare_plan(plan, target_side, golden_side, options, paths=named, workers=workers)
    answer, units = outcome.answer, outcome.units
    for unit in units:
        _warn(unit, tensors=chosen.tensors)
    files: list[Path] = []
    with _coded(Code.WRITE_FILE):
        for place in range(len(pairs)):
            name, text = _names(output, suffix(place))
            table = partial(_table, units, place)
            files += write_ptdbg(output, name, text if chosen.advice else None, answer, [table], stacks=chosen.stacks)
    for path in files:
        if log:
            _log.info("wrote %s", path)
        if path.suffix == ".txt":
            if len(pairs) > 1:
                print(f"{path.name}:")
            print(path.read_text(encoding="utf-8"), end="")
    return Compared(answer=answer, files=files)


def _warn(unit: Unit, *, tensors: bool) -> None:
    """Log what of the dumps is damaged or missing: who calls this does not look at the answer's problems."""
    for dump in (unit.target, unit.golden):
        for problem in dump.problems:
            _log.warning("%s: %s: %s", dump.ref.folder, problem.loc, problem.message)
    without = [dump.ref.dump_json for dump in (unit.target, unit.golden) if dump.header.data_dir is None]
    if tensors and len(without) == 1:
        _log.warning("%s has no tensor files: its statistics are compared, not the tensors", without[0])


def _table(units: UnitStore, place: int) -> Table:
    return Table(units[place])


def _names(output: Path, suffix: str) -> tuple[str, str]:
    """Names of the table and the advice, with the first second from now on that has none yet."""
    now = time.time()
    while True:
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now))
        names = f"compare_result{suffix}_{stamp}", f"advisor{suffix}_{stamp}"
        if not any((output / f"{name}{end}").exists() for name in names for end in (".csv", ".xlsx", ".txt")):
            return names[0].replace("{", "{{").replace("}", "}}"), names[1].replace("{", "{{").replace("}", "}}")
        now += 1


# -- printing --------------------------------------------------------------------------------------------------------


def _statistics(line: Data) -> str:
    shape = "[]" if line.shape is None else str(list(line.shape))
    stats = [_shown(value) for value in line.stats[:3]]
    cells = [*stats, *([f"md5 {line.check}"] if line.check else [])]
    return "  ".join([line.name, line.dtype, shape, *cells])


def _shown(value: Any) -> str:
    return "-" if value == [] else f"{value}"


def _traceback(frames: Sequence[str]) -> str:
    """Frames as Python shows them, outermost first."""
    out = ["Traceback (most recent call last):"]
    for frame in reversed(frames):
        place, _, source = frame.partition("\n")
        out.append(_PLACE.sub(r'  File "\1"\2', place.rstrip(", ")))
        if source.strip():
            out.append(f"    {source.strip()}")
    return "\n".join(out)
