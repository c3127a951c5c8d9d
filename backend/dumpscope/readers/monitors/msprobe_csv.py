"""The csv files of msprobe's monitor, both generations: `{metric}_{from}-{to}.csv` of TrainerMon in a folder
`{time}-rank{r}-{id}`, and `{monitor}_step{from}-{to}.csv` of TrainerMonitorV2 in `rank_{r}`."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dumpscope.domain.monitor.tables import MetricTable, MonitorRank
from dumpscope.errors import LimitError, Problem, UnreadableError
from dumpscope.readers.monitors.own_files import CELL_LIMIT
from dumpscope.readers.regular_file import open_regular, read_head
from dumpscope.texts import say
from dumpscope_format.monitor import METRICS, STATISTICS

_FILE: Final = re.compile(r"(.+?)_(?:step)?([0-9]{1,18})-([0-9]{1,18})\.csv")
_FOLDER: Final = re.compile(r"(?:.*-rank|rank_)([0-9]{1,9})(?:-.*)?")
_SCOPES: Final = {
    "unreduced": "grad_unreduced",
    "reduced": "grad_reduced",
    "forward": "actv",
    "backward": "actv_grad",
}
"""Words of TrainerMonitorV2 that TrainerMon says otherwise."""
_NAMES: Final = ("name", "module_name")
_LINE_END: Final = re.compile(r"\r\n?|\n")


def rank_of_folder(name: str) -> int | None:
    """The rank that the name of a folder of msprobe's monitor tells, None for any other name."""
    found = _FOLDER.fullmatch(name)
    return int(found[1]) if found else None


def monitor_files(folder: str) -> list[str]:
    """The csv files of a rank's folder, by their first step."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            parsed = _FILE.fullmatch(entry.name)
            if parsed and entry.is_file() and is_monitor_csv(entry.path):
                found.append((int(parsed[2]), entry.path))
    return [path for _, path in sorted(found)]


def is_monitor_csv(path: str) -> bool:
    """Whether a file's first line is that of msprobe's monitor."""
    heading = _heading(path)
    return "vpp_stage" in heading and "step" in heading and any(name in heading for name in _NAMES)


def read_rank(rank: int | None, paths: Sequence[str], problems: list[Problem]) -> MonitorRank | None:
    """One rank; None where no line can be read. Raises UnreadableError, LimitError."""
    by_metric: dict[str, list[str]] = {}
    for path in paths:
        for metric in _metrics(path):
            by_metric.setdefault(metric, []).append(path)
    tables: dict[str, MetricTable] = {}
    for metric, some in by_metric.items():
        table = _table(metric, some, problems)
        if table is not None:
            tables[metric] = table
    if not tables:
        return None
    metrics = tuple(one for one in METRICS if one in tables) + tuple(sorted(set(tables) - set(METRICS)))
    return MonitorRank(
        rank=rank,
        metrics={metric: tables[metric].statistics for metric in metrics},
        load=lambda metric, statistic=None: tables[metric],
        first_step=min(int(table.steps[0]) for table in tables.values()),
        last_step=max(int(table.steps[-1]) for table in tables.values()),
    )


def _metrics(path: str) -> list[str]:
    """Metrics in a file: that of its name, or those of its column `scope`."""
    heading = _heading(path)
    if "scope" not in heading:
        parsed = _FILE.fullmatch(os.path.basename(path))
        return [parsed[1] if parsed else os.path.basename(path).removesuffix(".csv")]
    place = heading.index("scope")
    return list(dict.fromkeys(_metric(row[place]) for _, row in _rows(path, []) if len(row) > place))


def _metric(scope: str) -> str:
    return _SCOPES.get(scope, scope)


def _heading(path: str) -> list[str]:
    head = _LINE_END.split(read_head(path).decode("utf-8-sig", "replace"), maxsplit=1)[0]
    try:
        return [word.strip() for word in next(csv.reader([head]), [])]
    except csv.Error:
        return []


def _rows(path: str, problems: list[Problem]) -> Iterator[tuple[int, list[str]]]:
    with open_regular(path) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", "replace", newline="")  # type: ignore[type-var]
        lines = csv.reader(_whole_lines(text, path, problems))
        try:
            next(lines, None)
            for row in lines:
                yield lines.line_num, row
        except csv.Error as error:
            message = say("monitor.line_damaged", line=lines.line_num, reason=error)
            problems.append(Problem(loc=path, kind="damaged", message=message))


def _whole_lines(text: Iterable[str], path: str, problems: list[Problem]) -> Iterator[str]:
    """All lines but one that has no end: it is being written, and its last number may lack digits."""
    for line in text:
        if line.endswith(("\n", "\r")):
            yield line
            continue
        cut = Problem(loc=path, kind="truncated", message=say("readers.last_line_not_whole"))
        if cut not in problems:
            problems.append(cut)


def _table(metric: str, paths: Sequence[str], problems: list[Problem]) -> MetricTable | None:
    cells: dict[tuple[int, str], tuple[float, ...]] = {}
    statistics: tuple[str, ...] = ()
    taken: dict[str, set[int]] = {}
    for path in paths:
        heading = _heading(path)
        own = tuple(word for word in heading if word in STATISTICS)
        statistics = statistics + tuple(word for word in own if word not in statistics)
        read = _reader(heading, statistics, metric)
        bad = 0
        here: set[int] = set()
        for _, row in _rows(path, problems):
            found = read(row)
            if found is None:
                bad += 1
            elif found[0] is not None:
                cells[found[0]] = found[1]
                here.add(found[0][0])
            if len(cells) * max(len(statistics), 1) > CELL_LIMIT:
                raise LimitError(say("monitor.table_too_large", metric=metric, count=CELL_LIMIT), where=path)
        for word in own:
            taken.setdefault(word, set()).update(here)
        if bad:
            problems.append(Problem(loc=path, kind="damaged", message=say("monitor.rows_skipped", count=bad)))
    if not cells:
        return None
    steps = sorted({step for step, _ in cells})
    names = list(dict.fromkeys(name for _, name in cells))
    values = np.full((len(steps), len(names), len(statistics)), np.nan, dtype=np.float32)
    present = np.zeros((len(steps), len(names)), dtype=np.bool_)
    lacking = np.array([[step not in taken[word] for word in statistics] for step in steps])
    rows = {step: place for place, step in enumerate(steps)}
    columns = {name: place for place, name in enumerate(names)}
    with np.errstate(over="ignore"):
        for (step, name), numbers in cells.items():
            values[rows[step], columns[name], : len(numbers)] = numbers
            present[rows[step], columns[name]] = True
    return MetricTable(
        metric=metric,
        names=tuple(names),
        statistics=statistics,
        steps=np.array(steps, dtype=np.int64),
        values=values,
        present=present,
        lacking=lacking if lacking.any() else None,
    )


def _reader(heading: Sequence[str], statistics: Sequence[str], metric: str) -> Any:
    """A function from a row to ((step, name), numbers): the key is None for a row of another metric, all is None for one that is
    damaged. Of several micro steps the last one counts."""
    place = {word: at for at, word in enumerate(heading)}
    name_at = place.get("name", place.get("module_name", -1))
    wanted = [place.get(one, -1) for one in statistics]
    scope_at = place.get("scope")
    count_at = statistics.index("nans") if "nans" in heading else None
    needed = max([name_at, place.get("step", -1), place.get("vpp_stage", -1)])
    if name_at < 0 or "step" not in place:
        raise UnreadableError(say("monitor.no_monitor_file"))

    def read(row: Sequence[str]) -> tuple[tuple[int, str] | None, tuple[float, ...]] | None:
        if len(row) <= needed:
            return None
        if scope_at is not None and (len(row) <= scope_at or _metric(row[scope_at]) != metric):
            return None if len(row) <= scope_at else (None, ())
        try:
            step = int(row[place["step"]])
            numbers = tuple(_number(row[at]) if 0 <= at < len(row) else float("nan") for at in wanted)
        except ValueError:
            return None
        if abs(step) > 1 << 53:
            return None
        if count_at is not None and math.isnan(numbers[count_at]):  # how many are NaN is a number: there was no tensor
            return None, ()
        return (step, _name(row[name_at], place, row)), numbers

    return read


def _name(name: str, place: Mapping[str, int], row: Sequence[str]) -> str:
    """The name as ours is: a further chunk's number stands before it."""
    stage = row[place["vpp_stage"]] if "vpp_stage" in place else "0"
    return name if stage in ("", "0") else f"{stage}:{name}"


def _number(text: str) -> float:
    return float(text) if text else float("nan")
