"""The lists of dumps and of comparisons in every order, whatever the size of a page; sentences as data beside their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.conftest import Client, compare, register
from dumpscope.domain.phrases import english

NAMES = ("stat_golden", "golden", "conv_L0", "weird_L0")


def walk(client: Client, noun: str, sort: str, limit: int) -> list[Any]:
    rows: list[Any] = []
    cursor = ""
    while True:
        page = client.get(f"/api/{noun}", params={"sort": sort, "limit": limit, "cursor": cursor}).json()
        rows += page["items"]
        if page["next"] is None:
            return rows
        cursor = page["next"]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_every_order_lists_each_row_once(client: Client, dumps: Path, limit: int) -> None:
    ids = [register(client, dumps / name) for name in (*NAMES, "golden")]
    assert [row["id"] for row in walk(client, "dumps", "created", limit)] == ids
    assert [row["id"] for row in walk(client, "dumps", "-created", limit)] == ids[::-1]
    by_name = walk(client, "dumps", "name", limit)
    assert [row["name"] for row in by_name] == sorted([*NAMES, "golden"])
    assert {row["id"] for row in by_name} == set(ids)


def test_comparisons_are_ordered_like_dumps(client: Client, dumps: Path) -> None:
    for target in ("stat_fault", "stat_bf16"):
        compare(client, dumps / target, dumps / "stat_golden")
    newest = [row["name"] for row in walk(client, "comparisons", "-created", 1)]
    assert newest == ["stat_bf16 against stat_golden", "stat_fault against stat_golden"]
    assert [row["name"] for row in walk(client, "comparisons", "name", 1)] == sorted(newest)


def test_a_cursor_of_another_order_is_refused(client: Client, dumps: Path) -> None:
    for name in NAMES:
        register(client, dumps / name)
    cursor = client.get("/api/dumps", params={"limit": 1}).json()["next"]
    reply = client.get("/api/dumps", params={"limit": 1, "cursor": cursor, "sort": "name"})
    assert (reply.status_code, reply.json()["error"]) == (400, "usage")


def test_phrases_say_what_the_sentence_beside_them_says(served: Client, fault: str) -> None:
    address = f"/api/comparisons/{fault}"
    summary = served.get(f"{address}/summary").json()
    origin = served.get(f"{address}/origins").json()["items"][0]
    node = served.get(f"{address}/nodes/{origin['node']}").json()
    pair = served.get(f"{address}/pairs/{node['items'][0]['id']}").json()
    figure = served.get(f"{address}/figures/error-order", params={"node": origin["node"]}).json()
    assert [english([said]) for said in summary["settings_said"]] == summary["settings"]
    assert english(origin["evidence_said"]) == origin["evidence"]
    assert english(origin["advice_said"]) == origin["advice"]
    assert english(node["reason_said"]) == node["reason"]
    assert english(pair["message_said"]) == pair["message"]
    assert english(figure["said"]) == figure["text"]
