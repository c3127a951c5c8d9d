"""`dumpscope upload` and `dumpscope compare --server`, against a running server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dumpscope.cli.app import status
from dumpscope.client import Client

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(autouse=True)
def user(as_user: Callable[[], None]) -> None:
    as_user()


def test_compare_on_a_server_prints_what_compare_prints_here(
    dumps: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [str(dumps / name) for name in ("stat_fault", "stat_golden")]
    assert status(["compare", *sides]) == 1
    here = capsys.readouterr().out
    assert status(["compare", *sides, "--server", address]) == 1
    there = capsys.readouterr()
    page = re.search(rf"its page: ({re.escape(address)}/comparisons/\w+)\n", there.out)
    assert page is not None

    def without_paths(text: str) -> list[str]:
        kept = [line for line in text.splitlines() if not line.startswith(("target:", "golden:", "its page:"))]
        return [line.replace("policy default, 1 step and 1 rank", "policy default") for line in kept]

    assert without_paths(there.out) == without_paths(here)
    assert status(["--lang", "zh", "compare", *sides, "--server", address]) == 1
    assert "置信度" in capsys.readouterr().out


def test_a_word_is_a_file_here_or_a_dump_or_a_path_there(
    client: Client, dumps: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = client.register(str(dumps / "stat_golden"), name="the golden of today")
    count = sum(1 for _ in client.dumps())
    for word in (golden.id, "the golden of today"):
        assert status(["compare", word, golden.id, "--server", address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outcome"] == "agrees"
    assert sum(1 for _ in client.dumps()) == count, "a known dump is taken, not made again"
    assert status(["compare", "stat_fault", golden.id, "--server", address, "--json", "--fail-on", "never"]) == 0
    assert json.loads(capsys.readouterr().out)["origins"][0]["node"] == CAUSE
    count = sum(1 for _ in client.dumps())
    for sides in (["nowhere/at/all", golden.id], [str(dumps / "stat_fault"), "nowhere/at/all"]):
        assert status(["compare", *sides, "--server", address]) == 2
        assert "nothing is there" in (said := capsys.readouterr().err)
        assert "is there, and holds no nowhere" in said
    assert sum(1 for _ in client.dumps()) == count, "nothing is sent before the other side is known"


def test_options_and_files_are_those_of_the_command(
    dumps: Path, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = ["target_fault", "golden"]
    command = ["compare", *sides, "--server", address, "--step", "0", "--json", "--pairs"]
    assert status([*command, "-o", str(tmp_path / "out"), "--format", "csv,xlsx,html,junit"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {pair["step"] for pair in document["pairs"]} == {0}
    names = {"compare_result.csv", "compare_result.xlsx", "report.html", "junit.xml", "result.db"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == names
    assert status(["compare", *sides, "--server", address, "-o", str(tmp_path), "--format", "ptdbg"]) == 2
    assert status(["compare", sides[0], "--server", address]) == 2
    assert status(["compare", *sides, "--server", address, "--dry-run"]) == 2
    assert status(["compare", *sides, "--server", "nonsense"]) == 2


def test_upload_sends_a_dump_and_prints_its_page(
    client: Client, dumps: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["upload", str(dumps / "stat_nan"), "--name", "nan run"]) == 0
    told = capsys.readouterr()
    found = re.search(r"nan run is at (\S+)/dumps/(\w+)", told.out)
    assert found is not None
    assert client.dump(found[2]).name == "nan run"
    assert "100%" in told.err or "MiB" in told.err


def test_health_says_whether_a_server_can_work_and_waits_for_one(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status(["health"]) == 0
    assert "sqlite" in capsys.readouterr().out
    assert status(["health", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["executor"] == "threads:2"
    monkeypatch.setattr("dumpscope.api.routes.health.lacks_workers", lambda executor: True)
    assert status(["health"]) == 1
    assert "no worker" in capsys.readouterr().out
    monkeypatch.setenv("DUMPSCOPE_TOKEN", "wrong")
    assert status(["health", "--wait", "60"]) == 2, "a wrong token does not become right"
    monkeypatch.delenv("DUMPSCOPE_SERVER")
    monkeypatch.setenv("DUMPSCOPE_PORT", "1")
    begun = time.monotonic()
    assert status(["health", "--wait", "1"]) == 2
    assert time.monotonic() - begun >= 1
    assert "no answer" in capsys.readouterr().err


def test_explain_says_the_same_of_a_result_file_and_of_a_server(
    dumps: Path, address: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [str(dumps / name) for name in ("target_fault", "golden")]
    assert status(["compare", *sides, "-o", str(tmp_path)]) == 1
    capsys.readouterr()
    assert status(["explain", str(tmp_path), "--json"]) == 0
    here = json.loads(capsys.readouterr().out)
    assert here["name"] == CAUSE
    assert here["explanation"]["facts"]["reads"]["equal"] == 2
    assert status(["explain", fault, CAUSE, "--server", address, "--json"]) == 0
    there = json.loads(capsys.readouterr().out)
    assert there["explanation"] == here["explanation"]
    assert there["target_stack"] == here["target_stack"]
    assert status(["--lang", "zh", "explain", str(tmp_path), "Functional.softmax.0.forward", "--step", "0"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "Functional.softmax.0.forward"
    assert "标杆侧的调用栈" in out
    assert status(["explain", str(tmp_path), "no.such.call"]) == 2
    assert "no node" in capsys.readouterr().err
