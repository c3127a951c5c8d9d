"""Sends the results of a pre-check to a server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from dumpscope.errors import NotFoundError, UnreadableError, UsageError
from dumpscope.texts import say

PIECE: Final = 2 << 20
"""Characters of lines sent at once; lines grow when they become JSON inside JSON."""
SECONDS: Final = 120.0


def send(server: str, dump: Path, lines: Iterable[str]) -> int:
    """Send lines of precheck.jsonl to the dump with this path on the server, or to the dump in the address.

    server: http://HOST:PORT, or http://HOST:PORT/dumps/ID; DUMPSCOPE_TOKEN is its token
    Returns the number of stored rows. Raises UsageError, NotFoundError, UnreadableError."""
    base, _, page = server.rstrip("/").partition("/dumps/")
    if urlsplit(base).scheme not in ("http", "https"):
        raise UsageError(say("cli.no_address_server", server=f"{server!r}"), hint=say("cli.server_http_127_0_0_1"))
    place = page.partition("/")[0].partition("?")[0] or _id_of(base, dump)
    kept = 0
    for piece in _pieces(lines):
        kept += int(_ask(f"{base}/api/dumps/{quote(place, safe='')}/prechecks", {"text": piece})["rows"])
    return kept


def _id_of(base: str, dump: Path) -> str:
    """The server's newest dump with this path."""
    wanted = str(dump.resolve())
    found = _ask(f"{base}/api/dumps?limit=100&q={quote(wanted[-400:])}")
    for row in found["items"]:
        if row["path"] == wanted:
            return str(row["id"])
    raise NotFoundError(
        say("cli.has_no_dump_path", base=base), where=wanted, hint=say("cli.give_address_page_dumps_id")
    )


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Texts of about PIECE characters, each beginning with the line that names the device."""
    head, held, size = "", [], 0
    for line in lines:
        if not head:
            head = line
            continue
        held.append(line)
        size += len(line)
        if size > PIECE:
            yield head + "".join(held)
            held, size = [], 0
    if held:
        yield head + "".join(held)


def _ask(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    token = os.environ.get("DUMPSCOPE_TOKEN")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(address, data=data, headers=headers), timeout=SECONDS) as reply:
            found: dict[str, Any] = json.load(reply)
            return found
    except HTTPError as error:
        raise UnreadableError(_error_text(error), where=address) from error
    except (URLError, OSError, ValueError) as error:
        raise UnreadableError(
            say("cli.no_answer", error=error), where=address, hint=say("cli.server_running")
        ) from error


def _error_text(error: HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error)
