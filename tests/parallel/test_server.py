"""Joined ranks behind a server: stored with their comparison, read like any rank, gone with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api.conftest import BASE, compare, register, settled
from api.test_result_files import exported, opened
from fastapi.testclient import TestClient

from dumpscope.api.app import create_app
from dumpscope.parallel.plan import parse_plan
from dumpscope.settings import Settings


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def client(place: Path, splits: Path) -> Iterator[TestClient]:
    settings = Settings(data_dir=place, roots=[splits], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


@pytest.fixture(scope="module")
def fault(client: TestClient, splits: Path) -> str:
    return compare(client, splits / "tp2_fault", splits / "whole")


def get(client: TestClient, path: str, **parameters: Any) -> Any:
    reply = client.get(path, params=parameters)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_joined_comparison_answers_like_any_other(client: TestClient, fault: str) -> None:
    base = f"/api/comparisons/{fault}"
    (origin,) = get(client, f"{base}/origins")["items"]
    assert origin["node"].startswith("Module.layers.2.mlp.up.ColumnParallelLinear")
    node = get(client, f"{base}/nodes/{origin['node']}")
    shapes = {pair["target_leaf"]["path"]: pair["target_leaf"]["shape"] for pair in node["items"]}
    assert shapes["weight"] == [64, 16]
    assert any("joined" in (pair["target_leaf"]["value"] or "") for pair in node["items"])
    summary = get(client, f"{base}/summary")
    assert summary["mode"] == "tensor"
    assert [problem["kind"] for problem in summary["problems"]] == ["odd_rank"]


def test_tensors_of_joined_ranks_are_there_for_figures(client: TestClient, fault: str) -> None:
    (origin,) = get(client, f"/api/comparisons/{fault}/origins")["items"]
    node = get(client, f"/api/comparisons/{fault}/nodes/{origin['node']}")
    pair = next(pair for pair in node["items"] if pair["role"] == "output")
    figure = client.get(f"/api/comparisons/{fault}/figures/histogram", params={"pair": pair["id"]})
    assert figure.status_code == 200, figure.text


def test_the_plan_of_a_comparison_is_shown(client: TestClient, fault: str) -> None:
    joined = get(client, f"/api/comparisons/{fault}/plan")["joined"]
    (unit,) = joined["units"]
    assert (joined["unit_count"], unit["target"]["ranks"], unit["golden"]["ranks"]) == (1, [[[0, 1]]], [[[0]]])
    assert unit["target"]["shards"]["dimension 0"] > 0
    assert [stray["ranks"] for stray in unit["target"]["strays"]] == [[1]]
    assert parse_plan(joined["plan"]).units[0].target.ranks == (((0, 1),),)
    assert joined["reasons"][0].startswith("The target has 2 shards")


def test_a_plan_can_be_tried_before_anything_is_compared(client: TestClient, splits: Path) -> None:
    ids = {side: register(client, splits / name) for side, name in (("target", "tp2pp2"), ("golden", "whole"))}
    for dump in ids.values():
        settled(client, f"/api/dumps/{dump}")
    found = client.post("/api/plans", json=ids).json()
    assert parse_plan(found["plan"]).units[0].target.ranks == (((0, 1), (2, 3)),)
    sized = client.post("/api/plans", json={**ids, "plan": "target: {tp: 4}"}).json()
    assert parse_plan(sized["plan"]).units[0].target.ranks == (((0, 1, 2, 3),),)
    wrong = client.post("/api/plans", json={**ids, "plan": "target: {tp: 3}"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "usage")
    assert "4 ranks cannot be cut into tp 3" in wrong.json()["detail"]


def both(client: TestClient, splits: Path, target: str, golden: str) -> dict[str, str]:
    """Ids of two dumps that are read."""
    ids = {side: register(client, splits / name) for side, name in (("target", target), ("golden", golden))}
    for dump in ids.values():
        settled(client, f"/api/dumps/{dump}")
    return ids


def test_the_layout_of_a_plan_sent_back_as_json_is_the_same_plan(client: TestClient, splits: Path) -> None:
    ids = both(client, splits, "tp2pp2", "whole")
    found = client.post("/api/plans", json=ids).json()
    layout = found["layout"]
    text = json.dumps({"units": layout["units"], "dimensions": {"a*": 1}})
    again = client.post("/api/plans", json={**ids, "plan": text}).json()
    assert again["layout"]["units"] == found["layout"]["units"]
    assert again["layout"]["dimensions"] == [{"pattern": "a*", "way": 1}]
    assert parse_plan(again["plan"]).units == parse_plan(found["plan"]).units


def test_a_dry_run_lists_what_would_be_joined_and_how(client: TestClient, splits: Path) -> None:
    ids = both(client, splits, "tp2", "whole")
    name = "Module.layers.0.mlp.up.ColumnParallelLinear.forward.0.parameters.weight"
    tried = client.post("/api/plans/try", json={**ids, "q": "layers.0.mlp.up"}).json()
    assert tried["unit"]["target"]["ranks"] == [[[0, 1]]]
    (weight,) = [one for one in tried["tensors"] if one["name"] == name]
    assert (weight["side"], weight["way"], weight["dimension"], weight["shape"]) == ("target", "join", 0, [64, 16])
    assert tried["tensor_count"] == len(tried["tensors"])
    everything = client.post("/api/plans/try", json={**ids, "copies": True}).json()
    assert everything["tensor_count"] == sum(tried["unit"]["target"]["shards"].values())
    assert len(everything["tensors"]) == 200
    skipped = client.post("/api/plans/try", json={**ids, "plan": json.dumps({"dimensions": {name: "skip"}}), "q": name})
    assert [one["way"] for one in skipped.json()["tensors"]] == ["skip"]


def test_a_dry_run_says_which_dimensions_do_nothing(client: TestClient, splits: Path) -> None:
    ids = both(client, splits, "tp2", "whole")
    plan = json.dumps({"dimensions": {"nowhere*": 1, "*.mlp.up.*.forward.0.parameters.weight": 1}})
    said = [one["message"] for one in client.post("/api/plans/try", json={**ids, "plan": plan}).json()["problems"]]
    assert len(said) == 1
    assert "'nowhere*' matches no joined tensor" in said[0]
    plan = json.dumps({"dimensions": {"*.mlp.up.*.forward.0.parameters.weight": 5}})
    (told,) = client.post("/api/plans/try", json={**ids, "plan": plan}).json()["problems"]
    assert told["kind"] == "plan_dimension"
    assert "asks for dimension 5, along which the parts of Module.layers." in told["message"]


def test_a_dry_run_of_ranks_that_correspond_or_of_no_such_unit_is_refused(client: TestClient, splits: Path) -> None:
    ids = both(client, splits, "tp2", "whole")
    wrong = client.post("/api/plans/try", json={**ids, "unit": 7})
    assert (wrong.status_code, wrong.json()["detail"]) == (404, "the plan joins no such step and unit")


def test_the_plan_of_a_comparison_is_a_file_that_gives_it_again(client: TestClient, fault: str) -> None:
    reply = client.get(f"/api/comparisons/{fault}/plan.yaml")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert parse_plan(reply.text).units[0].target.ranks == (((0, 1),),)


def test_a_rank_that_no_unit_has_is_told(client: TestClient, splits: Path) -> None:
    text = "units: [{target: {ranks: [[[0, 1]]]}, golden: {ranks: 0}}]"
    comparison = compare(client, splits / "tp4", splits / "whole", parallel=text)
    problems = get(client, f"/api/comparisons/{comparison}/summary")["problems"]
    assert [one["loc"] for one in problems if one["kind"] == "unplanned_rank"] == ["rank2", "rank3"]


def test_an_impossible_plan_is_refused_at_once(client: TestClient, splits: Path) -> None:
    ids = {side: register(client, splits / "whole") for side in ("target", "golden")}
    reply = client.post("/api/comparisons", json={**ids, "options": {"parallel": "{target: {vpp: 2}}"}})
    assert reply.status_code == 400
    assert "vpp needs pp above 1" in reply.json()["detail"]


def test_joined_ranks_are_listed_nowhere_and_go_with_their_comparison(
    client: TestClient, splits: Path, place: Path
) -> None:
    before = {dump["id"] for dump in get(client, "/api/dumps", limit=500)["items"]}
    comparison = compare(client, splits / "tp2", splits / "whole")
    after = {dump["id"] for dump in get(client, "/api/dumps", limit=500)["items"]}
    assert len(after - before) == 2  # the two that were registered
    made = list(place.rglob(f"{comparison}.joined"))
    assert len(made) == 1
    assert any(made[0].rglob("*.npy"))
    assert client.delete(f"/api/comparisons/{comparison}").status_code == 204
    assert list(place.rglob(f"{comparison}.joined")) == []
    for dump in after - before:
        assert client.delete(f"/api/dumps/{dump}").status_code == 204


def test_a_joined_comparison_is_judged_again_and_made_again(client: TestClient, fault: str) -> None:
    base = f"/api/comparisons/{fault}"
    before = get(client, f"{base}/summary")["counts"]
    assert client.patch(base, json={"policy": "msprobe"}).status_code == 200
    settled(client, base)
    assert get(client, f"{base}/plan")["joined"]["unit_count"] == 1
    assert client.patch(base, json={"policy": "default"}).status_code == 200
    settled(client, base)
    assert client.post(f"{base}/matching/apply").status_code == 202
    settled(client, base)
    assert get(client, f"{base}/summary")["counts"] == before


def test_a_result_file_holds_the_joined_ranks_and_says_what_it_lacks(
    client: TestClient, fault: str, tmp_path: Path
) -> None:
    file = exported(client, fault, tmp_path / "joined.db")
    root = f"/api/comparisons/{fault}"
    with opened(file, folder=tmp_path / "there") as (copy, _):
        (origin,) = get(client, f"{root}/origins")["items"]
        assert get(copy, f"{root}/origins")["items"] == [origin]
        assert get(copy, f"{root}/plan") == get(client, f"{root}/plan")
        assert get(copy, f"{root}/tree")["items"][0]["name"] == get(client, f"{root}/tree")["items"][0]["name"]
        copy.patch(root, json={"policy": "msprobe"})
        assert settled(copy, root)["status"] == "done"
        before, after = (get(one, f"{root}/summary") for one in (client, copy))
        assert (after["target"], after["golden"]) == (before["target"], before["golden"])
        reply = copy.post(f"{root}/matching/apply")
        assert reply.status_code == 409
        assert "only the comparison result of the dump" in reply.json()["detail"]
