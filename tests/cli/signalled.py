"""Serves a result file and sends itself a signal at one moment of its start: python signalled.py SIGNAL MOMENT ARGUMENT...

MOMENT: the number of the function call after which the signal comes, "count" to print how many there are until the server
answers, or the name of a moment of MOMENTS. Signals are handled between two calls, so these are all the moments there are.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any


class Thing:
    """What a weak reference can be made to."""


def send() -> None:
    os.kill(os.getpid(), NUMBER)


def send_where_exceptions_are_lost() -> None:
    """From the callback of a weak reference, as imports run them."""
    thing = Thing()
    _ref = weakref.ref(thing, lambda _: (send(), [None for _ in range(10)]))
    del thing


def after(owner: Any, name: str, act: Callable[[], None]) -> None:
    """Let a function of `owner` do `act` when it has ended."""
    old = getattr(owner, name)

    def new(*given: Any, **named: Any) -> Any:
        made = old(*given, **named)
        act()
        return made

    setattr(owner, name, new)


def copied() -> None:
    import dumpscope.pipeline.results.result_files as module  # noqa: PLC0415

    after(module, "_copy", send)


def migrated() -> None:
    from alembic import command  # noqa: PLC0415

    after(command, "upgrade", send)


def told() -> None:
    import dumpscope.cli.commands.serve as module  # noqa: PLC0415

    after(module, "address", send)


def lost() -> None:
    import dumpscope.cli.commands.serve as module  # noqa: PLC0415

    after(module, "address", send_where_exceptions_are_lost)


def opening() -> None:
    """While uvicorn waits for the application, whose database a thread opens, and which does not come to an end."""
    import dumpscope.api.app as module  # noqa: PLC0415

    after(module, "make_executor", lambda: (send(), signal.sigwait([signal.SIGUSR1])))


def answering() -> None:
    import uvicorn  # noqa: PLC0415

    old = uvicorn.Server.startup

    async def startup(server: uvicorn.Server, sockets: Any = None) -> None:
        await old(server, sockets)
        send()

    uvicorn.Server.startup = startup  # type: ignore[method-assign]


MOMENTS = {made.__name__: made for made in (copied, migrated, told, lost, opening, answering)}
CALLS = itertools.count(1)


def counted(_frame: FrameType, event: str, _given: object) -> None:
    if event == "call" and next(CALLS) == WANTED:
        send()


def finish() -> None:
    sys.setprofile(None)
    print(f"calls {next(CALLS)}", flush=True)


NUMBER = signal.Signals[sys.argv[1]]
WANTED = 0
if __name__ == "__main__":
    moment, arguments = sys.argv[2], sys.argv[3:]
    sys.argv = ["dumpscope", *arguments]
    if moment in MOMENTS:
        MOMENTS[moment]()
    else:
        from dumpscope.cli.ending import Ending

        WANTED = int(moment) if moment != "count" else -1
        old_enter = Ending.__enter__

        def enter(ending: Ending) -> Ending:
            entered = old_enter(ending)
            sys.setprofile(counted)
            return entered

        Ending.__enter__ = enter  # type: ignore[method-assign, assignment]
        if moment == "count":
            import uvicorn

            old_tick = uvicorn.Server.on_tick

            async def tick(server: uvicorn.Server, counter: int) -> bool:
                finish()
                server.should_exit = True
                return await old_tick(server, counter)

            uvicorn.Server.on_tick = tick  # type: ignore[method-assign]
    from dumpscope.__main__ import main

    main()
