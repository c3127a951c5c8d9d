"""`dumpscope mcp`: tools for coding assistants, over standard input and output."""

from __future__ import annotations

from typing import Annotated

from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.parser import Option
from dumpscope.client import AsyncClient
from dumpscope.errors import UsageError
from dumpscope.texts import say


def mcp(server: Annotated[str, Option("--server", metavar="URL")] = "") -> int:
    """Serve tools over the Model Context Protocol, which ask a running server."""
    try:
        from dumpscope.client.assistant import make_server  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(say("cli.mcp_not_installed"), hint=say("cli.install_mcp")) from error
    make_server(AsyncClient(server)).run("stdio")
    return COMPARED
