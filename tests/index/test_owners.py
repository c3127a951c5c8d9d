"""A rank or a result is there as a whole or not at all, though it is written in many short transactions."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from dumpscope.errors import FullDiskError, NotFoundError
from dumpscope.index.comparisons.catalogue import clear_comparison, delete_comparison, get_comparison, stored_units
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.comparisons.store_results import UnitSides, store_unit
from dumpscope.index.dumps.catalogue import count_dumps, create_dump, delete_dump, stored_ranks
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.store import owners, tables
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.store.owners import sweep
from index.test_storage import store_pair
from index.units import make_rank


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Transactions of seven rows; how many rows each inserted."""
    sizes: list[int] = []
    real = owners.insert

    def counted(*arguments: Any, **keywords: Any) -> int:
        sizes.append(real(*arguments, **keywords))
        return sizes[-1]

    monkeypatch.setattr(owners, "BATCH", 7)
    monkeypatch.setattr(owners, "insert", counted)
    return sizes


def rows(database: Database) -> dict[str, int]:
    """Rows of every table whose rows have an owner, and of the owners."""
    owned = (tables.rank_dump, tables.unit, *tables.RANK_ROWS, *tables.UNIT_ROWS)
    with database.read() as connection:
        found = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in owned
        }
    return {name: count for name, count in found.items() if count}


def test_no_transaction_holds_more_than_a_batch(database: Database, short: list[int]) -> None:
    store_pair(database, nodes=30, tensors=True)
    assert max(short) == 7
    assert sum(short) == sum(rows(database).values()) - len(stored_ranks_of_all(database)) - 1


def stored_ranks_of_all(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.execute(select(tables.rank_dump.c.id)).scalars())


@pytest.mark.parametrize("store", ["rank", "unit"])
def test_what_an_error_cuts_short_leaves_nothing(
    database: Database, short: list[int], monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    comparison, unit_id, _unit = store_pair(database, nodes=30)
    before, loaded = rows(database), load_unit(database, unit_id)
    dump_id = create_dump(database, name="second", path="/second")
    left = 5

    def failing(*arguments: Any, **keywords: Any) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError("the disk is gone")
        assert not stored_ranks(database, dump_id), "a rank was seen before it was whole"
        assert [one.id for one in stored_units(database, comparison)] == [unit_id]
        return real(*arguments, **keywords)

    real = owners.insert
    monkeypatch.setattr(owners, "insert", failing)
    attempt = {
        "rank": lambda: store_dump_rank(database, dump_id, make_rank(40)),
        "unit": lambda: store_unit(database, comparison, loaded, UnitSides(target=1, golden=2)),
    }[store]
    with pytest.raises(OSError, match="gone"):
        attempt()
    assert left < 0
    assert rows(database) == before


KILLED = """
import os, sys
from dumpscope.index.store import owners
from dumpscope.index.store.database import Database
from dumpscope.index.dumps.store_rank import store_dump_rank
from index.units import make_rank
owners.BATCH, real, left = 7, owners.insert, 5
def dying(*arguments, **keywords):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    return real(*arguments, **keywords)
owners.insert = dying
store_dump_rank(Database(sys.argv[1]), sys.argv[2], make_rank(60))
"""


def test_what_a_kill_cuts_short_is_never_seen_and_swept_at_the_next_start(database: Database) -> None:
    dump_id = create_dump(database, name="run", path="/run")
    whole = store_dump_rank(database, dump_id, make_rank(10))
    before = rows(database)
    tests = str(Path(__file__).parents[1])
    died = subprocess.run(
        [sys.executable, "-c", KILLED, database.url, dump_id], check=False, env={**os.environ, "PYTHONPATH": tests}
    )
    assert died.returncode == 9
    assert rows(database) != before, "nothing was half written, so nothing was tested"
    assert [rank.id for rank in stored_ranks(database, dump_id)] == [whole]
    assert sweep(database) == 1
    assert rows(database) == before


def test_what_is_deleted_on_a_full_disk_is_gone_though_its_rows_stay_until_the_next_start(
    database: Database, short: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison, _, _ = store_pair(database, nodes=30)
    stored = get_comparison(database, comparison)
    real, begun = Database.write, list[int]()

    @contextmanager
    def full(self: Database) -> Iterator[Any]:
        begun.append(1)
        if len(begun) > 1:
            raise FullDiskError("the database cannot be written")
        with real(self) as connection:
            yield connection

    monkeypatch.setattr(Database, "write", full)
    delete_comparison(database, comparison)
    for dump in (stored.target, stored.golden):
        begun.clear()
        delete_dump(database, dump)
    monkeypatch.setattr(Database, "write", real)
    assert count_dumps(database) == 0
    with pytest.raises(NotFoundError):
        get_comparison(database, comparison)
    assert rows(database) != {}, "all was deleted at once, so nothing was tested"
    assert sweep(database) == 3
    assert rows(database) == {}


def test_storing_a_rank_again_shows_the_old_one_until_the_new_one_is_whole(
    database: Database, short: list[int]
) -> None:
    dump_id = create_dump(database, name="run", path="/run")
    first = store_dump_rank(database, dump_id, make_rank(20))
    second = store_dump_rank(database, dump_id, make_rank(9))
    assert [rank.id for rank in stored_ranks(database, dump_id)] == [second]
    assert first not in stored_ranks_of_all(database)
    kept = rows(database)
    assert (kept["rank_dump"], kept["item_block"]) == (1, 1)


def test_units_that_never_got_an_answer_go_when_comparing_starts_over(database: Database, short: list[int]) -> None:
    comparison, unit_id, unit = store_pair(database, nodes=30)
    place = stored_units(database, comparison)[0]
    store_unit(database, comparison, unit, UnitSides(target=place.target, golden=place.golden))
    assert [one.id for one in stored_units(database, comparison)] == [unit_id]
    clear_comparison(database, comparison)
    assert set(rows(database)) == {"rank_dump", "entry", "item_block", "producers"}


def test_removing_leaves_nothing_and_takes_nothing_else(database: Database, short: list[int]) -> None:
    one, _unit_id, _unit = store_pair(database, nodes=30, tensors=True)
    before = rows(database)
    other, _, _ = store_pair(database, nodes=20)
    pair = dumps_of(database, other)
    delete_comparison(database, other)
    for dump_id in pair:
        delete_dump(database, dump_id)
    assert rows(database) == before
    assert len(stored_units(database, one)) == 1


def dumps_of(database: Database, comparison: str) -> list[str]:
    table = tables.comparison.c
    with database.read() as connection:
        target, golden = connection.execute(select(table.target, table.golden).where(table.id == comparison)).one()
        wanted = tables.dump.c.serial.in_([target, golden])
        return list(connection.execute(select(tables.dump.c.id).where(wanted)).scalars())


def test_who_waits_writes_before_who_has_just_written(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "index.db")
    with_handles(url, lambda one, _other: one, lambda one: one._queue.locked())
    with_handles(url, lambda _one, other: other, lambda one: is_locked(f"{one.file}.queue"))


def with_handles(url: str, waiter: Callable[[Database, Database], Database], waits: Callable[[Database], bool]) -> None:
    """A second writer begins to wait while the first is at work; the first at once wants another turn."""
    one, other = Database.open(url), Database(url)
    order: list[str] = []

    def wait_and_write() -> None:
        with waiter(one, other).write():
            order.append("waiter")

    thread = threading.Thread(target=wait_and_write)
    with one.write():
        thread.start()
        while not waits(one):
            time.sleep(0.01)
    with one.write():
        order.append("batch writer")
    thread.join()
    one.close()
    other.close()
    assert order == ["waiter", "batch writer"]


def is_locked(file: str) -> bool:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
