"""Who made an argument, over HTTP: of a call of one dump, and of a comparison whose target names it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api.app import create_app


@pytest.fixture
def own(make_settings: Make, own_dumps: Path, dumps: Path) -> Iterator[Client]:
    with TestClient(create_app(make_settings(roots=[own_dumps, dumps])), base_url=BASE) as running:
        yield running


def dump_of(client: Client, folder: Path) -> str:
    dump = register(client, folder)
    assert settled(client, f"/api/dumps/{dump}")["status"] == "ready"
    return dump


def made(client: Client, dump: str, node: str) -> dict[str, Any]:
    """Record of the node -> who made it."""
    reply = client.get(f"/api/dumps/{dump}/nodes/{node}")
    assert reply.status_code == 200, reply.text
    return {item["name"]: item["producer"] for item in reply.json()["items"]}


def test_a_call_of_a_dump_names_the_record_that_each_argument_is(own: Client, own_dumps: Path) -> None:
    dump = dump_of(own, own_dumps / "good")
    assert made(own, dump, "Torch.sin.0.forward") == {
        "Torch.sin.0.forward.input.0": {
            "node": "Torch.exp.0.forward",
            "item": "Torch.exp.0.forward.output.0",
            "inferred": False,
        },
        "Torch.sin.0.forward.output.0": None,
    }
    gate = made(own, dump, "Module.gate.Gate.forward.0")
    assert gate["Module.gate.Gate.forward.0.input.scale"]["item"] == "Torch.sigmoid.1.forward.output.0"
    assert gate["Module.gate.Gate.forward.0.input.0.1"]["item"] == "Torch.cos.0.forward.output.0"
    assert made(own, dump, "Functional.linear.0.forward")["Functional.linear.0.forward.input.1"] is None


def test_what_no_dump_names_is_told_by_its_values_and_says_so(own: Client, dumps: Path) -> None:
    dump = dump_of(own, dumps / "stat_golden")
    found = made(own, dump, "Functional.dropout.1.forward")["Functional.dropout.1.forward.input.0"]
    assert found == {
        "node": "Functional.softmax.1.forward",
        "item": "Functional.softmax.1.forward.output.0",
        "inferred": True,
    }


def test_a_comparison_names_the_call_and_the_record_that_the_target_names(own: Client, own_dumps: Path) -> None:
    comparison = compare(own, own_dumps / "good", own_dumps / "good")

    def flow(node: str) -> Any:
        return own.get(f"/api/comparisons/{comparison}/nodes/{node}/flow").json()

    (sine,) = flow("Torch.sin.0.forward")["inputs"]
    assert (sine["producer"]["name"], sine["made"]) == ("Torch.exp.0.forward", "Torch.exp.0.forward.output.0")
    (zeros,) = flow("Torch.cos.0.forward")["inputs"]
    assert zeros["untold"] is None
    assert (zeros["producer"]["name"], zeros["made"]) == (
        "Functional.relu.1.forward",
        "Functional.relu.1.forward.output.0",
    )
    assert [(one["consumer"]["name"], one["made"]) for one in flow("Torch.exp.0.forward")["consumers"]] == [
        ("Torch.sin.0.forward", "Torch.exp.0.forward.output.0")
    ]
    assert [one["consumer"]["name"] for one in flow("Torch.exp.1.forward")["consumers"]] == ["Torch.sigmoid.1.forward"]


def test_following_sources_leads_from_every_no_to_the_origin(own: Client, own_dumps: Path) -> None:
    comparison = compare(own, own_dumps / "fault", own_dumps / "good")
    rows = own.get(f"/api/comparisons/{comparison}/nodes?verdict=no&limit=500").json()["items"]
    assert len(rows) > 5
    for row in rows:
        name: str | None = row["name"]
        for _ in rows:
            source = own.get(f"/api/comparisons/{comparison}/nodes/{name}/flow").json()["source"]
            if source is None:
                break
            name = source["node"]["name"]
        assert name == "Torch.exp.0.forward", row["name"]


def test_a_dump_read_by_an_older_version_opens_without_producers(own: Client, own_dumps: Path, tmp_path: Path) -> None:
    dump = dump_of(own, own_dumps / "good")
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "dumpscope.db")) as database, database:
        database.execute("DELETE FROM producers")
    assert set(made(own, dump, "Torch.sin.0.forward").values()) == {None}
