"""A comparison with an absolute reference over REST: asked for, stored, listed, sorted, judged again, exported."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url
from warm_python import warm_python

from api.conftest import BASE, Client, register, settled
from api.test_result_files import exported, opened
from dumpscope.api.app import create_app
from dumpscope.settings import Settings

RUNS = {"target": ("bfloat16", "4", "1.3"), "golden": ("float32", "1", "1.2"), "reference": ("float64",)}
SCRIPT = Path(__file__).resolve().parents[1] / "pipeline" / "three_runs.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, (dtype, *fault) in RUNS.items():
        command = [warm_python(), str(SCRIPT), str(folder / name), dtype, "tensor", *fault]
        subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, runs: Path) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("three")
    settings = Settings(
        data_dir=folder, roots=[runs], executor="threads:2", database_url=empty_url(request.param, folder)
    )
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


@pytest.fixture(scope="module")
def address(server: Client, runs: Path) -> str:
    sides = {name: register(server, runs / name) for name in RUNS}
    reply = server.post("/api/comparisons", json=sides)
    assert reply.status_code == 202, reply.text
    found = f"/api/comparisons/{reply.json()['id']}"
    done = settled(server, found)
    assert done["status"] == "done"
    assert (done["reference"], done["reference_name"]) == (sides["reference"], "reference")
    return found


def test_each_side_is_held_to_its_own_fault(server: Client, address: str) -> None:
    body = server.get(f"{address}/summary").json()
    assert [origin["node"] for origin in body["origins"]] == ["Functional.layer_norm.4.forward"]
    reference = body["reference"]
    assert [one["node"] for one in reference["golden_off"]] == ["Functional.layer_norm.1.forward"]
    assert reference["side"]["task"] == "tensor"
    told = [reference[name] for name in ("target_farther", "golden_farther", "alike", "not_measured")]
    assert sum(told) == body["counts"]["items"]
    assert min(told[:3]) > 0


def test_rows_come_sorted_by_how_much_farther_the_target_is(server: Client, address: str) -> None:
    first = server.get(f"{address}/nodes?sort=-ratio&limit=40").json()
    ratios = [row["standing"]["ratio"] for row in first["items"]]
    assert ratios == sorted(ratios, reverse=True)
    assert first["items"][0]["standing"]["ratio"] > 2
    second = server.get(f"{address}/nodes?sort=-ratio&limit=200&cursor={first['next']}").json()
    last = [row["standing"] and row["standing"]["ratio"] for row in second["items"]]
    assert len(first["items"]) + len(last) == first["total"]
    assert max(ratio for ratio in last if ratio is not None) <= ratios[-1]


def test_a_node_tells_both_distances_and_its_items_do_too(server: Client, address: str) -> None:
    node = server.get(f"{address}/nodes/Functional.layer_norm.1.forward").json()
    assert node["standing"]["inverse"] > 2 > node["standing"]["ratio"]
    output = next(item for item in node["items"] if item["role"] == "output")
    assert (output["rule"], output["verdict"]) == ("R-1", "yes")
    assert output["standing"] == node["standing"]
    assert "The golden is wrong here" in output["message"]


def test_judging_again_by_the_same_policy_changes_nothing(server: Client, address: str) -> None:
    asked = [f"{address}/summary", f"{address}/nodes?limit=200", f"{address}/pairs?limit=100"]
    before = [server.get(one).json() for one in asked]
    server.patch(address, json={"policy": "name: wide\nfloors: {bfloat16: {bulk: 1, peak: 1}}"})
    assert settled(server, address)["status"] == "done"
    assert [server.get(one).json() for one in asked] != before
    server.patch(address, json={"policy": "default"})
    settled(server, address)
    assert [server.get(one).json() for one in asked] == before


def test_the_exports_hold_both_distances_and_the_ratio(server: Client, address: str) -> None:
    heading, *rows = server.get(f"{address}/export.csv").text.splitlines()
    assert heading.endswith("Target to Reference,Golden to Reference,Reference Ratio")
    assert any(not row.endswith("N/A") for row in rows)
    assert server.get(f"{address}/export.json").json()["reference"]["golden_off"]
    assert "golden is off" in server.get(f"{address}/export.html").text


def test_a_reference_in_use_cannot_be_removed(server: Client, address: str) -> None:
    reference = server.get(address).json()["reference"]
    assert server.delete(f"/api/dumps/{reference}").status_code == 409


def test_an_unknown_reference_is_refused(server: Client, address: str) -> None:
    sides = {name: server.get(address).json()[name] for name in ("target", "golden")}
    assert server.post("/api/comparisons", json={**sides, "reference": "nowhere"}).status_code == 404


def test_a_result_file_keeps_what_the_reference_said(server: Client, address: str, tmp_path: Path) -> None:
    comparison = address.rsplit("/", 1)[-1]
    before = server.get(f"{address}/summary").json()
    with opened(exported(server, comparison, tmp_path / "three.db"), folder=tmp_path / "there") as (copy, _):
        assert copy.get(f"{address}/summary").json()["reference"] == before["reference"]
        copy.patch(address, json={"policy": "default"})
        assert settled(copy, address)["status"] == "done"
        assert copy.get(f"{address}/summary").json()["reference"] == before["reference"]
        refused = copy.post(f"{address}/matching/apply")
        assert refused.status_code == 409
        assert "only the comparison result of the dump reference is stored here" in refused.json()["detail"]
