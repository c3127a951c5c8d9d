"""Monitored runs over REST: what the command finds, and the numbers as a map and as curves, also while a run grows."""

from __future__ import annotations

import math
import os
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, register
from dumpscope.api.app import create_app
from dumpscope.api.replies import encode_cursor
from dumpscope.index.monitors.catalogue import change_monitor, delete_monitor
from dumpscope.pipeline.monitor import open_runs
from dumpscope.settings import Settings
from dumpscope_format.monitor import FIRST_LINE, Group, Layout, header_frame, layout_frame, values_frame

pytest.importorskip("torch")

from monitored_training import FAULT, train

PATH = "/api/monitors"
SERIES = "2.0.weight"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden run, and one with a gradient that is 5 % too large from step FAULT on."""
    folder = tmp_path_factory.mktemp("root")
    train(folder / "golden")
    train(folder / "faulty", factor=1.05)
    return folder


@pytest.fixture(scope="module")
def client(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), roots=[root], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


def ended(client: Client, place: str) -> dict[str, Any]:
    for _ in range(600):
        row: dict[str, Any] = client.get(place).json()
        if row["status"] != "pending":
            return row
        time.sleep(0.02)
    raise AssertionError("the job does not end")


def examine(client: Client, path: Path, other: Path | None = None) -> dict[str, Any]:
    """A run whose examination has ended."""
    reply = client.post(PATH, json={"path": str(path), "other": None if other is None else str(other)})
    assert reply.status_code == 202, reply.text
    return ended(client, reply.headers["Location"])


@pytest.fixture(scope="module")
def pair(client: Client, root: Path) -> str:
    row = examine(client, root / "faulty", root / "golden")
    assert (row["status"], row["error"], row["step"], row["name"]) == ("done", None, FAULT, "faulty / golden")
    return f"{PATH}/{row['id']}"


def test_the_findings_name_step_and_series_of_the_planted_fault(client: Client, pair: str) -> None:
    found = client.get(f"{pair}/findings").json()
    assert found["summary"].startswith(
        f"faulty leaves golden at step {FAULT}: the gradient that the optimizer gets of {SERIES} first, "
    )
    (parts,) = found["divergences"]
    assert (parts["step"], parts["first"]["name"], parts["quiet"], parts["others"]) == (FAULT, SERIES, True, 0)
    assert parts["first"]["distance"] == pytest.approx(0.05 / 1.05, rel=1e-4)
    assert (found["anomalies"], found["strays"], found["problems"]) == (0, [], [])
    assert found["said"][0]["id"] == "monitor.parts"


def test_the_runs_tell_ranks_steps_metrics_and_the_dumps_beside_them(
    client: Client, pair: str, root: Path, dumps: Path
) -> None:
    shutil.copytree(dumps / "golden", root / "dumped")
    dump = register(client, root / "dumped")
    while client.get(f"/api/dumps/{dump}").json()["status"] == "pending":
        time.sleep(0.02)
    found = client.get(f"{pair}/runs").json()
    (rank,) = found["run"]["ranks"]
    assert (rank["rank"], rank["first_step"], rank["last_step"], found["grown"]) == (0, 0, 47, False)
    metrics = {one["metric"]: one for one in rank["metrics"]}
    assert metrics["grad_reduced"]["statistics"] == ["norm", "min", "max", "mean", "zeros", "nans"]
    assert metrics["loss"] == {"metric": "loss", "statistics": ["norm"], "scalar": True}
    assert found["other"]["tool"] == "dumpscope"
    assert found["dumps"] == [{"id": dump, "name": "dumped", "steps": [0, 1]}]


def test_the_map_of_distances_begins_with_the_series_that_leaves(client: Client, pair: str) -> None:
    found = client.get(f"{pair}/heat?metric=grad_reduced&against=true&columns=24").json()
    assert (found["total"], len(found["bins"]), found["bins"][20]) == (16, 24, {"first": 40, "last": 41})
    worst = next(row for row in found["items"] if row["name"] == SERIES)
    assert worst["heat"][:20] == "0" * 20
    assert worst["heat"][20] > "a"
    assert worst["values"][20] == pytest.approx(0.05 / 1.05, rel=0.01)
    others = [row for row in found["items"] if row["name"].startswith("3.")]
    assert {row["heat"][:20] for row in others} == {"0" * 20}


def test_a_map_is_paged_searched_cut_to_steps_and_ordered(client: Client, pair: str) -> None:
    where = f"{pair}/heat?metric=grad_reduced&order=model"
    names = [row["name"] for row in client.get(where).json()["items"]]
    assert names[:2] == ["0.0.weight", "0.0.bias"]
    seen: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"{where}&limit=7&cursor={cursor}").json()
        seen += [row["name"] for row in page["items"]]
        if page["next"] is None:
            break
        cursor = page["next"]
    assert seen == names
    found = client.get(f"{where}&q=BIAS&from=10&to=12").json()
    assert found["total"] == 8
    assert found["bins"] == [{"first": step, "last": step} for step in (10, 11, 12)]


def test_a_map_has_a_row_a_module_that_opens_to_its_series(client: Client, pair: str) -> None:
    where = f"{pair}/heat?metric=grad_reduced&against=true&columns=24"
    series = {row["name"]: row for row in client.get(f"{where}&limit=100").json()["items"]}
    page = client.get(f"{where}&by=module&limit=3").json()
    assert (page["total"], len(page["items"])) == (8, 3)
    further = client.get(f"{where}&by=module&limit=100&cursor={page['next']}").json()["items"]
    modules = {row["name"]: row for row in [*page["items"], *further]}
    assert sorted(modules) == sorted({name.rpartition(".")[0] for name in series})
    for name, row in modules.items():
        own = [one for one in series.values() if one["name"].rpartition(".")[0] == name]
        assert (row["series"], row["worst"]) == (2, max(one["worst"] for one in own))
        assert row["heat"] == "".join(map(max, zip(*(one["heat"] for one in own), strict=True)))
        assert row["values"] == [max(some) for some in zip(*(one["values"] for one in own), strict=True)]
    first = page["items"][0]
    assert (first["name"], first["hottest"], first["usual"]) == ("2.0", SERIES, None)
    opened = client.get(f"{where}&module=2.0&order=model").json()["items"]
    assert [(one["name"], one["series"], one["hottest"]) for one in opened] == [
        (name, 1, name) for name in ("2.0.weight", "2.0.bias")
    ]
    assert client.get(f"{where}&by=module&q=3.2.BIAS").json()["items"][0]["name"] == "3.2"
    assert client.get(f"{where}&by=module&q=nobody").json()["items"] == []
    (loss,) = client.get(f"{pair}/heat?metric=loss&by=module").json()["items"]
    assert (loss["name"], loss["series"]) == ("loss", 1)


def test_a_curve_has_both_runs_and_a_figure_says_it_in_words(client: Client, pair: str) -> None:
    asked = f"metric=grad_reduced&name={SERIES}"
    own, other = client.get(f"{pair}/curves?{asked}").json()["curves"]
    assert (own["other"], other["other"], own["steps"]) == (False, True, list(range(48)))
    assert own["values"][:FAULT] == other["values"][:FAULT]
    assert own["values"][FAULT] == pytest.approx(1.05 * other["values"][FAULT], rel=1e-4)
    drawn = client.get(f"{pair}/curves/figure?{asked}&step={FAULT}").json()
    assert [one["name"] for one in drawn["figure"]["data"]] == ["faulty", "golden"]
    assert drawn["figure"]["layout"]["shapes"][0]["x0"] == FAULT
    assert drawn["text"].startswith(f"{SERIES} (faulty): ")
    loss = client.get(f"{pair}/curves?metric=loss&name=loss").json()["curves"]
    assert len(loss) == 2
    assert len(loss[0]["values"]) == 48


def test_what_is_not_there_is_told_with_what_is(client: Client, pair: str, root: Path) -> None:
    for path, status in (("/etc", 403), (root / "missing", 404)):
        assert client.post(PATH, json={"path": str(path)}).status_code == status
        assert client.post(PATH, json={"path": str(root / "golden"), "other": str(path)}).status_code == status
    for asked, word in (
        ("heat?metric=colour", "grad_reduced"),
        ("heat?metric=grad_reduced&statistic=colour", "norm, min"),
        ("heat?metric=grad_reduced&rank=7", "there is 0"),
        ("curves?metric=grad_reduced&name=nobody", "nobody"),
        ("anomalies?kind=odd", "spike"),
        ("anomalies?cursor=x", "cursor"),
    ):
        reply = client.get(f"{pair}/{asked}")
        assert (reply.status_code, word in reply.json()["detail"]) == (400, True), reply.text
    assert client.get(f"{PATH}/none/runs").status_code == 404
    row = examine(client, root)
    assert (row["status"], row["error"]["error"], row["summary"]) == ("failed", "unreadable", None)
    assert "name the folder that Monitor got" in row["error"]["hint"]
    assert client.get(f"{PATH}/{row['id']}/findings").status_code == 409
    assert client.get(f"{PATH}/{row['id']}/runs").status_code == 422
    os.mkfifo(root / "pipe")
    row = examine(client, root / "pipe")
    assert (row["status"], row["error"]["error"]) == ("failed", "unreadable")
    assert client.get(f"{PATH}/{row['id']}/runs").status_code == 422


def test_runs_are_listed_searched_and_removed(client: Client, pair: str, root: Path) -> None:
    row = examine(client, root / "golden")
    assert (row["summary"], row["counts"]) == ("No series stands out.", {})
    listed = client.get(PATH, params={"q": "golden"}).json()
    assert [one["id"] for one in listed["items"][:2]] == [row["id"], pair.rpartition("/")[2]]
    assert client.get(PATH, params={"q": "nobody"}).json()["total"] == 0
    assert client.delete(f"{PATH}/{row['id']}").status_code == 204
    assert client.get(f"{PATH}/{row['id']}").status_code == 404


def test_anomalies_are_sorted_from_step_0_on_and_a_page_before_the_first_is_the_first(
    client: Client, root: Path
) -> None:
    folder = root / "lost"
    folder.mkdir()
    frames = [
        values_frame(LAYOUT, step, [2.0], struct.pack("<2f", *(math.nan if step == bad else 1.0 for bad in (7, 0))))
        for step in range(20)
    ]
    (folder / "rank0.monitor").write_bytes(FIRST_LINE + layout_frame(LAYOUT) + b"".join(frames))
    place = f"{PATH}/{examine(client, folder)['id']}"
    for sort, steps in (("step", [0, 7]), ("-step", [7, 0]), ("name", [7, 0]), ("-factor", [0, 7])):
        found = client.get(f"{place}/anomalies?sort={sort}").json()["items"]
        assert [one["step"] for one in found] == steps, sort
    cursor = encode_cursor([-1], 2)
    assert len(client.get(f"{place}/anomalies?cursor={cursor}").json()["items"]) == 2
    assert len(client.get(f"{place}/heat?metric=grad_reduced&cursor={cursor}").json()["items"]) == 2


def test_what_cannot_be_examined_again_keeps_what_was_found(client: Client, root: Path) -> None:
    shutil.copytree(root / "golden", root / "moved")
    row = examine(client, root / "moved")
    shutil.rmtree(root / "moved")
    assert client.post(f"{PATH}/{row['id']}/examine").status_code == 404
    assert client.get(f"{PATH}/{row['id']}").json() == row
    assert client.get(f"{PATH}/{row['id']}/findings").status_code == 200


def test_a_run_that_is_removed_while_its_findings_are_asked_for_is_not_found(
    client: Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = examine(client, root / "golden")
    database = client.app.state.shared.database  # type: ignore[attr-defined]
    reads = database.read

    def read() -> Any:
        """It goes before the second read of a request, if there is one."""
        monkeypatch.setattr(database, "read", later)
        return reads()

    def later() -> Any:
        monkeypatch.setattr(database, "read", reads)
        delete_monitor(database, row["id"])
        return reads()

    monkeypatch.setattr(database, "read", read)
    assert client.get(f"{PATH}/{row['id']}/findings").status_code in (200, 404)


LAYOUT = Layout(0, ("loss",), (Group("grad_reduced", ("norm",), ("a", "b")),))


def steps(first: int, last: int, spike: int = -1) -> bytes:
    frames = [
        values_frame(LAYOUT, step, [2.0], struct.pack("<2f", 50.0 if step == spike else 1.0, 1.0 + step % 2))
        for step in range(first, last)
    ]
    return b"".join(frames)


def runs_with(client: Client, place: str, last: int) -> dict[str, Any]:
    """The runs once the first one reaches this step."""
    for _ in range(200):
        reply = client.get(f"{place}/runs")
        if reply.status_code == 200 and reply.json()["run"]["ranks"][0]["last_step"] == last:
            found: dict[str, Any] = reply.json()
            return found
        time.sleep(0.01)
    raise AssertionError(reply.text)


def test_a_run_that_grows_is_read_on_and_examined_again(
    client: Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_runs, "PAUSE_SECONDS", 0.0)
    folder = root / "growing"
    folder.mkdir()
    path = folder / "rank0.monitor"
    path.write_bytes(FIRST_LINE + header_frame({}) + layout_frame(LAYOUT) + steps(0, 64))
    row = examine(client, folder)
    place = f"{PATH}/{row['id']}"
    assert row["counts"] == {}
    more = steps(64, 128, spike=90)
    with path.open("ab") as file:
        file.write(more[:-10])  # the last frame is not whole yet
    found = runs_with(client, place, 126)
    assert (found["grown"], found["run"]["problems"]) == (True, [])
    assert len(client.get(f"{place}/curves?metric=grad_reduced&name=a").json()["curves"][0]["steps"]) == 127
    change_monitor(client.app.state.shared.database, row["id"], status="pending")  # type: ignore[attr-defined]
    again = client.post(f"{place}/examine")  # a server that was killed left it pending, with a job that is over
    assert (again.status_code, again.headers["Location"]) == (202, place)
    row = ended(client, place)
    assert row["counts"] == {"spike": 1}
    assert row["summary"].startswith(
        "1 anomaly: spike at step 90, the gradient that the optimizer gets of a, 50 where 1 "
    )
    (anomaly,) = client.get(f"{place}/anomalies?q=grad&kind=spike,drift&sort=-factor").json()["items"]
    assert (anomaly["name"], anomaly["step"], anomaly["value"], anomaly["number"]) == ("a", 90, 50, 0)
    (hot, _) = client.get(f"{place}/heat?metric=grad_reduced&columns=10").json()["items"]
    assert (hot["name"], hot["worst"], max(hot["heat"])) == ("a", 50, hot["heat"][7])
    path.write_bytes(FIRST_LINE + header_frame({}) + layout_frame(LAYOUT) + steps(0, 20))  # it was begun again
    assert runs_with(client, place, 19)["grown"]


V1 = "vpp_stage,name,step,norm,min,max,nans,shape,dtype\n"


def test_the_csv_files_of_msprobes_monitor_are_shown_with_what_is_not_finite(client: Client, root: Path) -> None:
    for rank in (0, 1):
        folder = root / "msprobe" / f"Nov30_09-02-47-rank{rank}-07b0d9f7"
        folder.mkdir(parents=True)
        lines = [f"0,fc.weight,{step},{'nan' if step == 3 + rank else 1.5},-1,1,0,," for step in range(6)]
        (folder / "grad_reduced_0-5.csv").write_text(V1 + "\n".join(lines) + "\n")
    place = f"{PATH}/{examine(client, root / 'msprobe')['id']}"
    assert client.get(f"{place}/runs").json()["run"]["tool"] == "msprobe"
    found = client.get(f"{place}/heat?metric=grad_reduced&rank=1").json()
    assert [(row["heat"], row["worst"]) for row in found["items"]] == [("0000!0", "inf")]
    assert found["items"][0]["values"] == [1.5, 1.5, 1.5, 1.5, "nan", 1.5]
    drawn = client.get(f"{place}/curves/figure?metric=grad_reduced&rank=1&name=fc.weight").json()["figure"]["data"]
    assert (drawn[0]["y"][4], drawn[1]["x"], drawn[1]["text"]) == (None, [4], ["nan"])
    both = client.get(f"{place}/anomalies?sort=step").json()
    assert [(one["kind"], one["rank"], one["step"]) for one in both["items"]] == [
        ("not_finite", 0, 3),
        ("not_finite", 1, 4),
    ]


def test_a_large_map_stays_below_200_kb_and_names_the_next_page(client: Client, root: Path) -> None:
    names = tuple(f"layers.{place}.mlp.down_proj.weight" for place in range(240))
    layout = Layout(0, (), (Group("grad_reduced", ("norm",), names),))
    numbers = np.random.default_rng(0).lognormal(size=(300, len(names))).astype("<f4")
    frames = [values_frame(layout, step, [], row.tobytes()) for step, row in enumerate(numbers)]
    folder = root / "large"
    folder.mkdir()
    (folder / "rank0.monitor").write_bytes(FIRST_LINE + layout_frame(layout) + b"".join(frames))
    place = f"{PATH}/{examine(client, folder)['id']}"
    seen: set[str] = set()
    cursor = ""
    while cursor is not None:
        reply = client.get(f"{place}/heat?metric=grad_reduced&columns=200&limit=200&cursor={cursor}")
        assert len(reply.content) < 200_000
        page = reply.json()
        seen |= {row["name"] for row in page["items"]}
        assert len(page["items"][0]["heat"]) == len(page["bins"]) == 200
        cursor = page["next"]
    assert seen == set(names)
    curve = client.get(f"{place}/curves?metric=grad_reduced&name={names[7]}&points=20").json()["curves"][0]
    assert (curve["measured"], len(curve["steps"]) < 30) == (300, True)
    assert max(curve["values"]) == pytest.approx(float(numbers[:, 7].max()), rel=1e-5)
    assert min(curve["values"]) == pytest.approx(float(numbers[:, 7].min()), rel=1e-5)
