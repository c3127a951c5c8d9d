"""Empty databases for tests: SQLite always, PostgreSQL where DUMPSCOPE_TEST_POSTGRES_URL names one that may be emptied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from dumpscope.index.database import Database, sqlite_url

POSTGRES = os.environ.get("DUMPSCOPE_TEST_POSTGRES_URL", "")

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.skipif(not POSTGRES, reason="no PostgreSQL here"))]


def empty_url(kind: str, folder: Path) -> str:
    """URL of a database without a table."""
    if kind == "sqlite":
        return sqlite_url(folder / "index.db")
    engine = create_engine(POSTGRES.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return POSTGRES


def open_empty(kind: str, folder: Path) -> Database:
    return Database.open(empty_url(kind, folder))
