"""`dumpscope upload`: sends a dump to a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dumpscope.cli import on_server
from dumpscope.cli.options import Dump
from dumpscope.cli.parser import Option


def upload(
    path: Dump,
    server: Annotated[str, Option("--server", metavar="URL")] = "",
    name: Annotated[str | None, Option("--name")] = None,
) -> int:
    """Send a folder or archive to a server, which reads it, and print the address of its page."""
    return on_server.upload(server, Path(path), name)
