"""`dumpscope trends`: calls over steps, of one dump or of two that are compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from dumpscope.analysis.trends import Bucket
from dumpscope.cli.exit_codes import COMPARED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout, read_ranks, require_read
from dumpscope.cli.options import Dump, Json, Ranks, Steps
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.cli.progress import Progress
from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex
from dumpscope.errors import Problem, UsageError
from dumpscope.export.document import problem_document, wire
from dumpscope.export.words import number
from dumpscope.index.dump_queries.node_values import Statistic
from dumpscope.index.dump_queries.trends import ValueTrend, ValueTrends, dump_trends
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.pair_queries.over_units.trends import Cell, Trend, Trends, comparison_trends
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.trees.trend_rows import Kind
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.pipeline.results.save import save_comparison
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import say, tell

COLUMNS: Final = 12
"""Buckets of steps in the printed table."""
MOST_BUCKETS: Final = 100
_PAGE: Final = 25
_MARKS: Final = {"no": "✗", "warning": "!", "yes": "✓", "n/a": "–"}
_COLOURS: Final = {"no": "red", "warning": "yellow"}

Row = ValueTrend | Trend
Found = ValueTrends | Trends


def trends(
    target: Dump,
    golden: Annotated[Path | None, Argument()] = None,
    statistic: Annotated[
        str | None,
        Option("--statistic"),
    ] = None,
    inputs: Annotated[bool, Option("--inputs")] = False,
    kind: Annotated[str, Option("--kind")] = "module",
    find: Annotated[str, Option("--find", metavar="TEXT")] = "",
    node: Annotated[str | None, Option("--node", metavar="NAME")] = None,
    by_rank: Annotated[bool, Option("--by-rank")] = False,
    step: Steps = None,
    rank: Ranks = None,
    limit: Annotated[int, Option("--limit", min=1)] = 40,
    json: Json = False,
) -> int:
    """Show calls over steps and ranks: the numbers of one dump or the errors of two, and the first bad step."""
    return _run(
        _Request(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The command line."""

    target: Path
    golden: Path | None = None
    statistic: str | None = None
    inputs: bool = False
    kind: str = "module"
    find: str = ""
    node: str | None = None
    by_rank: bool = False
    steps: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    limit: int = 40
    as_json: bool = False


def _run(request: _Request) -> int:
    """Print the table. Returns the exit status."""
    _check(request)
    buckets = MOST_BUCKETS if request.as_json else COLUMNS
    with _database() as database:
        ask, problems, incomplete = _alone(request, database) if request.golden is None else _pair(request, database)
        first, rows = _rows(lambda after: ask(buckets, after), None if request.as_json else request.limit)
    if request.node is not None and not rows:
        raise UsageError(
            say("cli.no_step_rank_has_call", node=f"{request.node!r}"), hint=say("cli.find_text_looks_part_name")
        )
    if request.as_json:
        print_json(_document(request, first, rows, problems))
    else:
        _print(request, first, rows, problems)
    return NOT_FULLY_JUDGED if incomplete else COMPARED


def _check(request: _Request) -> None:
    for word, value, known in (
        ("--kind", request.kind, get_args(Kind)),
        ("--statistic", request.statistic, (None, *get_args(Statistic))),
    ):
        if value not in known:
            raise UsageError(say("cli.not_one", word=word, value=f"{value!r}", names=", ".join(filter(None, known))))
    if request.golden is not None and request.inputs:
        raise UsageError(say("cli.inputs_about_one_dump"), hint=say("cli.leave_out_golden_compare_outputs"))


Ask = Callable[[int, int | None], Found]


def _alone(request: _Request, database: Database) -> tuple[Ask, list[Problem], bool]:
    with open_layout(request.target) as layout:
        chosen = _choose_units(request, layout)
        problems, read, lost = list(layout.problems), 0, False
        dump = create_dump(database, name=request.target.name, path=str(request.target))
        for _, one in read_ranks(chosen):
            if isinstance(one, Problem):
                problems.append(one)
                lost = True
                continue
            problems += one.problems
            read += 1
            lost = lost or not len(one.nodes)
            store_dump_rank(database, dump, one)
        require_read(read, layout, problems)

    def ask(buckets: int, after: int | None) -> Found:
        return dump_trends(
            database,
            dump,
            statistic=request.statistic or "norm",  # type: ignore[arg-type]
            part="input" if request.inputs else "output",
            kind=_kind(request),  # type: ignore[arg-type]
            q=request.find,
            name=request.node,
            buckets=buckets,
            after=after,
            limit=_PAGE,
        )

    return ask, problems, lost


def _pair(request: _Request, database: Database) -> tuple[Ask, list[Problem], bool]:
    assert request.golden is not None
    options = Options(steps=request.steps, ranks=request.ranks)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=request.as_json and not sys.stderr.isatty()))
        target, golden = (stack.enter_context(open_layout(path)) for path in (request.target, request.golden))
        paths = str(request.target), str(request.golden)
        outcome = compare_layouts(target, golden, options, paths=paths, progress=progress.say)
        comparison = save_comparison(database, outcome, options, name="trends")

    def ask(buckets: int, after: int | None) -> Found:
        return comparison_trends(
            database,
            comparison,
            statistic=request.statistic,  # type: ignore[arg-type]
            by_rank=request.by_rank,
            kind=_kind(request),  # type: ignore[arg-type]
            q=request.find,
            name=request.node,
            buckets=buckets,
            after=after,
            limit=_PAGE,
        )

    return ask, outcome.answer.problems, outcome.incomplete


@contextmanager
def _database() -> Iterator[Database]:
    """A database that is removed at the end of the block."""
    with TemporaryFolder() as room:
        database = Database.open(sqlite_url(room.path / "trends.db"))
        try:
            yield database
        finally:
            database.close()


def _choose_units(request: _Request, layout: DumpIndex) -> DumpIndex:
    """The requested steps and ranks; raises UsageError for a number that the dump does not have."""
    for word, wanted, there in (
        ("step", request.steps, layout.steps),
        ("rank", request.ranks, layout.rank_numbers),
    ):
        missing = [one for one in wanted if one not in there]
        if missing:
            raise UsageError(
                say("cli.there_no", word=word, missing=missing[0]),
                hint=say("cli.there", names=", ".join(map(str, there))),
            )
    kept = [
        ref
        for ref in layout.ranks
        if (not request.steps or ref.step in request.steps) and (not request.ranks or (ref.rank or 0) in request.ranks)
    ]
    return replace(layout, ranks=kept)


def _kind(request: _Request) -> str:
    return "all" if request.node is not None else request.kind


def _rows(ask: Callable[[int | None], Found], limit: int | None) -> tuple[Found, list[Row]]:
    """The first page, and the rows of all pages that `limit` needs."""
    first = page = ask(None)
    rows: list[Row] = list(first.page.rows)
    while page.page.more and (limit is None or len(rows) < limit):
        page = ask(page.page.keys[-1][0])
        rows += page.page.rows
    return first, rows if limit is None else rows[:limit]


def _document(request: _Request, found: Found, rows: Sequence[Row], problems: Sequence[Problem]) -> dict[str, Any]:
    sides = {"path": str(request.target)}
    if request.golden is not None:
        sides = {"target": str(request.target), "golden": str(request.golden)}
    statistic = request.statistic or ("norm" if request.golden is None else None)
    listed = []
    for row in rows:
        bad = None if row.first_bad is None else dict(zip(("step", "rank"), row.first_bad, strict=True))
        listed.append({**wire(asdict(row)), "first_bad": bad})
    return {
        "schema": 1,
        **sides,
        "statistic": statistic,
        "part": "input" if request.inputs else "output",
        "steps": [asdict(one) for one in found.steps],
        "ranks": found.ranks,
        "rows": listed,
        "problems": [problem_document(problem) for problem in problems],
    }


def _print(request: _Request, found: Found, rows: Sequence[Row], problems: Sequence[Problem]) -> None:
    shared = not rows or rows[0].rank is None or len(found.ranks) < 2
    heads = [
        tell("cli.call"),
        *([] if shared else ["rank"]),
        tell("cli.first_bad"),
        tell("cli.growth"),
        *map(_span, found.steps),
    ]
    table = [heads]
    colours: list[list[str | None]] = [[None] * len(heads)]
    for row in rows:
        cells: dict[int, tuple[str, str | None]] = {cell.bucket: _cell(request, cell) for cell in row.cells}
        shown = [cells.get(bucket, ("", None)) for bucket in range(len(found.steps))]
        bad = "" if row.first_bad is None else _place(row.first_bad, found.ranks)
        growth = "" if row.growth is None else f"{row.growth:.3g}x"
        lead = [row.name, *([] if shared else [str(row.rank)]), bad, growth]
        table.append([*lead, *(text for text, _ in shown)])
        colours.append([*(None for _ in lead), *(colour for _, colour in shown)])
    line(_title(request))
    widths = [max(len(texts[place]) for texts in table) for place in range(len(heads))]
    for texts, tones in zip(table, colours, strict=True):
        parts = [
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]
        line("  ".join(styled(part, tone) if tone else part for part, tone in zip(parts, tones, strict=True)))
    if len(rows) < found.page.total:
        line(tell("cli.more_limit_n_shows_more_find", total=found.page.total - len(rows)))
    for problem in problems[:10]:
        line(styled(tell("cli.problem", kind=problem.kind, loc=problem.loc, message=problem.message), "yellow"))


def _title(request: _Request) -> str:
    if request.golden is None:
        return tell(
            "cli.by_step",
            statistic=request.statistic or "norm",
            part=tell("cli.inputs") if request.inputs else tell("cli.outputs"),
        )
    also = (
        tell("cli.target_golden", statistic=request.statistic) if request.statistic else tell("cli.errors_units_floor")
    )
    return tell("cli.worst_verdict_no_warning_yes_not", also=also)


def _cell(request: _Request, cell: Any) -> tuple[str, str | None]:
    if not isinstance(cell, Cell):
        return _short(cell.value), "red" if cell.bad else None
    mark = _MARKS[cell.verdict]
    if request.statistic is not None:
        mark += f"{_short(cell.target)}/{_short(cell.golden)}"
    elif cell.verdict in _COLOURS and cell.score:
        mark += _short(cell.score)
    return mark, _COLOURS.get(cell.verdict)


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _span(steps: Bucket) -> str:
    return number(steps.first) if steps.first == steps.last else f"{steps.first}-{steps.last}"


def _place(place: tuple[int, int], known: Sequence[int]) -> str:
    return tell("cli.step", place=place[0]) + (" " + tell("cli.rank", place=place[1]) if len(known) > 1 else "")
