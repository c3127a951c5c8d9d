"""Fixtures of the ptdbg tests: a capture a test, in a folder of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from capture.conftest import forget as forget_engine  # noqa: E402
from dumpscope_capture import seeding  # noqa: E402
from dumpscope_capture.ptdbg import core  # noqa: E402


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of another test is left, and the working directory is the test's own."""
    monkeypatch.chdir(tmp_path)
    for name in ("ASCEND_WORK_PATH", "DUMPSCOPE_PTDBG_GENERATION", "DUMPSCOPE_PTDBG_LAYOUT", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    core.forget()
    forget_engine()
    yield
    core.forget()
    forget_engine()
    seeding.undo()
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
