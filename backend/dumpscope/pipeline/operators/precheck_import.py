"""Results of a pre-check, as `dumpscope precheck` wrote them, into the index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dumpscope.domain.precheck import results_of_line
from dumpscope.errors import NotFoundError, Problem, UnreadableError
from dumpscope.index.dump_queries.prechecks import NodeResult, StoredCounts, put_prechecks
from dumpscope.index.store.database import Database
from dumpscope.pipeline.operators.precheck import FOLDER, STATE
from dumpscope.texts import say

LINE_BYTES: Final = 16 << 20
"""A longer line is no answer."""
STEPS: Final = 1 << 31


def import_precheck(database: Database, dump_id: str, path: Path) -> StoredCounts:
    """Keep the results of a folder of `dumpscope precheck`, or of its precheck.jsonl. Raises NotFoundError, UnreadableError."""
    file = path / STATE if path.is_dir() else path
    if not file.is_file():
        raise NotFoundError(
            say("pipeline.no_3", state=STATE),
            where=str(path),
            hint=say("pipeline.dumpscope_precheck_dump_o_folder_writes"),
        )
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return import_lines(database, dump_id, _bounded(lines), str(file))
    except OSError as error:
        raise UnreadableError(str(error), where=str(file)) from error


def import_lines(database: Database, dump_id: str, lines: Iterable[str], where: str = "") -> StoredCounts:
    """Keep the results of these lines. Lines that are none are left out, as the torn last one of a run that was cut off.

    Raises UnreadableError where there is none of the dump at all."""
    stored = put_prechecks(database, dump_id, _node_results(lines))
    if not stored.rows:
        why = say("pipeline.calls_not_those_dump") if stored.unknown else say("pipeline.holds_no_result_pre_check")
        raise UnreadableError(why, where=where or None, hint=say("pipeline.give_pre_check_dump", state=STATE))
    return stored


def import_beside(database: Database, dump_id: str, root: str) -> list[Problem]:
    """Keep the results that lie in a dump or beside it; what could not be read."""
    for folder in _beside(Path(root)):
        try:
            import_precheck(database, dump_id, folder)
        except (NotFoundError, UnreadableError) as error:
            return [Problem(loc=str(folder), kind="precheck", message=str(error))]
        return []
    return []


def _beside(root: Path) -> Iterator[Path]:
    """Folders of results of this dump: in it, named after it, or one that says that it is of it."""
    if root.is_dir():
        yield from (folder for folder in (root / FOLDER,) if (folder / STATE).is_file())
    named = root.with_name(f"{root.name}.{FOLDER}")
    if (named / STATE).is_file():
        yield named
    other = root.parent / FOLDER
    if (other / STATE).is_file() and _is_of(other / STATE, root):
        yield other


def _is_of(file: Path, root: Path) -> bool:
    try:
        with open(file, encoding="utf-8") as lines:
            results = json.loads(lines.readline(LINE_BYTES)).get("path")
    except (OSError, ValueError, AttributeError):
        return False
    return isinstance(results, str) and bool(results) and os.path.realpath(results) == os.path.realpath(root)


def _bounded(stream: Iterable[str]) -> Iterator[str]:
    for line in stream:
        if len(line) <= LINE_BYTES:
            yield line


def _node_results(lines: Iterable[str]) -> Iterator[NodeResult]:
    device = "cpu"
    for line in lines:
        try:
            found = json.loads(line)
            if "name" not in found:
                device = str(found.get("device", device))[:100]
                continue
            step, rank = found["step"], found["rank"]
            if not (type(step) is int and type(rank) is int and 0 <= step < STEPS and 0 <= rank < STEPS):
                continue
            results = results_of_line(found, device)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            continue
        yield from ((step, rank, node, one) for node, one in results.items())
