"""A signal ends a server at every moment of its start, and no copy of a result file is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from warm_python import SERVER, warm_python

from cli.test_result_files import older

SCRIPT = Path(__file__).with_name("signalled.py")
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
SECONDS = 60
"""More than any end takes, less than a server that nobody ends."""


@pytest.fixture(scope="module")
def result(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result file of an older dumpscope, whose copy is brought up to date at the start."""
    folder = tmp_path_factory.mktemp("result")
    command = [sys.executable, "-m", "dumpscope", "compare", dumps / "stat_fault", dumps / "stat_golden", "-o", folder]
    subprocess.run(command, check=False, capture_output=True, timeout=120)
    return older(folder / "result.db", folder, "0006")


def start(
    result: Path, folder: Path, number: str, moment: object, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Start a server that is sent a signal; temporary files go to `folder`."""
    folder.mkdir()
    return subprocess.run(
        [python, SCRIPT, number, str(moment), "serve", result, "--port", "0"],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def ended(process: subprocess.CompletedProcess[str], number: str, folder: Path) -> None:
    """130 after Ctrl-C, and by the signal itself after others; nothing is left."""
    expected = 130 if number == "SIGINT" else -signal.Signals[number]
    assert process.returncode == expected, process.stdout + process.stderr
    said = process.stderr.splitlines()
    assert said[0] == "dumpscope: interrupted"
    # Python's tracker of semaphores tidies up behind the pool of a server that is ended at once, and says so
    assert [line for line in said[1:] if "resource_tracker" not in line] == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("copied", "SIGTERM"), ("migrated", "SIGINT"), ("told", "SIGHUP"), ("lost", "SIGINT"), ("lost", "SIGHUP"),
        ("opening", "SIGINT"), ("opening", "SIGHUP"), ("answering", "SIGTERM"), ("answering", "SIGHUP"),
    ],
)  # fmt: skip
def test_a_signal_at_a_known_moment_of_the_start_ends_it(
    result: Path, tmp_path: Path, moment: str, number: str
) -> None:
    folder = tmp_path / "tmp"
    # signalled.py imports the modules of a named moment before the start in any case
    ended(start(result, folder, number, moment, warm_python(SERVER)), number, folder)


def test_a_signal_at_any_moment_of_the_start_ends_it(result: Path, tmp_path: Path) -> None:
    process = start(result, tmp_path / "whole", "SIGINT", "count")
    calls = int(re.findall(r"calls (\d+)", process.stdout)[-1])
    assert calls > 10_000
    moments: Sequence[int] = [1, *(calls * part // 9 + 1 for part in range(1, 9))]

    def run(place: int) -> None:
        number, folder = SIGNALS[place % 3], tmp_path / f"tmp{place}"
        ended(start(result, folder, number, moments[place]), number, folder)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(len(moments))))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_modules_are_imported_ends_the_process(number: str) -> None:
    code = (
        "import os, signal, sys\n"
        "class Sends:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'dumpscope.cli': os.kill(os.getpid(), signal.{number})\n"
        "sys.meta_path.insert(0, Sends())\n"
        "from dumpscope.__main__ import main\n"
        "main()"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (process.returncode, process.stdout, process.stderr) == (-signal.Signals[number], "", "")


def test_an_ignored_hangup_stays_ignored() -> None:
    """As under nohup."""
    code = (
        "import signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from dumpscope.cli.ending import Ending\n"
        "with Ending() as ending:\n"
        "    signal.raise_signal(signal.SIGHUP)\n"
        "print(ending.asked)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True, timeout=SECONDS) == "None\n"
