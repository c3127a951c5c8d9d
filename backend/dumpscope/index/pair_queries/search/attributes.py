"""Terms of a search about what a call is made of: names by expression, the modules around it, its lines of code, its tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import re2
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    any_,
    cast,
    false,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB

from dumpscope.domain.records import Int64
from dumpscope.domain.search.pattern import Pattern
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dumps.items import all_items
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable
from dumpscope.index.store.recent import Recent
from dumpscope.texts import say

_PAIR: Final = tables.node_pair.c
_ENTRY: Final = tables.entry.c
_DIGITS: Final = 9
Matcher = Callable[[str], bool]
_KEPT: Final[Recent[tuple[Any, ...], Int64]] = Recent(24)
"""Keys of the node pairs that the last expressions and attributes match."""


def pattern_clause(connection: Connection, unit: StoredUnit, pattern: Pattern) -> ColumnElement[bool]:
    """Either side's name matches. The databases have expressions of another syntax each, not in linear time; so the names are
    read and matched here, once for an expression."""
    found = _KEPT.get(
        None if unit.stamp is None else (str(connection.engine.url), unit.stamp, unit.id, pattern.text, pattern.fold),
        lambda: _matching(connection, unit, pattern),
    )
    return _among(connection, unit, found)


def _among(connection: Connection, unit: StoredUnit, found: Int64) -> ColumnElement[bool]:
    """Of the unit's node pairs those with these keys."""
    if len(found) == 0:
        return false()
    if len(found) == unit.pairs:
        return true()
    return _listed(connection, _PAIR.id, found)


def _listed(connection: Connection, column: ColumnElement[Any], found: Int64) -> ColumnElement[bool]:
    """The column holds one of these numbers, of which there may be many."""
    if connection.dialect.name == "sqlite":
        numbers = func.json_each(literal(json.dumps(found.tolist()))).table_valued("value")
        return column.in_(select(numbers.c.value))
    return column == any_(cast(literal(found.tolist(), ARRAY(BigInteger)), ARRAY(BigInteger)))


def _matching(connection: Connection, unit: StoredUnit, pattern: Pattern) -> Int64:
    matches = pattern.matcher()
    first, last = tables.key_range(unit.id)
    rows: Sequence[Any] = connection.execute(
        select(_PAIR.id, _PAIR.name, _PAIR.golden_name).where(_PAIR.id.between(first, last)).order_by(_PAIR.id)
    ).cursor.fetchall()
    keys = [key for key, name, golden in rows if matches(name) or (golden is not None and matches(golden))]
    return np.array(keys, dtype=np.int64)


def attribute_clause(connection: Connection, unit: StoredUnit, key: str, values: Sequence[str]) -> ColumnElement[bool]:
    """key: module, line, dtype, shape or micro; any of the values. Raises UsageError.

    A page asks for its rows and for their number, and the next page again: the calls are found once."""
    if unit.stamp is None:
        return _attribute(connection, unit, key, values)

    def find() -> Int64:
        own, clause = _PAIR.id.between(*tables.key_range(unit.id)), _attribute(connection, unit, key, values)
        return np.array(connection.execute(select(_PAIR.id).where(own, clause)).scalars().all(), np.int64)

    place = str(connection.engine.url), unit.stamp, unit.id, key, *values
    return _among(connection, unit, _KEPT.get(place, find))


def _attribute(connection: Connection, unit: StoredUnit, key: str, values: Sequence[str]) -> ColumnElement[bool]:
    if key == "module":
        return _inside(connection, unit, values)
    sides = (_PAIR.target, unit.target), (_PAIR.golden, unit.golden)
    if key == "line":
        return or_(*(column.in_(_at_lines(connection, owner, values)) for column, owner in sides))
    if key == "micro":
        return or_(*(column.in_(_in_micro_steps(owner, values)) for column, owner in sides))
    matches = _tensor_pattern(key, values)
    return or_(
        *(_listed(connection, column, _with_tensors(connection, owner, key, matches)) for column, owner in sides)
    )


def _like(connection: Connection, column: Any, wanted: str) -> ColumnElement[bool]:
    """`*` stands for anything, letters of either case; what is around `wanted` comes with it."""
    escaped = storable([wanted])[0].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    sqlite = connection.dialect.name == "sqlite"
    clause: ColumnElement[bool] = column.like(escaped, escape="\\") if sqlite else column.ilike(escaped, escape="\\")
    return clause


def _inside(connection: Connection, unit: StoredUnit, values: Sequence[str]) -> ColumnElement[bool]:
    """Modules whose path has these parts in a row, and all below them."""
    place = tables.place.c
    first, last = tables.key_range(unit.id)
    name = func.coalesce(_PAIR.name, place.name)
    forms = [f"Module.{form}.*" for value in values for form in (value, f"*.{value}")]
    named = or_(*(or_(_like(connection, name, form), _like(connection, _PAIR.golden_name, form)) for form in forms))
    top = (
        select(place.id, place.pair)
        .select_from(tables.place.outerjoin(tables.node_pair, _PAIR.id == tables.key_at(unit.id, place.pair)))
        .where(place.id.between(first, last), named)
    )
    below = top.cte("below", recursive=True)
    below = below.union(select(place.id, place.pair).join(below, place.parent == below.c.id))
    return _PAIR.id.in_(select(tables.key_at(unit.id, below.c.pair)).where(below.c.pair.is_not(None)))


def _at_lines(connection: Connection, owner: int, values: Sequence[str]) -> Select[Any]:
    """Numbers of the nodes in whose call stack one of these lines is; a backward node has its forward call's stack."""
    text, stack = tables.text.c, tables.stack.c
    lines = [_line(value) for value in values]
    forms = [f"*{file}{quote}, line {number}*" for file, number in lines for quote in ('"', "")]
    frames = select(text.id).where(or_(*(_like(connection, text.text, form) for form in forms)))
    if connection.dialect.name == "sqlite":
        each = func.json_each(stack.frames).table_valued("value")
        frame: ColumnElement[Any] = each.c.value
    else:
        each = func.jsonb_array_elements_text(cast(stack.frames, JSONB)).table_valued("value")
        frame = cast(cast(each.c.value, String), BigInteger)
    mine = _ENTRY.id.between(*tables.key_range(owner))
    stacks = (
        select(stack.id)
        .select_from(tables.stack.join(each, true()))
        .where(stack.id.in_(select(_ENTRY.stack).where(mine)), frame.in_(frames))
    )
    same = select(_ENTRY.label, _ENTRY.call).where(mine, _ENTRY.stack.in_(stacks), _ENTRY.label.is_not(None))
    forward = and_(_ENTRY.stack.is_(None), tuple_(_ENTRY.label, _ENTRY.call).in_(same))
    first, _last = tables.key_range(owner)
    return select(_ENTRY.id - first).where(mine, _ENTRY.kind.is_not(None), or_(_ENTRY.stack.in_(stacks), forward))


def _line(value: str) -> tuple[str, str]:
    """File and number, with the sign that ends it; of `models.py` every line."""
    file, colon, number = value.rpartition(":")
    if not colon:
        return value, ""
    if not number.isdecimal() or not file:
        raise UsageError(say("index.line_is_file_and_number", value=f"{value!r}"), hint=say("index.line_example"))
    return file, f"{number},"


def _in_micro_steps(owner: int, values: Sequence[str]) -> Select[Any]:
    """Numbers of the nodes of these micro-steps, of a step that accumulates gradients over several."""
    wrong = next((value for value in values if not value.isdecimal() or len(value) > _DIGITS), None)
    if wrong is not None:
        raise UsageError(say("index.micro_is_number", value=f"{wrong!r}"), hint=say("index.micro_example"))
    first, last = tables.key_range(owner)
    return select(_ENTRY.id - first).where(_ENTRY.id.between(first, last), _ENTRY.micro.in_(map(int, values)))


def _tensor_pattern(key: str, values: Sequence[str]) -> Matcher:
    """Says whether a dtype or shape, as it is stored, is one that is looked for. Raises UsageError."""
    forms = [f"(.*[.])?{_any(value.lower())}" if key == "dtype" else _any(_shape(value)) for value in values]
    matches = re2.compile(f"(?s){'|'.join(forms)}").fullmatch
    return lambda text: matches(text.lower()) is not None


def _any(wanted: str) -> str:
    """`*` stands for anything."""
    return ".*".join(map(re2.escape, wanted.split("*")))


def _with_tensors(connection: Connection, owner: int, key: str, wanted: Matcher) -> Int64:
    """Numbers of the nodes of which an input or output has a dtype or shape that matches."""
    items = all_items(connection, owner)
    column = items.dtype if key == "dtype" else items.shape
    codes = [code for code, text in enumerate(column.texts) if wanted(text)]
    return np.unique(items.node[np.isin(column.codes, codes)]).astype(np.int64)


def _shape(value: str) -> str:
    """`[2,3]`, `2x3` or `*,768` as shapes are stored, `*` for any sizes. Raises UsageError."""
    sizes = [size.strip() for size in value.strip("[]() ").replace("x", ",").split(",")] if value.strip("[]() ") else []
    if not all(size == "*" or size.isdecimal() for size in sizes):
        raise UsageError(say("index.shape_is_sizes", value=f"{value!r}"), hint=say("index.shape_example"))
    return f"[{','.join(sizes)}]"
