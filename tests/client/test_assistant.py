"""The tools for coding assistants, asked as an assistant asks them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as Assistant, StdioServerParameters

from client.conftest import TOKEN
from dumpscope.client import AsyncClient
from dumpscope.client.assistant import make_server

CAUSE = "Functional.softmax.1.forward"


def content(result: Any) -> Any:
    """What a tool answered."""
    assert not result.is_error, result.content
    found = result.structured_content
    return found["result"] if set(found) == {"result"} else found


def test_an_assistant_gets_from_the_list_to_the_line_of_code(address: str, fault: str, dumps: Path) -> None:
    async def work() -> None:
        async with AsyncClient(address, token=TOKEN) as client, Assistant(make_server(client)) as assistant:

            async def ask(tool: str, **given: Any) -> Any:
                return content(await assistant.call_tool(tool, given))

            known = {one["id"]: one for one in await ask("comparisons", search="target_fault")}
            assert known[fault]["outcome"] == "diverged"
            found = await ask("origins", comparison=fault)
            (origin,) = found["origins"]
            assert (origin["node"], origin["kind"]) == (CAUSE, "computation")
            assert origin["called_at"].startswith("/home/user/train/models.py:14")
            assert found["coverage"]["lost"] == 0
            assert (await ask("suspects", comparison=fault))[0]["node"] == CAUSE
            assert "inputs are equal" in await ask("explain", comparison=fault, call=CAUSE)
            call = await ask("call", comparison=fault, call=CAUSE)
            worst = next(item for item in call["items"] if item["verdict"] == "no")
            numbers = await ask("values", comparison=fault, pair=worst["id"])
            assert any(not cell["equal"] for row in numbers["rows"] for cell in row)
            assert (await ask("source", comparison=fault, call=CAUSE))["target"]["line"] == 14
            wrong = await ask("calls", comparison=fault, verdict="no", sort="-out_score")
            assert 0 < len(wrong["calls"]) <= 50
            assert {row["verdict"] for row in wrong["calls"]} == {"no"}
            row = await client.comparison(fault)
            assert (await ask("compare", target=row.target, golden=row.golden))["id"] == fault
            assert row.target in [one["id"] for one in await ask("dumps", search="target_fault")]
            refused = await assistant.call_tool("origins", {"comparison": "nothing"})
            assert refused.is_error
            assert "no comparison" in refused.content[0].text  # type: ignore[union-attr]

    asyncio.run(work())


def test_the_tools_say_what_they_do_and_that_they_only_read(address: str) -> None:
    async def work() -> None:
        async with AsyncClient(address, token=TOKEN) as client, Assistant(make_server(client)) as assistant:
            tools = {tool.name: tool for tool in (await assistant.list_tools()).tools}
            assert set(tools) == {
                "dumps", "comparisons", "compare", "origins", "suspects", "calls", "explain", "call", "values", "source",
            }  # fmt: skip
            assert all(tool.description for tool in tools.values())
            writing = [
                name for name, tool in tools.items() if not (tool.annotations and tool.annotations.read_only_hint)
            ]
            assert writing == ["compare"]
            assert "not_fully_judged" in (assistant.instructions or "")

    asyncio.run(work())


def test_the_command_speaks_over_standard_input_and_output(address: str, fault: str) -> None:
    environment = {**os.environ, "DUMPSCOPE_SERVER": address, "DUMPSCOPE_TOKEN": TOKEN}
    command = StdioServerParameters(command=sys.executable, args=["-m", "dumpscope", "mcp"], env=environment)

    async def work() -> None:
        async with Assistant(command) as assistant:
            found = content(await assistant.call_tool("origins", {"comparison": fault}))
            assert found["origins"][0]["node"] == CAUSE

    asyncio.run(work())


def test_without_the_package_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dumpscope.cli.app import status  # noqa: PLC0415

    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.delitem(sys.modules, "dumpscope.client.assistant", raising=False)
    assert status(["mcp", "--server", "http://127.0.0.1:1"]) == 2
    assert "dumpscope[mcp]" in capsys.readouterr().err
