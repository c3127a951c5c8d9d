"""Bring a database's tables to the version this program knows.

A new SQLite file gets the statements of `schema.sql`, which is what all migrations together make: running them, and importing
alembic for that, takes ten times as long. After a new migration: python -m dumpscope.index.store.upgrade
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from dumpscope.errors import UsageError
from dumpscope.texts import say

if TYPE_CHECKING:
    from alembic.config import Config

SCHEMA: Final = Path(__file__).with_name("schema.sql")
_STAMP: Final = "INSERT INTO alembic_version (version_num) VALUES ('{}')"


def configuration() -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(SCHEMA.parents[1] / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


@cache
def _statements() -> tuple[str, ...]:
    return tuple(SCHEMA.read_text(encoding="utf-8").removesuffix(";\n").split(";\n\n"))


def version(connection: Connection) -> str | None:
    """Version of the tables, None where they are not dumpscope's."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    found: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return found


def newest() -> str:
    """Version that this program brings tables to."""
    found = re.fullmatch(re.escape(_STAMP).replace(r"\{\}", r"(\w+)"), _statements()[-1])
    assert found is not None, "the schema ends with its version"
    return found[1]


def upgrade(connection: Connection) -> None:
    """Make the tables, or run the missing migrations, in the connection's transaction.

    Raises UsageError for a database of a newer program.
    """
    if version(connection) == newest():
        return
    if connection.dialect.name == "sqlite" and not connection.exec_driver_sql("SELECT 1 FROM sqlite_master").scalar():
        for statement in _statements():
            connection.exec_driver_sql(statement)
        return
    migrate(connection)


def migrate(connection: Connection) -> None:
    """Run the missing migrations in the connection's transaction; raises UsageError for a database of a newer program."""
    from alembic import command  # noqa: PLC0415 (large, and only needed here)
    from alembic.util import CommandError  # noqa: PLC0415

    config = configuration()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise UsageError(
            say("index.database_made_by_another_version_dumpscope", error=error),
            hint=say("index.use_newer_program_another_dumpscope_data_dir_dumpscope_datab"),
        ) from error


def migrated_schema() -> str:
    """What `schema.sql` must hold: the tables and indexes that the migrations make in an empty SQLite file, and their version."""
    from sqlalchemy import create_engine  # noqa: PLC0415

    with create_engine("sqlite://").begin() as connection:
        migrate(connection)
        made = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        ).scalars()
        statements = [*made, _STAMP.format(version(connection))]
    return ";\n\n".join(statements) + ";\n"


if __name__ == "__main__":
    SCHEMA.write_text(migrated_schema(), encoding="utf-8")
