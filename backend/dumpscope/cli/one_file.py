"""What a server would show of a result file, asked of one that listens nowhere: its page in one file, or one reply."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from dumpscope.errors import CancelledError
from dumpscope.export.files import write_whole
from dumpscope.pipeline.results.result_files import open_copies
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import say

if TYPE_CHECKING:
    from dumpscope.api.one_file.asking import Ask

Made = TypeVar("Made")


def write_page(file: Path, result: Path, name: str, progress: Callable[[float], None]) -> Path:
    """Write the page of the one comparison in `result`. name: of the window; progress: is told the share that is done

    Raises DumpscopeError where this installation has no built page.
    """
    from dumpscope.api.one_file.contents import collect  # noqa: PLC0415  # slow
    from dumpscope.api.one_file.page import page_html  # noqa: PLC0415

    stopped = Event()

    def check() -> None:
        if stopped.is_set():
            raise CancelledError(say("api.whoever_asked_has_gone"))

    try:
        page = page_html(name, ask_result(result, lambda ask, id: collect(ask, id, check, progress)))
    finally:
        stopped.set()  # of use after Ctrl-C alone

    def fill(part: str) -> None:
        Path(part).write_bytes(page)

    return write_whole(file, fill)


def ask_result(result: Path, work: Callable[[Ask, str], Made]) -> Made:
    """What `work` makes of the replies of a server that shows a copy of a result file. work: is given what asks it, and the id of
    the newest comparison in the file"""
    import anyio  # noqa: PLC0415  # slow, like the next ones
    from anyio import to_thread  # noqa: PLC0415

    from dumpscope.api.app import create_app  # noqa: PLC0415
    from dumpscope.api.one_file.asking import asking  # noqa: PLC0415
    from dumpscope.settings import Settings  # noqa: PLC0415

    async def make(folder: Path) -> Made:
        comparison = open_copies([result], folder / "dumpscope.db")[0].comparisons[0]
        own = Settings(
            host="127.0.0.1", data_dir=folder, database_url=f"sqlite:///{folder / 'dumpscope.db'}", executor="threads:1"
        )
        app = create_app(own)
        async with app.router.lifespan_context(app):
            return await to_thread.run_sync(partial(work, asking(app, own), comparison))

    # In a thread of its own: whoever calls this may have an event loop, and another language than the page's replies, English.
    with TemporaryFolder("page") as room, ThreadPoolExecutor(1) as threads:
        return threads.submit(anyio.run, make, room.path).result()
