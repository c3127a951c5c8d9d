"""Watched folders: what is new in them is read, and a pair is compared, without anybody asking."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, Response

from dumpscope.api.ingest import default_name, resolve_path
from dumpscope.api.models.base import Page
from dumpscope.api.models.bodies import NewWatch, WatchPair
from dumpscope.api.models.dumps import Watch
from dumpscope.api.parameters import Cursor, Id, Limit
from dumpscope.api.replies import after, list_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.domain.options import Options
from dumpscope.errors import ConflictError, UnreadableError, UsageError
from dumpscope.index.dumps.catalogue import DumpRow, change_dump, create_dump, get_dump, newest_at
from dumpscope.index.dumps.load_rank import rank_places
from dumpscope.index.dumps.watches import (
    count_watches,
    create_watch,
    delete_watch,
    get_watch,
    list_watches,
    pair_watch,
)
from dumpscope.match import check_options
from dumpscope.parallel.plan import parse_plan
from dumpscope.readers.result_tables import find_tables
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy

router = APIRouter(tags=["watches"])


@router.post("/watches", status_code=201, response_model=Watch)
def start(body: NewWatch, state: Shared) -> Response:
    """Keep an eye on a folder, which may be empty yet. A folder that is watched already keeps its watch, with this partner."""
    options = Options() if body.options is None else Options.from_json(body.options.model_dump())
    load_policy(options.policy)
    check_options(options)
    parse_plan(options.parallel)
    if (body.dump is None) == (body.path is None) or (body.partner is not None and body.partner_path is not None):
        raise UsageError(say("api.watch_one_of"), hint=say("api.watch_one_of_hint"))
    partner = body.partner
    if body.partner_path is not None:
        other = _registered(state, body.partner_path, None)
        partner = other.id
        if other.watch is None:
            _begin(state, other, WatchPair(side="golden" if body.side == "target" else "target"), Options())
    dump = (
        _registered(state, body.path, body.name) if body.path is not None else get_dump(state.database, body.dump or "")
    )
    pair = WatchPair(partner=partner, side=body.side)
    if dump.watch is None:
        watch = _begin(state, dump, pair, options)
    else:
        watch = dump.watch.id
        pair_watch(state.database, watch, partner=pair.partner, side=pair.side)
    state.watcher.look_soon()
    location = {"Location": f"/api/watches/{watch}"}
    return reply(Watch.model_validate(get_watch(state.database, watch)), 201, location)


@router.get("/watches", response_model=Page[Watch])
def listing(state: Shared, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """Watched folders, newest first."""
    found = list_watches(state.database, after=after(cursor), limit=limit + 1)
    rows = [((serial,), row) for serial, row in found]
    return list_reply(rows, limit, None, lambda: count_watches(state.database), Watch.model_validate)


@router.get("/watches/{watch_id}", response_model=Watch)
def one(watch_id: Id, state: Shared) -> Response:
    """One watched folder."""
    return reply(Watch.model_validate(get_watch(state.database, watch_id)))


@router.patch("/watches/{watch_id}", response_model=Watch)
def pair(watch_id: Id, body: WatchPair, state: Shared) -> Response:
    """Name another partner, or none; the comparison that the watch made before stays as it is."""
    watch = pair_watch(state.database, watch_id, partner=body.partner, side=body.side)
    state.watcher.look_soon()
    return reply(Watch.model_validate(watch))


@router.delete("/watches/{watch_id}", status_code=204)
def stop(watch_id: Id, state: Shared) -> Response:
    """Watch no longer; the dump, what was read of it and the comparison stay."""
    delete_watch(state.database, watch_id)
    return Response(status_code=204)


def _registered(state: State, given: str, name: str | None) -> DumpRow:
    """The newest dump registered from a folder, registered now if there is none."""
    path = resolve_path(state, given)
    found = newest_at(state.database, str(path))
    if found is None:
        _require_folder(path, str(path))
        found = create_dump(state.database, name=name or default_name(path), path=str(path))
    return get_dump(state.database, found)


def _begin(state: State, dump: DumpRow, pair: WatchPair, options: Options) -> str:
    """A new watch. Raises ConflictError for an upload, UnreadableError for what is no folder of a dump."""
    if dump.owned:
        raise ConflictError(say("api.upload_cannot_grow", name=dump.name), hint=say("api.register_folder_itself"))
    with suppress(OSError):
        if Path(dump.path).exists():
            _require_folder(resolve_path(state, dump.path), dump.path)
    places = rank_places(state.database, dump.id)
    if any(not Path(ref.folder).is_relative_to(dump.path) for ref in places.values()):
        raise UnreadableError(say("api.only_folders_watched"), where=dump.path, hint=say("api.register_folder_itself"))
    watch = create_watch(state.database, dump.id, partner=pair.partner, side=pair.side, options=options)
    if dump.status == "failed":
        change_dump(state.database, dump.id, status="pending", error=None, job=None)
    return watch.id


def _require_folder(path: Path, named: str) -> None:
    if not path.is_dir() or find_tables(path):
        raise UnreadableError(say("api.only_folders_watched"), where=named, hint=say("api.register_folder_itself"))
