"""Bring a database's tables to the version this program knows."""

from __future__ import annotations

from importlib import resources

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from dumpscope.errors import UsageError
from dumpscope.texts import say


def configuration() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("dumpscope.index") / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def version(connection: Connection) -> str | None:
    """Version of the tables, None where they are not dumpscope's."""
    return MigrationContext.configure(connection).get_current_revision()


def newest() -> str | None:
    """Version that this program brings tables to."""
    return ScriptDirectory.from_config(configuration()).get_current_head()


def upgrade(connection: Connection) -> None:
    """Run the missing migrations in the connection's transaction; raises UsageError for a database of a newer program."""
    config = configuration()
    if version(connection) == newest():
        return
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise UsageError(
            say("index.database_made_by_another_version_dumpscope", error=error),
            hint=say("index.use_newer_program_another_dumpscope_data_dir_dumpscope_datab"),
        ) from error
