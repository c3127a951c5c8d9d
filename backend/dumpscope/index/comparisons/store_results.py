"""Store what a comparison found: one unit (step and rank) at a time, then the answer over all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
from sqlalchemy import Connection, Table, delete, select, update as update_rows

from dumpscope.analysis.unit.dataflow import trace
from dumpscope.domain.facts import (
    CAUSES,
    CLASS_WORDS,
    VERDICT_WORDS,
    Facts,
    ItemOpinions,
    NodeOpinions,
    Verdict,
)
from dumpscope.domain.records import Direction, Int8, Int64, State
from dumpscope.domain.result import Unit
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons import distances
from dumpscope.index.dumps.store_rank import parent_keys, take
from dumpscope.index.store import tables
from dumpscope.index.store.codec import (
    calls_digest,
    nullable,
    number_columns,
    pack_flags,
    pack_histograms,
    pack_makers,
    pack_spread,
    pack_states,
    phrases_to_json,
    severities,
    storable,
    to_json,
)
from dumpscope.index.store.database import Database, insert, update
from dumpscope.index.store.owners import BATCH, UNITS, Draft, begin_draft, draft
from dumpscope.index.store.rollup import children_counts, sound_parents, subtree_sums
from dumpscope.index.store.texts import intern_texts
from dumpscope.texts import say
from dumpscope.verdict.shown_errors import node_errors

Part = Literal["calls", "facts"]
"""A part of a unit: its node pairs and their tree, or its item pairs with all that was measured."""
PARTS: Final[tuple[Part, ...]] = ("calls", "facts")
_TABLES: Final[Mapping[Part, tuple[Table, ...]]] = {
    "calls": (tables.node_pair, tables.place),
    "facts": (tables.item_pair, tables.item_error, tables.tensor_fact, tables.distance, tables.flow),
}

OPINION_COLUMNS = ("verdict", "cls", "in_score", "severity", "yes", "na", "warning", "no")
ROLLUP_COLUMNS = ("yes", "na", "warning", "no", "origin")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSides:
    """Where the two ranks of a unit are stored."""

    target: int
    golden: int


def store_unit(database: Database, comparison_id: str, unit: Unit, sides: UnitSides) -> int:
    """Store one unit of a comparison; returns its unit id. Nobody sees it before `comparisons.store_answer` shows it."""
    with database.read() as connection:
        serial = comparison_serial(connection, comparison_id)
    with draft(database, UNITS, serial, unit_values(unit, sides)) as new:
        _store_calls(new, unit)
        _store_facts(new, unit)
    return new.id


def begin_unit(database: Database, comparison_id: str, values: Mapping[str, Any]) -> int:
    """Begin to store a unit in parts, see `store_part`; returns its unit id. What fails is removed by `clear_comparison`.

    values: `unit_values`
    """
    with database.read() as connection:
        serial = comparison_serial(connection, comparison_id)
    return begin_draft(database, UNITS, serial, dict(values))


def store_part(database: Database, unit_id: int, unit: Unit, part: Part) -> None:
    """Add a part to a unit that `begin_unit` began, in place of what an attempt that was cut short left of it. Several processes
    may store parts at the same time.

    Raises NotFoundError where the unit was removed meanwhile.
    """
    first, last = tables.key_range(unit_id)
    with database.write() as connection:
        for table in _TABLES[part]:
            connection.execute(delete(table).where(table.c.id.between(first, last)))
    (_store_calls if part == "calls" else _store_facts)(Draft(database, UNITS, unit_id), unit)


def unit_values(unit: Unit, sides: UnitSides) -> dict[str, Any]:
    """Columns of a unit's own row."""
    directions = _of_nodes(unit, unit.target.nodes.direction, unit.golden.nodes.direction)
    backward = np.flatnonzero(directions == Direction.BACKWARD)
    names, others = _pair_names(unit)
    return {
        "step": unit.step,
        "rank": unit.rank,
        "target": sides.target,
        "golden": sides.golden,
        "mode": unit.mode,
        "inferred": int(unit.tree.inferred),
        "pairs": len(unit.pairs),
        "items": len(unit.items),
        "backward": int(backward[0]) if len(backward) else None,
        "verdict": _worst(unit.node_opinions.verdict),
        "counts": unit_counts(unit.node_opinions),
        "problems": to_json([asdict(problem) for problem in unit.problems]),
        "calls": calls_digest(
            [*names, *others],
            _of_nodes(unit, unit.target.nodes.kind, unit.golden.nodes.kind),
            unit.pairs.target >= 0,
            unit.pairs.golden >= 0,
        ),
    }


def _store_calls(new: Draft, unit: Unit) -> None:
    """Node pairs and the tree over them."""
    _store_nodes(new, unit)
    _store_places(new, unit)


def _store_facts(new: Draft, unit: Unit) -> None:
    """Item pairs, and all that is known of them."""
    _store_items(new, unit)
    _store_tensors(new, unit.facts)
    new.append(tables.distance, distances.item_columns(tables.key(new.id), unit.facts, unit.item_opinions))
    new.append(tables.flow, [[tables.key(new.id)], [_flow(unit)], [_spread(unit.node_opinions)]])


def update_opinions(database: Database, unit_id: int, old: Unit, items: ItemOpinions, nodes: NodeOpinions) -> None:
    """Replace the opinions of a stored unit, batch by batch; `old` is the unit as loaded, only rows that differ are written.

    Doing it again after an interruption, with the unit loaded anew, ends at the same opinions. A unit stored before data flow
    was kept gets it here.
    """
    _add_flow(database, unit_id, old)
    base = tables.key(unit_id)
    before, severity = old.item_opinions, severities(items.score)
    old_items = [before.verdict, before.rule, severities(before.score)]
    new_items = [items.verdict, items.rule, severity]
    _update_changed(database, tables.item_pair, ("verdict", "rule", "severity"), old_items, new_items, base)
    _update_distances(database, old, items, base)
    new_nodes = _opinion_columns(old, items, nodes)
    old_nodes = _opinion_columns(old, old.item_opinions, old.node_opinions)
    _update_changed(database, tables.node_pair, OPINION_COLUMNS, old_nodes, new_nodes, base)
    old_places, new_places = list(_rollups(old, old.node_opinions).T), list(_rollups(old, nodes).T)
    _update_changed(database, tables.place, ROLLUP_COLUMNS, old_places, new_places, base)
    with database.write() as connection:
        if nodes.spread is not None:
            flow = update_rows(tables.flow).where(tables.flow.c.id == base)
            connection.execute(flow.values(spread=_spread(nodes)))
        connection.execute(
            update_rows(tables.unit)
            .where(tables.unit.c.id == unit_id)
            .values(verdict=_worst(nodes.verdict), counts=unit_counts(nodes))
        )


def update_classes(database: Database, unit_id: int, classes: Mapping[int, int]) -> None:
    """Give node pairs of a stored unit other classes (pair number -> class code), and count its causes again. Reads no other rows
    than theirs and those of the places above them."""
    if not classes:
        return
    base = tables.key(unit_id)
    pair, place, unit = tables.node_pair.c, tables.place.c, tables.unit.c
    changed: dict[int, int] = {}  # key of a pair: its class as stored
    above: dict[int, Any] = {}  # key of a place: itself as stored
    causes: dict[int, int] = {}  # key of a place: causes below it, more or fewer
    with database.read() as connection:
        keys = [base + number for number in classes]
        for start in range(0, len(keys), BATCH):
            wanted = select(pair.id, pair.cls, pair.entry).where(pair.id.in_(keys[start : start + BATCH]))
            for row in connection.execute(wanted):
                changed[row.id] = row.cls
                more = (classes[row.id - base] in CAUSES) - (row.cls in CAUSES)
                at = base + row.entry
                while more and at >= base:  # the parent of the top is negative
                    if at not in above:
                        above[at] = connection.execute(select(place.parent, place.origin).where(place.id == at)).one()
                    causes[at] = causes.get(at, 0) + more
                    at = above[at].parent
        counts = json.loads(connection.execute(select(unit.counts).where(unit.id == unit_id)).scalar_one())
    for key, old in changed.items():
        counts["classes"][CLASS_WORDS[old]] -= 1
        counts["classes"][CLASS_WORDS[classes[key - base]]] += 1
    with database.write() as connection:
        update(connection, tables.node_pair, ("cls",), [[classes[key - base] for key in changed]], list(changed))
        moved = [above[at].origin + more for at, more in causes.items()]
        update(connection, tables.place, ("origin",), [moved], list(causes))
        connection.execute(update_rows(tables.unit).where(unit.id == unit_id).values(counts=to_json(counts)))


def _update_distances(database: Database, old: Unit, items: ItemOpinions, base: int) -> None:
    before, after = old.item_opinions.standing, items.standing
    if before is None or after is None or old.facts.distances is None:
        return
    known = distances.measured_rows(old.facts.distances)
    had, has = (_objects(distances.opinion_columns(standing, known)) for standing in (before, after))
    _update_changed(database, tables.distance, distances.OPINION_COLUMNS, had, has, base, known)
    roles = old.context.role
    had, has = (_objects(distances.node_columns(old, roles, opinions)) for opinions in (old.item_opinions, items))
    _update_changed(database, tables.node_pair, distances.NODE_COLUMNS, had, has, base)


def _objects(columns: list[list[Any]]) -> list[Any]:
    """Columns with None as arrays that can be compared."""
    return [np.array(column, dtype=object) for column in columns]


def _add_flow(database: Database, unit_id: int, unit: Unit) -> None:
    base = tables.key(unit_id)
    with database.read() as connection:
        known = connection.execute(select(tables.flow.c.id).where(tables.flow.c.id == base)).scalar() is not None
    if not known:
        makers = _flow(unit)
        with database.write() as connection:
            insert(connection, tables.flow, [[base], [makers], [None]])


def _spread(nodes: NodeOpinions) -> bytes | None:
    return None if nodes.spread is None else pack_spread(nodes.spread)


def _flow(unit: Unit) -> bytes:
    found = trace(unit)
    return pack_makers(unit.items.pair, found.received, found.handed)


def comparison_serial(connection: Connection, comparison_id: str) -> int:
    """Raises NotFoundError."""
    found = select(tables.comparison.c.serial).where(tables.comparison.c.id == comparison_id)
    serial = connection.execute(found).scalar()
    if serial is None:
        raise NotFoundError(say("index.comparison_removed_meanwhile"), hint=say("api.compare_again"))
    return int(serial)


def unit_counts(nodes: NodeOpinions) -> str:
    """JSON of node pairs by verdict and by class."""
    by_verdict = Counter(nodes.verdict.tolist())
    by_class = Counter(nodes.cls.tolist())
    return to_json(
        {
            **{word: by_verdict.get(code, 0) for code, word in enumerate(VERDICT_WORDS)},
            "classes": {word: by_class.get(code, 0) for code, word in enumerate(CLASS_WORDS)},
        }
    )


def _worst(verdicts: Int8) -> int:
    return int(verdicts.max()) if len(verdicts) else int(Verdict.NA)


def _of_nodes(unit: Unit, target: Any, golden: Any) -> Any:
    """A node column of both sides as a column of node pairs: the target's, the golden's where there is no target."""
    has = unit.pairs.target >= 0
    found = np.full(len(unit.pairs), -1, dtype=np.int64)
    found[has] = target[unit.pairs.target[has]]
    found[~has] = golden[unit.pairs.golden[~has]]
    return found


def _opinion_columns(unit: Unit, items: ItemOpinions, nodes: NodeOpinions) -> list[Any]:
    """Columns of OPINION_COLUMNS as arrays."""
    counts = np.zeros((len(unit.pairs), len(Verdict)), dtype=np.int64)
    np.add.at(counts, (unit.items.pair, items.verdict), 1)
    by_verdict = [counts[:, code] for code in (Verdict.YES, Verdict.NA, Verdict.WARNING, Verdict.NO)]
    return [nodes.verdict, nodes.cls, severities(nodes.in_score), severities(nodes.out_score), *by_verdict]


def _pair_names(unit: Unit) -> tuple[list[str], list[str | None]]:
    """By node pair: its name, and the golden's where that is another one."""
    target_names = storable(unit.target.nodes.names)
    golden_names = storable(unit.golden.nodes.names)
    names: list[str] = []
    others: list[str | None] = []
    for target, golden in zip(unit.pairs.target.tolist(), unit.pairs.golden.tolist(), strict=True):
        name = target_names[target] if target >= 0 else golden_names[golden]
        names.append(name)
        others.append(golden_names[golden] if target >= 0 and golden >= 0 and golden_names[golden] != name else None)
    return names, others


def _store_nodes(new: Draft, unit: Unit) -> None:
    directions = _of_nodes(unit, unit.target.nodes.direction, unit.golden.nodes.direction)
    names, others = _pair_names(unit)
    pairs, size = unit.pairs, len(unit.pairs)
    entries = np.zeros(size, dtype=np.int64)
    real = np.flatnonzero(unit.tree.pair >= 0)
    entries[unit.tree.pair[real]] = real
    target, golden = unit.target.nodes, unit.golden.nodes
    known = intern_texts(new.database, target.labels)
    others_known = known if target.labels == golden.labels else intern_texts(new.database, golden.labels)
    labels = _of_nodes(unit, take(known, target.label), take(others_known, golden.label))
    opinions = [column.tolist() for column in _opinion_columns(unit, unit.item_opinions, unit.node_opinions)]
    roles = unit.context.role
    errors, error_states = node_errors(unit, roles)
    counts = np.bincount(unit.items.pair, minlength=size)[:size]
    base = tables.key(new.id)
    new.append(
        tables.node_pair,
        [
            range(base, base + size),
            nullable(pairs.target),
            nullable(pairs.golden),
            pairs.method.tolist(),
            pairs.confidence.tolist(),
            names,
            others,
            _of_nodes(unit, unit.target.nodes.kind, unit.golden.nodes.kind).tolist(),
            directions.tolist(),
            nullable(labels),
            *opinions[:4],
            *number_columns(errors, error_states),
            pack_states(error_states).tolist(),
            entries.tolist(),
            (np.cumsum(counts) - counts).tolist(),
            counts.tolist(),
            *opinions[4:],
            [code or None for code in pairs.leftover.tolist()],
            nullable(pairs.beside),
            *distances.node_columns(unit, roles, unit.item_opinions),
        ],
    )


def _rollups(unit: Unit, nodes: NodeOpinions) -> Int64:
    """(places, 5) node pairs below each place by ROLLUP_COLUMNS."""
    parent, depth = sound_parents(unit.tree.parent, unit.tree.order)
    own = np.zeros((len(unit.tree), len(ROLLUP_COLUMNS)), dtype=np.int64)
    real = np.flatnonzero(unit.tree.pair >= 0)
    pairs = unit.tree.pair[real]
    for place, code in enumerate((Verdict.YES, Verdict.NA, Verdict.WARNING, Verdict.NO)):
        own[real, place] = nodes.verdict[pairs] == code
    own[real, 4] = np.isin(nodes.cls[pairs], CAUSES)
    return subtree_sums(parent, depth, own)


def _store_places(new: Draft, unit: Unit) -> None:
    tree, size = unit.tree, len(unit.tree)
    parent, _depth = sound_parents(tree.parent, tree.order)
    names = storable(tree.names)
    virtual = (tree.pair < 0).tolist()
    base = tables.key(new.id)
    new.append(
        tables.place,
        [
            range(base, base + size),
            parent_keys(new.id, parent),
            tree.order.tolist(),
            nullable(tree.pair),
            [name if lone else None for name, lone in zip(names, virtual, strict=True)],
            children_counts(parent).tolist(),
            *_rollups(unit, unit.node_opinions).T.tolist(),
        ],
    )


def _store_items(new: Draft, unit: Unit) -> None:
    items, facts, size = unit.items, unit.facts, len(unit.items)
    base = tables.key(new.id)
    new.append(
        tables.item_pair,
        [
            range(base, base + size),
            items.pair.tolist(),
            nullable(items.target),
            nullable(items.golden),
            facts.outcome.tolist(),
            pack_flags(facts.equal, facts.dtype_differs).tolist(),
            *number_columns(facts.diff, facts.diff_state),
            *number_columns(facts.rel, facts.rel_state),
            pack_states(np.concatenate([facts.diff_state, facts.rel_state], axis=1)).tolist(),
            nullable(facts.elements),
            unit.item_opinions.verdict.tolist(),
            unit.item_opinions.rule.tolist(),
            severities(unit.item_opinions.score).tolist(),
        ],
    )
    rows = sorted(facts.errors)
    errors = [facts.errors[row] for row in rows]
    new.append(
        tables.item_error,
        [[base + row for row in rows], storable(errors), [phrases_to_json(error) for error in errors]],
    )


def _store_tensors(new: Draft, facts: Facts) -> None:
    """Rows only for item pairs of which something beyond the statistics is known."""
    counts = [facts.unequal, facts.nonfinite_target, facts.nonfinite_golden, facts.nonfinite_disagree]
    known = (facts.tensor_state != State.ABSENT).any(axis=1)
    for column in counts:
        known |= column >= 0
    for row in facts.details:
        known[row] = True
    rows = np.flatnonzero(known)
    worst: list[str | None] = []
    histograms: list[bytes | None] = []
    for row in rows.tolist():
        detail = facts.details.get(row)
        if detail is None or detail.worst_index is None:
            worst.append(None)
        else:
            worst.append(
                to_json([list(detail.worst_index), _scalar(detail.worst_target), _scalar(detail.worst_golden)])
            )
        histograms.append(None if detail is None else pack_histograms(detail.abs_histogram, detail.rel_histogram))
    base = tables.key(new.id)
    new.append(
        tables.tensor_fact,
        [
            (rows + base).tolist(),
            *number_columns(facts.tensor[rows], facts.tensor_state[rows]),
            pack_states(facts.tensor_state[rows]).tolist(),
            *[nullable(column[rows]) for column in counts],
            worst,
            histograms,
        ],
    )


def _scalar(value: float | int | str | None) -> float | int | str | None:
    """A worst value as JSON keeps it: not finite floats as words."""
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if np.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def _update_changed(
    database: Database,
    table: Any,
    names: tuple[str, ...],
    old: list[Any],
    new: list[Any],
    base: int,
    numbers: Int64 | None = None,
) -> None:
    """numbers: of the rows that the columns hold, where they are not all"""
    differs = np.zeros(len(new[0]), dtype=bool)
    for before, after in zip(old, new, strict=True):
        differs |= before != after
    changed = np.flatnonzero(differs)
    for start in range(0, len(changed), BATCH):
        rows = changed[start : start + BATCH]
        with database.write() as connection:
            keys = (rows if numbers is None else numbers[rows]) + base
            update(connection, table, names, [column[rows].tolist() for column in new], keys.tolist())
