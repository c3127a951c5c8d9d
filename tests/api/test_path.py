"""The path view over HTTP: the calls around a call, what passed between them, and the way of the difference."""

from __future__ import annotations

import tarfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from api.conftest import BASE, Client, Compared, Make, compare
from api.test_comparisons import ORIGIN, fits, get
from dumpscope.api.app import create_app
from dumpscope.api.models.dataflow import PathView

WAY = (
    ORIGIN, "Functional.dropout.1.forward", "Torch.matmul.3.forward", "Functional.linear.5.forward", "Tensor.__add__.3.forward",
    "Tensor.__add__.4.forward", "Functional.layer_norm.4.forward", "Functional.linear.8.forward",
    "Functional.cross_entropy.0.forward",
)  # fmt: skip
"""From the planted fault over the residual stream to the loss."""


def path(client: Client, comparison: str, node: str, more: str = "") -> Any:
    body = get(client, f"/api/comparisons/{comparison}/nodes/{node}/path{more}")
    fits(PathView, body)
    return body


def hops(body: Any) -> dict[str, int]:
    return {box["node"]["name"]: box["hop"] for box in body["boxes"]}


def passages(body: Any) -> dict[tuple[str, str], Any]:
    names = {box["node"]["pair"]: box["node"]["name"] for box in body["boxes"]}
    return {(names[one["maker"]], names[one["reader"]]): one for one in body["passages"]}


def test_producers_stand_before_and_consumers_after_the_call(served: Client, fault: str) -> None:
    body = path(served, fault, ORIGIN)
    assert hops(body) == {
        "Tensor.__mul__.1.forward": -2, "Tensor.masked_fill.1.forward": -1, ORIGIN: 0,
        "Functional.dropout.1.forward": 1, "Torch.matmul.3.forward": 2,
    }  # fmt: skip
    assert body["hops"] == 2
    assert {box["node"]["name"]: box["module"] for box in body["boxes"]}[ORIGIN] == (
        "Module.layers.1.attn.Attn.forward.0"
    )
    assert max(hops(path(served, fault, ORIGIN, "?hops=3")).values()) == 3
    assert max(hops(path(served, fault, ORIGIN, "?hops=1")).values()) == 1


def test_each_link_has_the_tensor_and_its_error(served: Client, fault: str) -> None:
    links = passages(path(served, fault, ORIGIN))
    clean = links["Tensor.masked_fill.1.forward", ORIGIN]
    assert (clean["item"]["item"], clean["error"], clean["item"]["verdict"]) == (f"{ORIGIN}.input.0", 0.0, "yes")
    wrong = links[ORIGIN, "Functional.dropout.1.forward"]
    assert wrong["item"]["verdict"] == "no"
    (pair,) = [
        one
        for one in get(served, f"/api/comparisons/{fault}/pairs?node=Functional.dropout.1.forward")["items"]
        if one["target"] == wrong["item"]["item"]
    ]
    assert wrong["error"] == pair["metrics"]["rel_l2"]
    assert (wrong["item"]["pair"], wrong["item"]["score"]) == (pair["id"], pair["score"])


def test_links_are_those_of_the_data_flow(served: Client, fault: str) -> None:
    for node in WAY:
        made = {
            one["producer"]["name"]
            for one in get(served, f"/api/comparisons/{fault}/nodes/{node}/flow")["inputs"]
            if one["producer"]
        }
        links = passages(path(served, fault, node, "?hops=1"))
        assert {maker for maker, reader in links if reader == node} == made


def test_the_way_leads_from_the_planted_fault_to_the_loss(served: Client, fault: str) -> None:
    walked = set()
    for place, node in enumerate(WAY):
        body = path(served, fault, node)
        way = body["way"]
        assert (way["start"]["name"], way["end"]["name"], way["length"]) == (WAY[0], WAY[-1], len(WAY))
        assert way["place"] == place
        walked |= {ends for ends, one in passages(body).items() if one["way"]}
    assert walked == set(pairwise(WAY))
    beside = path(served, fault, "Functional.layer_norm.3.forward")
    assert beside["way"]["place"] is None
    assert path(served, fault, "Functional.embedding.0.forward")["passages"][0]["way"] is False


@pytest.mark.parametrize(
    ("target", "golden", "start", "end"),
    [
        (
            "stat_fault",
            "stat_golden",
            ORIGIN,
            "Tensor.__add__.3.forward",
        ),  # behind it all differ by less than their floors
        ("md5_fault", "md5_golden", ORIGIN, "Functional.cross_entropy.0.forward"),
        ("stat_fault_weight", "stat_golden", "Functional.linear.6.forward", "Functional.cross_entropy.0.forward"),
        ("stat_fault_bwd", "stat_golden", "Functional.layer_norm.3.backward", "Functional.embedding.0.backward"),
    ],
)
def test_the_way_begins_at_the_true_cause_of_every_kind(
    served: Client, compared: Compared, target: str, golden: str, start: str, end: str
) -> None:
    comparison = compared(served, target, golden)
    way = path(served, comparison, start)["way"]
    assert (way["start"]["name"], way["place"]) == (start, 0)
    assert way["end"]["name"] == end


def test_runs_that_agree_have_no_way(served: Client, compared: Compared) -> None:
    comparison = compared(served, "golden", "golden")
    body = path(served, comparison, ORIGIN)
    assert body["way"] is None
    assert {one["error"] for one in body["passages"]} == {0.0}


def test_a_weight_and_what_was_not_dumped_are_ends(served: Client, fault: str, compared: Compared) -> None:
    ends = {one["item"]["item"]: one["word"] for one in path(served, fault, "Functional.embedding.0.forward")["ends"]}
    assert ends == {
        "Functional.embedding.0.forward.input.0": "not_dumped", "Functional.embedding.0.forward.input.1": "weight",
    }  # fmt: skip
    weight = compared(served, "stat_fault_weight", "stat_golden")
    (end,) = path(served, weight, "Functional.linear.6.forward")["ends"]
    assert (end["word"], end["items"], end["item"]["verdict"]) == ("weight", 2, "no")
    assert end["item"]["item"] == "Functional.linear.6.forward.input.1"


def test_what_the_forward_call_saved_is_a_link_too(served: Client, fault: str) -> None:
    link = passages(path(served, fault, "Torch.matmul.3.forward"))["Torch.matmul.3.forward", "Torch.matmul.3.backward"]
    assert (link["word"], link["item"], link["error"]) == ("saved", None, None)


def test_what_another_rank_sent_is_an_end_with_its_call(make_settings: Make, tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "data" / "ranks.tar.xz") as tar:
        tar.extractall(tmp_path / "runs")
    with Client(create_app(make_settings(roots=[tmp_path / "runs"])), base_url=BASE) as client:
        comparison = compare(client, tmp_path / "runs" / "relu", tmp_path / "runs" / "golden")
        body = path(client, comparison, "Distributed.all_reduce.0.forward", "?rank=0")
    sent = [(one["rank"], one["node"]) for one in body["ends"] if one["word"] == "sent"]
    assert sent == [(1, "Distributed.all_reduce.0.forward")]


def test_the_search_finds_makers_and_readers(served: Client, fault: str) -> None:
    def found(query: str) -> list[str]:
        return [row["name"] for row in get(served, f"/api/comparisons/{fault}/nodes?q={query}")["items"]]

    assert found(f"feeds:{ORIGIN}") == ["Tensor.masked_fill.1.forward"]
    assert found(f"reads:{ORIGIN}") == ["Functional.dropout.1.forward", "Module.layers.1.attn.drop.Dropout.forward.0"]
    assert found("reads:Module.layers.1.attn.Attn.forward.0 kind:api") == ["Tensor.__add__.3.forward"]
    assert found("reads:nothing") == []
    both = found(f"feeds:{ORIGIN},Tensor.__add__.3.forward")
    assert both == ["Tensor.__add__.2.forward", "Tensor.masked_fill.1.forward", "Functional.linear.5.forward"]


def test_an_unknown_node_and_too_many_steps_are_refused(served: Client, fault: str) -> None:
    address = f"/api/comparisons/{fault}/nodes"
    assert served.get(f"{address}/none/path").status_code == 404
    assert served.get(f"{address}/{ORIGIN}/path?hops=4").status_code == 422
