"""Many writers at once: each waits its turn, nobody is told that the database is locked."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dumpscope.errors import FullDiskError
from dumpscope.index.dumps.catalogue import change_dump, count_dumps, create_dump, get_dump
from dumpscope.index.store import database as store, tables
from dumpscope.index.store.database import Database, insert, sqlite_url
from dumpscope.index.store.jobs import JobTable
from index.databases import KINDS


def register_many(url: str, label: str, count: int) -> None:
    database = Database(url)
    for number in range(count):
        dump_id = create_dump(database, name=f"{label} {number}", path="/p")
        change_dump(database, dump_id, nodes=get_dump(database, dump_id).nodes + 1)
    database.close()


PROCESS = """
import sys
from dumpscope.index.store.database import Database
from dumpscope.index.dumps.catalogue import change_dump, create_dump, get_dump
database = Database(sys.argv[1])
for number in range(15):
    dump_id = create_dump(database, name=f"process {number}", path="/p")
    change_dump(database, dump_id, nodes=get_dump(database, dump_id).nodes + 1)
database.close()
"""


def test_threads_and_processes_write_side_by_side(database: Database) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", PROCESS, database.url]) for _ in range(2)]
    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(register_many, database.url, f"thread {number}", 15) for number in range(4)]
        for future in futures:
            future.result()
    assert [process.wait(60) for process in processes] == [0, 0]
    assert count_dumps(database) == 90


def test_readers_go_on_while_a_writer_holds_its_transaction(database: Database) -> None:
    create_dump(database, name="before", path="/p")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE dump SET name = 'after'")
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(10)
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT name FROM dump").scalar() == "before"
    leave.set()
    thread.join()
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT name FROM dump").scalar() == "after"


def test_two_claims_never_take_the_same_job(database: Database) -> None:
    table = JobTable(database)
    wanted = {table.create("ingest", f"dump {number}", {}).id for number in range(12)}
    with ThreadPoolExecutor(6) as threads:
        claimed = [job.id for job in threads.map(lambda _: table.claim(), range(12)) if job is not None]
    assert sorted(claimed) == sorted(wanted)
    assert table.claim() is None


def test_a_failed_write_leaves_nothing_behind(database: Database) -> None:
    class Interruption(Exception):
        pass

    try:
        with database.write() as connection:
            connection.exec_driver_sql("DELETE FROM job")
            connection.exec_driver_sql(
                "INSERT INTO text (digest, text) VALUES ('\\x00', 'half')"
                if database.kind == "postgresql"
                else "INSERT INTO text (digest, text) VALUES (x'00', 'half')"
            )
            raise Interruption
    except Interruption:
        pass
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM text").scalar() == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Database]:
    """A SQLite file that may not grow: what it then answers is what it answers on a full disk."""
    database = Database.open(sqlite_url(tmp_path / "small.db"))
    with database._writer.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        connection.rollback()
    yield database
    database.close()


def test_a_full_disk_has_its_own_error_and_nothing_half_stays(small: Database) -> None:
    def report(count: int) -> None:
        with small.write() as connection:
            rows = [["job"] * count, list(range(count)), [0.5] * count, ["x" * 100] * count]
            insert(connection, tables.task, rows, names=("job", "number", "progress", "message"))

    with pytest.raises(FullDiskError, match="free some space"):
        report(5000)
    assert JobTable(small).reports("job") == {}
    with small._writer.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
        connection.rollback()
    report(5000)
    assert len(JobTable(small).reports("job")) == 5000


def test_a_server_keeps_room_for_the_end_of_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = store.LEAST_ROOM
    monkeypatch.setattr(Database, "_free", lambda _self: free)
    database = Database.open(sqlite_url(tmp_path / "served.db"))
    database.keep_reserve()
    reserve = tmp_path / "served.db.reserve"
    assert reserve.stat().st_size == store.RESERVE_BYTES
    free = 1000
    create_dump(database, name="when the disk is full", path="/p")
    assert not reserve.exists()
    free = store.LEAST_ROOM - 1
    create_dump(database, name="when there is a little", path="/p")
    assert not reserve.exists()
    free = store.LEAST_ROOM
    create_dump(database, name="when there is room", path="/p")
    assert reserve.stat().st_size == store.RESERVE_BYTES
    database.close()


def test_a_role_belongs_to_one_process_until_it_ends(database: Database) -> None:
    first, second = Database(database.url), Database(database.url)
    assert [first.lead("watch"), first.lead("watch")] == [True, True]
    assert not second.lead("watch")
    assert second.lead("server"), "another role"
    first.close()
    assert second.lead("watch")
    second.close()


def leads_soon(database: Database) -> None:
    """The role is free once the process of the session that had it has seen its end."""
    deadline = time.monotonic() + 30
    while not database.lead("watch"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    "database", KINDS[1:], indirect=True
)  # SQLite's role is the lock of a file, which nobody takes away
def test_a_role_whose_session_the_database_lost_is_taken_anew(database: Database) -> None:
    first, second = Database(database.url), Database(database.url)
    assert first.lead("watch")
    with second.write() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    leads_soon(second)
    assert not first.lead("watch")
    second.close()
    leads_soon(first)
    first.close()
