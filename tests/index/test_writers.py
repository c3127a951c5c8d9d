"""Many writers at once: each waits its turn, nobody is told that the database is locked."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from dumpscope.index.dumps.catalogue import change_dump, count_dumps, create_dump, get_dump
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable


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
