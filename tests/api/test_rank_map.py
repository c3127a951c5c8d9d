"""One rank of eight went wrong: it is named, and its column of the map is the only one that differs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from api.conftest import Client, Compared, settled

ODD = 5
CAUSE = "Functional.softmax.1.forward"


def upload(client: Client, folder: Path, usual: Path, odd: Path | None = None) -> str:
    """Id of a dump of eight ranks that are all the same, but for one."""
    for rank in range(8):
        (one,) = ((odd if odd and rank == ODD else usual) / "step0").iterdir()
        shutil.copytree(one, folder / "step0" / f"rank{rank}")
    packed = Path(shutil.make_archive(str(folder), "zip", folder))
    reply = client.post("/api/uploads", files={"files": (packed.name, packed.read_bytes())})
    assert reply.status_code == 202, reply.text
    dump = str(reply.json()["id"])
    settled(client, f"/api/dumps/{dump}")
    return dump


@pytest.fixture(scope="module")
def eight(served: Client, dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("eight")
    usual = dumps / "stat_golden"
    target, golden = (
        upload(served, folder / "target", usual, dumps / "stat_fault"),
        upload(served, folder / "golden", usual),
    )
    made = str(served.post("/api/comparisons", json={"target": target, "golden": golden}).json()["id"])
    settled(served, f"/api/comparisons/{made}")
    return made


def test_the_summary_names_the_odd_rank_and_where_it_begins(served: Client, eight: str) -> None:
    summary = served.get(f"/api/comparisons/{eight}/summary").json()
    (stray,) = summary["strays"]
    no = {unit["rank"]: unit["no"] for unit in summary["units"]}
    assert stray == {"step": 0, "rank": ODD, "no": no[ODD], "usual": 0, "others": 7, "node": CAUSE}
    assert {rank for rank, count in no.items() if count} == {ODD}


def test_its_column_alone_is_no(served: Client, eight: str) -> None:
    body = served.get(f"/api/comparisons/{eight}/rank-map", params={"kind": "api", "limit": 25}).json()
    assert (body["step"], body["ranks"]) == (0, list(range(8)))
    rows = list(body["items"])
    while body["next"]:
        body = served.get(
            f"/api/comparisons/{eight}/rank-map", params={"kind": "api", "limit": 25, "cursor": body["next"]}
        ).json()
        rows += body["items"]
    assert len(rows) == body["total"] == len({row["name"] for row in rows})
    for row in rows:
        assert set(row["verdicts"].replace("n", "")) <= set("yw?-")
        assert [place for place, mark in enumerate(row["verdicts"]) if mark == "n"] in ([], [ODD])
        assert row["no"] == row["verdicts"].count("n")
    first = next(row for row in rows if row["no"])
    assert first["name"] == CAUSE
    node = served.get(f"/api/comparisons/{eight}/nodes/{CAUSE}", params={"step": 0, "rank": ODD}).json()
    assert first["scores"][ODD] == pytest.approx(node["out_score"], rel=5e-3)
    assert all(score is not None and score < 1 for place, score in enumerate(first["scores"]) if place != ODD)


def test_modules_are_its_rows_unless_others_are_asked_for(served: Client, eight: str) -> None:
    body = served.get(f"/api/comparisons/{eight}/rank-map", params={"q": "layers.1"}).json()
    assert {row["kind"] for row in body["items"]} == {"module"}
    assert all("layers.1" in row["name"] for row in body["items"])


def test_two_ranks_have_no_odd_one(served: Client, compared: Compared) -> None:
    both = compared(served, "dist2_stat_fault", "dist2_stat_golden")
    assert served.get(f"/api/comparisons/{both}/summary").json()["strays"] == []


def test_a_step_that_is_not_there_is_told_with_those_that_are(served: Client, eight: str) -> None:
    reply = served.get(f"/api/comparisons/{eight}/rank-map", params={"step": 9})
    assert reply.status_code == 404
    assert "step 0" in reply.json()["hint"]
