"""Opens a monitored run: a file of one rank, a folder of files, or what msprobe's monitor wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dumpscope.domain.monitor.tables import MonitorRank, MonitorRun
from dumpscope.errors import NotFoundError, Problem, UnreadableError
from dumpscope.readers.monitors import msprobe_csv, own_files
from dumpscope.readers.regular_file import refusal
from dumpscope.texts import say
from dumpscope_format.monitor import parse_file_name
from dumpscope_format.paths import natural_key

ENTRY_LIMIT: Final = 100_000


def open_monitor(path: str | os.PathLike[str], *, root: str = os.sep) -> MonitorRun:
    """Open a monitored run. Tables are read when they are asked for, those of csv files at once.

    root: folder that no link may lead out of
    Raises NotFoundError, UnreadableError, LimitError.
    """
    named = os.fspath(path)
    if not os.path.exists(named):
        raise NotFoundError(say("monitor.no_such_path"), where=named)
    problems: list[Problem] = []
    own = _own_files(named, root, problems)
    if own:
        ranks = [own_files.read_rank(folder, paths, problems) for folder, paths in own.items()]
        return _run(named, ranks, problems, ours=True)
    found = list(_msprobe_folders(named, root, problems))
    if found:
        return _run(
            named, [msprobe_csv.read_rank(rank, paths, problems) for rank, paths in found], problems, ours=False
        )
    raise UnreadableError(say("monitor.no_monitor_run"), hint=say("monitor.name_folder"), where=named)


def _run(path: str, ranks: list[MonitorRank | None], problems: list[Problem], *, ours: bool) -> MonitorRun:
    read = sorted((one for one in ranks if one is not None), key=lambda one: one.rank or 0)
    if not read:
        raise UnreadableError(say("monitor.no_steps"), hint=say("monitor.wait_for_steps"), where=path)
    return MonitorRun(path=path, tool="dumpscope" if ours else "msprobe", ranks=tuple(read), problems=tuple(problems))


def _entries(folder: str) -> list[str]:
    names = sorted(os.listdir(folder), key=natural_key)
    if len(names) > ENTRY_LIMIT:
        raise UnreadableError(say("checkpoints.too_many_files", count=ENTRY_LIMIT), where=folder)
    return names


def _own_files(path: str, root: str, problems: list[Problem]) -> dict[str, list[str]]:
    """Files of each rank, in the order of their parts."""
    if os.path.isfile(path):
        parsed = parse_file_name(os.path.basename(path))
        return {parsed[0]: [path]} if parsed else {}
    found: dict[str, list[tuple[int, str]]] = {}
    for name in _entries(path):
        parsed = parse_file_name(name)
        whole = os.path.join(path, name)
        if parsed is None or not _usable(whole, root, problems):
            continue
        found.setdefault(parsed[0], []).append((parsed[1], whole))
    return {folder: [one for _, one in sorted(parts)] for folder, parts in found.items()}


def _usable(path: str, root: str, problems: list[Problem]) -> bool:
    reason = refusal(path, root)
    if reason is not None:
        problems.append(Problem(loc=path, kind="refused", message=reason))
    return reason is None


def _msprobe_folders(path: str, root: str, problems: list[Problem]) -> Iterator[tuple[int | None, list[str]]]:
    """Rank and csv files, of the newest folder of each rank."""
    if os.path.isfile(path):
        if msprobe_csv.is_monitor_csv(path):
            yield msprobe_csv.rank_of_folder(os.path.basename(os.path.dirname(os.path.abspath(path)))), [path]
        return
    own = msprobe_csv.monitor_files(path)
    if own:
        yield (
            msprobe_csv.rank_of_folder(Path(path).resolve().name),
            [one for one in own if _usable(one, root, problems)],
        )
        return
    newest: dict[int, tuple[float, str, list[str]]] = {}
    for name in _entries(path):
        rank = msprobe_csv.rank_of_folder(name)
        folder = os.path.join(path, name)
        if rank is None or not os.path.isdir(folder):
            continue
        files = [one for one in msprobe_csv.monitor_files(folder) if _usable(one, root, problems)]
        if not files:
            continue
        made = os.path.getmtime(files[-1])
        older = newest.get(rank)
        if older is not None:
            skipped = min(older[1], folder) if older[0] == made else (folder if made < older[0] else older[1])
            problems.append(Problem(loc=skipped, kind="older", message=say("monitor.older_folder", rank=rank)))
        if older is None or made >= older[0]:
            newest[rank] = made, folder, files
    for rank, (_, _, files) in sorted(newest.items()):
        yield rank, files
