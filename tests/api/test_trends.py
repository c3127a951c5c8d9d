"""Calls over steps and ranks."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Client, Compared, register, settled


@pytest.fixture(scope="module")
def ranks(served: Client, compared: Compared) -> str:
    """Id of a comparison of two ranks."""
    return compared(served, "dist2_stat_fault", "dist2_stat_golden")


@pytest.fixture(scope="module")
def told(served: Client, dumps: Path) -> str:
    """Id of an uploaded dump that holds a run.json."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((dumps / "stat_golden").rglob("*.json")):
            archive.write(path, path.relative_to(dumps / "stat_golden"))
        run = {"versions": {"torch": "2.5.1"}, "settings": {"risk_level": "ALL"}}
        archive.writestr(str(path.parent.relative_to(dumps / "stat_golden") / "run.json"), json.dumps(run))
    reply = served.post("/api/uploads", files={"files": ("told.zip", packed.getvalue())})
    assert reply.status_code == 202, reply.text
    dump = str(reply.json()["id"])
    settled(served, f"/api/dumps/{dump}")
    return dump


def test_a_cell_names_the_place_of_its_worst_verdict(served: Client, fault: str) -> None:
    body = served.get(f"/api/comparisons/{fault}/trends?kind=all&limit=25").json()
    steps = [unit["step"] for unit in served.get(f"/api/comparisons/{fault}/summary").json()["units"]]
    assert [edge["first"] for edge in body["steps"]] == sorted(set(steps))
    assert body["total"] >= len(body["items"]) > 0
    for row in body["items"]:
        for cell in row["cells"]:
            node = served.get(
                f"/api/comparisons/{fault}/nodes/{row['name']}", params={"step": cell["step"], "rank": cell["rank"]}
            ).json()
            assert node["verdict"] == cell["verdict"]
            assert node["out_score"] == cell["score"]


def test_the_first_bad_step_is_the_first_no(served: Client, fault: str) -> None:
    origin = served.get(f"/api/comparisons/{fault}/origins").json()["items"][0]
    row = served.get(f"/api/comparisons/{fault}/trends", params={"kind": "all", "name": origin["node"]}).json()["items"]
    assert [one["name"] for one in row] == [origin["node"]]
    assert row[0]["first_bad"] == {"step": origin["step"], "rank": origin["rank"]}


def test_pages_follow_each_other_and_fewer_buckets_fold_steps(served: Client, fault: str) -> None:
    names: list[str] = []
    cursor = ""
    while True:
        body = served.get(f"/api/comparisons/{fault}/trends?limit=2&buckets=1{cursor}").json()
        assert len(body["steps"]) == 1
        names += [row["name"] for row in body["items"]]
        if body["next"] is None:
            break
        cursor = f"&cursor={body['next']}"
    assert len(names) == len(set(names)) == body["total"]
    assert all(name.startswith("Module.") for name in names)


def test_a_part_of_a_name_and_a_rank_that_is_not_there_narrow_the_rows(served: Client, fault: str) -> None:
    rows = served.get(f"/api/comparisons/{fault}/trends?kind=api&q=SOFTMAX").json()["items"]
    assert rows
    assert all("softmax" in row["name"] for row in rows)
    assert served.get(f"/api/comparisons/{fault}/trends?rank=77").json()["items"] == []


def test_a_row_per_rank_is_that_ranks_own_and_the_shared_row_is_the_worst(served: Client, ranks: str) -> None:
    shared = {row["name"]: row for row in every(served, f"/api/comparisons/{ranks}/trends?kind=all")}
    own = every(served, f"/api/comparisons/{ranks}/trends?kind=all&by_rank=true")
    order = ["yes", "n/a", "warning", "no"]
    assert len({(row["name"], row["rank"]) for row in own}) == len(own) > len(shared)
    for name, row in shared.items():
        assert row["rank"] is None
        cells = [cell for one in own if one["name"] == name for cell in one["cells"]]
        assert {cell["rank"] for cell in cells} == {one["rank"] for one in own if one["name"] == name}
        assert max(cells, key=lambda cell: order.index(cell["verdict"]))["verdict"] == row["cells"][0]["verdict"]
    for row in own:
        for cell in row["cells"]:
            address = f"/api/comparisons/{ranks}/nodes/{row['name']}"
            node = served.get(address, params={"step": cell["step"], "rank": row["rank"]}).json()
            assert node["verdict"] == cell["verdict"]


def test_values_of_both_sides_are_those_of_the_nodes_records(served: Client, fault: str) -> None:
    address = f"/api/comparisons/{fault}/trends?kind=api&q=softmax&statistic=norm"
    rows = served.get(address).json()["items"]
    assert rows
    for row in rows:
        for cell in row["cells"]:
            where = {"step": cell["step"], "rank": cell["rank"]}
            node = served.get(f"/api/comparisons/{fault}/nodes/{row['name']}", params=where).json()
            for side in ("target", "golden"):
                leaves = [pair[f"{side}_leaf"] for pair in node["items"] if pair["role"] == "output"]
                assert cell[side] == max(leaf["norm"] for leaf in leaves if leaf)
    plain = served.get(address.replace("&statistic=norm", "")).json()["items"]
    assert {cell["target"] for row in plain for cell in row["cells"]} == {None}


def test_a_dump_tells_one_statistic_of_its_calls(served: Client, fault: str) -> None:
    dump = served.get(f"/api/comparisons/{fault}").json()["target"]
    page = served.get(f"/api/dumps/{dump}/trends?kind=api&q=softmax&statistic=max").json()
    assert page["total"] == len(page["items"]) > 0
    for row in page["items"]:
        assert row["first_bad"] is None
        for cell in row["cells"]:
            node = served.get(f"/api/dumps/{dump}/nodes/{row['name']}", params={"step": cell["step"]}).json()
            assert cell["value"] == max(leaf["max"] for leaf in node["items"] if leaf["role"] == "output")


def test_a_dump_names_the_step_in_which_a_number_was_first_not_finite(served: Client, dumps: Path) -> None:
    dump = register(served, dumps / "target_nan")
    settled(served, f"/api/dumps/{dump}")
    rows = every(served, f"/api/dumps/{dump}/trends?kind=all")
    bad = {row["name"]: row["first_bad"] for row in rows if row["first_bad"]}
    assert bad
    name, place = next(iter(bad.items()))
    leaves = served.get(f"/api/dumps/{dump}/nodes/{name}", params=place).json()["items"]
    assert any(leaf[word] in ("nan", "inf", "-inf") for leaf in leaves for word in ("max", "min", "mean", "norm"))


def test_a_rank_tells_how_it_was_run_or_that_it_does_not(served: Client, fault: str, told: str) -> None:
    silent = served.get(f"/api/comparisons/{fault}").json()["golden"]
    assert served.get(f"/api/dumps/{silent}/run").json() == {"step": 0, "rank": 0, "run": None}
    run = served.get(f"/api/dumps/{told}/run?step=0&rank=0").json()["run"]
    assert run["versions"] == {"torch": "2.5.1"}
    assert run["settings"]["risk_level"] == "ALL"
    assert served.get(f"/api/dumps/{told}/run?step=77").status_code == 404


def every(served: Client, address: str) -> list[Any]:
    """Rows of all pages."""
    rows: list[Any] = []
    cursor = ""
    while True:
        body = served.get(f"{address}&limit=25{cursor}").json()
        rows += body["items"]
        if body["next"] is None:
            assert len(rows) == body["total"]
            return rows
        cursor = f"&cursor={body['next']}"
