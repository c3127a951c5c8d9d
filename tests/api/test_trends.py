"""Calls over steps and ranks."""

from __future__ import annotations

from api.conftest import Client


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
