"""What people say of calls stays with the pair of dumps, and can be searched for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Make, compare
from dumpscope.api.app import create_app

ORIGIN = "Functional.softmax.1.forward"


def notes(client: Client, comparison: str) -> list[dict[str, Any]]:
    return client.get(f"/api/comparisons/{comparison}/notes").json()["items"]  # type: ignore[no-any-return]


def found(client: Client, comparison: str, q: str) -> list[str]:
    page = client.get(f"/api/comparisons/{comparison}/nodes", params={"q": q}).json()
    return [row["name"] for row in page["items"]]


def test_a_note_is_said_changed_found_and_taken_back(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "target_fault", dumps / "golden")
    address = f"/api/comparisons/{comparison}/notes/{ORIGIN}"
    said = client.put(address, json={"standing": "ticket", "text": " bug 7 "}).json()
    assert (said["node"], said["standing"], said["text"]) == (ORIGIN, "ticket", "bug 7")
    assert found(client, comparison, "note:ticket") == [ORIGIN]
    client.put(address, json={"standing": "accepted"})
    assert [(one["standing"], one["text"]) for one in notes(client, comparison)] == [("accepted", "")]
    assert found(client, comparison, "note:ticket") == []
    assert found(client, comparison, "class:origin -note:accepted") == []
    assert found(client, comparison, "note:any") == [ORIGIN]
    assert client.delete(address).status_code == 204
    assert (notes(client, comparison), client.delete(address).status_code) == ([], 404)


def test_a_note_is_carried_to_the_next_comparison_of_the_same_folders_only(client: Client, dumps: Path) -> None:
    first = compare(client, dumps / "target_fault", dumps / "golden")
    client.put(f"/api/comparisons/{first}/notes/{ORIGIN}", json={"standing": "known", "text": "kernel"})
    next_one = compare(client, dumps / "target_fault", dumps / "golden")
    assert [one["text"] for one in notes(client, next_one)] == ["kernel"]
    client.delete(f"/api/comparisons/{first}")
    assert found(client, next_one, "note:known") == [ORIGIN]
    other = compare(client, dumps / "target_nan", dumps / "golden")
    swapped = compare(client, dumps / "golden", dumps / "target_fault")
    assert (notes(client, other), notes(client, swapped)) == ([], [])


def test_a_note_outlives_a_dump_that_is_written_anew(make_settings: Make, dumps: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "target"
    shutil.copytree(dumps / "stat_fault", folder)
    with TestClient(create_app(make_settings(roots=[dumps, tmp_path / "mine"])), base_url=BASE) as client:
        first = compare(client, folder, dumps / "stat_golden")
        node = client.get(f"/api/comparisons/{first}/origins").json()["items"][0]["node"]
        client.put(f"/api/comparisons/{first}/notes/{node}", json={"standing": "known", "text": "still there"})
        target = client.get(f"/api/comparisons/{first}").json()["target"]
        client.delete(f"/api/comparisons/{first}")
        assert client.delete(f"/api/dumps/{target}").status_code == 204
        second = compare(client, folder, dumps / "stat_golden")
        assert [one["text"] for one in notes(client, second)] == ["still there"]


def test_a_note_on_nothing_or_of_no_kind_is_refused(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    address = f"/api/comparisons/{comparison}/notes"
    assert client.put(f"{address}/No.such.0.forward", json={"standing": "known"}).status_code == 404
    assert client.put(f"{address}/{ORIGIN}", json={"standing": "fine"}).status_code == 422
    assert client.put(f"{address}/{ORIGIN}", json={"standing": "note", "text": "x" * 2001}).status_code == 422
    assert client.get("/api/comparisons/none/notes").status_code == 404
    refused = client.get(f"/api/comparisons/{comparison}/nodes", params={"q": "note:fine"})
    assert (refused.status_code, "accepted" in refused.json()["hint"]) == (400, True)


def test_a_golden_call_is_noted_under_the_name_of_its_pair(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "target_renamed", dumps / "golden")
    rows = client.get(f"/api/comparisons/{comparison}/nodes", params={"limit": 500}).json()["items"]
    pair = next(row for row in rows if row["golden_name"] not in (None, row["name"]))
    said = client.put(f"/api/comparisons/{comparison}/notes/{pair['golden_name']}", json={"standing": "note"}).json()
    assert said["node"] == pair["name"]
    assert found(client, comparison, "note:note") == [pair["name"]]
