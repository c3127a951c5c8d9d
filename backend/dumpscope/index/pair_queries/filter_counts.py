"""How many calls each entry of the filter would show, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select

from dumpscope.domain.facts import CLASS_WORDS, LEFTOVER_WORDS, VERDICT_WORDS
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.node_pairs import NodeFilter, conditions
from dumpscope.index.pair_queries.search.clauses import ABSORBED
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.recent import Recent

_PAIR: Final = tables.node_pair.c


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterCounts:
    """Calls by word. A call that is absorbed is benign too

    micros: all calls of each micro-step, by its number; empty where the target tells none"""

    classes: dict[str, int]
    verdicts: dict[str, int]
    leftovers: dict[str, int]
    micros: dict[str, int]


def filter_counts(database: Database, unit: StoredUnit, filters: NodeFilter) -> FilterCounts:
    """What each word would show beside the search, the API, the range and the chosen words of the other two lists."""
    searched = replace(filters, classes=(), verdicts=(), leftovers=())
    key = None if unit.stamp is None else (database.url, unit.stamp, unit.id)
    with database.read() as connection:
        where = conditions(connection, unit, searched)
        conditions(connection, unit, filters)  # refuses unknown words
        known = (*key, searched) if key is not None and searched.lasts else None
        rows = _COUNTS.get(known, lambda: _count(connection, where))
        micros = _MICROS.get(key, lambda: _count_micro_steps(connection, unit))
    classes = dict.fromkeys((*CLASS_WORDS, ABSORBED), 0)
    verdicts = dict.fromkeys(VERDICT_WORDS, 0)
    leftovers: dict[str, int] = {word: 0 for word in LEFTOVER_WORDS if word is not None}
    for cls, verdict, leftover, count in rows:
        verdict_word, leftover_word = VERDICT_WORDS[verdict], LEFTOVER_WORDS[leftover]
        marks = _marks(CLASS_WORDS[cls], verdict_word)
        by_class = _chosen(filters.classes, *marks)
        by_verdict = _chosen(filters.verdicts, verdict_word)
        by_leftover = _chosen(filters.leftovers, leftover_word)
        if by_verdict and by_leftover:
            for mark in marks:
                classes[mark] += count
        if by_class and by_leftover:
            verdicts[verdict_word] += count
        if by_class and by_verdict and leftover_word is not None:
            leftovers[leftover_word] += count
    return FilterCounts(classes=classes, verdicts=verdicts, leftovers=leftovers, micros=micros)


_COUNTS: Final[Recent[tuple[str, str, int, NodeFilter], Sequence[tuple[int, int, int, int]]]] = Recent(12)
"""Node pairs by class, verdict and cause without a partner: of the units and filters asked for last."""
_MICROS: Final[Recent[tuple[str, str, int], dict[str, int]]] = Recent(12)


def _count(connection: Connection, where: Sequence[ColumnElement[bool]]) -> Sequence[tuple[int, int, int, int]]:
    columns = (_PAIR.cls, _PAIR.verdict, func.coalesce(_PAIR.leftover, 0))
    found = connection.execute(select(*columns, func.count()).where(*where).group_by(*columns))
    return [(cls, verdict, leftover, count) for cls, verdict, leftover, count in found]


def _count_micro_steps(connection: Connection, unit: StoredUnit) -> dict[str, int]:
    entry, (first, last) = tables.entry.c, tables.key_range(unit.target)
    numbers = (
        select(entry.micro, func.count())
        .where(entry.id.between(first, last), entry.micro.is_not(None))
        .group_by(entry.micro)
        .order_by(entry.micro)
    )
    return {str(number): count for number, count in connection.execute(numbers)}


def _marks(cls: str, verdict: str) -> tuple[str, ...]:
    """Words of the filter that show such a call."""
    return (cls, ABSORBED) if (cls, verdict) == ("benign", "no") else (cls,)


def _chosen(wanted: tuple[str, ...], *words: str | None) -> bool:
    """Whether a list of words lets a call through: an empty one lets all."""
    return not wanted or any(word in wanted for word in words)
