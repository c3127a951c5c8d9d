"""Machine code is kept between runs, and made anew when any function in it changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

INNER = """
from dumpscope.numba_support import machine

@machine
def inner(x):
    return x + {}
"""
OUTER = """
from dumpscope.numba_support import machine
from inner import inner

@machine
def outer(x):
    return inner(x) * 10
"""
RUN = "from outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"


def outcome(folder: Path) -> list[str]:
    """What the outer function says in a new process, and how often its machine code was found ready."""
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.split()


def test_a_change_of_what_a_function_calls_reaches_its_machine_code(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(1))
    assert outcome(tmp_path) == ["20", "0"]
    assert outcome(tmp_path) == ["20", "1"]
    (tmp_path / "inner.py").write_text(INNER.format(5))
    assert outcome(tmp_path) == ["60", "0"]
    assert outcome(tmp_path) == ["60", "1"]
