"""Results of the pre-check beside a comparison: taken in from a folder, a path, a text or the command line, and run here."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url
from warm_python import warm_python

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api.app import create_app
from dumpscope.cli.app import status
from dumpscope.pipeline.operators.precheck import STATE, Workers, precheck
from dumpscope.readers import discover

pytest.importorskip("torch")

WRONG = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def checked(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the pre-check of target_fault, step 0."""
    folder = tmp_path_factory.mktemp("checked")
    refs = [ref for ref in discover(str(dumps / "target_fault")).ranks if ref.step == 0]
    precheck(refs, folder, Workers(python=warm_python(), jobs=2), resume=False, path=str(dumps / "target_fault"))
    return folder


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, make_settings: Make, tmp_path: Path) -> Iterator[Client]:
    """A fresh server on either database."""
    settings = make_settings(database_url=empty_url(request.param, tmp_path))
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


@pytest.fixture
def told(client: Client, dumps: Path, checked: Path) -> tuple[str, str]:
    """A comparison of target_fault with golden whose target has a pre-check, and the target's id."""
    found = compare(client, dumps / "target_fault", dumps / "golden")
    target = client.get(f"/api/comparisons/{found}").json()["target"]
    text = (checked / STATE).read_text()
    reply = client.post(f"/api/dumps/{target}/prechecks", json={"text": text})
    assert reply.status_code == 200, reply.text
    assert reply.json()["unknown"] == 0
    return found, target


def of(client: Client, comparison: str, node: str, **query: int) -> dict[str, Any]:
    reply = client.get(f"/api/comparisons/{comparison}/prechecks/{node}", params=query)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def test_the_origin_fails_alone_and_a_later_divergent_call_passes(client: Client, told: tuple[str, str]) -> None:
    comparison, _ = told
    origin = of(client, comparison, WRONG)["target"]
    assert (origin["word"], origin["here"]["verdict"], origin["recorded"]["verdict"]) == ("fail", "pass", "error")
    assert origin["recorded"]["units"] > 1024
    assert 0 < origin["recorded"]["max_abs"] < 0.1
    assert 0.99 < origin["recorded"]["cosine"] < 1
    assert (origin["device"], origin["made_up"]) == ("cpu", False)
    later = of(client, comparison, "Functional.linear.7.forward")
    assert client.get(f"/api/comparisons/{comparison}/nodes/Functional.linear.7.forward").json()["verdict"] == "no"
    assert later["target"]["word"] == "pass"
    assert later["golden"] is None
    backward = of(client, comparison, "Functional.softmax.1.backward")["target"]
    assert (backward["word"], backward["after_forward"]) == ("fail", True)
    assert of(client, comparison, WRONG, step=1)["target"] is None


def test_the_search_finds_what_fails_alone(client: Client, told: tuple[str, str]) -> None:
    comparison, _ = told

    def found(q: str) -> list[str]:
        reply = client.get(f"/api/comparisons/{comparison}/nodes", params={"q": q, "limit": 500})
        assert reply.status_code == 200, reply.text
        return [row["name"] for row in reply.json()["items"]]

    assert found("alone:fail") == [WRONG, "Functional.softmax.1.backward"]
    everything = found("")
    assert set(found("alone:none")) == set(everything) - set(found("alone:pass,fail,skip,warning"))
    assert set(found("-alone:pass")) == set(everything) - set(found("alone:pass"))
    assert any(name.startswith("Module.") for name in found("alone:none"))
    wrong = client.get(f"/api/comparisons/{comparison}/nodes", params={"q": "alone:wrong"})
    assert wrong.status_code == 400
    assert "pass, warning, fail, skip, none" in wrong.json()["hint"]
    said = client.get(f"/api/comparisons/{comparison}/prechecks").json()
    assert said["failing"] == [{"node": node, "side": "target"} for node in found("alone:fail")]
    assert said["target"]["counts"]["fail"] == 2
    assert said["golden"] == {"total": 0, "counts": {}, "devices": []}


def test_results_that_lie_in_or_beside_a_dump_come_with_it(make_settings: Make, dumps: Path, checked: Path) -> None:
    root = make_settings().data_dir.parent / "root"
    for name, place in (("inside", "inside/precheck"), ("named", "named.precheck"), ("other", "none")):
        shutil.copytree(dumps / "target_fault", root / name)
        shutil.copytree(checked, root / place)
    shutil.copytree(dumps / "target_fault", root / "deep" / "own")
    lines = (checked / STATE).read_text().splitlines(keepends=True)
    (root / "deep" / "precheck").mkdir()
    head = json.dumps({"device": "npu", "path": str(root / "deep" / "own")})
    (root / "deep" / "precheck" / STATE).write_text("".join([head + "\n", *lines[1:]]))
    shutil.copytree(dumps / "conv_L1", root / "deep" / "conv")
    torn = root / "torn"
    shutil.copytree(dumps / "conv_L1", torn)
    (torn / "precheck").mkdir()
    (torn / "precheck" / STATE).write_text('{"device": "cpu"}\n[1]\n{"name": 3, "step": "x"}\n')
    with TestClient(create_app(make_settings(roots=[root])), base_url=BASE) as client:

        def total(path: str) -> int:
            found = register(client, root / path)
            settled(client, f"/api/dumps/{found}")
            return int(client.get(f"/api/dumps/{found}/prechecks").json()["total"])

        assert [total(path) > 0 for path in ("inside", "named", "other", "deep/own", "deep/conv")] == [
            True, True, False, True, False,
        ]  # fmt: skip
        row = settled(client, f"/api/dumps/{register(client, torn)}")
        assert row["status"] == "ready"
        assert [problem["kind"] for problem in row["problems"]].count("precheck") == 1


def test_what_is_no_result_of_this_dump_is_refused(client: Client, dumps: Path, checked: Path, tmp_path: Path) -> None:
    conv = register(client, dumps / "conv_L1")
    settled(client, f"/api/dumps/{conv}")
    address = f"/api/dumps/{conv}/prechecks"
    other = (checked / STATE).read_text().replace("Functional.", "Strange.").replace("T", "t")
    for body, code, said in (
        ({"text": other}, 422, "not those of the dump"),
        ({"text": "nothing\n"}, 422, "holds no result"),
        ({}, 400, "either path or text"),
        ({"text": "x", "path": "y"}, 400, "either path or text"),
        ({"path": str(checked)}, 403, "outside the server's roots"),
        ({"path": str(dumps / "conv_L1")}, 404, "no precheck.jsonl"),
    ):
        reply = client.post(address, json=body)
        assert (reply.status_code, said in reply.json()["detail"]) == (code, True), reply.text
    assert client.get(address).json()["total"] == 0
    assert client.get("/api/dumps/none/prechecks").status_code == 404
    assert client.post(f"{address}/run", json={}).status_code == 409
    assert client.get(address).json()["can_run"] is False


def test_a_later_result_replaces_an_earlier_one_and_all_can_be_forgotten(
    client: Client, told: tuple[str, str], checked: Path
) -> None:
    comparison, target = told
    before = client.get(f"/api/dumps/{target}/prechecks").json()
    lines = (checked / STATE).read_text().splitlines()
    row = next(json.loads(line) for line in lines if '"Functional.softmax.1"' in line)
    fresh = {"step": 0, "rank": 0, "name": row["name"], "crash": "the process ended with signal 11"}
    text = "\n".join([json.dumps({"device": "npu:0"}), json.dumps(fresh)])
    client.post(f"/api/dumps/{target}/prechecks", json={"text": text})
    assert client.get(f"/api/dumps/{target}/prechecks").json()["total"] == before["total"]
    now = of(client, comparison, WRONG)["target"]
    assert (now["word"], now["device"], now["here"]) == ("fail", "npu:0", None)
    assert now["reason"] == "the process ended with signal 11"
    assert client.delete(f"/api/dumps/{target}/prechecks").status_code == 204
    assert client.get(f"/api/dumps/{target}/prechecks").json()["total"] == 0
    assert of(client, comparison, WRONG) == {"target": None, "golden": None}


@pytest.fixture
def lending(make_settings: Make) -> Iterator[Client]:
    """A server that has a Python with torch."""
    with TestClient(create_app(make_settings(python=warm_python())), base_url=BASE) as running:
        yield running


def test_the_server_runs_one_by_its_python_and_keeps_what_comes(lending: Client, dumps: Path) -> None:
    found = compare(lending, dumps / "target_fault_bwd", dumps / "golden", steps=[0])
    target = lending.get(f"/api/comparisons/{found}").json()["target"]
    reply = lending.post(f"/api/dumps/{target}/prechecks/run", json={"device": "cpu"})
    assert reply.status_code == 202, reply.text
    assert lending.post(f"/api/dumps/{target}/prechecks/run", json={}).status_code == 409
    assert settled(lending, f"/api/jobs/{reply.json()['job']}", 200)["status"] == "done"
    said = lending.get(f"/api/dumps/{target}/prechecks").json()
    assert (said["counts"]["fail"], said["devices"], said["can_run"], said["job"]) == (1, ["cpu"], True, None)
    assert of(lending, found, "Functional.layer_norm.3.backward")["target"]["word"] == "fail"
    assert of(lending, found, "Functional.layer_norm.3.forward")["target"]["word"] == "pass"
    for body in ({"device": "--save"}, {"device": "cpu", "python": "/bin/sh"}):
        assert lending.post(f"/api/dumps/{target}/prechecks/run", json=body).status_code == 422


def test_a_run_can_be_cancelled_and_the_dump_stays_what_it_was(
    make_settings: Make, dumps: Path, tmp_path: Path
) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    with TestClient(create_app(make_settings(python=str(slow))), base_url=BASE) as client:
        dump = register(client, dumps / "conv_L1")
        settled(client, f"/api/dumps/{dump}")
        job = client.post(f"/api/dumps/{dump}/prechecks/run", json={}).json()["job"]
        deadline = time.monotonic() + 60
        while client.get(f"/api/jobs/{job}").json()["status"] == "queued":
            assert time.monotonic() < deadline
            time.sleep(0.03)
        assert client.post(f"/api/dumps/{dump}/prechecks/cancel").status_code == 204
        assert settled(client, f"/api/jobs/{job}")["status"] == "cancelled"
        assert client.get(f"/api/dumps/{dump}").json()["status"] == "ready"
        assert client.delete(f"/api/dumps/{dump}").status_code == 204


def test_a_dump_without_calls_fails_the_run_with_the_reason(lending: Client, dumps: Path) -> None:
    dump = register(lending, dumps / "conv_L0")
    settled(lending, f"/api/dumps/{dump}")
    job = lending.post(f"/api/dumps/{dump}/prechecks/run", json={}).json()["job"]
    ended = settled(lending, f"/api/jobs/{job}")
    assert ended["status"] == "failed"
    assert "only modules (level L0)" in ended["error"]["detail"]


def test_the_command_line_sends_its_results_to_a_server(
    make_settings: Make,
    dumps: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUMPSCOPE_TOKEN", "secret")
    monkeypatch.setattr(sys, "executable", warm_python())
    server = uvicorn.Server(
        uvicorn.Config(create_app(make_settings(token="secret")), host="127.0.0.1", port=0, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.03)
    port = server.servers[0].sockets[0].getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    try:
        import httpx  # noqa: PLC0415

        with httpx.Client(base_url=base, headers={"Authorization": "Bearer secret"}) as client:
            dump = register(client, dumps / "conv_L1")  # type: ignore[arg-type]
            settled(client, f"/api/dumps/{dump}")  # type: ignore[arg-type]
            command = ["precheck", str(dumps / "conv_L1"), "--jobs", "1", "-o"]
            for number, address in enumerate((base, f"{base}/dumps/{dump}")):
                client.delete(f"/api/dumps/{dump}/prechecks")
                assert status([*command, str(tmp_path / f"{number}"), "--server", address]) == 0
                assert f"to {address}" in capsys.readouterr().err
                said = client.get(f"/api/dumps/{dump}/prechecks").json()
                assert set(said["counts"]) == {"pass"}
                assert said["total"] > 12
            assert status([*command, str(tmp_path / "2"), "--server", f"{base}/dumps/none"]) == 2
            assert "no dump 'none'" in capsys.readouterr().err
    finally:
        server.should_exit = True
        thread.join(30)
    assert status([*command, str(tmp_path / "3"), "--server", base]) == 2
    assert "is the server running" in capsys.readouterr().err


def test_results_go_with_a_comparison_that_is_exported(
    client: Client, told: tuple[str, str], make_settings: Make, tmp_path: Path
) -> None:
    comparison, _ = told
    file = tmp_path / "copied" / "dumpscope.db"
    file.parent.mkdir()
    file.write_bytes(client.get(f"/api/comparisons/{comparison}/export.db").content)
    with TestClient(create_app(make_settings(data_dir=file.parent)), base_url=BASE) as other:
        assert of(other, comparison, WRONG)["target"]["word"] == "fail"


def test_the_process_that_serves_imports_no_torch(tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415

    code = "import sys, dumpscope.api.app, dumpscope.pipeline.operators.precheck_job; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ)).returncode == 0
