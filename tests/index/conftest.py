"""An empty database of each kind that this machine has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from dumpscope.index.database import Database, sqlite_url

POSTGRES = os.environ.get("DUMPSCOPE_TEST_POSTGRES_URL")


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.skipif(not POSTGRES, reason="no PostgreSQL"))]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        url = sqlite_url(tmp_path / "index.db")
    else:
        assert POSTGRES is not None
        url = POSTGRES
        _empty(POSTGRES)
    opened = Database.open(url)
    yield opened
    opened.close()


def _empty(url: str) -> None:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
