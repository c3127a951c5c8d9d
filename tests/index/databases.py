"""Empty databases for tests: SQLite always, PostgreSQL where DUMPSCOPE_TEST_POSTGRES_URL names a cluster."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

from dumpscope.index.store.database import Database, sqlite_url

POSTGRES = os.environ.get("DUMPSCOPE_TEST_POSTGRES_URL", "")

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.skipif(not POSTGRES, reason="no PostgreSQL here"))]


def empty_url(kind: str, folder: Path) -> str:
    """URL of a database without a row."""
    if kind == "sqlite":
        return sqlite_url(folder / "index.db")
    return _make(template=make_url(_migrated()).database)


@cache
def _migrated() -> str:
    """URL of a database that has the tables: to copy it takes a third of what the migrations take."""
    url = _make()
    Database.open(url).close()
    return url


def _make(template: str | None = None) -> str:
    """URL of a new database. template: name of the database that it is a copy of"""
    url = make_url(POSTGRES.replace("postgresql://", "postgresql+psycopg://", 1))
    name = f"dumpscope_{uuid4().hex[:12]}"  # one each: a server that a session fixture keeps may still be at work in another
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else "")))
    engine.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


def open_empty(kind: str, folder: Path) -> Database:
    return Database.open(empty_url(kind, folder))
