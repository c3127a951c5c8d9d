"""A watched folder: what appears in it is read, a pair is compared when both sides are whole, nothing is read half-written."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url

from api.conftest import BASE, Client, Make, register, settled
from dumpscope.api.app import create_app
from dumpscope_format.journal import Writer

SETTLE = 0.4


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Folder into which the runs of a test write."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest, make_settings: Make, runs: Path, tmp_path: Path) -> Callable[[], Any]:
    url = empty_url(request.param, tmp_path)
    return lambda: make_settings(roots=[runs], watch_settle=SETTLE, database_url=url)


@pytest.fixture
def server(settings: Callable[[], Any]) -> Iterator[Client]:
    with TestClient(create_app(settings()), base_url=BASE) as running:
        yield running


def write_step(dumps: Path, run: Path, name: str, step: int) -> None:
    """A step of a real dump, all at once: on a busy machine copying takes longer than the settle time of these tests."""
    run.mkdir(exist_ok=True)
    copied = run.parent / f".{run.name}.copied"
    shutil.copytree(dumps / name / f"step{step}", copied)
    copied.rename(run / f"step{step}")


def watch(client: Client, **body: Any) -> dict[str, Any]:
    reply = client.post("/api/watches", json=body)
    assert reply.status_code == 201, reply.text
    assert reply.headers["Location"] == f"/api/watches/{reply.json()['id']}"
    return dict(reply.json())


def until(ask: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return found


def dump_when(client: Client, dump: str, test: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The dump as soon as the test holds of it."""

    def ask() -> dict[str, Any] | None:
        body: dict[str, Any] = client.get(f"/api/dumps/{dump}").json()
        return body if test(body) else None

    return dict(until(ask))


def is_read(body: dict[str, Any]) -> bool:
    """What was there is read, and nothing changes."""
    return bool(body["watch"]["condition"] == "still" and body["steps"] == body["watch"]["whole"])


def test_new_steps_of_a_watched_folder_are_read(server: Client, runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    dump = register(server, run)
    assert settled(server, f"/api/dumps/{dump}")["watch"] is None
    begun = watch(server, dump=dump)
    assert (begun["dump"], begun["partner"], begun["new_steps"]) == (dump, None, [])
    write_step(dumps, run, "golden", 1)
    seen = dump_when(server, dump, lambda body: body["steps"] == [0, 1])
    assert (seen["status"], seen["watch"]["new_steps"]) == ("ready", [1])
    assert seen["nodes"] == 2 * 163
    assert seen["problems"] == []
    quiet = dump_when(server, dump, is_read)
    assert (quiet["watch"]["whole"], quiet["watch"]["step"]) == ([0, 1], 1)


def test_a_folder_may_be_watched_before_anything_is_in_it(server: Client, runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    run.mkdir()
    begun = watch(server, path=str(run), name="tonight")
    assert begun["condition"] == "waiting"
    assert server.get(f"/api/dumps/{begun['dump']}").json()["status"] == "pending"
    write_step(dumps, run, "golden", 0)
    seen = dump_when(server, begun["dump"], lambda body: body["status"] == "ready")
    assert (seen["name"], seen["steps"], seen["watch"]["new_steps"]) == ("tonight", [0], [0])


def test_a_pair_is_compared_when_both_sides_are_whole_and_again_when_more_comes(
    server: Client, runs: Path, dumps: Path
) -> None:
    write_step(dumps, runs / "npu", "target_fault", 0)
    (runs / "gpu").mkdir()
    begun = watch(server, path=str(runs / "npu"), partner_path=str(runs / "gpu"))
    assert begun["partner_name"] == "gpu"
    time.sleep(3 * SETTLE)
    assert server.get("/api/comparisons").json()["items"] == [], "one side has nothing yet"
    write_step(dumps, runs / "gpu", "golden", 0)
    (first,) = until(lambda: server.get("/api/comparisons").json()["items"])
    done = settled(server, f"/api/comparisons/{first['id']}")
    assert (done["status"], done["watched"], done["growing"]) == ("done", True, [])
    assert done["origin"]["node"] == "Functional.softmax.1.forward"
    assert done["options"]["steps"] == [0]
    for name, run in (("target_fault", "npu"), ("golden", "gpu")):
        write_step(dumps, runs / run, name, 1)

    def again() -> bool:
        body = server.get(f"/api/comparisons/{first['id']}").json()
        return bool(body["status"] == "done" and body["options"]["steps"] == [0, 1])

    until(again)
    summary = server.get(f"/api/comparisons/{first['id']}/summary").json()
    assert summary["target"]["steps"] == [0, 1]
    assert len(server.get("/api/comparisons").json()["items"]) == 1, "always the same comparison"
    watched = server.get(f"/api/watches/{begun['id']}").json()
    assert watched["comparison"] == first["id"]


def test_a_half_written_file_is_not_read(server: Client, runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    (rank,) = (run / "step0").iterdir()
    whole = (rank / "dump.json").read_bytes()
    (rank / "dump.json").write_bytes(whole[: len(whole) // 2])
    begun = watch(server, path=str(run))
    time.sleep(4 * SETTLE)
    assert server.get(f"/api/dumps/{begun['dump']}").json()["status"] == "pending", "longer than a settle time"
    (rank / "dump.json").write_bytes(whole)
    seen = dump_when(server, begun["dump"], lambda body: body["status"] == "ready")
    assert (seen["nodes"], seen["problems"]) == (163, [])


def test_a_growing_journal_shows_live_and_says_when_it_ended(server: Client, runs: Path) -> None:
    rank = runs / "npu" / "step0" / "rank0"
    rank.mkdir(parents=True)
    journal = Writer(rank, {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None})
    add_calls(journal, 0, 10)
    begun = watch(server, path=str(runs / "npu"))
    dump_when(server, begun["dump"], lambda body: body["watch"]["condition"] == "looking")
    add_calls(journal, 10, 40)
    growing = dump_when(server, begun["dump"], lambda body: body["watch"]["condition"] == "growing")
    assert growing["watch"]["step"] == 0
    seen = dump_when(server, begun["dump"], lambda body: body["nodes"] >= 40)
    assert seen["watch"]["calls"] == 40
    assert seen["problems"] == [], "a record that grows is not damaged"
    add_calls(journal, 40, 100)
    dump_when(server, begun["dump"], lambda body: body["nodes"] == 100)
    with (rank / "dump.json").open("wb") as out:
        journal.contents.write_dump(out, journal.handle)
    (rank / "run.json").write_text(json.dumps({"ended": "closed"}))
    journal.close(remove=True)
    ended = dump_when(server, begun["dump"], lambda body: body["watch"]["condition"] == "ended")
    assert (ended["nodes"], ended["watch"]["calls"]) == (100, None)


def test_a_comparison_of_a_growing_dump_says_how_far_it_was(server: Client, runs: Path) -> None:
    journals, ids = {}, {}
    for name in ("npu", "gpu"):
        rank = runs / name / "step0" / "rank0"
        rank.mkdir(parents=True)
        journals[name] = Writer(rank, {"task": "statistics", "level": "L1", "framework": "pytorch"})
        add_calls(journals[name], 0, 10)
        ids[name] = watch(server, path=str(runs / name))["dump"]
    for name in ("npu", "gpu"):
        dump_when(server, ids[name], is_read)
    add_calls(journals["npu"], 10, 20)
    dump_when(server, ids["npu"], lambda body: body["nodes"] == 20 and body["watch"]["condition"] == "growing")
    reply = server.post("/api/comparisons", json={"target": ids["npu"], "golden": ids["gpu"]})
    done = settled(server, f"/api/comparisons/{reply.json()['id']}")
    assert (done["status"], done["watched"]) == ("done", False)
    assert done["growing"] == [{"side": "target", "step": 0, "calls": 20}]
    rows = server.get(f"/api/comparisons/{done['id']}/nodes").json()["items"]
    assert len(rows) == 20
    add_calls(journals["npu"], 20, 60)
    dump_when(server, ids["npu"], lambda body: body["nodes"] == 60)
    after = server.get(f"/api/comparisons/{done['id']}/nodes").json()["items"]
    assert after == rows, "the result shows what it was compared from"
    node = server.get(f"/api/comparisons/{done['id']}/nodes/{rows[0]['address']}").json()
    assert node["items"][0]["target_leaf"]["max"] == 1.0
    assert server.delete(f"/api/comparisons/{done['id']}").status_code == 204
    assert server.delete(f"/api/dumps/{ids['npu']}").status_code == 204


def test_a_result_from_a_beginning_outlives_its_growth_and_a_restart(settings: Callable[[], Any], runs: Path) -> None:
    journals, ids = {}, {}
    for name in ("npu", "gpu"):
        rank = runs / name / "step0" / "rank0"
        rank.mkdir(parents=True)
        journals[name] = Writer(rank, {"task": "statistics", "level": "L1", "framework": "pytorch"})
        add_calls(journals[name], 0, 10)
    with TestClient(create_app(settings()), base_url=BASE) as first:
        for name in ("npu", "gpu"):
            ids[name] = register(first, runs / name)
            settled(first, f"/api/dumps/{ids[name]}")
        reply = first.post("/api/comparisons", json={"target": ids["npu"], "golden": ids["gpu"]})
        result = f"/api/comparisons/{reply.json()['id']}"
        assert settled(first, result)["status"] == "done"
        rows = first.get(f"{result}/nodes").json()
        begun = watch(first, dump=ids["npu"])
        assert is_read(dump_when(first, ids["npu"], is_read)), (
            "a killed run settles, and what was read is not read again"
        )
        add_calls(journals["npu"], 10, 30)
        dump_when(first, ids["npu"], lambda body: body["nodes"] == 30)
        assert first.get(f"/api/watches/{begun['id']}").json()["new_steps"] == []
    with TestClient(create_app(settings()), base_url=BASE) as second:
        assert second.get(f"{result}/nodes").json() == rows
        assert second.get(f"{result}/export.db").status_code == 200
        assert second.delete(result).status_code == 204
        assert second.delete(f"/api/dumps/{ids['npu']}").status_code == 204


def add_calls(journal: Writer, first: int, last: int) -> None:
    """Calls of a step, as the recorder adds them."""
    for number in range(first, last):
        leaf = {
            "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0 + number, "Min": 0.0, "Mean": 0.5,
            "Norm": 1.0, "requires_grad": False,
        }  # fmt: skip
        journal.node(f"Functional.relu.{number}.forward", {"input_args": [leaf], "input_kwargs": {}, "output": [leaf]})


def test_a_folder_that_vanishes_is_said_and_one_that_comes_back_is_watched_on(
    server: Client, runs: Path, dumps: Path
) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    begun = watch(server, path=str(run))
    dump_when(server, begun["dump"], is_read)
    run.rename(runs / "elsewhere")
    gone = dump_when(server, begun["dump"], lambda body: body["watch"]["condition"] == "gone")
    assert gone["status"] == "ready", "what was read stays"
    assert gone["watch"]["since"] > begun["created"]
    (runs / "elsewhere").rename(run)
    write_step(dumps, run, "golden", 1)
    dump_when(server, begun["dump"], lambda body: body["steps"] == [0, 1])


def test_a_folder_that_becomes_a_link_out_of_the_roots_is_not_looked_into(
    server: Client, runs: Path, dumps: Path, tmp_path: Path
) -> None:
    run, outside = runs / "npu", tmp_path / "outside"
    write_step(dumps, run, "golden", 0)
    begun = watch(server, path=str(run))
    dump_when(server, begun["dump"], is_read)
    shutil.move(run, outside)
    write_step(dumps, outside, "golden", 1)
    run.symlink_to(outside)
    seen = dump_when(server, begun["dump"], lambda body: body["watch"]["condition"] == "outside")
    assert seen["steps"] == [0]


def test_watches_survive_a_restart(settings: Callable[[], Any], runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    with TestClient(create_app(settings()), base_url=BASE) as first:
        begun = watch(first, path=str(run))
        dump_when(first, begun["dump"], is_read)
        (empty,) = [watch(first, path=str(make_folder(runs / "later")))]
        jobs = first.get("/api/jobs").json()["total"]
    with TestClient(create_app(settings()), base_url=BASE) as second:
        body = second.get(f"/api/dumps/{begun['dump']}").json()
        assert body["watch"]["condition"] == "still", "nobody sees a restart"
        assert second.get(f"/api/dumps/{empty['dump']}").json()["status"] == "pending"
        time.sleep(3 * SETTLE)
        assert second.get("/api/jobs").json()["total"] == jobs, "nothing is read twice"
        write_step(dumps, run, "golden", 1)
        dump_when(second, begun["dump"], lambda body: body["steps"] == [0, 1])


def make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_one_of_two_servers_watches(settings: Callable[[], Any], runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    with TestClient(create_app(settings()), base_url=BASE) as first:
        with TestClient(create_app(settings()), base_url=BASE) as second:
            begun = watch(second, path=str(run))
            dump_when(second, begun["dump"], is_read)
            reads = [job for job in second.get("/api/jobs").json()["items"] if job["kind"] == "update"]
            assert len(reads) == 1
        write_step(dumps, run, "golden", 1)
        dump_when(first, begun["dump"], lambda body: body["steps"] == [0, 1])


def test_the_other_server_watches_on_when_the_first_ends(settings: Callable[[], Any], runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    with TestClient(create_app(settings()), base_url=BASE) as second:
        with TestClient(create_app(settings()), base_url=BASE) as first:
            begun = watch(first, path=str(run))
            dump_when(first, begun["dump"], is_read)
        write_step(dumps, run, "golden", 1)
        dump_when(second, begun["dump"], lambda body: body["steps"] == [0, 1])


def test_a_stopped_watch_reads_nothing_more(server: Client, runs: Path, dumps: Path) -> None:
    run = runs / "npu"
    write_step(dumps, run, "golden", 0)
    begun = watch(server, path=str(run))
    dump_when(server, begun["dump"], lambda body: body["status"] == "ready")
    assert [row["id"] for row in server.get("/api/dumps?watched=true").json()["items"]] == [begun["dump"]]
    assert server.delete(f"/api/watches/{begun['id']}").status_code == 204
    assert server.get(f"/api/watches/{begun['id']}").status_code == 404
    assert server.get("/api/dumps?watched=true").json()["total"] == 0
    write_step(dumps, run, "golden", 1)
    time.sleep(4 * SETTLE)
    body = server.get(f"/api/dumps/{begun['dump']}").json()
    assert (body["steps"], body["watch"]) == ([0], None)


def test_a_deleted_dump_or_comparison_leaves_no_watch_that_fails(server: Client, runs: Path, dumps: Path) -> None:
    for name, run in (("target_fault", "npu"), ("golden", "gpu")):
        write_step(dumps, runs / run, name, 0)
    begun = watch(server, path=str(runs / "npu"), partner_path=str(runs / "gpu"))
    (first,) = until(lambda: server.get("/api/comparisons").json()["items"])
    settled(server, f"/api/comparisons/{first['id']}")
    assert server.delete(f"/api/comparisons/{first['id']}").status_code == 204
    time.sleep(3 * SETTLE)
    assert server.get("/api/comparisons").json()["items"] == [], "not made again before something new comes"
    assert server.get(f"/api/watches/{begun['id']}").json()["comparison"] is None
    partner = server.get(f"/api/watches/{begun['id']}").json()["partner"]
    assert server.delete(f"/api/dumps/{partner}").status_code == 204
    assert server.get(f"/api/watches/{begun['id']}").json()["partner"] is None
    assert server.delete(f"/api/dumps/{begun['dump']}").status_code == 204
    assert server.get("/api/watches").json()["items"] == []


def test_what_cannot_be_watched_is_refused(server: Client, runs: Path, dumps: Path, tmp_path: Path) -> None:
    write_step(dumps, runs / "npu", "golden", 0)
    write_step(dumps, runs / "gpu", "golden", 0)
    lone = next((runs / "npu").glob("step0/*/dump.json"))
    refused = [
        ({"path": str(tmp_path)}, 403),
        ({"path": str(runs / "none")}, 404),
        ({"path": str(lone)}, 422),
        ({}, 400),
        ({"path": str(runs / "npu"), "dump": "abc"}, 400),
        ({"dump": "abc"}, 404),
    ]
    for body, status in refused:
        reply = server.post("/api/watches", json=body)
        assert (reply.status_code, reply.json()["status"]) == (status, status), body
    one = watch(server, path=str(runs / "npu"))
    other = watch(server, path=str(runs / "gpu"), partner=one["dump"], side="golden")
    assert (other["partner"], other["side"]) == (one["dump"], "golden")
    for partner in (other["dump"], one["dump"]):
        reply = server.patch(f"/api/watches/{one['id']}", json={"partner": partner})
        assert reply.status_code == 409, "the pair is watched already, or is none"
    assert server.patch(f"/api/watches/{other['id']}", json={}).json()["partner"] is None
