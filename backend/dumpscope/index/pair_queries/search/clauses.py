"""What a search (`domain.search.terms`) asks of node pairs, as WHERE clauses."""

from __future__ import annotations

import math
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, false, func, not_, or_, select, true

from dumpscope.domain.facts import CLASS_WORDS, LEFTOVER_WORDS, METHOD_WORDS, VERDICT_WORDS
from dumpscope.domain.records import State
from dumpscope.domain.search.pattern import Pattern
from dumpscope.domain.search.terms import Bounds, Term, Words, parse
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dump_queries.prechecks import alone_clause
from dumpscope.index.dumps.catalogue import contains
from dumpscope.index.pair_queries.notes import note_clause
from dumpscope.index.pair_queries.paths.links import linked_calls
from dumpscope.index.pair_queries.search.attributes import attribute_clause, pattern_clause
from dumpscope.index.store import tables
from dumpscope.index.store.codec import STATE_BITS, storable
from dumpscope.index.trees.trees import DIRECTION_WORDS, KIND_WORDS
from dumpscope.texts import say

_PAIR: Final = tables.node_pair.c
_CODES: Final[dict[str, tuple[ColumnElement[int], dict[str, int]]]] = {
    "class": (_PAIR.cls, {word: code for code, word in enumerate(CLASS_WORDS)}),
    "verdict": (_PAIR.verdict, {word: code for code, word in enumerate(VERDICT_WORDS)}),
    "match": (_PAIR.method, {word: code for code, word in enumerate(METHOD_WORDS)}),
    "left": (_PAIR.leftover, {word: code for code, word in enumerate(LEFTOVER_WORDS) if word is not None}),
    "kind": (_PAIR.kind, {word: int(code) for code, word in KIND_WORDS.items()}),
    "direction": (_PAIR.direction, {word: int(code) for code, word in DIRECTION_WORDS.items()}),
}
_ERRORS: Final[dict[str, tuple[ColumnElement[float], int]]] = {"in": (_PAIR.in_error, 0), "err": (_PAIR.out_error, 1)}
"""Column of a relative error and its place among the states: one that is not finite is stored as null."""
_COLUMNS: Final[dict[str, ColumnElement[float]]] = {
    "score": _PAIR.severity, "inscore": _PAIR.in_score, "ratio": _PAIR.ratio, "confidence": _PAIR.confidence,
}  # fmt: skip
ABSORBED: Final = "absorbed"
_NOT_NEGATIVE: Final = frozenset({"score", "inscore", "ratio"})
"""Numbers stored as -1 where there is none: no bound holds for them there."""


def search_clauses(connection: Connection, unit: StoredUnit, text: str) -> list[ColumnElement[bool]]:
    """Clauses over node_pair that have to hold together; raises UsageError for what is no search."""
    return [_clause(connection, unit, term) for term in parse(text)]


def _clause(connection: Connection, unit: StoredUnit, term: Term) -> ColumnElement[bool]:
    if isinstance(term, Pattern):
        clause = pattern_clause(connection, unit, term)
    else:
        clause = _numbers(term) if isinstance(term, Bounds) else _words(connection, unit, term)
    return not_(func.coalesce(clause, false())) if term.negated else clause


def _words(connection: Connection, unit: StoredUnit, term: Words) -> ColumnElement[bool]:
    if term.key in ("", "name"):
        return or_(*(_name_clause(connection, value) for value in term.values))
    if term.key == "api":
        return _PAIR.label.in_(labels(term.values))
    if term.key == "note":
        return note_clause(connection, unit, term.values)
    if term.key in ("reads", "feeds"):
        found = linked_calls(connection, unit, term.values, onward=term.key == "reads")
        return _PAIR.id.in_([tables.key(unit.id, pair) for pair in found])
    if term.key == "alone":
        return alone_clause(unit, tuple(value.lower() for value in term.values))
    if term.key in ("module", "line", "dtype", "shape", "micro"):
        return attribute_clause(connection, unit, term.key, term.values)
    if term.key == "class":
        return or_(false(), *map(_class_clause, term.values))
    column, codes = _CODES[term.key]
    return column.in_([_code(term.key, value, codes) for value in term.values])


def _class_clause(word: str) -> ColumnElement[bool]:
    return absorbed() if word.lower() == ABSORBED else _PAIR.cls == _code("class", word, _CODES["class"][1])


def absorbed() -> ColumnElement[bool]:
    """Harmless itself, but with an input that is a No: a mark of its own in lists, and of the class benign."""
    return and_(_PAIR.cls == CLASS_WORDS.index("benign"), _PAIR.verdict == VERDICT_WORDS.index("no"))


def _code(key: str, value: str, codes: dict[str, int]) -> int:
    try:
        return codes[value.lower()]
    except KeyError:
        raise UsageError(
            say("index.unknown_search", key=key, value=f"{value!r}"), hint=say("domain.known", names=", ".join(codes))
        ) from None


def _name_clause(connection: Connection, part: str) -> ColumnElement[bool]:
    return or_(contains(connection, _PAIR.name, part), contains(connection, _PAIR.golden_name, part))


def labels(apis: tuple[str, ...]) -> Select[Any]:
    """Text ids of what is one of `apis`, ends with one, or is like one with a `*`: a large model has one label per module,
    too many to list in a statement."""
    text = func.lower(tables.text.c.text)
    wanted = [storable([api.lower()])[0] for api in apis]
    return select(tables.text.c.id).where(or_(*(_is_api(text, one) for one in wanted)))


def _is_api(text: Any, wanted: str) -> ColumnElement[bool]:
    if "*" not in wanted:
        return or_(text == wanted, text.endswith(f".{wanted}", autoescape=True))
    escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    return or_(text.like(escaped, escape="\\"), text.like(f"%.{escaped}", escape="\\"))


def _numbers(term: Bounds) -> ColumnElement[bool]:
    if term.key == "order":
        return and_(true(), *_within(_PAIR.id.op("&")(tables.NUMBER_MASK), term))
    if term.key in _ERRORS:
        column, place = _ERRORS[term.key]
        clauses = _within(column, term)
        finite = and_(column.is_not(None), *clauses)
        if not _holds_infinity(term):
            return finite
        endless = [int(state) << place * STATE_BITS for state in (State.POS_INF, State.NAN)]
        return or_(finite, _PAIR.error_states.op("&")(7 << place * STATE_BITS).in_(endless))
    column = _COLUMNS[term.key]
    known = [column >= 0] if term.key in _NOT_NEGATIVE else []
    return and_(true(), *known, *_within(column, term))


def _holds_infinity(term: Bounds) -> bool:
    return term.high == math.inf and not term.high_open and not (term.low == math.inf and term.low_open)


def _within(column: ColumnElement[Any], term: Bounds) -> list[ColumnElement[bool]]:
    """Scores may be infinite and both databases order infinities as numbers, so an infinite bound is compared like any other;
    left out is only what every number satisfies."""
    clauses: list[ColumnElement[bool]] = []
    if term.low > -math.inf or term.low_open:
        clauses.append(column > term.low if term.low_open else column >= term.low)
    if term.high < math.inf or term.high_open:
        clauses.append(column < term.high if term.high_open else column <= term.high)
    return clauses
