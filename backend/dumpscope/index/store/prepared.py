"""Statements that requests ask again and again: compiled once, then handed to the driver as they are.

SQLAlchemy takes ten times as long to build a statement, to find it again among those it has compiled, and to wrap its rows, as a
database takes for a row by its key. What depends on filters or on an order is left to SQLAlchemy.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, BindParameter, Connection, Select, Text, bindparam
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

from dumpscope.index.store.database import CHUNK

KEYS: Final = "keys"
"""Name of the parameter that takes several values (`among`)."""


def number_named(name: str) -> BindParameter[int]:
    """A parameter for a key of a row or another whole number."""
    return bindparam(name, type_=BigInteger)


def text_named(name: str) -> BindParameter[str]:
    """A parameter for a text."""
    return bindparam(name, type_=Text)


def some_keys() -> BindParameter[Any]:
    """The parameter for the keys that `Prepared.among` looks for: `column.in_(some_keys())`."""
    return bindparam(KEYS, expanding=True, type_=BigInteger)


def some_texts() -> BindParameter[Any]:
    """The same for texts."""
    return bindparam(KEYS, expanding=True, type_=Text)


class _Form(NamedTuple):
    """A statement as a driver takes it. order: names of its values by position, None where the driver takes them by name
    keys: names of the values of KEYS"""

    text: str
    order: Sequence[str] | None
    constants: Mapping[str, Any]
    keys: Sequence[str]


class Prepared:
    """A SELECT with parameters; its rows are tuples with names. Safe to share between threads."""

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement
        self._forms: dict[tuple[str, int], _Form] = {}

    @cached_property
    def _row(self) -> Any:
        """Makes a row of a tuple."""
        make: Any = namedtuple  # mypy knows none whose names are not written out
        return make("Row", [column.name for column in self.statement.selected_columns], rename=True)._make

    def rows(self, connection: Connection, **values: Any) -> list[Any]:
        """Every row."""
        return [self._row(row) for row in self._fetch(connection, values)]

    def one(self, connection: Connection, **values: Any) -> Any:
        """The first row, None where there is none."""
        found = self._fetch(connection, values)
        return self._row(found[0]) if found else None

    def column(self, connection: Connection, **values: Any) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self._fetch(connection, values)]

    def value(self, connection: Connection, **values: Any) -> Any:
        """The first column of the first row, None where there is none."""
        found = self._fetch(connection, values)
        return found[0][0] if found else None

    def among(self, connection: Connection, keys: Sequence[Any], **values: Any) -> list[Any]:
        """The rows of all these keys (`some_keys`), of which there may be many. They come in the statement's order where there
        are no more than CHUNK."""
        return [
            self._row(row)
            for start in range(0, len(keys), CHUNK)
            for row in self._fetch(connection, {**values, KEYS: keys[start : start + CHUNK]})
        ]

    def _fetch(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        keys = values.get(KEYS)
        form = self._form(connection.dialect, 0 if keys is None else len(keys))
        given = {**form.constants, **values}
        if keys is not None:
            given.update(zip_longest(form.keys, keys, fillvalue=keys[-1]))
        cursor: Any = connection.connection.cursor()
        try:
            cursor.execute(form.text, given if form.order is None else [given[name] for name in form.order])
            found: list[Any] = cursor.fetchall()
        except connection.dialect.loaded_dbapi.Error as error:
            raise DBAPIError.instance(
                form.text, None, error, connection.dialect.loaded_dbapi.Error, dialect=connection.dialect
            ) from error
        finally:
            cursor.close()
        return found

    def _form(self, dialect: Dialect, keys: int) -> _Form:
        """The statement for so many keys or some more, so that there are few statements."""
        places = 1 << (keys - 1).bit_length() if keys else 0
        known = (dialect.name, places)
        if known not in self._forms:
            compiled = self.statement.compile(dialect=dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            if places:
                state = compiled.construct_expanded_state({**compiled.params, KEYS: [0] * places}, escape_names=False)
                names = state.parameter_expansion[KEYS]
                self._forms[known] = _Form(state.statement, state.positiontup, constants, names)
            else:
                self._forms[known] = _Form(compiled.string, compiled.positiontup, constants, ())
        return self._forms[known]
