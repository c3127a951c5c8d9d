"""How calls were matched reaches every caller, and other rules can be tried before anything is compared again."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from match.renamed import ported
from match.small import Step, flow, step

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api.app import create_app

RENAMED = r"layers\.(\d+)\.ffn=layers.\1.mlp"
FUSED = [step("Functional.linear", "x w", "h"), step("NPU.npu_swiglu", "h", "y"), step("Torch.exp", "y", "z")]
RUN = [
    step("Functional.linear", "x w", "h"),
    step("Functional.silu", "h", "s"),
    step("Tensor.__mul__", "s u", "y"),
    step("Torch.exp", "y", "z"),
]


def pair_of(client: Client, folder: Path, one: list[Step], other: list[Step]) -> str:
    flow(folder / "t", one)
    flow(folder / "g", other)
    return compare(client, folder / "t", folder / "g")


def test_a_fused_call_and_what_lies_inside_are_told_in_lists_and_details(make_settings: Make, tmp_path: Path) -> None:
    with TestClient(create_app(make_settings(roots=[tmp_path])), base_url=BASE) as client:
        found = pair_of(client, tmp_path, FUSED, RUN)
        rows = {row["name"]: row for row in client.get(f"/api/comparisons/{found}/nodes").json()["items"]}
        fused, inner = rows["NPU.npu_swiglu.0.forward"], rows["Functional.silu.0.forward"]
        assert (fused["match"], fused["golden_name"], fused["confidence"]) == ("fused", "Tensor.__mul__.0.forward", 0.8)
        assert (inner["match"], inner["leftover"], inner["beside"]) == ("fused", "inside", "NPU.npu_swiglu.0.forward")
        assert inner["verdict"] == "n/a"
        detail = client.get(f"/api/comparisons/{found}/nodes/Functional.silu.0.forward").json()
        assert "NPU.npu_swiglu.0.forward" in detail["reason"]
        assert client.get(f"/api/comparisons/{found}/summary").json()["counts"]["unmatched_golden"] == 0
        client.patch(f"/api/comparisons/{found}", json={"policy": "ptdbg"})
        settled(client, f"/api/comparisons/{found}")
        again = client.get(f"/api/comparisons/{found}/nodes/Functional.silu.0.forward").json()
        assert (again["leftover"], again["verdict"]) == ("inside", "n/a"), "judging again keeps it"


def test_an_inserted_call_is_told_with_its_neighbour(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_extra_op", dumps / "golden")
    rows = client.get(f"/api/comparisons/{found}/nodes?class=structural").json()["items"]
    assert rows
    assert {row["leftover"] for row in rows} == {"inserted"}
    assert all(row["beside"] for row in rows)


def test_rules_can_be_tried_on_a_comparison_before_it_is_made_again(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_renamed", dumps / "golden")
    url = f"/api/comparisons/{found}/matching/preview"
    plain = client.post(url, json={}).json()
    tried = client.post(url, json={"rename": [RENAMED]}).json()
    assert plain["rules"] == []
    assert tried["rules"][0]["pairs"] == tried["methods"]["mapped"]
    assert tried["left_count"] == len(tried["left"]) == 0
    assert client.get(f"/api/comparisons/{found}").json()["options"]["rename"] == []


def test_a_comparison_with_rules_remembers_them(client: Client, dumps: Path) -> None:
    body = {
        "target": register(client, dumps / "target_renamed"),
        "golden": register(client, dumps / "golden"),
        "options": {"rename": [RENAMED], "fusion": "a: {fused: [x], runs: [[y]]}"},
    }
    found = client.post("/api/comparisons", json=body).json()["id"]
    options = client.get(f"/api/comparisons/{found}").json()["options"]
    assert options["rename"] == [RENAMED]
    assert options["fusion"].startswith("a:")


@pytest.mark.parametrize(
    "options", [{"rename": ["("]}, {"rename": ["(=x"]}, {"fusion": "- a"}, {"cell_mapping": "a: ["}]
)
def test_a_rule_that_cannot_be_used_is_refused_at_once(client: Client, dumps: Path, options: dict[str, object]) -> None:
    sides = {side: register(client, dumps / "golden") for side in ("target", "golden")}
    refused = client.post("/api/comparisons", json={**sides, "options": options})
    assert refused.status_code == 400, refused.text
    assert next(iter(options)) in refused.json()["detail"]


def test_matches_made_by_hand_are_kept_exported_undone_and_applied(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_fault", dumps / "golden")
    url = f"/api/comparisons/{found}/matching"
    node = "Functional.softmax.1.forward"
    assert client.get(url).json() == {"edits": [], "count": 0, "waiting": 0}
    client.post(f"{url}/unmatch", json={"side": "target", "node": node})
    crossed = {"target": node, "golden": "Functional.softmax.0.forward"}
    edits = client.post(f"{url}/match", json=crossed).json()["edits"]
    assert [edit["kind"] for edit in edits] == ["unmatch", "match"]
    assert len(client.post(f"{url}/undo").json()["edits"]) == 1
    text = client.get(f"{url}/matches.yaml").text
    assert client.get(f"/api/comparisons/{found}").json()["options"]["matches"] == text
    again = client.post(f"{url}/apply")
    assert again.status_code == 202, again.text
    assert settled(client, f"/api/comparisons/{found}")["status"] == "done"
    assert client.get(f"/api/comparisons/{found}/nodes/{node}").json()["match"] == "none"
    other = compare(client, dumps / "target_fault", dumps / "golden", matches=text)
    assert client.get(f"/api/comparisons/{other}/nodes/{node}").json()["match"] == "none"
    client.post(f"{url}/undo")
    assert client.post(f"{url}/undo").status_code == 409


def test_a_match_by_hand_needs_nodes_that_are_there(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_extra_op", dumps / "golden")
    extra = client.get(f"/api/comparisons/{found}/nodes?class=structural").json()["items"][0]["name"]
    url = f"/api/comparisons/{found}/matching"
    assert client.post(f"{url}/unmatch", json={"side": "target", "node": extra}).status_code == 200
    assert client.post(f"{url}/unmatch", json={"side": "golden", "node": "nowhere"}).status_code == 404
    assert client.post(f"{url}/match", json={"target": "nowhere", "golden": extra}).status_code == 404
    assert len(client.get(url).json()["edits"]) == 1


def states(reply: dict[str, object]) -> list[str]:
    return [edit["state"] for edit in reply["edits"]]  # type: ignore[attr-defined]


def test_a_match_by_hand_waits_until_it_is_applied_or_overruled(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_extra_op", dumps / "golden")
    url = f"/api/comparisons/{found}/matching"
    extra = client.get(f"/api/comparisons/{found}/nodes?class=structural").json()["items"][0]["name"]
    node = "Functional.softmax.1.forward"
    client.post(f"{url}/match", json={"target": extra, "golden": node})
    both = client.post(f"{url}/unmatch", json={"side": "target", "node": "Functional.softmax.0.forward"}).json()
    assert states(both) == ["waiting", "waiting"]
    client.post(f"{url}/apply")
    settled(client, f"/api/comparisons/{found}")
    applied = client.get(url).json()
    assert states(applied) == ["applied", "applied"]
    assert applied["waiting"] == 0
    assert client.get(f"/api/comparisons/{found}/nodes/{extra}").json()["golden_name"] == node
    last = client.post(f"{url}/unmatch", json={"side": "golden", "node": node}).json()
    assert states(last) == ["overruled", "applied", "waiting"]


def test_matches_of_a_file_are_added_behind_those_that_are_there(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_fault", dumps / "golden")
    url = f"/api/comparisons/{found}/matching"
    client.post(f"{url}/unmatch", json={"side": "target", "node": "Functional.gelu.0.forward"})
    joined = "{target: Functional.gelu.0.forward, golden: Functional.gelu.1.forward}"
    text = f"matches:\n- match: {joined}\n- unmatch: {{golden: nowhere}}\n"
    added = client.post(f"{url}/import", json={"matches": text}).json()
    assert states(added) == ["overruled", "waiting", "absent"]
    assert (added["count"], added["waiting"]) == (3, 1)
    refused = client.post(f"{url}/import", json={"matches": "matches: [1]"})
    assert refused.status_code == 400
    assert "edit 1" in refused.json()["detail"]
    assert client.get(url).json() == added


def test_the_list_of_matches_stays_below_the_size_of_a_reply(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    url = f"/api/comparisons/{found}/matching"
    text = "matches:\n" + "".join(f"- unmatch: {{golden: {'x' * 100}.{number}}}\n" for number in range(3000))
    reply = client.post(f"{url}/import", json={"matches": text})
    assert len(reply.content) <= 200_000
    assert reply.json()["count"] == 3000
    assert reply.json()["edits"][-1]["golden"].endswith(".2999")


def test_a_comparison_can_be_tried_before_it_is_made(client: Client, dumps: Path) -> None:
    sides = {
        side: register(client, dumps / name) for side, name in (("target", "target_renamed"), ("golden", "golden"))
    }
    for dump in sides.values():
        settled(client, f"/api/dumps/{dump}")
    url = "/api/comparisons/preview"
    tried = client.post(url, json={**sides, "options": {"rename": [RENAMED, "nothing=else"]}}).json()
    assert [rule["pairs"] > 0 for rule in tried["rules"]] == [True, False]
    assert tried["left_count"] == 0
    assert client.get("/api/comparisons").json()["total"] == 0
    wrong = client.post(url, json={**sides, "options": {"rename": ["(=x"]}})
    assert wrong.status_code == 400
    assert client.post(url, json={**sides, "options": {"steps": [7]}}).status_code == 400


def test_calls_without_a_partner_are_listed_by_their_cause_and_told_in_the_tree(
    make_settings: Make, tmp_path: Path
) -> None:
    with TestClient(create_app(make_settings(roots=[tmp_path])), base_url=BASE) as client:
        found = pair_of(client, tmp_path, FUSED, RUN)
        nodes = f"/api/comparisons/{found}/nodes?leftover="
        assert [row["name"] for row in client.get(f"{nodes}inside").json()["items"]] == ["Functional.silu.0.forward"]
        assert client.get(f"{nodes}inserted,fused").json()["total"] == 0
        assert client.get(f"{nodes}gone").status_code == 400
        tree = {row["name"]: row for row in client.get(f"/api/comparisons/{found}/tree").json()["items"]}
        fused, inner = tree["NPU.npu_swiglu.0.forward"], tree["Functional.silu.0.forward"]
        assert (fused["match"], fused["confidence"], fused["leftover"]) == ("fused", 0.8, None)
        assert inner["leftover"] == "inside"


def test_both_halves_of_a_parted_pair_of_one_name_can_be_addressed(client: Client, dumps: Path) -> None:
    found = compare(client, dumps / "target_extra_op", dumps / "golden")
    base, name = f"/api/comparisons/{found}", "Functional.gelu.0.forward"
    assert client.get(f"{base}/nodes/{name}").json()["address"] == name
    client.post(f"{base}/matching/unmatch", json={"side": "target", "node": name})
    client.post(f"{base}/matching/apply")
    settled(client, base)
    halves = [row for row in client.get(f"{base}/nodes", params={"q": name}).json()["items"] if row["name"] == name]
    assert sorted((row["address"], row["golden_name"] is None) for row in halves) == [
        (name, True), (f"golden:{name}", False),
    ]  # fmt: skip
    for row in halves:
        detail = client.get(f"{base}/nodes/{row['address']}").json()
        assert (detail["pair"], detail["address"]) == (row["pair"], row["address"])
        around = client.get(f"{base}/nodes", params={"around": row["address"], "limit": 3}).json()["items"]
        assert row["pair"] in {one["pair"] for one in around}
        way = client.get(f"{base}/tree", params={"reveal": row["address"]}).json()["path"]
        assert way[-1] == row["entry"]
        parent = {"parent": way[-2]} if len(way) > 1 else {}
        entries = client.get(f"{base}/tree", params={**parent, "limit": 500}).json()["items"]
        assert row["address"] in [one["address"] for one in entries if one["entry"] == row["entry"]]
    assert client.get(f"{base}/nodes/golden:nowhere").status_code == 404
    paired = client.get(f"{base}/nodes/golden:Functional.softmax.0.forward").json()
    assert paired["address"] == "Functional.softmax.0.forward", "the prefix may be given for any node of the golden"


def test_rules_are_proposed_that_pair_what_a_port_renamed(make_settings: Make, dumps: Path, tmp_path: Path) -> None:
    target = ported(dumps / "cfg_L0_stat", tmp_path / "ported")
    with TestClient(create_app(make_settings(roots=[tmp_path, dumps])), base_url=BASE) as client:
        found = compare(client, target, dumps / "cfg_L0_stat")
        url = f"/api/comparisons/{found}/matching"
        told = client.get(f"{url}/proposals").json()
        assert (told["now"]["left_count"], told["after"]["left_count"]) == (114, 0)
        assert told["rules"][0]["examples"][0]["label"] != told["rules"][0]["examples"][0]["renamed"]
        rules = [rule["rule"] for rule in told["rules"]]
        again = client.post(f"{url}/preview", json={"rename": rules}).json()
        assert again == told["after"]
        assert [rule["pairs"] for rule in again["rules"]] == [rule["pairs"] for rule in told["rules"]]
        assert client.get(f"{url}/proposals?step=7").status_code == 404
