"""Opens a monitored run: a file of one rank, a folder of files, or what msprobe's monitor wrote. A run that grows is read on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dumpscope.domain.monitor.tables import MonitorRank, MonitorRun
from dumpscope.errors import NotFoundError, Problem, UnreadableError
from dumpscope.readers.monitors import msprobe_csv
from dumpscope.readers.monitors.own_files import RankFiles
from dumpscope.readers.regular_file import refusal
from dumpscope.texts import say
from dumpscope_format.monitor import parse_file_name
from dumpscope_format.paths import inside, natural_key

ENTRY_LIMIT: Final = 100_000

Stamps = dict[str, tuple[int, int, int, int]]
"""Path of a file -> device, inode, size, time of its last change in nanoseconds."""


def open_monitor(path: str | os.PathLike[str], *, root: str = os.sep) -> MonitorRun:
    """Open a monitored run. Tables are read when they are asked for, those of csv files at once.

    root: folder that no link may lead out of
    Raises NotFoundError, UnreadableError, LimitError.
    """
    return FollowedRun(path, root=root).look()


class FollowedRun:
    """A run that may still grow. `look` gives it as it is now and reads only what is new: of our files what was appended, of csv
    files the ranks of which one changed."""

    def __init__(self, path: str | os.PathLike[str], *, root: str = os.sep) -> None:
        self._path = os.fspath(path)
        self._root = root
        self._state: Stamps = {}
        self._own: dict[str, RankFiles] = {}
        self._csv: dict[tuple[str, ...], tuple[Stamps, MonitorRank | None, list[Problem]]] = {}
        self._run: MonitorRun | None = None

    def look(self) -> MonitorRun:
        """The run as it is now: the same object where nothing changed. Raises NotFoundError, UnreadableError, LimitError."""
        try:
            return self._look()
        except OSError as error:  # no folder, not ours to read, or gone since it was listed
            reason = error.strerror or type(error).__name__
            raise UnreadableError(
                say("readers.cannot_opened", reason=reason), where=str(error.filename or self._path)
            ) from error

    def _look(self) -> MonitorRun:
        if not os.path.exists(self._path):
            raise NotFoundError(say("monitor.no_such_path"), where=self._path)
        problems: list[Problem] = []
        own = _own_files(self._path, self._root, problems)
        found = [] if own else list(_msprobe_folders(self._path, self._root, problems))
        if not own and not found:
            raise UnreadableError(say("monitor.no_monitor_run"), hint=say("monitor.name_folder"), where=self._path)
        paths = [one for paths in own.values() for one in paths] + [one for _, paths in found for one in paths]
        state = _stamps(paths)
        if self._run is None or state != self._state:
            ranks = self._own_ranks(own, state, problems) if own else self._csv_ranks(found, state, problems)
            self._run = _run(self._path, ranks, problems, ours=bool(own))
            self._state = state
        return self._run

    def _own_ranks(
        self, files: dict[str, list[str]], state: Stamps, problems: list[Problem]
    ) -> list[MonitorRank | None]:
        grown = self._state.keys() == state.keys() and all(_continues(self._state[one], state[one]) for one in state)
        if not grown:
            self._own = {folder: RankFiles(folder, paths) for folder, paths in files.items()}
        try:
            return [self._own[folder].read_on(problems) for folder in files]
        except UnreadableError:
            self._state = {}  # it begins again at the next look
            raise

    def _csv_ranks(
        self, found: Sequence[tuple[int | None, list[str]]], state: Stamps, problems: list[Problem]
    ) -> list[MonitorRank | None]:
        before, self._csv = self._csv, {}
        ranks = []
        for rank, paths in found:
            own = {path: state[path] for path in paths}
            known = before.get(tuple(paths))
            if known is None or known[0] != own:
                told: list[Problem] = []
                known = own, msprobe_csv.read_rank(rank, paths, told), told
            self._csv[tuple(paths)] = known
            problems += known[2]
            ranks.append(known[1])
        return ranks


def _stamps(paths: Sequence[str]) -> Stamps:
    found: Stamps = {}
    for path in paths:
        try:
            facts = os.stat(path)
        except OSError as error:
            raise UnreadableError(say("readers.cannot_opened", reason=error.strerror), where=path) from error
        found[path] = facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns
    return found


def _continues(before: tuple[int, int, int, int], now: tuple[int, int, int, int]) -> bool:
    """Whether a file is the one of before, at least as long."""
    return before[:2] == now[:2] and now[2] >= before[2]


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
        if os.path.islink(folder) and not inside(root, folder):
            problems.append(Problem(loc=folder, kind="refused", message=say("readers.link_out_dump")))
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
