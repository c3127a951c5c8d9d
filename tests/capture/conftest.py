"""Fixtures of the capture tests: one debugger a test, and its dumps read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.register_assert_rewrite("capture.differences")

from dumpscope_capture import PrecisionDebugger  # noqa: E402
from dumpscope_capture.hooks.functions import leave, mode_stack  # noqa: E402


def forget() -> None:
    """Take the debuggers apart."""
    for instance in PrecisionDebugger.all():
        instance._session.pause()
        instance._session.end_step()
    PrecisionDebugger._instance = None
    PrecisionDebugger._others.clear()
    for mode in mode_stack():
        leave(mode)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., PrecisionDebugger]]:
    """Makes the debugger: keys of config.json as arguments, the task's section as `section`."""
    forget()

    def made(section: dict[str, Any] | None = None, **keys: Any) -> PrecisionDebugger:
        settings = {"task": "statistics", "dump_path": str(tmp_path / "dump"), "level": "mix", **keys}
        settings[settings["task"]] = section or {}
        path = tmp_path / "config.json"
        path.write_text(json.dumps(settings), encoding="utf-8")
        return PrecisionDebugger(str(path))

    yield made
    forget()


class Dump:
    """One step's files."""

    def __init__(self, folder: Path) -> None:
        (self.folder,) = folder.iterdir()

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    @property
    def data(self) -> dict[str, Any]:
        return dict(self.json("dump.json")["data"])

    @property
    def construct(self) -> dict[str, Any]:
        return dict(self.json("construct.json"))

    @property
    def run(self) -> dict[str, Any]:
        return dict(self.json("run.json"))

    @property
    def errors(self) -> dict[str, int]:
        return {key: number for key, number in self.run["counts"].items() if key.startswith(("hook_error", "failed"))}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Dump]:
    """Reads a step back; the debugger's `step` closed it."""
    return lambda step=0: Dump(tmp_path / "dump" / f"step{step}")
