"""Data flow over HTTP: who made what a call received, and who received what it made."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Client, Compared, compare, settled
from api.test_comparisons import ORIGIN, fits, get
from dumpscope.api.models.dataflow import Flow


@pytest.fixture(scope="module")
def statistics(served: Client, compared: Compared) -> str:
    """Comparison of stat_fault with stat_golden: nothing but statistics tells tensors apart."""
    return compared(served, "stat_fault", "stat_golden")


def flow(client: Client, comparison: str, node: str) -> Any:
    body = get(client, f"/api/comparisons/{comparison}/nodes/{node}/flow")
    fits(Flow, body)
    return body


def producer_of(client: Client, comparison: str, node: str) -> dict[str, str | None]:
    """Input by role and path -> the call that made it, or why none is known."""
    return {
        f"{one['role']}.{one['path']}": one["producer"]["name"] if one["producer"] else one["untold"]
        for one in flow(client, comparison, node)["inputs"]
    }


def test_the_producer_of_an_input_is_named_with_its_output_and_verdict(served: Client, statistics: str) -> None:
    (one,) = flow(served, statistics, "Functional.dropout.1.forward")["inputs"]
    assert one["producer"]["name"] == ORIGIN
    assert one["made"] == f"{ORIGIN}.output.0"
    assert one["item"] == "Functional.dropout.1.forward.input.0"
    assert (one["producer"]["verdict"], one["producer"]["cls"]) == ("no", "origin")
    assert one["verdict"] == "no"
    assert one["untold"] is None


def test_a_weight_and_a_mask_were_made_by_no_dumped_call(served: Client, statistics: str) -> None:
    assert producer_of(served, statistics, "Functional.linear.0.forward")["input.1"] == "not_dumped"
    masked = producer_of(served, statistics, "Tensor.masked_fill.1.forward")
    assert masked["input.1"] == "not_dumped"
    assert masked["input.0"].startswith("Tensor.__")  # type: ignore[union-attr]


def test_what_holds_one_number_throughout_tells_nothing(served: Client, fault: str) -> None:
    missing = {"constant", "not_dumped", None}
    for row in get(served, f"/api/comparisons/{fault}/nodes?limit=500")["items"]:
        missing -= {one["untold"] for one in flow(served, fault, row["name"])["inputs"]}
        if not missing:
            break
    assert not missing


def test_consumers_are_all_who_received_the_output(served: Client, statistics: str) -> None:
    body = flow(served, statistics, ORIGIN)
    assert [one["consumer"]["name"] for one in body["consumers"]] == [
        "Functional.dropout.1.forward",
        "Module.layers.1.attn.drop.Dropout.forward.0",
    ]
    assert {one["made"] for one in body["consumers"]} == {f"{ORIGIN}.output.0"}
    assert body["consumer_count"] == 2


def test_producers_and_consumers_are_two_views_of_the_same_edges(served: Client, statistics: str) -> None:
    names = [row["name"] for row in get(served, f"/api/comparisons/{statistics}/nodes?limit=500")["items"]]
    flows = {name: flow(served, statistics, name) for name in names}
    back = {
        (one["producer"]["name"], name) for name, body in flows.items() for one in body["inputs"] if one["producer"]
    }
    on = {(name, one["consumer"]["name"]) for name, body in flows.items() for one in body["consumers"]}
    assert back <= on
    handed_on = {name for name, _ in on - back}
    assert all(name.startswith("Module.") for name in handed_on), "a module hands on what a call inside it made"


def test_backward_calls_are_joined_too(served: Client, statistics: str) -> None:
    body = flow(served, statistics, "Tensor.masked_fill.1.backward")
    assert [one["producer"]["name"] for one in body["inputs"]] == ["Functional.softmax.1.backward"]
    assert body["consumers"][0]["consumer"]["name"] == "Tensor.__mul__.1.backward"


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("stat_fault", "stat_golden"), ("target_fault", "golden"), ("stat_fault_bwd", "stat_golden"), ("stat_nan", "stat_golden"),
        ("target_fault_gelu_arg", "golden"), ("md5_fault", "md5_golden"), ("stat_fault_weight", "stat_golden"),
    ],
)  # fmt: skip
def test_following_sources_leads_from_every_no_to_the_origin(
    served: Client, compared: Compared, target: str, golden: str
) -> None:
    comparison = compared(served, target, golden)
    first = get(served, f"/api/comparisons/{comparison}/origins")["items"][0]
    where = f"step={first['step']}&rank={first['rank']}"
    rows = get(served, f"/api/comparisons/{comparison}/nodes?{where}&verdict=no&limit=500")["items"]
    assert rows
    ends: dict[str, str] = {}
    for row in rows:
        name, walked = row["name"], []
        while name not in ends:
            walked.append(name)
            source = get(served, f"/api/comparisons/{comparison}/nodes/{name}/flow?{where}")["source"]
            if source is None:
                ends[name] = name
            else:
                assert source["node"]["order"] < row["order"]
                name = source["node"]["name"]
        ends.update(dict.fromkeys(walked, ends[name]))
    assert {ends[row["name"]] for row in rows} == {first["node"]}


def test_every_item_pair_names_its_producer(served: Client, statistics: str) -> None:
    node = get(served, f"/api/comparisons/{statistics}/nodes/Functional.dropout.1.forward")
    assert {one["target"]: one["producer"] for one in node["items"] if one["producer"]} == {
        "Functional.dropout.1.forward.input.0": ORIGIN
    }
    (pair, *_) = get(served, f"/api/comparisons/{statistics}/pairs?node=Torch.matmul.3.forward")["items"]
    assert pair["producer"] == "Functional.dropout.1.forward"


def test_a_result_of_an_older_version_gets_data_flow_when_it_is_judged_again(
    client: Client, dumps: Path, tmp_path: Path
) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "dumpscope.db")) as database, database:
        database.execute("DELETE FROM flow")
    address = f"/api/comparisons/{comparison}"
    reply = client.get(f"{address}/nodes/{ORIGIN}/flow")
    assert (reply.status_code, reply.json()["error"]) == (409, "conflict")
    assert "judge it again" in reply.json()["hint"]
    assert get(client, f"{address}/nodes/Functional.dropout.1.forward")["items"][0]["producer"] is None
    client.patch(address, json={"policy": "default"})
    settled(client, address)
    assert producer_of(client, comparison, "Functional.dropout.1.forward") == {"input.0": ORIGIN}


def test_an_unknown_node_and_rank_are_not_found(served: Client, statistics: str) -> None:
    for address in ("nodes/none/flow", f"nodes/{ORIGIN}/flow?rank=7"):
        assert served.get(f"/api/comparisons/{statistics}/{address}").status_code == 404


def test_a_call_of_the_golden_run_alone_says_that_flow_is_the_targets(served: Client, compared: Compared) -> None:
    comparison = compared(served, "golden", "target_fault_gelu_arg")
    alone = get(served, f"/api/comparisons/{comparison}/nodes?class=structural")["items"]
    untold = {one["untold"] for row in alone for one in flow(served, comparison, row["name"])["inputs"]}
    assert untold <= {"golden_only"}
