"""Result tables of other tools open as comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Make, settled
from dumpscope.api.app import create_app


def opened(client: Client, path: Path) -> str:
    reply = client.post("/api/tables", json={"path": str(path)})
    assert reply.status_code == 202, reply.text
    assert reply.headers["Location"] == f"/api/comparisons/{reply.json()['id']}"
    settled(client, f"/api/comparisons/{reply.json()['id']}")
    return str(reply.json()["id"])


@pytest.mark.parametrize("name", ["tensor_fault", "md5_fault"])
def test_a_table_becomes_a_comparison_with_the_right_cause(client: Client, dumps: Path, name: str) -> None:
    comparison = opened(client, dumps / "peer_results" / name / "compare_result.csv")
    summary = client.get(f"/api/comparisons/{comparison}/summary").json()
    assert summary["origins"][0]["node"] == "Functional.softmax.1.forward"
    assert any("compare_result.csv" in one for one in summary["settings"])
    node = client.get(f"/api/comparisons/{comparison}/nodes", params={"verdict": "no"}).json()["items"][0]
    assert node["verdict"] == "no"


def test_both_sides_are_dumps_that_go_with_their_removal(make_settings: Make, dumps: Path, tmp_path: Path) -> None:
    with TestClient(create_app(make_settings()), base_url=BASE) as client:
        comparison = opened(client, dumps / "peer_results" / "dist2_stat")
        sides = client.get("/api/dumps").json()["items"]
        assert sorted(side["name"] for side in sides) == ["dist2_stat (golden)", "dist2_stat (target)"]
        assert all(side["ranks"] == [0, 1] for side in sides)
        assert client.delete(f"/api/comparisons/{comparison}").status_code == 204
        for side in sides:
            assert client.delete(f"/api/dumps/{side['id']}").status_code == 204
    assert not list((tmp_path / "data").rglob("dump.json"))


def test_what_is_no_table_is_refused_with_the_remedy(client: Client, dumps: Path) -> None:
    reply = client.post("/api/tables", json={"path": str(dumps / "stat_fault")})
    assert reply.status_code == 422
    assert "compare_result" in reply.json()["hint"]


def test_browsing_offers_tables(client: Client, dumps: Path) -> None:
    items = client.get("/api/paths", params={"path": str(dumps / "peer_results" / "tensor_fault")}).json()["items"]
    assert [(item["name"], item["kind"], item["dump"]) for item in items] == [("compare_result.csv", "file", True)]
