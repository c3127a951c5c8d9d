"""Monitored runs: start, list, examine again, remove; what was found, and the numbers as a map and as curves.

Maps and curves are read from the files, which may still grow; only what was found is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from operator import itemgetter
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

import numpy as np
from fastapi import APIRouter, Query, Response

from dumpscope.analysis.monitor.divergence import ROUNDING
from dumpscope.analysis.monitor.heat import group_modules
from dumpscope.api.ingest import resolve_path, root_of
from dumpscope.api.models.base import Accepted, Page
from dumpscope.api.models.training.monitors import (
    DumpBeside,
    HeatPage,
    HeatRow,
    Monitor,
    MonitorAnomaly,
    MonitorCurves,
    MonitorFindings,
    MonitorRuns,
    NewMonitor,
    StepBin,
    heat_row,
    monitor,
    monitor_curve,
    monitored_run,
)
from dumpscope.api.parameters import INT32, Cursor, Id, Limit, Search, words
from dumpscope.api.replies import REPLY_BYTES, after, decode_cursor, encode_cursor, list_reply, reply
from dumpscope.api.routes.figure_replies import Figure, figure_reply
from dumpscope.api.state import Shared, State
from dumpscope.domain.monitor.findings import KINDS
from dumpscope.domain.monitor.tables import MonitorRun, module_of
from dumpscope.errors import ConflictError, UsageError
from dumpscope.index.dumps.catalogue import list_dumps
from dumpscope.index.monitors.catalogue import (
    MonitorRow,
    change_monitor,
    count_monitors,
    create_monitor,
    delete_monitor,
    get_findings,
    get_monitor,
    list_monitors,
)
from dumpscope.pipeline.figures.request import FigureResult
from dumpscope.pipeline.monitor.open_runs import Curve, rank_of
from dumpscope.pipeline.server.monitor_job import reach, short_names
from dumpscope.plots.run.monitor_curves import PlottedCurve, curves_figure, describe_curves
from dumpscope.texts import english, say

router = APIRouter(tags=["monitors"])

BESIDE: Final = 5
"""Dumps beside a run that are named."""
SENT_STEPS: Final = 1000
SENT_POINTS: Final = 3000
"""Numbers of all curves of one run in a reply."""
Sort = Literal["gravest", "step", "-step", "name", "-factor"]
Order = Literal["hottest", "model"]
By = Literal["series", "module"]
Rank = Annotated[int | None, Query(ge=0, le=INT32, description="The first if left out.")]
Metric = Annotated[str, Query(max_length=300, description="A metric or a scalar of `runs`: grad_reduced, loss.")]
Statistic = Annotated[str, Query(max_length=100, description="One of the metric's.")]
First = Annotated[int | None, Query(alias="from", ge=-(2**53), le=2**53, description="First step shown.")]
Last = Annotated[int | None, Query(alias="to", ge=-(2**53), le=2**53, description="Last step shown.")]
Kinds = Annotated[list[str], Query(alias="kind", description="Any of these kinds; several times or with commas.")]
Names = Annotated[list[str], Query(alias="name", min_length=1, max_length=12, description="Series of the run.")]
Points = Annotated[int, Query(ge=10, le=4000, description="Numbers of a curve, about.")]
Rows = Annotated[
    int, Query(ge=1, le=200, description="Rows of the page; it ends earlier where it would exceed 200 kB.")
]


@router.post("/monitors", status_code=202, response_model=Accepted)
def start(body: NewMonitor, state: Shared) -> Response:
    """Examine a monitored run below the server's roots, and compare it with another; a job."""
    path = resolve_path(state, body.path)
    other = None if body.other is None else resolve_path(state, body.other)
    name = body.name or (path.name if other is None else " / ".join(short_names(str(path), str(other))))
    monitor_id = create_monitor(state.database, name=name, path=str(path), other=None if other is None else str(other))
    return _submit(state, get_monitor(state.database, monitor_id))


@router.get("/monitors", response_model=Page[Monitor])
def listing(state: Shared, q: Search = "", cursor: Cursor = None, limit: Limit = 100) -> Response:
    """Monitored runs, newest first."""
    seek, total = decode_cursor(cursor)
    found = list_monitors(state.database, q=q, after=seek, limit=limit + 1)
    return list_reply(found, limit, total, lambda: count_monitors(state.database, q=q), monitor)


@router.get("/monitors/{monitor_id}", response_model=Monitor)
def one(monitor_id: Id, state: Shared) -> Response:
    """One monitored run."""
    return reply(monitor(get_monitor(state.database, monitor_id)))


@router.post("/monitors/{monitor_id}/examine", status_code=202, response_model=Accepted)
def again(monitor_id: Id, state: Shared) -> Response:
    """Examine what has been written since; the job that runs already, if there is one. Earlier findings stay until it ends."""
    row = get_monitor(state.database, monitor_id)
    if row.status == "pending" and row.job is not None and not state.jobs.get(row.job).over:
        return _accepted(row.id, row.job)
    return _submit(state, row)


@router.post("/monitors/{monitor_id}/cancel", response_model=Monitor)
def cancel(monitor_id: Id, state: Shared) -> Response:
    """Ask its job to stop; a finished one is not changed."""
    row = get_monitor(state.database, monitor_id)
    if row.job is not None and row.status == "pending":
        state.runner.cancel(row.job)
    return reply(monitor(get_monitor(state.database, monitor_id)))


@router.delete("/monitors/{monitor_id}", status_code=204)
def remove(monitor_id: Id, state: Shared) -> Response:
    """Stop its job and delete it; the files stay."""
    row = get_monitor(state.database, monitor_id)
    if row.job is not None and row.status == "pending":
        state.stop_job(row.job)
    delete_monitor(state.database, monitor_id)
    return Response(status_code=204)


@router.get("/monitors/{monitor_id}/runs", response_model=MonitorRuns)
def runs(monitor_id: Id, state: Shared) -> Response:
    """Ranks, steps and metrics of the run and of the other one as they are now, and the dumps beside it."""
    row = get_monitor(state.database, monitor_id)
    own, other = _open(state, row)
    seen = (row.answer or {}).get("reach")
    grown = seen is not None and seen != [reach(own), None if other is None else reach(other)]
    return reply(
        MonitorRuns(
            run=monitored_run(own),
            other=None if other is None else monitored_run(other),
            grown=grown,
            dumps=_beside(state, row),
        )
    )


@router.get("/monitors/{monitor_id}/findings", response_model=MonitorFindings)
def findings(monitor_id: Id, state: Shared) -> Response:
    """What the last examination found: the sentence, where the runs part, ranks that stray, problems."""
    row, found = _found(state, monitor_id)
    answer = row.answer or {}
    return reply(
        MonitorFindings.model_validate(
            {
                "summary": english(answer["said"]),
                "said": answer["said"],
                "counts": answer["counts"],
                "anomalies": sum(answer["counts"].values()),
                "divergences": found["divergences"],
                "strays": found["strays"],
                "problems": found["problems"],
            }
        )
    )


@router.get("/monitors/{monitor_id}/anomalies", response_model=Page[MonitorAnomaly])
def anomalies(
    monitor_id: Id,
    state: Shared,
    kinds: Kinds = [],  # noqa: B006  (FastAPI copies defaults)
    q: Search = "",
    sort: Sort = "gravest",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Anomalies, the gravest first unless `sort` says otherwise; at most 5000 of a run are kept."""
    _, found = _found(state, monitor_id)
    wanted = words(kinds)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise UsageError(say("monitor.no_such_kind", kind=f"{unknown[0][:40]!r}", kinds=", ".join(KINDS)))
    rows = [
        {"number": number, **row}
        for number, row in enumerate(found["anomalies"])
        if (not wanted or row["kind"] in wanted) and q.lower() in f"{row['name'] or ''} {row['metric']}".lower()
    ]
    if sort != "gravest":
        key, down = sort.removeprefix("-"), sort.startswith("-")
        keys: dict[str, Callable[[dict[str, Any]], Any]] = {"factor": _factor, "name": lambda row: row["name"] or ""}
        rows.sort(key=keys.get(key, itemgetter(key)), reverse=down)
    begin = _begin(cursor)
    page = [((begin + place + 1,), row) for place, row in enumerate(rows[begin : begin + limit + 1])]
    return list_reply(page, limit, len(rows), lambda: len(rows), MonitorAnomaly.model_validate)


@router.get("/monitors/{monitor_id}/heat", response_model=HeatPage)
def heat(
    monitor_id: Id,
    state: Shared,
    metric: Metric,
    statistic: Statistic = "norm",
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    columns: Annotated[int, Query(ge=1, le=200, description="Bins of steps at most.")] = 100,
    against: Annotated[bool, Query(description="Distances from the other run.")] = False,
    q: Search = "",
    order: Annotated[Order, Query(description="The most unusual first, or as in the model.")] = "hottest",
    by: Annotated[
        By, Query(description="A row a series, or a module with the worst of its series in each bin.")
    ] = "series",
    module: Annotated[str | None, Query(max_length=4096, description="Only series of this module.")] = None,
    cursor: Cursor = None,
    limit: Rows = 40,
) -> Response:
    """Series or modules down, bins of steps across: the most unusual number of each, and how unusual it is."""
    row = get_monitor(state.database, monitor_id)
    run, other = _open(state, row, against=against)
    found = state.open_runs.heat(
        run,
        other,
        rank=rank,
        metric=metric,
        statistic=statistic,
        columns=columns,
        limits=(first, last),
        floor=_limit(row, rank_of(run, rank).rank),
    )
    worst = found.worst
    rows, members = group_modules(found) if by == "module" else (found, np.arange(len(found.names))[:, None])
    places = range(len(rows.names)) if order == "model" else (-rows.worst).argsort(kind="stable").tolist()
    wanted = [q.lower() in name.lower() and (module is None or module_of(name) == module) for name in found.names]
    shown = [place for place in places if any(wanted[one] for one in members[place])]
    begin = _begin(cursor)
    items: list[HeatRow] = []
    size = 0
    for place in shown[begin : begin + limit]:
        own = members[place][(-worst[members[place]]).argsort(kind="stable")]
        piece = heat_row(rows, place, [found.names[one] for one in own])
        size += len(piece.model_dump_json())
        if items and size > REPLY_BYTES - 30 * len(found.bins):
            break
        items.append(piece)
    end = begin + len(items)
    return reply(
        HeatPage(
            rank=rank_of(run, rank).rank or 0,
            metric=metric,
            statistic=statistic,
            against=other is not None,
            bins=[StepBin(first=one, last=another) for one, another in found.bins],
            items=items,
            next=encode_cursor([end], len(shown)) if end < len(shown) else None,
            total=len(shown),
        )
    )


@router.get("/monitors/{monitor_id}/curves", response_model=MonitorCurves)
def curves(
    monitor_id: Id,
    state: Shared,
    metric: Metric,
    names: Names,
    statistic: Statistic = "norm",
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    points: Points = 600,
) -> Response:
    """Series over the steps, of the run and of the other one; thinned so that no peak is lost."""
    own, found = _curves(
        state, get_monitor(state.database, monitor_id), metric, names, statistic, rank, (first, last), points
    )
    shown = rank_of(own, rank).rank or 0
    drawn = [monitor_curve(one) for one in found]
    return reply(MonitorCurves(rank=shown, metric=metric, statistic=statistic, curves=drawn))


@router.get("/monitors/{monitor_id}/curves/figure", response_model=Figure)
def figure(
    monitor_id: Id,
    state: Shared,
    metric: Metric,
    names: Names,
    statistic: Statistic = "norm",
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    points: Points = 600,
    step: Annotated[int | None, Query(ge=-(2**53), le=2**53, description="A step to mark.")] = None,
) -> Response:
    """The same curves as a figure."""
    row = get_monitor(state.database, monitor_id)
    _, found = _curves(state, row, metric, names, statistic, rank, (first, last), points)
    sides = (row.name, "") if row.other is None else short_names(row.path, row.other)
    plotted = [
        PlottedCurve(name=one.name, run=sides[one.golden], golden=one.golden, steps=one.steps, values=one.values)
        for one in found
    ]
    drawn, log = curves_figure(plotted, step)
    return figure_reply(FigureResult(figure=drawn, said=describe_curves(plotted), log=log))


def _curves(
    state: State,
    row: MonitorRow,
    metric: str,
    names: list[str],
    statistic: str,
    rank: int | None,
    limits: tuple[int | None, int | None],
    points: int,
) -> tuple[MonitorRun, list[Curve]]:
    own, other = _open(state, row)
    points = max(10, min(points, SENT_POINTS // len(names)))
    found = state.open_runs.curves(
        own, other, rank=rank, metric=metric, statistic=statistic, names=names, points=points, limits=limits
    )
    return own, found


def _submit(state: State, row: MonitorRow) -> Response:
    paths = [path for path in (row.path, row.other) if path is not None]
    roots = [
        root_of(state, resolve_path(state, path)) for path in paths
    ]  # before anything is changed: files may be gone
    change_monitor(state.database, row.id, status="pending", error=None)
    job = state.runner.submit("monitor", row.id, {"roots": [roots[0], roots[-1]]})
    change_monitor(state.database, row.id, job=job.id)
    return _accepted(row.id, job.id)


def _accepted(monitor_id: str, job: str) -> Response:
    return reply(Accepted(id=monitor_id, job=job), 202, {"Location": f"/api/monitors/{monitor_id}"})


def _open(state: State, row: MonitorRow, *, against: bool = True) -> tuple[MonitorRun, MonitorRun | None]:
    """Both runs as they are now; the paths are resolved again, since the server's roots and links may have changed.

    Raises ForbiddenError, NotFoundError, UnreadableError, LimitError.
    """
    found = []
    for given in (row.path, row.other if against else None):
        if given is not None:
            path = resolve_path(state, given)
            found.append(state.open_runs.look(str(path), root_of(state, path)))
    return found[0], found[1] if len(found) > 1 else None


def _found(state: State, monitor_id: str) -> tuple[MonitorRow, dict[str, Any]]:
    """Raises ConflictError while there is no result."""
    row, found = get_findings(state.database, monitor_id)
    if row.answer is None:
        hint = say("monitor.examine_again") if row.status in ("failed", "cancelled") else say("checkpoints.wait")
        raise ConflictError(say("monitor.no_result"), hint=hint)
    return row, found


def _limit(row: MonitorRow, rank: int | None) -> float:
    """The distance that counts as noise on a rank, as the last examination found it."""
    known = {place: float(limit) for place, limit in (row.answer or {}).get("limits", ())}
    return known.get(rank, ROUNDING)


def _begin(cursor: str | None) -> int:
    """Rows before the page."""
    return max(0, after(cursor) or 0)


def _factor(row: dict[str, Any]) -> float:
    value, usual = abs(float(row["value"])), abs(float(row["usual"]))
    found = value / usual if usual else float("inf")
    return float("inf") if isnan(found) else found


def _beside(state: State, row: MonitorRow) -> list[DumpBeside]:
    """Dumps of the server in the folder that holds the run's."""
    path = PurePath(row.path)
    folder = path.parent if path.suffix not in (".monitor", ".csv") else path.parent.parent
    found = [
        dump
        for _, dump in list_dumps(state.database, q=str(folder), limit=200)
        if dump.steps and PurePath(dump.path).parent == folder and not dump.owned
    ]
    return [DumpBeside(id=dump.id, name=dump.name, steps=dump.steps[:SENT_STEPS]) for dump in found[:BESIDE]]
