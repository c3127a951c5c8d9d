"""`dumpscope explain`: why a call of a comparison is judged as it is, in words and as one JSON document."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated, Any

from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.one_file import ask_result
from dumpscope.cli.options import Json
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.client import Client, ServerError
from dumpscope.errors import DumpscopeError
from dumpscope.export.words import safe
from dumpscope.texts import say, tell, translate


def explain(
    result: Annotated[str, Argument()],
    node: Annotated[str | None, Argument(metavar="[NODE]")] = None,
    server: Annotated[str, Option("--server", metavar="URL")] = "",
    step: Annotated[int | None, Option("--step", min=0)] = None,
    rank: Annotated[int | None, Option("--rank", min=0)] = None,
    json: Json = False,
) -> int:
    """Print the explanation of a call in a result file, or of a comparison on a server."""
    found = _from_server(server, result, node, step, rank) if server else _from_file(Path(result), node, step, rank)
    if json:
        print_json(found)
        return COMPARED
    line(styled(safe(found["name"]), "bold"))
    line(safe(translate(found["explanation"]["text"], found["explanation"]["said"])))
    for heading, stack in (("cli.stack_of_target", "target_stack"), ("cli.stack_of_golden", "golden_stack")):
        if found[stack]:
            line(tell(heading))
        for frame in found[stack]:
            line(safe(f"  {' '.join(frame.split())}"))
    return COMPARED


def _from_server(server: str, comparison: str, node: str | None, step: int | None, rank: int | None) -> dict[str, Any]:
    with Client(server) as client:
        if node is None:
            node, step, rank = _first(client.comparison(comparison).origin)
        return client.node(comparison, node, step=step, rank=rank)


def _from_file(result: Path, node: str | None, step: int | None, rank: int | None) -> dict[str, Any]:
    def ask_for(ask: Any, comparison: str) -> Any:
        place = f"/api/comparisons/{comparison}"
        wanted = (node, step, rank) if node is not None else _first(ask(place, {}).parsed()["origin"])
        told = ask(f"{place}/nodes/{wanted[0]}", {"step": wanted[1], "rank": wanted[2]})
        return told.status, told.body

    status, body = ask_result(result, ask_for)
    document: dict[str, Any] = loads(body)
    if status != 200:
        raise ServerError(document, status)
    return document


def _first(origin: Any) -> tuple[str, int, int]:
    """Node, step and rank of the first origin. Raises DumpscopeError where nothing diverged."""
    if origin is None:
        raise DumpscopeError(say("cli.no_origin"), hint=say("cli.name_the_call"))
    return origin["node"], origin["step"], origin["rank"]
