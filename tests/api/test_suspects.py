"""Suspects over HTTP: where to look, in order, and what inherits a call's difference."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Client, Compared, compare, settled
from api.test_comparisons import ORIGIN, fits, get
from dumpscope.api.models.suspects import Reach, Suspects

Ask = Callable[[str, str], str]


@pytest.fixture(scope="module")
def pair(served: Client, compared: Compared) -> Ask:
    """Address of the comparison of two dumps."""
    return lambda target, golden: f"/api/comparisons/{compared(served, target, golden)}"


def suspects(client: Client, address: str, **where: int) -> Any:
    body = get(client, f"{address}/suspects?" + "&".join(f"{name}={value}" for name, value in where.items()))
    fits(Suspects, body)
    return body


def rows(body: Any) -> list[tuple[int, str, str, float | None]]:
    return [(one["number"], one["kind"], one["node"], one["times"] and round(one["times"], 1)) for one in body["items"]]


def test_the_origin_comes_first_then_the_strongest_amplifier_then_steep_errors(served: Client, pair: Ask) -> None:
    body = suspects(served, pair("target_fault_bwd", "target_fault_weight"))
    assert rows(body) == [
        (1, "origin", "Functional.linear.6.forward", None),
        (2, "amplifier", "Functional.layer_norm.3.backward", 26.2),
        (3, "steep", "Functional.gelu.1.backward", 9.4),
    ]
    amplifier = body["items"][1]
    assert amplifier["times"] == pytest.approx(amplifier["out_error"] / amplifier["in_error"])
    assert (amplifier["module"], amplifier["cls"]) == ("layers.1.ln2.LayerNorm", "amplifier")
    assert "models.py:28 in forward: return x + s.mlp(s.ln2(x))" in amplifier["called_at"]
    assert [frame["line"] for frame in amplifier["frames"]] == [28]
    assert amplifier["why"] == "It made the error 26.2 times larger."
    assert body["blind"] is None


def test_in_a_later_step_the_same_fault_is_a_suspect_though_no_origin(served: Client, pair: Ask) -> None:
    body = suspects(served, pair("target_fault", "golden"), step=1)
    assert rows(body)[:2] == [(1, "origin", ORIGIN, None), (2, "steep", ORIGIN, 98.2)]
    assert [one["step"] for one in body["items"][:2]] == [0, 1]


def test_behind_a_nan_it_is_said_that_nothing_can_be_judged(served: Client, pair: Ask) -> None:
    body = suspects(served, pair("target_fault_bwd", "target_nan"))
    assert rows(body) == [(1, "origin", "Functional.gelu.0.forward", None)]
    blind = body["blind"]
    assert blind["node"] == "Functional.gelu.0.forward"
    assert f"{blind['count']} calls received NaN or infinity on one side only" in blind["why"]
    evidence = get(served, f"{pair('target_fault_bwd', 'target_nan')}/origins")["items"][0]["evidence"]
    assert f"would not be seen: {blind['count']}." in evidence
    listed = get(served, f"{pair('target_fault_bwd', 'target_nan')}/nodes?limit=500&from={blind['order'] + 1}")["items"]
    endless = [one["name"] for one in listed if "inf" in (one["in_score"], one["out_score"])]
    assert 0 < blind["count"] <= len(endless)


@pytest.mark.parametrize("sides", [("golden", "golden"), ("target_bf16", "golden"), ("target_renamed", "golden")])
def test_two_runs_that_agree_have_no_suspects(served: Client, pair: Ask, sides: tuple[str, str]) -> None:
    assert suspects(served, pair(*sides)) == {"items": [], "blind": None}


def test_extra_calls_are_one_suspect(served: Client, pair: Ask) -> None:
    (one,) = suspects(served, pair("target_extra_op", "golden"))["items"]
    assert (one["kind"], one["cls"], one["count"]) == ("origin", "origin", 4)
    assert one["why"].startswith("4 calls exist only in the target: Functional.linear.6.forward")


def test_an_origin_on_another_rank_is_listed_with_its_place(served: Client, pair: Ask) -> None:
    (one, *_) = suspects(served, pair("dist2_stat_fault", "dist2_stat_golden"), rank=0)["items"]
    assert (one["rank"], one["node"], one["kind"]) == (1, "Tensor.__add__.0.forward", "origin")


def reach(client: Client, address: str, node: str, query: str = "") -> Any:
    body = get(client, f"{address}/nodes/{node}/reach?{query}")
    fits(Reach, body)
    return body


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("target_fault", "golden"), ("stat_fault", "stat_golden"), ("target_fault_bwd", "target_fault_weight"),
        ("target_nan", "golden"), ("target_fault_gelu_arg", "golden"), ("target_extra_op", "golden"),
        ("dist2_stat_fault", "dist2_stat_golden"), ("md5_fault", "md5_golden"), ("target_nan_mask", "golden"),
    ],
)  # fmt: skip
def test_as_many_calls_inherit_an_origin_as_it_explains(served: Client, pair: Ask, target: str, golden: str) -> None:
    address = pair(target, golden)
    for origin in get(served, f"{address}/origins")["items"]:
        where = f"step={origin['step']}&rank={origin['rank']}"
        body = reach(served, address, origin["node"], where)
        assert body["count"] == origin["explains"]
        assert (body["first"] is None) == (origin["explains"] == 0)


def test_what_inherits_is_shown_in_strip_and_tree(served: Client, pair: Ask) -> None:
    address = pair("target_fault", "golden")
    top = get(served, f"{address}/tree")["items"]
    entries = ",".join(str(row["entry"]) for row in top)
    body = reach(served, address, ORIGIN, f"buckets=1500&entry={entries}")
    assert body["first"]["name"] == "Functional.dropout.1.forward"
    buckets = {bucket for first, last in body["runs"] for bucket in range(first, last + 1)}
    assert len(buckets) == body["count"]  # one bucket a call
    order = next(row for row in get(served, f"{address}/nodes?q={ORIGIN}")["items"] if row["name"] == ORIGIN)["order"]
    assert min(buckets) > order
    held = {row["name"] for row in top if row["entry"] in body["entries"]}
    assert any("layers" in name for name in held)
    assert not any("embed" in name.lower() and ".forward" in name for name in held)


def test_a_call_whose_difference_nobody_receives_has_no_reach(served: Client, pair: Ask) -> None:
    body = reach(served, pair("target_fault", "golden"), "Functional.linear.0.forward")
    assert (body["count"], body["first"], body["runs"], body["entries"]) == (0, None, [], [])


def test_rows_of_the_tree_are_asked_for_by_number(served: Client, pair: Ask) -> None:
    address = pair("target_fault", "golden")
    for entry in ("x", "-1", "1" * 13, ",".join(["1"] * 501)):
        assert served.get(f"{address}/nodes/{ORIGIN}/reach?entry={entry}").status_code == 400
    assert served.get(f"{address}/nodes/none/reach").status_code == 404


def test_a_result_of_an_older_version_lists_its_origins_and_gets_the_rest_when_it_is_judged_again(
    client: Client, dumps: Path, tmp_path: Path
) -> None:
    comparison = f"/api/comparisons/{compare(client, dumps / 'stat_fault', dumps / 'stat_golden')}"
    now = suspects(client, comparison)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "dumpscope.db")) as database, database:
        database.execute("UPDATE flow SET spread = NULL")
        database.execute("UPDATE comparison SET answer = json_remove(answer, '$.suspects', '$.origins[0].group')")
    assert reach(client, comparison, ORIGIN)["count"] is None
    assert [one["kind"] for one in suspects(client, comparison)["items"]] == ["origin"]
    client.patch(comparison, json={"policy": "default"})
    settled(client, comparison)
    assert suspects(client, comparison) == now
    assert reach(client, comparison, ORIGIN)["count"] == get(client, f"{comparison}/origins")["items"][0]["explains"]


def explanation(client: Client, address: str, node: str, query: str = "") -> Any:
    return get(client, f"{address}/nodes/{node}{query}")["explanation"]


def test_a_call_is_explained_by_what_it_reads_what_differs_who_inherits_it_and_what_is_the_same(
    served: Client, pair: Ask
) -> None:
    found = explanation(served, pair("target_fault", "golden"), ORIGIN)
    assert found["text"] == (
        "Both inputs are equal. output 0: 4 of 144 elements differ, relative L2 0.00321114, largest error 0.0071052, cosine"
        " 0.999995 (32.1 times the floor). Largest at [0, 0, 3, 1]: 0.362365 against 0.35526. 124 later calls inherit it,"
        " Functional.dropout.1.forward first. Ruled out, being the same: other arguments, dtypes and shapes."
    )
    assert found["facts"] == {
        "differs": True,
        "reads": {"compared": 2, "equal": 2, "apart": 0, "worst": None, "score": None},
        "largest": {"item": "output.0", "index": [0, 0, 3, 1], "target": "0.362365", "golden": "0.35526"},
        "inherits": {"count": 124, "first": "Functional.dropout.1.forward"},
        "same": ["arguments", "forms"],
        "left_out": {},
        "repeats": None,
    }


def test_the_same_fault_in_a_later_step_is_said_to_repeat(served: Client, pair: Ask) -> None:
    address = pair("target_fault", "golden")
    (origin,) = get(served, f"{address}/origins")["items"]
    assert (origin["step"], origin["steps"]) == (0, [1])
    assert origin["evidence"].endswith("The same is seen in step 1.")
    again = explanation(served, address, ORIGIN, "?step=1&rank=0")
    assert again["text"].startswith(
        "The same fault as in step 0, where it is seen first. 1 of 2 inputs differs, input.0, by 0.326"
    )
    assert again["facts"]["repeats"] == {"step": 0, "rank": 0, "node": ORIGIN}
    after = explanation(served, address, "Functional.dropout.1.forward", "?step=1&rank=0")
    assert after["facts"]["repeats"] is None


def test_of_a_call_with_wrong_inputs_the_explanation_tells_of_its_output(served: Client, pair: Ask) -> None:
    found = explanation(served, pair("target_fault_bwd", "target_fault_weight"), "Functional.layer_norm.3.backward")
    assert found["text"].startswith("Its input differs by 194 times the floor. output 0: 96 of 96 elements differ")
    weight = explanation(served, pair("target_fault_bwd", "target_fault_weight"), "Functional.linear.6.forward")
    assert weight["text"].startswith("1 of 3 inputs differs, input.1, by 209 times the floor. output 0: ")


def test_an_equal_call_inherits_nothing_and_a_call_without_partner_has_only_its_reason(
    served: Client, pair: Ask
) -> None:
    equal = explanation(served, pair("target_fault", "golden"), "Functional.linear.0.forward")
    assert (equal["facts"]["differs"], equal["facts"]["inherits"]) == (False, None)
    extra = get(served, f"{pair('target_extra_op', 'golden')}/nodes/Functional.linear.6.forward")
    assert extra["explanation"]["text"] == extra["reason"]


def test_behind_a_nan_inputs_are_beyond_every_tolerance(served: Client, pair: Ask) -> None:
    found = explanation(served, pair("target_nan", "golden"), "Functional.linear.3.forward")
    assert "1 of 3 inputs differs, input.0, by more than any tolerance." in found["text"]
    assert found["facts"]["reads"]["score"] == "inf"


def test_every_call_is_explained_as_it_is_listed(served: Client, pair: Ask) -> None:
    address = pair("target_fault", "golden")
    for row in get(served, f"{address}/nodes?limit=500")["items"]:
        facts = explanation(served, address, row["address"])["facts"]
        reads = facts["reads"]
        assert reads["compared"] == reads["equal"] + reads["apart"]
        if facts["inherits"] is not None:
            assert facts["inherits"]["count"] == reach(served, address, row["address"])["count"]
