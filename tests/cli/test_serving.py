"""`serve` and `demo` as a person starts and ends them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from warm_python import COLD, SERVER, warm_python

from dumpscope.cli.app import status


@contextmanager
def running(*arguments: object, python: str = "", **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Address the server prints, and its process. python: the interpreter, COLD where the process itself is to be killed"""
    process = subprocess.Popen(
        [python or warm_python(SERVER), "-m", "dumpscope", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            text = process.stdout.readline()
            assert text, process.stderr.read() if process.stderr else ""
            found = re.search(r"http://\S+", text)
        yield found[0], process
    finally:
        process.kill()
        process.communicate()


def get(address: str, **headers: str) -> object:
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
        return json.load(answer)


def test_serve_answers_at_the_printed_address_and_ends_cleanly(dumps: Path, tmp_path: Path) -> None:
    arguments = ("serve", "--port", 0, "--data-dir", tmp_path, "--root", dumps, tmp_path)
    with running(*arguments, python=COLD) as (address, process):
        assert get(f"{address}api/health")["status"] == "ok"  # type: ignore[index]
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=60)
        assert process.returncode == 130
        assert complaints == "dumpscope: interrupted\n"


def test_demo_opens_straight_on_the_comparison(tmp_path: Path) -> None:
    with running("demo", "--port", 0, "--data-dir", tmp_path) as (address, _):
        server, comparison = re.fullmatch(r"(http://[^/]+)/comparisons/(\w+)", address).groups()  # type: ignore[union-attr]
        summary = get(f"{server}/api/comparisons/{comparison}/summary")
        assert summary["origins"][0]["node"] == "Functional.softmax.1.forward"  # type: ignore[index]


def test_a_busy_port_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert status(["serve", "--port", str(port), "--data-dir", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"dumpscope: port {port} is in use")
    assert printed.err.count("\n") == 1


def test_a_database_that_cannot_be_opened_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DUMPSCOPE_DATABASE_URL", f"sqlite:///{tmp_path}/file/x.db")
    assert status(["serve", "--port", "0", "--data-dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
