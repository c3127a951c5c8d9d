"""A comparison that is asked for while its dumps are read begins before they are stored, and ends at the same rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url
from sqlalchemy import select

from api.conftest import BASE, Client, ask, ask_while_read, register, settled
from dumpscope.api.app import create_app
from dumpscope.domain.records import DumpIndex
from dumpscope.index.comparisons.catalogue import get_comparison, stored_units
from dumpscope.index.dumps.store_rank import is_stored_as_it_is
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.pipeline.server import early_comparison
from dumpscope.pipeline.server.unstored_ranks import UnstoredRank, UnstoredRanks, put_aside, take_up
from dumpscope.readers import discover, read_rank
from dumpscope.settings import Settings


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("early")
    settings = Settings(
        data_dir=folder,
        roots=[dumps, folder],
        executor="processes:2",
        database_url=empty_url(request.param, folder),
    )
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


def rows(database: Database, comparison: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a comparison of one unit, by table, with numbers instead of keys."""
    (unit,) = stored_units(database, comparison)
    first, last = tables.key_range(unit.id)
    found: dict[str, list[tuple[Any, ...]]] = {
        "unit": [tuple(value for name, value in asdict(unit).items() if name not in ("id", "stamp"))]
    }
    with database.read() as connection:
        for table in tables.UNIT_ROWS:
            chosen = select(table).where(table.c.id.between(first, last)).order_by(table.c.id)
            found[table.name] = [
                tuple(
                    _number(value, unit.id) if column.name in ("id", "parent", "unit", "first_part") else value
                    for column, value in zip(table.c, row, strict=True)
                )
                for row in connection.execute(chosen)
            ]
    return found


def _number(value: int, owner: int) -> int:
    return -1 if value == -owner else value - tables.key(owner)


@pytest.mark.parametrize(
    ("target", "golden"), [("stat_fault", "stat_golden"), ("md5_fault", "md5_golden"), ("xor_fault", "xor_golden")]
)
def test_what_begins_early_ends_at_the_rows_of_what_begins_late(
    server: Client, early: list[bool], tmp_path: Path, dumps: Path, target: str, golden: str
) -> None:
    database: Database = server.app.state.shared.database  # type: ignore[attr-defined]
    first = ask_while_read(server, tmp_path / "gate", dumps / target, dumps / golden)
    assert early == [True]
    row = get_comparison(database, first)
    second = ask(server, row.target, row.golden)
    assert settled(server, f"/api/comparisons/{second}", 60)["status"] == "done"
    assert early == [True], "both are stored"
    assert rows(database, first) == rows(database, second)
    one, other = row.answer, get_comparison(database, second).answer
    assert one is not None
    assert one == other
    assert one.target.path.endswith(target)
    for dump in (row.target, row.golden):
        assert server.get(f"/api/dumps/{dump}").json()["status"] == "ready"


def test_a_side_that_is_stored_is_compared_with_one_that_is_only_read(
    server: Client, early: list[bool], tmp_path: Path, dumps: Path
) -> None:
    golden = register(server, dumps / "stat_golden")
    settled(server, f"/api/dumps/{golden}", 60)
    comparison = ask_while_read(server, tmp_path / "gate", dumps / "stat_fault", golden=golden)
    assert early == [True]
    assert server.get(f"/api/comparisons/{comparison}").json()["origin"]["node"]


def test_a_comparison_begins_anew_where_what_was_read_is_gone(
    server: Client, early: list[bool], tmp_path: Path, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(file: Path, _own: Path) -> Path:
        raise FileNotFoundError(file)

    monkeypatch.setattr(early_comparison, "_keep", gone)
    comparison = ask_while_read(server, tmp_path / "gate", dumps / "stat_fault", dumps / "stat_golden")
    assert early == [False]
    assert server.get(f"/api/comparisons/{comparison}").json()["origin"]["node"]


def test_several_steps_are_compared_when_they_are_stored(
    server: Client, early: list[bool], tmp_path: Path, dumps: Path
) -> None:
    comparison = ask_while_read(server, tmp_path / "gate", dumps / "target_fault", dumps / "golden")
    assert early == []
    assert server.get(f"/api/comparisons/{comparison}").json()["origin"]["node"]


def test_a_rank_is_put_aside_as_it_is_or_not_at_all(tmp_path: Path, dumps: Path) -> None:
    (ref,) = discover(dumps / "stat_golden").ranks
    dump = read_rank(ref)
    assert is_stored_as_it_is(dump)
    for name in ("lone \ud800", "nul \0"):
        odd = replace(dump, nodes=replace(dump.nodes, names=[name, *dump.nodes.names[1:]]))
        assert not is_stored_as_it_is(odd), "a database would hold another name"
    assert put_aside(dump, tmp_path / "rank")
    assert take_up(tmp_path / "rank").nodes.names == dump.nodes.names
    assert not put_aside(dump, tmp_path / "no folder" / "rank")


def test_a_rank_waits_for_a_comparison_and_no_longer_than_its_patience(tmp_path: Path) -> None:
    meeting = UnstoredRanks()
    rank = UnstoredRank(layout=DumpIndex(root="", ranks=[], problems=[]), file=tmp_path)

    def offer(patience: float = 60.0, cancelled: Callable[[], bool] = lambda: False) -> float:
        start = time.monotonic()
        meeting.offer("a", rank, patience=patience, cancelled=cancelled)
        return time.monotonic() - start

    assert offer() < 30, "nobody wants it"
    with meeting.wanting(("a", "b")):
        assert offer(patience=0.1) >= 0.1
        assert offer(cancelled=lambda: True) < 30
        assert meeting.find("a") is rank
        begun = threading.Timer(0.1, meeting.begin, [("a", "b")])
        begun.start()
        assert 0.05 < offer() < 30
        assert meeting.find("b") is None
        assert meeting.stored_as("a") is None
        meeting.withdraw("a", 7)
        assert (meeting.find("a"), meeting.stored_as("a")) == (None, 7)
    with meeting.wanting(("a",)):
        assert meeting.stored_as("a") is None, "what was known of it goes with who wanted it"
        assert offer(patience=0.1) >= 0.1
