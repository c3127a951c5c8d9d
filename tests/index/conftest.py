"""An empty database of each kind that this machine has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dumpscope.index.store.database import Database
from index.databases import KINDS, open_empty


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = open_empty(request.param, tmp_path)
    yield opened
    opened.close()
