"""The client of the REST interface, against a running server."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from client.conftest import TOKEN
from dumpscope import client as package
from dumpscope.client import AsyncClient, Client, Job, ServerError, WorkFailed, exchange, to_frame, uploads
from dumpscope.errors import UsageError
from dumpscope_format.monitor import FIRST_LINE, Group, Layout, layout_frame, values_frame

CAUSE = "Functional.softmax.1.forward"


def test_a_script_gets_from_two_dumps_to_the_cause(client: Client, dumps: Path) -> None:
    seen: list[Job] = []
    target = client.register(str(dumps / "stat_fault"), name="suspicious", watch=seen.append)
    golden = client.upload(dumps / "stat_golden")
    assert (target.name, target.status, golden.status) == ("suspicious", "ready", "ready")
    assert [one.status for one in seen][-1] == "done"
    assert target.nodes == golden.nodes > 100
    found = client.compare(target, golden, name="by script", policy="default")
    assert (found.outcome, found.verdict, found.name) == ("diverged", "no", "by script")
    assert found.origin is not None
    assert found.origin["node"] == CAUSE
    (origin, *_) = client.origins(found)
    assert (origin.node, origin.kind, origin.module) == (CAUSE, "computation", "layers.1.attn.Attn")
    assert origin.called_at.startswith("/home/user/train/models.py:14")
    assert origin.explains > 100
    assert client.suspects(found)[0].node == CAUSE
    assert client.explain(found, CAUSE).startswith("The statistics of both inputs are equal.")
    assert client.summary(found)["origins"][0]["node"] == CAUSE
    assert client.wait(found).status == "done"
    judged = client.judge(found, "msprobe")
    assert judged.policy == "msprobe"
    client.delete_comparison(found)
    with pytest.raises(ServerError) as caught:
        client.comparison(found)
    assert (caught.value.reply_status, caught.value.reply_code) == (404, "not_found")
    for dump in (target, golden):
        client.delete_dump(dump)


def test_every_page_of_a_list_is_read(client: Client, fault: str) -> None:
    every = list(client.nodes(fault, limit=50))
    assert len(every) == len({row["name"] for row in every}) > 150
    wrong = list(client.nodes(fault, verdict="no", cls=["origin", "propagated"], limit=20))
    assert 20 < len(wrong) < len(every)
    assert {row["cls"] for row in wrong} == {"origin", "propagated"}
    assert [row["name"] for row in client.nodes(fault, cls="origin")] == [CAUSE]
    pairs = list(client.pairs(fault, node=CAUSE))
    assert {pair["node"] for pair in pairs} == {CAUSE}


def test_rows_become_a_table_of_numbers(client: Client, fault: str) -> None:
    nodes = client.node_frame(fault)
    assert nodes.loc[nodes["cls"] == "origin", "name"].tolist() == [CAUSE]
    assert nodes["out_error"].dropna().map(lambda one: isinstance(one, int | float)).all()
    pairs = client.pair_frame(fault, node=CAUSE)
    assert pairs["max_abs"].max() > 0
    table = to_frame([{"out_error": "inf", "name": "nan", "metrics": {"cosine": "nan", "max_abs": 2}}])
    assert math.isinf(table["out_error"][0])
    assert (table["name"][0], table["max_abs"][0]) == ("nan", 2)
    assert math.isnan(table["cosine"][0])


def test_every_export_is_a_whole_file(client: Client, fault: str, tmp_path: Path) -> None:
    for kind in ("csv", "xlsx", "json", "html", "junit.xml", "txt", "db"):
        assert client.export(fault, kind, tmp_path / f"out.{kind}").stat().st_size > 500
    assert CAUSE in (tmp_path / "out.txt").read_text()
    assert json.loads((tmp_path / "out.json").read_text())["origins"][0]["node"] == CAUSE
    with closing(sqlite3.connect(f"file:{tmp_path / 'out.db'}?immutable=1", uri=True)) as database:
        assert database.execute("SELECT count(*) FROM comparison").fetchone() == (1,)
    with pytest.raises(ServerError):
        client.export("nothing", "csv", tmp_path / "none.csv")
    assert {one.name for one in tmp_path.iterdir()} == {f"out.{kind}" for kind in EXPORTED}


EXPORTED = ("csv", "xlsx", "json", "html", "junit.xml", "txt", "db")


def test_notes_and_prechecks(client: Client, fault: str, dumps: Path) -> None:
    client.set_note(fault, CAUSE, "ticket", "see 123")
    assert [(note["node"], note["standing"], note["text"]) for note in client.notes(fault)] == [
        (CAUSE, "ticket", "see 123")
    ]
    client.remove_note(fault, CAUSE)
    assert list(client.notes(fault)) == []
    target = client.comparison(fault).target
    assert client.prechecks(target)["total"] == 0
    with pytest.raises(UsageError, match="either a path"):
        client.import_prechecks(target)


def test_folders_are_watched_and_compared(client: Client, dumps: Path) -> None:
    made = client.watch_folder(
        str(dumps / "stat_fault"), partner=str(dumps / "stat_golden"), name="live", policy="msprobe"
    )
    try:
        assert client.dump(made.dump).name == "live"
        partner = next(one for one in client.watches() if one.dump == made.partner)
        assert partner.side == "golden"
        deadline = time.monotonic() + 60
        while client.watch(made).comparison is None:
            assert time.monotonic() < deadline, client.watch(made)
            time.sleep(0.1)
        found = client.wait(client.comparison(client.watch(made).comparison or ""))
        assert (found.policy, found.outcome) == ("msprobe", "diverged")
        assert client.pair_watch(made, None).partner is None
        client.stop_watching(partner)
    finally:
        client.stop_watching(made)
    assert list(client.watches()) == []


def test_calls_are_run_alone_on_the_server(client: Client, dumps: Path) -> None:
    modules = client.register(str(dumps / "conv_L0"))
    with pytest.raises(WorkFailed, match="only modules"):
        client.run_prechecks(modules)
    dump = client.register(str(dumps / "conv_L1"))
    job = client.run_prechecks(dump, steps=[0], wait=False)
    assert (job.kind, job.subject) == ("precheck", dump.id)
    client.cancel_prechecks(dump)
    deadline = time.monotonic() + 60
    while not (job := client.job(job.id)).over:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert job.status == "cancelled"


def test_webhooks_are_made_listed_and_removed(client: Client, fault: str) -> None:
    made = client.create_webhook(
        "http://localhost:1/hook", kinds=["compare"], states=["done"], about=client.comparison(fault)
    )
    assert (made.subject, made.kinds, made.states) == (fault, ["compare"], ["done"])
    assert made.secret not in repr(made)
    assert [(one.id, one.secret) for one in client.webhooks()] == [(made.id, "")]
    (delivery,) = client.deliveries(made)
    assert (delivery["event"], delivery["status"]) == ("compare.done", "pending")
    client.delete_webhook(made)
    assert list(client.webhooks()) == []
    with pytest.raises(ServerError) as refused:
        client.create_webhook("http://example.com/")
    assert (refused.value.reply_status, refused.value.reply_code) == (403, "forbidden")


def test_lists_of_dumps_and_comparisons(client: Client, fault: str) -> None:
    assert fault in [one.id for one in client.comparisons()]
    assert client.comparison(fault).target in [one.id for one in client.dumps("target_fault")]
    assert client.health()["status"] == "ok"


def test_what_fails_on_the_server_raises_with_its_reason(client: Client, dumps: Path) -> None:
    with pytest.raises(WorkFailed, match="dump") as failed:
        client.register(str(dumps / "README.md"))
    assert failed.value.job.status == "failed"
    assert failed.value.reply_status == 422
    with pytest.raises(ServerError, match="root") as refused:
        client.register("/etc")
    assert refused.value.reply_status == 403
    assert "--root" in (refused.value.hint or "")
    with pytest.raises(ServerError, match="policy"):
        client.compare("x", "y", policy="strictest")


def test_a_wrong_token_or_address_is_told(address: str) -> None:
    with Client(address, token="wrong") as client, pytest.raises(ServerError) as caught:
        client.health()
    assert caught.value.reply_status == 401
    for wrong in ("127.0.0.1:8000", "", "file:///etc/passwd"):
        with pytest.raises(UsageError):
            Client(wrong)


def test_an_upload_goes_on_with_what_has_arrived(
    client: Client, dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(dumps / "target_fault", folder)
    (folder / ".hidden").write_text("x")
    monkeypatch.setattr(uploads, "SMALL_BYTES", 64 << 10)
    monkeypatch.setattr(uploads, "PIECE_BYTES", 32 << 10)
    monkeypatch.setattr(uploads, "BATCH_FILES", 50)
    sent: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        sent.append((done, total))
        if len(sent) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.upload(folder, sent=stop)
    again: list[int] = []
    dump = client.upload(folder, sent=lambda done, _total: again.append(done))
    assert again[0] > sent[-1][0] > 0, "what had arrived is not sent again"
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
    assert again[-1] == sent[0][1] == sum(file.stat().st_size for file in files)
    assert dump.name == "mine"
    assert client.upload(folder).id == dump.id, "an upload that is whole is the dump that it became"
    client.delete_dump(dump)
    assert client.upload(folder).id != dump.id, "a dump that was removed can be sent again"
    with pytest.raises(UsageError, match="no file"):
        client.upload(tmp_path / "nothing")


def failing(client: Client, answers: list[Any]) -> Client:
    """The client with a transport that gives these answers first: a status, or an error to raise."""
    genuine = client._http._transport

    class Flaky(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if answers:
                answer = answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return httpx.Response(answer, headers={"Retry-After": "0"}, text="<html>busy</html>")
            return genuine.handle_request(request)

    client._http._transport = Flaky()
    return client


def test_what_the_connection_lost_is_sent_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "pause_before", lambda _attempt, _reply: 0.0)
    lost: list[Any] = [httpx.ReadError("cut"), httpx.ConnectError("away"), 503, 502]
    assert failing(client, lost).health()["status"] == "ok"
    assert lost == []
    forever: list[Any] = [httpx.ConnectError("away")] * 50
    with pytest.raises(ServerError, match="no answer"):
        failing(client, forever).health()
    assert len(forever) == 50 - exchange.TRIES
    busy: list[Any] = [503] * 50
    with pytest.raises(ServerError, match="503"):
        failing(client, busy).health()


def test_what_may_have_been_done_is_not_done_twice(client: Client, dumps: Path, fault: str) -> None:
    before = sum(1 for _ in client.comparisons())
    row = client.comparison(fault)
    with pytest.raises(ServerError, match="no answer"):
        failing(client, [httpx.ReadError("cut")]).compare(row.target, row.golden)
    assert sum(1 for _ in client.comparisons()) == before


def test_pauses_grow_and_follow_the_servers_wish() -> None:
    assert [exchange.pause_before(attempt, None) for attempt in range(6)] == [0.5, 1, 2, 4, 8, 8]
    assert exchange.pause_before(0, httpx.Response(429, headers={"Retry-After": "3"})) == 3
    assert exchange.pause_before(0, httpx.Response(429, headers={"Retry-After": "9999"})) == exchange.LONGEST_PAUSE


def test_a_record_takes_what_another_version_sends() -> None:
    newer = package.records.read(package.Dump, {"id": "a", "name": "b", "invented": 3})
    assert (newer.id, newer.name, newer.raw["invented"]) == ("a", "b", 3)
    assert package.records.read(package.Dump, {"id": "a"}).steps == []


def test_the_asynchronous_client_does_the_same(address: str, fault: str, tmp_path: Path, dumps: Path) -> None:
    async def work() -> None:
        async with AsyncClient(address, token=TOKEN) as client:
            golden, target = await asyncio.gather(
                client.upload(dumps / "stat_golden"), client.register(str(dumps / "stat_fault"))
            )
            found = await client.compare(target, golden)
            assert found.origin is not None
            assert found.origin["node"] == CAUSE
            assert [row["name"] async for row in client.nodes(fault, cls="origin")] == [CAUSE]
            assert (await client.pair_frame(fault, node=CAUSE))["max_abs"].max() > 0
            file = await client.export(fault, "txt", tmp_path / "answer.txt")
            assert CAUSE in file.read_text()
            assert fault in [one.id async for one in client.comparisons()]
            with pytest.raises(ServerError):
                await client.dump("nothing")

    asyncio.run(work())


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        return {
            name: [
                str(one).replace("AsyncIterator", "Iterator") for one in inspect.signature(method).parameters.values()
            ]
            for name, method in vars(kind).items()
            if not name.startswith("_") and callable(method)
        }

    assert methods(Client) == methods(AsyncClient)
    documented = Path(__file__).parents[2].joinpath("docs/client.md").read_text()
    missing = [name for name in methods(Client) if f"`{name}" not in documented]
    assert missing == []


def test_threads_may_have_a_client_each(address: str, as_user: Callable[[], None]) -> None:
    as_user()
    with Client() as client:
        assert client.base == f"{address}/api"
        assert client.health()["status"] == "ok"


def test_checkpoints_are_compared_and_the_worst_tensors_returned(client: Client, dumps: Path) -> None:
    files = sorted((dumps / "golden").rglob("*.pt"))[:2]
    seen: list[str] = []
    same = client.diff_checkpoints(str(files[0]), str(files[0]), name="same", watch=lambda job: seen.append(job.kind))
    assert (same["total"], same["tensors"][0]["state"], same["summary"]) == (
        1, "equal", "The only tensor agrees. Besides: 1 equal.",
    )  # fmt: skip
    assert set(seen) == {"checkpoints"}
    with pytest.raises(WorkFailed):
        client.diff_checkpoints(str(next((dumps / "golden").rglob("dump.json"))), str(files[0]))


def test_a_monitored_run_is_examined_and_its_series_returned(client: Client, served: Path) -> None:
    folder = served / "watched"
    folder.mkdir()
    layout = Layout(0, ("loss",), (Group("grad_reduced", ("norm", "max"), ("fc.weight",)),))
    frames = [
        values_frame(layout, step, [1.0], struct.pack("<2f", 9.0 if step == 50 else 1.0, step)) for step in range(64)
    ]
    (folder / "rank0.monitor").write_bytes(FIRST_LINE + layout_frame(layout) + b"".join(frames))
    found = client.examine_monitor(str(folder), other=str(folder))
    assert [(one["kind"], one["step"], one["name"]) for one in found["anomalies"]] == [("spike", 50, "fc.weight")]
    assert found["summary"].startswith("Every norm of 64 steps and 2 series is equal. 1 anomaly")
    own, other = client.monitor_curves(found["id"], "grad_reduced", "fc.weight", statistic="max", first=3, last=5)
    assert (own["values"], own["steps"], other["other"]) == ([3, 4, 5], [3, 4, 5], True)
    with pytest.raises(WorkFailed):
        client.examine_monitor(str(folder.parent))
