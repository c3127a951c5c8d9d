"""Tools for coding assistants over the Model Context Protocol: they ask a server for the same facts that the page shows.

Nothing they do removes or changes anything; `compare` makes a comparison that is not there yet. Needs the extra `mcp`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from functools import wraps
from typing import Any, Final, TypeVar, cast

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from dumpscope import __version__
from dumpscope.client.asynchronous import AsyncClient
from dumpscope.client.records import Record
from dumpscope.errors import DumpscopeError

LISTED: Final = 50
"""Rows that a tool gives at most."""
FRAMES: Final = 12
ITEMS: Final = 40
ROUND: Final = 8
"""Rows and columns of numbers around an element."""

INSTRUCTIONS: Final = """dumpscope compares dumps of two PyTorch runs, a target in doubt and a golden that is trusted, and names
the call that went wrong first. Begin with `comparisons` (or `dumps` and `compare`), then `origins`: the causes with evidence and
advice. A call that only received wrong data is no cause. `explain`, `call`, `values` and `source` tell more of one call;
`suspects` and `calls` find others. If the outcome is not_fully_judged, say so: something that matters could not be read or
compared."""

READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

Item = TypeVar("Item")
Tool = TypeVar("Tool", bound=Callable[..., Awaitable[Any]])
Document = dict[str, Any]


def make_server(client: AsyncClient) -> MCPServer[Any]:
    """The tools, on a server that this client asks."""
    server: MCPServer[Any] = MCPServer("dumpscope", version=__version__, instructions=INSTRUCTIONS)

    @server.tool(annotations=READS)
    @_told
    async def dumps(search: str = "") -> list[Document]:
        """Dumps that the server knows, newest first. search: part of a name."""
        return [_plain(one) for one in await _some(client.dumps(search))]

    @server.tool(annotations=READS)
    @_told
    async def comparisons(search: str = "") -> list[Document]:
        """Comparisons with their outcome and first origin, newest first. search: part of a name."""
        return [_plain(one) for one in await _some(client.comparisons(search))]

    @server.tool(annotations=ADDS)
    @_told
    async def compare(target: str, golden: str) -> Document:
        """Compare two dumps by their ids. The result of an earlier comparison of the two is taken if there is one."""
        async for known in client.comparisons():
            if (known.target, known.golden, known.status) == (target, golden, "done"):
                return _plain(known)
        return _plain(await client.compare(target, golden))

    @server.tool(annotations=READS)
    @_told
    async def origins(comparison: str) -> Document:
        """The causes, the first first: call, kind, confidence, evidence, advice, module, line of code; the outcome, and what was
        not judged."""
        summary = await client.summary(comparison)
        return {
            "outcome": summary["outcome"],
            "origins": [_plain(one) for one in (await client.origins(comparison))[:LISTED]],
            "first_no": summary["first_no"],
            "coverage": summary["coverage"],
            "settings": summary["settings"],
        }

    @server.tool(annotations=READS)
    @_told
    async def suspects(comparison: str, step: int | None = None, rank: int | None = None) -> list[Document]:
        """At most 10 calls to look at, in order, each with the reason. Without step and rank of the first ones."""
        return [_plain(one) for one in await client.suspects(comparison, step=step, rank=rank)]

    @server.tool(annotations=READS)
    @_told
    async def calls(
        comparison: str,
        search: str = "",
        verdict: str = "",
        step: int | None = None,
        rank: int | None = None,
        sort: str = "order",
    ) -> Document:
        """Calls of one step and rank, at most 50. verdict: yes, no, warning or n/a; sort: order, -out_score (worst first) or
        -class; search: part of a name, or a term of docs/ui.md such as api:linear or err>1e-3."""
        rows = client.nodes(
            comparison, step=step, rank=rank, q=search, verdict=verdict or None, sort=sort, limit=LISTED
        )
        names = ("name", "golden_name", "order", "verdict", "cls", "in_error", "out_error", "match")
        return {"calls": [{name: row[name] for name in names} for row in await _some(rows)]}

    @server.tool(annotations=READS)
    @_told
    async def explain(comparison: str, call: str, step: int | None = None, rank: int | None = None) -> str:
        """One call in one paragraph: what it read, what differs where, who inherits it, what was ruled out."""
        return await client.explain(comparison, call, step=step, rank=rank)

    @server.tool(name="call", annotations=READS)
    @_told
    async def one_call(comparison: str, call: str, step: int | None = None, rank: int | None = None) -> Document:
        """One call of both sides: its inputs and outputs with their errors (`id` is the pair for `values`), and call stacks."""
        node = await client.node(comparison, call, step=step, rank=rank)
        items = [
            {name: item[name] for name in ("id", "target", "golden", "verdict", "rule", "metrics", "message")}
            for item in node["items"][:ITEMS]
        ]
        stacks = {f"{side}_stack": node[f"{side}_stack"][:FRAMES] for side in ("target", "golden")}
        return {"name": node["name"], "verdict": node["verdict"], "reason": node["reason"], "items": items, **stacks}

    @server.tool(annotations=READS)
    @_told
    async def values(comparison: str, pair: int, at: str = "") -> Document:
        """Numbers of both sides around an element of a pair of tensors. at: its index, as 3,5; the worst element if left out."""
        return await client.values(comparison, pair, at=at or None, rows=ROUND, columns=ROUND)

    @server.tool(annotations=READS)
    @_told
    async def source(comparison: str, call: str, step: int | None = None, rank: int | None = None) -> Document:
        """The lines of source around the line that made a call, of both sides beside each other, if the dump or the server has
        them."""
        return await client.source(comparison, call, step=step, rank=rank)

    return server


def _told(tool: Tool) -> Tool:
    """A tool whose errors the assistant can read: what the server refused, with what to do."""

    @wraps(tool)
    async def run(*given: Any, **named: Any) -> Any:
        try:
            return await tool(*given, **named)
        except DumpscopeError as error:
            raise ToolError(str(error)) from error

    return cast(Tool, run)


def _plain(one: Record) -> Document:
    """The fields that tell something."""
    return {name: value for name, value in asdict(one).items() if name != "raw" and value not in (None, [], "")}


async def _some(rows: AsyncIterator[Item]) -> list[Item]:
    found: list[Item] = []
    async for row in rows:
        found.append(row)
        if len(found) == LISTED:
            break
    return found
