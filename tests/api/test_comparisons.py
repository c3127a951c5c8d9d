"""From two paths to the answer, over HTTP, on real dumps with a known truth."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from ui.made import late

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api.app import create_app
from dumpscope.api.models import base, comparisons, pairs, trees

ORIGIN = "Functional.softmax.1.forward"


def get(client: Client, address: str) -> Any:
    """The JSON of an answer that is strict and small, as every answer must be."""
    reply = client.get(address)
    assert reply.status_code == 200, reply.text
    assert len(reply.content) <= 200_000

    def refuse(token: str) -> float:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(reply.content, parse_constant=refuse)


def fits(model: Any, body: Any) -> None:
    """The answer is what OpenAPI promises."""
    adapter(model).validate_python(body)


@cache
def adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def test_the_known_fault_is_named_as_the_origin(served: Client, fault: str) -> None:
    row = get(served, f"/api/comparisons/{fault}")
    fits(comparisons.Comparison, row)
    assert (row["status"], row["verdict"], row["mode"]) == ("done", "no", "tensor")
    assert row["origin"] == {"node": ORIGIN, "kind": "computation", "step": 0, "rank": 0}
    origins = get(served, f"/api/comparisons/{fault}/origins")
    fits(comparisons.Origins, origins)
    assert origins["items"][0]["node"] == ORIGIN
    assert origins["items"][0]["stack"]


def test_the_summary_is_the_document_of_the_command_line_and_more(served: Client, fault: str) -> None:
    summary = get(served, f"/api/comparisons/{fault}/summary")
    fits(comparisons.Summary, summary)
    exported = json.loads(served.get(f"/api/comparisons/{fault}/export.json").content)
    for key in ("schema", "mode", "policy", "target", "golden", "counts", "first_no"):
        assert summary[key] == exported[key]
    assert [(unit["step"], unit["rank"]) for unit in summary["units"]] == [(0, 0), (1, 0)]
    assert sum(summary["classes"].values()) == summary["counts"]["nodes"]
    assert summary["classes"]["origin"] >= 1


def test_pages_of_every_list_join_to_the_whole(served: Client, fault: str) -> None:
    for address, model in (
        (f"/api/comparisons/{fault}/nodes?step=1&limit=37", pairs.NodeRow),
        (f"/api/comparisons/{fault}/pairs?step=0&limit=101", pairs.Pair),
        (f"/api/comparisons/{fault}/pairs?verdict=no,warning&sort=-score&limit=40", pairs.Pair),
        (f"/api/comparisons/{fault}/tree?limit=5", trees.TreeRow),
    ):
        rows: list[Any] = []
        page = get(served, address)
        total = page["total"]
        while True:
            fits(base.Page[model], page)  # type: ignore[valid-type]
            rows += page["items"]
            if page["next"] is None:
                break
            page = get(served, f"{address}&cursor={page['next']}")
        assert len(rows) == total
        keys = [row.get("id", row.get("entry", row.get("pair"))) for row in rows]
        assert len(set(keys)) == total, "no row comes twice"


def test_a_node_shows_why_with_both_sides(served: Client, fault: str) -> None:
    node = get(served, f"/api/comparisons/{fault}/nodes/{ORIGIN}?step=0&rank=0")
    fits(pairs.NodeDetail, node)
    assert (node["verdict"], node["cls"]) == ("no", "origin")
    assert "elements differ" in node["reason"]
    assert node["rule"] == "T-2"
    assert node["target_stack"]
    assert node["golden_stack"]
    assert node["siblings"] == ["Functional.softmax.1.backward"]
    assert node["path"][-1].startswith("Module.layers.1.")
    masked = node["items"][0]["target_leaf"]
    assert masked["min"] == "-inf", "infinity is neither null nor a bare token"
    output = next(item for item in node["items"] if item["role"] == "output")
    assert output["metrics"]["unequal"] == 4


def test_the_worst_element_and_histograms_belong_to_a_pair(served: Client, fault: str) -> None:
    worst = get(served, f"/api/comparisons/{fault}/pairs?q={ORIGIN}&verdict=no&sort=-score")["items"][0]
    pair = get(served, f"/api/comparisons/{fault}/pairs/{worst['id']}")
    fits(pairs.PairWithDetail, pair)
    detail = pair["detail"]
    assert len(detail["worst_index"]) == len(pair["target_leaf"]["shape"])
    assert sum(detail["abs_histogram"]) == pair["metrics"]["elements"]
    assert len(detail["bins"]) == len(detail["abs_histogram"])


def test_the_list_can_be_centred_filtered_and_bounded(served: Client, fault: str) -> None:
    page = get(served, f"/api/comparisons/{fault}/nodes?around={ORIGIN}&limit=5")
    names = [row["name"] for row in page["items"]]
    assert ORIGIN in names
    before = get(served, f"/api/comparisons/{fault}/nodes?limit=5&cursor={page['prev']}")
    assert before["items"][-1]["order"] == page["items"][0]["order"] - 1
    origins = get(served, f"/api/comparisons/{fault}/nodes?class=origin&class=amplifier")
    assert ORIGIN in [row["name"] for row in origins["items"]]
    bounded = get(served, f"/api/comparisons/{fault}/nodes?from=10&to=12")
    assert [row["order"] for row in bounded["items"]] == [10, 11, 12]
    last = get(served, f"/api/comparisons/{fault}/nodes?end=true&limit=2")
    assert [row["order"] for row in last["items"]] == [last["total"] - 2, last["total"] - 1]
    assert last["next"] is None


def test_the_strip_points_at_the_origin(served: Client, fault: str) -> None:
    strip = get(served, f"/api/comparisons/{fault}/strip?buckets=20")
    fits(pairs.Strip, strip)
    assert sum(bucket["last"] - bucket["first"] + 1 for bucket in strip["buckets"]) == strip["total"]
    (marked,) = [bucket for bucket in strip["buckets"] if bucket["cls"] == "origin"]
    row = get(served, f"/api/comparisons/{fault}/nodes?from={marked['seq']}&limit=1")["items"][0]
    assert row["name"] == ORIGIN
    backward = get(served, f"/api/comparisons/{fault}/nodes?from={strip['backward']}&limit=1")["items"][0]
    assert backward["direction"] == "backward"


def test_the_tree_opens_along_the_way_to_a_node(served: Client, fault: str) -> None:
    way = get(served, f"/api/comparisons/{fault}/tree?reveal={ORIGIN}")["path"]
    parent = ""
    for entry in way:
        page = get(served, f"/api/comparisons/{fault}/tree?limit=500{parent}")
        row = next(row for row in page["items"] if row["entry"] == entry)
        assert row["counts"]["origin"] == 1
        parent = f"&parent={entry}"
    assert row["name"] == ORIGIN


def test_result_tables_hold_every_pair_of_every_unit(served: Client, fault: str) -> None:
    counts = get(served, f"/api/comparisons/{fault}/summary")["counts"]
    reply = served.get(f"/api/comparisons/{fault}/export.csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert len(rows) == counts["items"]
    assert {row["Step"] for row in rows} == {"0", "1"}
    assert sum(row["Accuracy Reached or Not"] == "No" for row in rows) == counts["no"]
    alone = served.get(f"/api/comparisons/{fault}/export.csv?step=1")
    assert {row["Step"] for row in csv.DictReader(io.StringIO(alone.text))} == {"1"}
    assert "attachment" in reply.headers["content-disposition"]
    pairs = json.loads(served.get(f"/api/comparisons/{fault}/export.json?pairs=true").content)["pairs"]
    assert len(pairs) == counts["items"]


def test_the_report_and_errors_can_be_shown_in_chinese(served: Client, fault: str) -> None:
    page = served.get(f"/api/comparisons/{fault}/export.html?lang=zh").text
    assert '<html lang="zh">' in page
    assert "异常源头" in page
    assert '<html lang="en">' in served.get(f"/api/comparisons/{fault}/export.html").text
    assert served.get(f"/api/comparisons/{fault}/export.html?lang=xx").status_code == 422
    error = served.get("/api/comparisons/0123abcd").json()
    assert error["detail"] == "no comparison '0123abcd'"
    assert error["said"] == [{"id": "index.no_comparison", "values": {"comparison_id": "'0123abcd'"}}]
    assert error["hint_said"] == [{"id": "index.get_api_comparisons_lists_them", "values": {}}]


def test_an_export_holds_what_the_list_shows_under_the_same_filter(served: Client, fault: str) -> None:
    query = "q=api%3Asoftmax+err%3E1e-6&verdict=no&step=0"
    listed = {row["name"] for row in get(served, f"/api/comparisons/{fault}/nodes?{query}")["items"]}
    assert ORIGIN in listed
    table = served.get(f"/api/comparisons/{fault}/export.csv?{query}").text
    assert {row["Node"] for row in csv.DictReader(io.StringIO(table))} == listed
    reply = served.get(f"/api/comparisons/{fault}/export.junit.xml?{query}")
    assert reply.headers["content-type"] == "application/xml"
    cases = ElementTree.fromstring(reply.content).findall("testsuite/testcase")
    assert {case.get("name") for case in cases} == listed
    assert all(case.find("failure") is not None for case in cases)
    for kind in ("csv", "json", "junit.xml", "xlsx"):
        refused = served.get(f"/api/comparisons/{fault}/export.{kind}?q=clas:origin")
        assert refused.status_code == 400
        assert "there is no clas:" in refused.json()["detail"]


def test_a_workbook_and_a_report_come_whole(served: Client, fault: str) -> None:
    with zipfile.ZipFile(io.BytesIO(served.get(f"/api/comparisons/{fault}/export.xlsx").content)) as book:
        assert len([name for name in book.namelist() if "worksheets/sheet" in name]) == 2
    report = served.get(f"/api/comparisons/{fault}/export.html")
    assert ORIGIN in report.text
    assert report.text.rstrip().endswith("</html>")


def test_another_policy_judges_again_without_reading_tensors(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "target_fault", dumps / "golden")
    before = get(client, f"/api/comparisons/{comparison}/summary")
    reply = client.patch(f"/api/comparisons/{comparison}", json={"policy": "ptdbg"})
    assert reply.json()["status"] == "running"
    row = settled(client, f"/api/comparisons/{comparison}")
    after = get(client, f"/api/comparisons/{comparison}/summary")
    assert (row["policy"], after["policy"]) == ("ptdbg", "ptdbg")
    assert after["counts"]["no"] < before["counts"]["no"]
    client.patch(f"/api/comparisons/{comparison}", json={"policy": "default"})
    settled(client, f"/api/comparisons/{comparison}")
    again = get(client, f"/api/comparisons/{comparison}/summary")
    assert again["counts"] == before["counts"]
    assert again["classes"] == before["classes"]
    assert [unit["no"] for unit in again["units"]] == [unit["no"] for unit in before["units"]]
    assert client.patch(f"/api/comparisons/{comparison}", json={"policy": "no such"}).status_code == 400


@pytest.mark.parametrize(
    ("target", "golden", "node", "kind", "rank"),
    [
        ("dist2_stat_fault", "dist2_stat_golden", "Tensor.__add__.0.forward", "structure", 1),
        ("md5_fault", "md5_golden", ORIGIN, "computation", 0),
        ("stat_nan", "stat_golden", "Functional.gelu.0.forward", "overflow", 0),
    ],
)
def test_ranks_hashes_and_overflows_reach_the_answer(
    client: Client, dumps: Path, target: str, golden: str, node: str, kind: str, rank: int
) -> None:
    comparison = compare(client, dumps / target, dumps / golden)
    origin = get(client, f"/api/comparisons/{comparison}/origins")["items"][0]
    assert (origin["node"], origin["kind"], origin["rank"]) == (node, kind, rank)
    summary = get(client, f"/api/comparisons/{comparison}/summary")
    for unit in summary["units"]:
        for call in ("nodes", "pairs", "tree", "strip"):
            get(client, f"/api/comparisons/{comparison}/{call}?step={unit['step']}&rank={unit['rank']}")
    place = f"step={origin['step']}&rank={origin['rank']}"
    way = get(client, f"/api/comparisons/{comparison}/tree?{place}&reveal={node}")["path"]
    for above, entry in zip([None, *way], way, strict=False):
        parent = "" if above is None else f"&parent={above}"
        rows = get(client, f"/api/comparisons/{comparison}/tree?{place}{parent}&limit=500")["items"]
        assert next(row for row in rows if row["entry"] == entry)["counts"]["origin"] > 0
    marked = next(unit for unit in summary["units"] if (unit["step"], unit["rank"]) == (origin["step"], rank))
    assert marked["origins"] > 0


def test_a_dump_against_itself_has_no_origin(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "golden", dumps / "golden")
    row = get(client, f"/api/comparisons/{comparison}")
    assert (row["verdict"], row["origin"]) == ("yes", None)
    assert get(client, f"/api/comparisons/{comparison}/origins") == {"items": []}


def test_numbers_keep_their_four_kinds_apart_on_the_way_to_the_browser(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "target_nan", dumps / "golden")
    seen: set[str] = set()
    page = get(client, f"/api/comparisons/{comparison}/pairs?limit=500")
    while True:
        for row in page["items"]:
            for side in ("target_leaf", "golden_leaf"):
                for name in ("max", "min", "mean", "norm"):
                    value = row[side] and row[side][name]
                    seen.add(value if isinstance(value, str) else type(value).__name__)
        if page["next"] is None:
            break
        page = get(client, f"/api/comparisons/{comparison}/pairs?limit=500&cursor={page['next']}")
    assert {"nan", "inf", "-inf", "NoneType"} <= seen
    assert seen & {"float", "int"}


def test_a_comparison_may_be_asked_for_while_its_dumps_are_read(client: Client, dumps: Path) -> None:
    ids = [register(client, dumps / name) for name in ("target_fault", "golden")]
    reply = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1], "options": {"steps": [1]}})
    row = settled(client, f"/api/comparisons/{reply.json()['id']}")
    assert row["status"] == "done"
    assert len(get(client, f"/api/comparisons/{row['id']}/summary")["units"]) == 1


def test_a_dump_in_use_stays_and_a_deleted_comparison_is_gone(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    target = get(client, f"/api/comparisons/{comparison}")["target"]
    refused = client.delete(f"/api/dumps/{target}")
    assert refused.status_code == 409
    assert "stat_fault against stat_golden" in refused.json()["detail"]
    assert client.delete(f"/api/comparisons/{comparison}").status_code == 204
    assert client.get(f"/api/comparisons/{comparison}").status_code == 404
    assert client.delete(f"/api/dumps/{target}").status_code == 204
    assert client.get(f"/api/dumps/{target}").status_code == 404


def test_impossible_comparisons_fail_with_a_reason(client: Client, dumps: Path) -> None:
    ids = [register(client, dumps / name) for name in ("target_fault", "golden")]
    reply = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1], "options": {"steps": [99]}})
    row = settled(client, f"/api/comparisons/{reply.json()['id']}")
    assert row["status"] == "failed"
    assert "99" in row["error"]["detail"]
    fits(base.Error, row["error"])
    nothing = client.get(f"/api/comparisons/{row['id']}/summary")
    assert nothing.status_code == 409
    for body in ({"target": "x", "golden": ids[1]}, {"target": ids[0], "golden": ids[1], "options": {"policy": "?"}}):
        assert client.post("/api/comparisons", json=body).status_code in (400, 404)
    unknown = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1], "options": {"odd": 1}})
    assert unknown.status_code == 422


def test_lists_of_comparisons_are_searched_and_paged(client: Client, dumps: Path) -> None:
    ids = [register(client, dumps / name) for name in ("stat_fault", "stat_golden")]
    for number in range(5):
        client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1], "name": f"Run {number}"})
    first = get(client, "/api/comparisons?limit=2")
    assert (first["total"], [row["name"] for row in first["items"]]) == (5, ["Run 4", "Run 3"])
    second = get(client, f"/api/comparisons?limit=2&cursor={first['next']}")
    assert [row["name"] for row in second["items"]] == ["Run 2", "Run 1"]
    assert [row["name"] for row in get(client, "/api/comparisons?q=run%203")["items"]] == ["Run 3"]
    for row in get(client, "/api/comparisons")["items"]:
        settled(client, f"/api/comparisons/{row['id']}")


def test_scores_are_never_nan_on_the_wire(served: Client, fault: str) -> None:
    for row in get(served, f"/api/comparisons/{fault}/nodes?limit=500")["items"]:
        for name in ("in_score", "out_score", "in_error", "out_error"):
            assert row[name] is None or isinstance(row[name], str) or math.isfinite(row[name])


def test_an_infinite_norm_of_both_sides_does_not_hide_how_far_off_a_masked_output_is(
    make_settings: Make, dumps: Path, tmp_path: Path
) -> None:
    target = late(dumps / "stat_golden", tmp_path / "late", "Functional.linear.4.forward")
    with TestClient(create_app(make_settings(roots=[tmp_path, dumps])), base_url=BASE) as client:
        made = compare(client, target, dumps / "stat_golden")
        (row,) = get(client, f"/api/comparisons/{made}/nodes?q=name:Tensor.masked_fill.1.forward")["items"]
    assert (row["verdict"], row["out_error"]) == ("no", pytest.approx(0.5))


def test_a_step_or_rank_that_a_side_lacks_is_refused_with_what_there_is(served: Client, dumps: Path) -> None:
    pair = [register(served, dumps / name) for name in ("golden", "stat_golden")]
    body = {"target": pair[0], "golden": pair[1], "options": {"steps": [1]}}
    early = served.post("/api/comparisons", json=body)
    if early.status_code == 202:  # asked while a dump was still read: then its job says so
        refusal = settled(served, f"/api/comparisons/{early.json()['id']}")["error"]
        assert "no step 1" in refusal["detail"]
    for dump_id in pair:
        settled(served, f"/api/dumps/{dump_id}")
    late = served.post("/api/comparisons", json=body)
    assert late.status_code == 400
    assert late.json()["error"] == "usage"
    assert late.json()["detail"] == "the golden has no step 1"
    assert late.json()["hint"] == "the target has steps 0, 1, the golden has steps 0"


def test_the_sample_is_compared_once_and_names_its_origin(client: Client) -> None:
    made = client.post("/api/sample").json()
    assert settled(client, f"/api/comparisons/{made['id']}")["origin"]["node"] == "Functional.softmax.1.forward"
    assert client.post("/api/sample").json()["id"] == made["id"]
    client.delete(f"/api/comparisons/{made['id']}")
    again = client.post("/api/sample").json()
    assert settled(client, f"/api/comparisons/{again['id']}")["status"] == "done"
    assert client.get("/api/dumps").json()["total"] == 2
