"""The catalogue of comparisons: one row each, their units and their answer."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert as insert_row, or_, select, update

from dumpscope.domain.coverage import coverage_from
from dumpscope.domain.facts import VERDICT_WORDS, Origin, Reached, Suspect
from dumpscope.domain.joined import joined_from
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer, Counts, FirstNo, GoldenOff, Reference, Side
from dumpscope.errors import NotFoundError, Problem, UsageError
from dumpscope.index.comparisons.joined_dumps import hide_joined
from dumpscope.index.dumps.catalogue import like, unit_word
from dumpscope.index.store import tables
from dumpscope.index.store.codec import capped_problems, column_values, storable, to_json
from dumpscope.index.store.database import Database
from dumpscope.index.store.owners import RANKS, UNITS, hide, remove, show, unused_ranks
from dumpscope.index.store.page import Order, Seek, list_key, order_page
from dumpscope.index.store.prepared import Prepared, number_named, text_named
from dumpscope.index.store.recent import Recent
from dumpscope.texts import say

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """status: pending, running, done, failed or cancelled; target, golden, reference: dump ids
    verdict: worst item verdict's word; watched: made by a watch
    growing: sides that were still being written when they were compared: {"side", "step", "calls"}"""

    id: str
    name: str
    status: str
    job: str | None
    error: dict[str, Any] | None
    target: str
    golden: str
    target_name: str
    golden_name: str
    options: Options
    mode: str | None
    verdict: str | None
    answer: Answer | None
    created: float
    reference: str | None = None
    reference_name: str | None = None
    watched: bool = False
    growing: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnit:
    """A unit as stored: `id` names its rows; target and golden are rank_dump ids; counts as in `results.unit_counts`
    stamp: changes with every judgement, None while one is at work
    calls: units with the same number have the same node pairs by name; None where an older version stored them"""

    id: int
    step: int
    rank: int
    target: int
    golden: int
    mode: str
    inferred: bool
    pairs: int
    items: int
    backward: int | None
    verdict: str
    counts: dict[str, Any]
    stamp: str | None
    calls: int | None


def create_comparison(
    database: Database,
    *,
    name: str,
    target: str,
    golden: str,
    options: Options,
    reference: str | None = None,
    watched: bool = False,
) -> str:
    """Store a new comparison as pending; returns its id. watched: a watch makes it. Raises NotFoundError for an unknown dump."""
    comparison_id = secrets.token_hex(5)
    with database.write() as connection:
        serials: dict[str | None, int | None] = {None: None}
        for dump_id in (target, golden, reference):
            if dump_id is None:
                continue
            serial = connection.execute(select(tables.dump.c.serial).where(tables.dump.c.id == dump_id)).scalar()
            if serial is None:
                raise NotFoundError(
                    say("index.no_dump", dump_id=f"{dump_id!r}"), hint=say("index.get_api_dumps_lists_them")
                )
            serials[dump_id] = serial
        connection.execute(
            insert_row(tables.comparison).values(
                id=comparison_id,
                name=storable([name])[0],
                status="pending",
                target=serials[target],
                golden=serials[golden],
                reference=serials[reference],
                options=to_json(options.to_json()),
                created=time.time(),
                watched=int(watched),
            )
        )
    return comparison_id


def is_awaited(database: Database, dump_id: str) -> bool:
    """Whether a comparison is at work, or about to be, in which this dump is the target or the golden."""
    table = tables.comparison.c
    serial = select(tables.dump.c.serial).where(tables.dump.c.id == dump_id).scalar_subquery()
    found = select(table.serial).where(
        or_(table.target == serial, table.golden == serial), table.status.in_(("pending", "running"))
    )
    with database.read() as connection:
        return connection.execute(found.limit(1)).scalar() is not None


def change_comparison(database: Database, comparison_id: str, **values: Any) -> None:
    """Set columns; lists and dicts become JSON text."""
    with database.write() as connection:
        table = tables.comparison
        connection.execute(update(table).where(table.c.id == comparison_id).values(**column_values(values)))


def edit_options(database: Database, comparison_id: str, change: Callable[[Options], Options]) -> Options:
    """Replace a comparison's options by what `change` makes of them, with nothing in between. Raises NotFoundError."""
    table = tables.comparison
    with database.write() as connection:
        found = select(table.c.options).where(table.c.id == comparison_id).with_for_update()
        stored = connection.execute(found).scalar()
        if stored is None:
            raise NotFoundError(
                say("index.no_comparison", comparison_id=f"{comparison_id!r}"),
                hint=say("index.get_api_comparisons_lists_them"),
            )
        options = change(Options.from_json(json.loads(stored)))
        connection.execute(update(table).where(table.c.id == comparison_id).values(options=to_json(options.to_json())))
    return options


def get_comparison(database: Database, comparison_id: str) -> ComparisonRow:
    """Raises NotFoundError."""
    with database.read() as connection:
        row = _one_comparison().one(connection, comparison=comparison_id)
    if row is None:
        raise NotFoundError(
            say("index.no_comparison", comparison_id=f"{comparison_id!r}"),
            hint=say("index.get_api_comparisons_lists_them"),
        )
    return _row(row)


def origins_of(database: Database, comparison_id: str) -> list[Origin]:
    """The origins of a comparison, none while it has no answer. Raises NotFoundError."""
    answer = get_comparison(database, comparison_id).answer
    return [] if answer is None else answer.origins


def list_comparisons(
    database: Database, *, q: str = "", order: Order = "-created", after: Seek | None = None, limit: int = 100
) -> list[tuple[tuple[Any, ...], ComparisonRow]]:
    """Rows with their list keys, newest first; see `dumps.list_dumps`."""
    statement = order_page(_select(), tables.comparison, order, after, limit)
    if q:
        statement = statement.where(tables.comparison.c.name.ilike(like(q), escape="\\"))
    with database.read() as connection:
        return [(list_key(row, order), _row(row)) for row in connection.execute(statement)]


def count_comparisons(database: Database, *, q: str = "") -> int:
    statement = select(func.count()).select_from(tables.comparison)
    if q:
        statement = statement.where(tables.comparison.c.name.ilike(like(q), escape="\\"))
    with database.read() as connection:
        return int(connection.execute(statement).scalar_one())


def delete_comparison(database: Database, comparison_id: str) -> None:
    """Remove a comparison and its rows."""
    with database.write() as connection:
        found = select(tables.comparison.c.serial).where(tables.comparison.c.id == comparison_id)
        serial = connection.execute(found).scalar()
        if serial is None:
            return
        used = _compared_ranks(connection, serial)
        left = hide(connection, UNITS, serial)
        ranks = hide_joined(connection, comparison_id)
        connection.execute(delete(tables.comparison).where(tables.comparison.c.serial == serial))
        watch = tables.watch
        connection.execute(update(watch).where(watch.c.comparison == serial).values(comparison=None))
    remove(database, UNITS, left)
    remove(database, RANKS, ranks)
    _remove_replaced(database, used)


def clear_comparison(database: Database, comparison_id: str) -> None:
    """Remove the units and the answer, so that comparing can start over."""
    with database.write() as connection:
        found = select(tables.comparison.c.serial).where(tables.comparison.c.id == comparison_id)
        serial = connection.execute(found).scalar()
        if serial is None:
            return
        used = _compared_ranks(connection, serial)
        left = hide(connection, UNITS, serial)
        ranks = hide_joined(connection, comparison_id)
        connection.execute(
            update(tables.comparison)
            .where(tables.comparison.c.serial == serial)
            .values(answer=None, verdict=None, mode=None)
        )
    remove(database, UNITS, left)
    remove(database, RANKS, ranks)
    _remove_replaced(database, used)


def _compared_ranks(connection: Connection, serial: int) -> list[int]:
    """Ranks that the units of a comparison were compared from."""
    unit = tables.unit.c
    rows = connection.execute(select(unit.target, unit.golden).where(unit.comparison == serial)).all()
    return sorted({rank for row in rows for rank in row})


def _remove_replaced(database: Database, ranks: Sequence[int]) -> None:
    """Remove those of these ranks that were read again since, and that no other result shows."""
    with database.read() as connection:
        left = unused_ranks(connection, ranks)
    remove(database, RANKS, left)


def stranded_comparisons(database: Database) -> list[str]:
    """Ids of pending comparisons that no job is about."""
    table = tables.comparison.c
    about = select(tables.job.c.serial).where(tables.job.c.subject == table.id).exists()
    with database.read() as connection:
        found = connection.execute(select(table.id).where(table.status == "pending", table.job.is_(None), ~about))
        return list(found.scalars())


def stored_units(database: Database, comparison_id: str) -> list[StoredUnit]:
    """Units of a comparison by step and rank."""
    with database.read() as connection:
        return [_unit(row) for row in _UNITS.rows(connection, comparison=comparison_id)]


def units_beside(connection: Connection, unit: StoredUnit) -> list[StoredUnit]:
    """Units of the same comparison and step, by rank; itself among them."""
    return [_unit(row) for row in _UNITS_BESIDE.rows(connection, unit=unit.id)]


def _select_units() -> Select[Any]:
    columns = [column for column in tables.unit.c if column.name not in ("comparison", "problems")]
    return (
        select(
            *columns, tables.comparison.c.id.label("comparison_id"), tables.comparison.c.job, tables.comparison.c.status
        )
        .join(tables.comparison, tables.comparison.c.serial == tables.unit.c.comparison)
        .order_by(tables.unit.c.step, tables.unit.c.rank)
    )


def _units_where(*where: ColumnElement[bool], limit: int | None = None) -> Prepared:
    return Prepared(_select_units().where(*where).limit(limit))


def _units_beside() -> Prepared:
    own = tables.unit.alias()
    same = (tables.unit.c.comparison == own.c.comparison, tables.unit.c.step == own.c.step)
    return _units_where(own.c.id == number_named("unit"), *same)


_OF_COMPARISON: Final = tables.comparison.c.id == text_named("comparison")
_OF_STEP: Final = tables.unit.c.step == number_named("step")
_OF_RANK: Final = tables.unit.c.rank == number_named("rank")
_UNITS: Final = _units_where(_OF_COMPARISON)
_UNITS_BESIDE: Final = _units_beside()
_UNIT_OF_KEY: Final = _units_where(_OF_COMPARISON, tables.unit.c.id == number_named("unit"))
_FIRST_UNIT: Final = {
    (False, False): _units_where(_OF_COMPARISON, limit=1),
    (True, False): _units_where(_OF_COMPARISON, _OF_STEP, limit=1),
    (False, True): _units_where(_OF_COMPARISON, _OF_RANK, limit=1),
    (True, True): _units_where(_OF_COMPARISON, _OF_STEP, _OF_RANK, limit=1),
}
"""By whether a step and whether a rank is asked for."""


def _unit(row: Any) -> StoredUnit:
    return StoredUnit(
        id=row.id,
        step=row.step,
        rank=row.rank,
        target=row.target,
        golden=row.golden,
        mode=row.mode,
        inferred=bool(row.inferred),
        pairs=row.pairs,
        items=row.items,
        backward=row.backward,
        verdict=VERDICT_WORDS[row.verdict],
        counts=json.loads(row.counts),
        stamp=f"{row.comparison_id}:{row.job}" if row.status == "done" else None,
        calls=row.calls,
    )


def find_unit(database: Database, comparison_id: str, step: int | None, rank: int | None) -> StoredUnit:
    """The unit asked for, the first one where a number is left out; raises NotFoundError that lists what there is."""
    given = {name: value for name, value in (("step", step), ("rank", rank)) if value is not None}
    wanted = _FIRST_UNIT["step" in given, "rank" in given]
    with database.read() as connection:
        found = wanted.one(connection, comparison=comparison_id, **given)
    if found is not None:
        return _unit(found)
    units = stored_units(database, comparison_id)
    if not units:
        get_comparison(database, comparison_id)
        raise NotFoundError(say("index.comparison_has_no_result_yet"), hint=say("api.wait_job"))
    known = ", ".join(f"step {unit.step} rank {unit.rank}" for unit in units[:20])
    raise NotFoundError(
        say("index.comparison_has_no", unit_word=unit_word(step, rank)), hint=say("index.has", known=known)
    )


def unit_at(connection: Connection, comparison_id: str, step: int, rank: int) -> StoredUnit | None:
    """The unit of this step and rank, None where there is none."""
    found = _FIRST_UNIT[True, True].one(connection, comparison=comparison_id, step=step, rank=rank)
    return None if found is None else _unit(found)


def dumps_digest(connection: Connection, comparison: ColumnElement[bool]) -> bytes:
    """Digest of what the two dumps of a comparison are: folders they were read from, names of uploads. comparison: clause that
    names one

    Raises NotFoundError where there is no such comparison.
    """
    row = connection.execute(_select_dumps().where(comparison)).one_or_none()
    if row is None:
        raise NotFoundError(say("index.no_such_comparison"), hint=say("index.get_api_comparisons_lists_them"))
    named = [f"upload {name}" if owned else f"folder {path}" for owned, name, path in (row[:3], row[3:])]
    return hashlib.sha256("\0".join(named).encode("utf-8", "surrogatepass")).digest()


def unit_of_pair(database: Database, comparison_id: str, pair_id: int) -> StoredUnit:
    """The unit that an item pair's key belongs to; raises NotFoundError."""
    with database.read() as connection:
        found = _UNIT_OF_KEY.one(connection, comparison=comparison_id, unit=pair_id >> tables.KEY_BITS)
    if found is not None:
        return _unit(found)
    raise NotFoundError(say("api.no_item_pair_comparison", pair_id=pair_id), hint=say("api.get_pairs_lists_them"))


def store_answer(
    database: Database,
    comparison_id: str,
    answer: Answer,
    *,
    units: Sequence[int] = (),
    options: Options | None = None,
) -> None:
    """Keep the answer (and the options) with the comparison, show these units with it and mark it done, all at once.

    A task that was done again, as its worker died, shows its units in place of those that it had shown."""
    counts = answer.counts
    if counts.no:
        verdict = "no"
    elif counts.warning:
        verdict = "warning"
    else:
        verdict = "yes" if counts.yes else "n/a"
    data = asdict(answer)
    data["problems"] = capped_problems(data["problems"])
    text = to_json(encode(data))
    changed = {} if options is None else {"options": to_json(options.to_json())}
    table = tables.comparison
    with database.write() as connection:
        serial = connection.execute(select(table.c.serial).where(table.c.id == comparison_id)).scalar()
        if serial is None:
            raise NotFoundError(say("index.comparison_removed_meanwhile"), hint=say("api.compare_again"))
        before = hide(connection, UNITS, serial, tables.unit.c.id.not_in(units)) if units else []
        show(connection, UNITS, units, serial)
        connection.execute(
            update(table)
            .where(table.c.serial == serial)
            .values(answer=text, mode=answer.mode, verdict=verdict, status="done", error=None, **changed)
        )
    remove(database, UNITS, before)


def encode(data: Any) -> Any:
    """Plain data with not finite floats as the words that travel ("nan", "inf", "-inf") and storable text."""
    if isinstance(data, float) and not math.isfinite(data):
        return "nan" if math.isnan(data) else ("inf" if data > 0 else "-inf")
    if isinstance(data, str):
        return storable([data])[0]
    if isinstance(data, dict):
        return {key: encode(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [encode(value) for value in data]
    return data


_ANSWERS: Final[Recent[str, Answer]] = Recent(16)
"""By their text: every view of a job of a thousand ranks needs its answer, a megabyte of JSON."""


def _answer(text: str | None) -> Answer | None:
    return _ANSWERS.get(text, lambda: _decode(text)) if text else None


def _decode(text: str) -> Answer:
    data = json.loads(text)
    first = data["first_no"]
    if first is not None:
        first["metrics"] = {name: NOT_FINITE.get(value, value) for name, value in first["metrics"].items()}
    return Answer(
        mode=data["mode"],
        policy=data["policy"],
        target=Side(**data["target"]),
        golden=Side(**data["golden"]),
        counts=Counts(**data["counts"]),
        first_no=FirstNo(**first) if first else None,
        origins=[
            Origin(**{**origin, "spread": [Reached(**one) for one in origin.get("spread", ())]})
            for origin in data["origins"]
        ],
        settings=data["settings"],
        settings_said=data.get("settings_said", []),
        problems=[Problem(**problem) for problem in data["problems"]],
        reference=_reference(data.get("reference")),
        joined=joined_from(data.get("joined")),
        coverage=coverage_from(data.get("coverage")),
        suspects=[Suspect(**one) for one in data.get("suspects", ())],
        older="suspects" not in data,
    )


def _reference(data: Any) -> Reference | None:
    if data is None:
        return None
    off = [GoldenOff(**{name: _number(value) for name, value in one.items()}) for one in data["golden_off"]]
    return Reference(**{**data, "side": Side(**data["side"]), "golden_off": off})


def _number(value: Any) -> Any:
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


@cache
def _select_dumps() -> Select[Any]:
    """What the two dumps of comparisons are."""
    sides = [tables.dump.alias(), tables.dump.alias()]
    columns = [column for side in sides for column in (side.c.owned, side.c.name, side.c.path)]
    return (
        select(*columns)
        .select_from(tables.comparison)
        .join(sides[0], sides[0].c.serial == tables.comparison.c.target)
        .join(sides[1], sides[1].c.serial == tables.comparison.c.golden)
    )


@cache
def _select() -> Select[Any]:
    """Comparisons with the names of their dumps. Made once: the columns of an alias take longer to make than a row to read."""
    target, golden = tables.dump.alias("target_dump"), tables.dump.alias("golden_dump")
    reference = tables.dump.alias("reference_dump")
    return (
        select(
            tables.comparison,
            target.c.id.label("target_id"),
            golden.c.id.label("golden_id"),
            target.c.name.label("target_name"),
            golden.c.name.label("golden_name"),
            reference.c.id.label("reference_id"),
            reference.c.name.label("reference_name"),
        )
        .join(target, target.c.serial == tables.comparison.c.target)
        .join(golden, golden.c.serial == tables.comparison.c.golden)
        .outerjoin(reference, reference.c.serial == tables.comparison.c.reference)
    )


@cache
def _one_comparison() -> Prepared:
    return Prepared(_select().where(_OF_COMPARISON))


def _row(row: Any) -> ComparisonRow:
    try:
        options = Options.from_json(json.loads(row.options))
    except UsageError:  # an option of another version
        options = Options()
    return ComparisonRow(
        id=row.id,
        name=row.name,
        status=row.status,
        job=row.job,
        error=json.loads(row.error) if row.error else None,
        target=row.target_id,
        golden=row.golden_id,
        target_name=row.target_name,
        golden_name=row.golden_name,
        options=options,
        mode=row.mode,
        verdict=row.verdict,
        answer=_answer(row.answer),
        created=row.created,
        reference=row.reference_id,
        reference_name=row.reference_name,
        watched=bool(row.watched),
        growing=json.loads(row.growing) if row.growing else [],
    )
