"""Where NaN and infinities of one dump began, over REST."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient
from pipeline.test_right_ranks import sent

from api.conftest import BASE, Client, Make, register, settled
from dumpscope.api.app import create_app

CAUSE = "Functional.gelu.0.forward"


def ready(client: Client, folder: Path) -> str:
    dump = register(client, folder)
    assert settled(client, f"/api/dumps/{dump}")["status"] == "ready"
    return dump


def test_the_first_number_that_is_not_finite_is_named_with_its_reason(served: Client, dumps: Path) -> None:
    dump = ready(served, dumps / "target_nan")
    found = served.get(f"/api/dumps/{dump}/overflow").json()
    assert found["first"]["node"] == CAUSE
    assert (found["first"]["part"], found["first"]["level"]) == ("origin", "critical")
    assert found["first"]["evidence_said"][0]["id"] == "overflow.born"
    assert found["counts"]["origin"] == 1
    assert found["counts"]["propagated"] > 10
    assert found["checked"] > found["counts"]["propagated"]


def test_every_call_it_reached_is_listed_page_by_page(served: Client, dumps: Path) -> None:
    dump = ready(served, dumps / "target_nan")
    counts = served.get(f"/api/dumps/{dump}/overflow").json()["counts"]
    names: list[str] = []
    cursor = ""
    while True:
        page = served.get(f"/api/dumps/{dump}/findings?limit=7{cursor}").json()
        names += [row["node"] for row in page["items"]]
        assert page["total"] == sum(counts.values())
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert len(names) == len(set(names)) == sum(counts.values())
    born = served.get(f"/api/dumps/{dump}/findings?part=origin").json()
    assert [row["node"] for row in born["items"]] == [CAUSE]
    reached = served.get(f"/api/dumps/{dump}/findings?part=propagated").json()
    assert reached["total"] == counts["propagated"]
    assert all(CAUSE in row["evidence"] for row in reached["items"])
    one = served.get(f"/api/dumps/{dump}/findings", params={"node": CAUSE}).json()
    assert [row["node"] for row in one["items"]] == [CAUSE]


def test_a_dump_of_finite_numbers_says_so(served: Client, dumps: Path) -> None:
    dump = ready(served, dumps / "stat_golden")
    found = served.get(f"/api/dumps/{dump}/overflow").json()
    assert found["first"] is None
    assert found["checked"] > 0


def test_an_unknown_part_is_refused_with_those_there_are(served: Client, dumps: Path) -> None:
    dump = ready(served, dumps / "golden")
    answer = served.get(f"/api/dumps/{dump}/findings?part=wrong")
    assert answer.status_code == 400
    assert "origin" in answer.json()["hint"]
    assert served.get("/api/dumps/none/overflow").status_code == 404
    assert served.get(f"/api/dumps/{dump}/overflow?rank=9").status_code == 404


def test_the_rows_of_the_tree_tell_what_they_and_those_below_them_saw(served: Client, dumps: Path) -> None:
    dump = ready(served, dumps / "target_nan")
    path = f"/api/dumps/{dump}"
    counts = served.get(f"{path}/overflow").json()["counts"]
    way = served.get(f"{path}/tree", params={"reveal": CAUSE}).json()["path"]
    top = served.get(f"{path}/tree").json()["items"]
    marks = {
        row["entry"]: row
        for row in served.get(
            f"{path}/overflow/tree",
            params={"entries": ",".join(str(one) for one in [*way, *(r["entry"] for r in top)])},
        ).json()["items"]
    }
    assert [marks[entry]["part"] for entry in way] == ["origin"] * len(way)
    assert marks[way[-1]]["calls"] == 1
    assert sum(marks[row["entry"]]["calls"] for row in top if row["entry"] in marks) == sum(counts.values())
    clean = next(row for row in top if row["name"].startswith("Module.tok") and row["direction"] == "forward")
    assert clean["entry"] not in marks


def test_entries_that_are_no_numbers_are_refused(served: Client, dumps: Path) -> None:
    dump = ready(served, dumps / "target_nan")
    for wrong in ("x", "1,-2", ",".join(["1"] * 501)):
        reply = served.get(f"/api/dumps/{dump}/overflow/tree", params={"entries": wrong})
        assert reply.status_code == 400, wrong
        assert reply.json()["error"] == "usage"


def test_what_another_rank_sent_is_not_born_here(make_settings: Make, tmp_path: Path) -> None:
    with TestClient(create_app(make_settings(roots=[tmp_path])), base_url=BASE) as client:
        path = f"/api/dumps/{ready(client, sent(tmp_path / 'ranks'))}"
        alone = client.get(f"{path}/overflow?rank=0").json()
        assert (alone["first"], alone["counts"].get("origin", 0)) == (None, 0)
        received = client.get(f"{path}/findings?rank=0").json()["items"][0]
        assert received["node"] == "Distributed.all_reduce.0.forward"
        assert received["evidence_said"][0]["id"] == "overflow.received"
        assert "rank 1" in received["evidence"]
        assert client.get(f"{path}/overflow?rank=1").json()["first"]["node"] == "Functional.relu.5.forward"
