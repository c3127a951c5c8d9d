"""`dumpscope health`: whether a server answers and can work, for health checks of containers and scripts that wait for one."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any, Final

from dumpscope.cli.exit_codes import COMPARED, DIVERGED
from dumpscope.cli.options import Json
from dumpscope.cli.parser import Option
from dumpscope.cli.printing import line, print_json
from dumpscope.client import Client, ServerError
from dumpscope.texts import tell

PAUSE_SECONDS: Final = 0.5


def health(
    server: Annotated[str, Option("--server", metavar="URL")] = "",
    wait: Annotated[int, Option("--wait", metavar="SECONDS", min=0, max=86400)] = 0,
    json: Json = False,
) -> int:
    """Print what a server says of itself; status 0 only if it can work."""
    own = f"http://127.0.0.1:{os.environ.get('DUMPSCOPE_PORT') or 8000}"
    found = _ask(server or os.environ.get("DUMPSCOPE_SERVER") or own, wait)
    healthy = found["status"] == "ok"
    if json:
        print_json(found)
    else:
        about = {name: found[name] for name in ("version", "database", "executor")}
        line(tell("cli.server_works" if healthy else "cli.server_lacks_workers", **about))
    return COMPARED if healthy else DIVERGED


def _ask(server: str, wait: int) -> dict[str, Any]:
    """The server's health, once it can work or the time is over. Raises ServerError if it does not answer until then."""
    deadline = time.monotonic() + wait
    with Client(server, tries=1, seconds=5.0) as client:
        while True:
            over = time.monotonic() >= deadline
            try:
                found = client.health()
                if over or found["status"] == "ok":
                    return found
            except ServerError as error:
                if over or error.reply_status in (401, 403):
                    raise
            time.sleep(PAUSE_SECONDS)
