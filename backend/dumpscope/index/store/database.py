"""One database: readers beside one writer, on SQLite or PostgreSQL.

SQLite runs in WAL mode, so readers never wait. Every write transaction begins with BEGIN IMMEDIATE (a transaction that reads
first and writes later fails at once, whatever the busy timeout) and waits its turn at two locks: one among the threads of this
process, one file lock among processes. PostgreSQL takes an advisory lock for the same purpose: one writer at a time, and no
error "database is locked".

Turns are fair: who waits holds a queue lock, so a job that writes many batches cannot overtake those who came meanwhile.
"""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from dumpscope.errors import DumpscopeError, FullDiskError, UsageError
from dumpscope.texts import say

if os.name == "posix":
    import fcntl

BUSY_SECONDS: Final = 120.0
"""How long SQLite itself waits for a writer that does not share the lock file (a backup tool, an older process)."""

ADVISORY_LOCK: Final = 0x64756D70  # any fixed number: the writer's turn on PostgreSQL

Role = Literal["server", "watch", "webhook"]
"""What one process at a time does: clean up after crashed ones, look at watched folders, send to webhooks."""
ROLE_LOCKS: Final[dict[Role, int]] = {
    "server": ADVISORY_LOCK + 1,
    "watch": ADVISORY_LOCK + 2,
    "webhook": ADVISORY_LOCK + 3,
}

RESERVE_BYTES: Final = 8 << 20
"""Room kept beside a server's SQLite file, so that a full disk still takes the end of a job and the removal of a dump."""
LEAST_ROOM: Final = 64 << 20
"""Free bytes from which on the room is taken again."""

DISK_FULL: Final = "53100"
"""PostgreSQL's own code for a full disk."""

FETCH_ROWS: Final = 1000
"""Rows taken from the driver at a time: few enough to stay in the cache."""

CHUNK: Final = 900
"""Variables of one statement: SQLite's old limit is 999."""

Kind = Literal["sqlite", "postgresql"]

DatabaseError = DBAPIError
"""What a statement raises that the database refuses."""


def sqlite_url(file: Path) -> str:
    return f"sqlite:///{file}"


class Database:
    """Handle on one database; safe to share between threads, cheap to make again in another process from its `url`."""

    def __init__(self, url: str) -> None:
        """Connects lazily and changes nothing; use `Database.open` for one whose tables are there."""
        parsed = make_url(_with_driver(url))
        name = parsed.get_backend_name()
        if name not in ("sqlite", "postgresql"):
            raise UsageError(
                say("index.database_not_supported", name=f"{name!r}"),
                hint=say("index.use_sqlite_file_postgresql_user_host"),
            )
        self.url = url
        self.kind: Kind = "sqlite" if name == "sqlite" else "postgresql"
        self._queue, self._turn = threading.Lock(), threading.Lock()
        self._leads: dict[Role, int | Connection] = {}
        self._reserve: Path | None = None
        if self.kind == "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise UsageError(say("index.memory_database_cannot_shared"), hint=say("index.name_file_sqlite_file"))
            self.file: Path | None = Path(parsed.database)
            self._readers = create_engine(parsed, pool_size=8, max_overflow=64, connect_args={"timeout": BUSY_SECONDS})
            self._writer = create_engine(parsed, pool_size=1, max_overflow=0, connect_args={"timeout": BUSY_SECONDS})
            _prepare_sqlite(self._readers, writes=False)
            _prepare_sqlite(self._writer, writes=True)
        else:
            self.file = None
            self._readers = create_engine(parsed, pool_size=8, max_overflow=24, pool_pre_ping=True)
            self._writer = self._readers

    @classmethod
    def open(cls, url: str) -> Database:
        """Open, making the file and bringing its tables up to date; raises UsageError where that cannot be done."""
        from dumpscope.index.store.upgrade import upgrade  # noqa: PLC0415  (alembic is needed here only)

        database = cls(url)
        try:
            if database.file is not None:
                database.file.parent.mkdir(parents=True, exist_ok=True)
            with database.write() as connection:
                upgrade(connection)
        except (DBAPIError, OSError) as error:
            database.close()
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise UsageError(
                say("index.database_cannot_opened", cause=str(cause).strip()),
                where=str(database.file) if database.file else make_url(url).render_as_string(hide_password=True),
                hint=say("index.check_path_permissions_free_space_dumpscope_database_url"),
            ) from error
        return database

    def version(self) -> str | None:
        """Version of the tables, None where they are not dumpscope's. Raises UsageError for a file that cannot be read."""
        from dumpscope.index.store.upgrade import version  # noqa: PLC0415  (as in `open`)

        try:
            with self.read() as connection:
                return version(connection)
        except DBAPIError as error:
            raise UsageError(say("pipeline.cannot_read", reason=error.orig), hint=say("pipeline.copy_again")) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one consistent snapshot; nothing can be written through it on SQLite."""
        with self._readers.connect() as connection:
            if self.kind == "postgresql":  # where each statement would have a snapshot of its own
                connection.execution_options(isolation_level="REPEATABLE READ")
            connection.begin()  # statements that go past SQLAlchemy (`fetch_columns`) would begin none
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The writer's transaction: committed at the end, rolled back on an exception. Do not nest."""
        with self._thread_turn(), self._process_turn():
            self._tend_reserve()
            try:
                with self._writer.begin() as connection:
                    if self.kind == "postgresql":
                        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
                    yield connection
            except Exception as error:
                reason = _refusal(error)
                if "full" in reason or "disk" in reason or "space left" in reason:
                    kind = DumpscopeError if "I/O" in reason and self._free() >= LEAST_ROOM else FullDiskError
                    raise kind(
                        say("index.database_cannot_written", reason=reason), hint=say("index.free_some_space_try_again")
                    ) from error
                raise

    def keep_reserve(self) -> None:
        """Keep some room on the disk of a SQLite file from now on: see RESERVE_BYTES."""
        if self.file is not None and hasattr(os, "posix_fallocate"):
            self._reserve = self.file.with_name(f"{self.file.name}.reserve")
            self._tend_reserve()

    def _tend_reserve(self) -> None:
        """Give the reserve back where the disk is all but full, take it again where there is room."""
        if self._reserve is None:
            return
        with suppress(OSError):
            if self._reserve.exists():
                if self._free() < RESERVE_BYTES:
                    self._reserve.unlink()
            elif self._free() >= LEAST_ROOM:
                with self._reserve.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)

    def _free(self) -> int:
        """Free bytes on the disk of a SQLite file."""
        return LEAST_ROOM if self.file is None else shutil.disk_usage(self.file.parent).free

    @contextmanager
    def _thread_turn(self) -> Iterator[None]:
        with self._queue:
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _process_turn(self) -> Iterator[None]:
        if self.file is None or os.name != "posix":
            yield
            return
        with ExitStack() as turn:
            with _locked(f"{self.file}.queue"):
                turn.enter_context(_locked(f"{self.file}.lock"))
            yield

    def lead(self, role: Role = "server") -> bool:
        """Become the process that has this role, until `close`; False where another process has it."""
        with self._turn:
            held = self._leads.get(role)
            if isinstance(held, int) or (self.file is not None and os.name != "posix"):
                return True
            if held is not None:
                if _answers(held):
                    return True
                del self._leads[role]  # the database was away, and with the session went the lock
                _drop(held)
            if self.file is None:
                return self._lead_session(role)
            descriptor = os.open(f"{self.file}.{role}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return False
            self._leads[role] = descriptor
            return True

    def _lead_session(self, role: Role) -> bool:
        connection = self._readers.connect()
        if connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({ROLE_LOCKS[role]})").scalar():
            connection.commit()
            self._leads[role] = connection
            return True
        connection.close()
        return False

    def close(self) -> None:
        """Give back every connection; SQLite then folds its log into the file."""
        for held in self._leads.values():
            if isinstance(held, int):
                os.close(held)
            else:
                _drop(held)
        self._leads.clear()
        self._readers.dispose()
        self._writer.dispose()


def _answers(session: Connection) -> bool:
    try:
        session.exec_driver_sql("SELECT 1")
        session.commit()
    except DBAPIError:
        return False
    return True


def _drop(session: Connection) -> None:
    """End a session, and with it its locks."""
    session.invalidate()
    session.close()


@contextmanager
def _locked(file: str) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def insert(connection: Connection, table: Table, columns: Sequence[Sequence[Any]], *, names: Sequence[str] = ()) -> int:
    """Insert rows given as columns (in the table's order, or for `names`) the fastest way the driver has; returns how many."""
    names = names or [column.name for column in table.columns]
    if len(names) != len(columns):
        raise ValueError(f"{table.name}: {len(columns)} columns for {len(names)} names")
    if not columns or not len(columns[0]):
        return 0
    length = len(columns[0])
    kept = [
        place
        for place, name in enumerate(names)
        if table.c[name].server_default is not None or not _is_empty(columns[place])
    ]
    names, columns = [names[place] for place in kept], [columns[place] for place in kept]
    rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True)
    quoted = ", ".join(f'"{name}"' for name in names)
    driver: Any = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        marks = ", ".join("?" * len(names))
        driver.executemany(f'INSERT INTO "{table.name}" ({quoted}) VALUES ({marks})', rows)
    else:
        with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({quoted}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)
    return length


def _is_empty(column: Sequence[Any]) -> bool:
    """Nothing but None, which is what rows hold that leave the column out: the driver takes longer for None than for a number."""
    ends = isinstance(column, list) and column[0] is None and column[-1] is None
    return ends and column.count(None) == len(column)


def update(
    connection: Connection, table: Table, names: Sequence[str], columns: Sequence[Sequence[Any]], keys: Sequence[int]
) -> None:
    """Set the named columns of the rows with these primary keys (`id`)."""
    if not keys:
        return
    sqlite = connection.dialect.name == "sqlite"
    mark = "?" if sqlite else "%s"
    settings = ", ".join(f'"{name}" = {mark}' for name in names)
    statement = f'UPDATE "{table.name}" SET {settings} WHERE id = {mark}'
    driver: Any = connection.connection.driver_connection
    rows = zip(*columns, keys, strict=True)
    if sqlite:
        driver.executemany(statement, rows)
    else:
        with driver.cursor() as cursor:
            cursor.executemany(statement, rows)


def insert_new(connection: Connection, table: Table, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert the rows that break no rule of uniqueness. names: of their columns"""
    sqlite = connection.dialect.name == "sqlite"
    marks = ", ".join(("?" if sqlite else "%s") for _ in names)
    quoted = ", ".join(f'"{name}"' for name in names)
    statement = f'INSERT INTO "{table.name}" ({quoted}) VALUES ({marks}) ON CONFLICT DO NOTHING'
    driver: Any = connection.connection.driver_connection
    if sqlite:
        driver.executemany(statement, rows)
    else:
        with driver.cursor() as cursor:
            cursor.executemany(statement, rows)


def fetch_among(
    connection: Connection, table: Table, names: Sequence[str], column: str, values: Sequence[Any]
) -> list[tuple[Any, ...]]:
    """These columns of the rows in which one column has one of the values, of which there may be many."""
    quoted = ", ".join(f'"{name}"' for name in names)
    select = f'SELECT {quoted} FROM "{table.name}" WHERE "{column}"'
    cursor: Any = connection.connection.cursor()
    try:
        if connection.dialect.name != "sqlite":
            return list(cursor.execute(f"{select} = ANY(%s)", [list(values)]).fetchall()) if values else []
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(values), CHUNK):
            some = values[start : start + CHUNK]
            found += cursor.execute(f"{select} IN ({', '.join('?' * len(some))})", some).fetchall()
        return found
    finally:
        cursor.close()


def fetch_columns(connection: Connection, statement: str) -> list[list[Any]]:
    """Run a SELECT without parameters and return its columns (empty list where it has no rows).

    The garbage collector is off meanwhile: it would scan half a million new tuples again and again.
    """
    driver: Any = connection.connection.driver_connection
    cursor = driver.cursor()
    collecting = gc.isenabled()
    gc.disable()
    try:
        cursor.execute(statement)
        columns: list[list[Any]] = []
        while rows := cursor.fetchmany(FETCH_ROWS):
            parts = zip(*rows, strict=True)
            if columns:
                for column, part in zip(columns, parts, strict=True):
                    column.extend(part)
            else:
                columns = [list(part) for part in parts]
        return columns
    finally:
        cursor.close()
        if collecting:
            gc.enable()


def _refusal(error: Exception) -> str:
    """Why the database could not do what it was asked to; "" for another error, SQLAlchemy's or the driver's own (`insert`)."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    is_one = isinstance(error, OperationalError) or isinstance(cause, sqlite3.OperationalError)
    return str(cause) if is_one or getattr(cause, "sqlstate", None) == DISK_FULL else ""


def _with_driver(url: str) -> str:
    """psycopg 3 serves both common spellings of a PostgreSQL address."""
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url[len(prefix) :]
    return url


def _prepare_sqlite(engine: Engine, *, writes: bool) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        cursor = connection.cursor()
        cursor.execute("PRAGMA temp_store = MEMORY")
        cursor.execute("PRAGMA mmap_size = 1073741824")
        if writes:
            cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = NORMAL")
            cursor.execute("PRAGMA journal_size_limit = 67108864")
            cursor.execute("PRAGMA cache_size = -65536")
        else:
            cursor.execute("PRAGMA query_only = ON")
            cursor.execute("PRAGMA cache_size = -8192")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if writes:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:  # waits for nothing and so cannot fail; each request has some
            driver: Any = connection.connection.driver_connection
            driver.execute("BEGIN")
