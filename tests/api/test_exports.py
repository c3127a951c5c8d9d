"""A result file that nobody waits for any more is not written to its end, and nothing of it stays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request

from api.conftest import Client, compare
from dumpscope.api.cancellable import run_cancellable
from dumpscope.api.state import State
from dumpscope.errors import CancelledError
from dumpscope.pipeline.results import exports
from dumpscope.pipeline.results.exports import export_units, html_page, xlsx_file
from dumpscope.pipeline.results.save import save_copy


def asked(gone: asyncio.Event) -> Request:
    """A request whose connection closes with the event."""

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "method": "GET", "path": "/", "headers": []}, receive)


def test_work_ends_at_its_next_check_once_the_connection_is_closed() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(check: Callable[[], None]) -> None:
        begun.set()
        try:
            for _ in range(10_000):
                check()
                ended.wait(0.01)
        finally:
            ended.set()

    async def leave() -> None:
        gone = asyncio.Event()
        waiting = asyncio.create_task(run_cancellable(asked(gone), work))
        await asyncio.to_thread(begun.wait)
        gone.set()
        with pytest.raises(CancelledError):
            await waiting

    asyncio.run(leave())
    assert ended.is_set()


def test_work_that_is_waited_for_gives_what_it_made() -> None:
    async def wait() -> int:
        return await run_cancellable(asked(asyncio.Event()), lambda _check: 7)

    assert asyncio.run(wait()) == 7


class Leaving:
    """Raises at the `last`th call."""

    def __init__(self, last: int) -> None:
        self.calls, self.last = 0, last

    def __call__(self) -> None:
        self.calls += 1
        if self.calls >= self.last:
            raise CancelledError("the client has disconnected")


@pytest.mark.parametrize("last", [1, 2, 3])
def test_every_file_that_is_written_first_ends_there_and_leaves_nothing_half_done(
    client: Client, dumps: Path, tmp_path: Path, last: int
) -> None:
    comparison = compare(client, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden")
    state: State = client.app.state.shared  # type: ignore[attr-defined]
    database = state.database
    answer, units = export_units(database, comparison, None, None)
    writes: tuple[Callable[[Leaving], object], ...] = (
        lambda check: xlsx_file(database, units, exports.ALL, tmp_path / "table.xlsx", check),
        lambda check: html_page(database, answer, units, check),
        lambda check: save_copy(tmp_path / "result.db", database, comparison, check),
    )
    for write in writes:
        check = Leaving(last)
        with pytest.raises(CancelledError):
            write(check)
        assert check.calls >= last
    assert not any(path.name.endswith((".db", ".part")) for path in tmp_path.iterdir())


def test_a_csv_begins_with_a_byte_order_mark_on_request(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    plain = client.get(f"/api/comparisons/{comparison}/export.csv").content
    assert client.get(f"/api/comparisons/{comparison}/export.csv?bom=true").content == b"\xef\xbb\xbf" + plain
    assert plain[:1].isalpha()
