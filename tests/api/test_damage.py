"""Dumps made to harm: over the command line's path and the server's, each ends as one reported problem, at once."""

from __future__ import annotations

import os
import pickle
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Make, register, settled
from dumpscope.api.app import create_app
from dumpscope.domain.options import Options
from dumpscope.errors import UnreadableError
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover

ORIGIN = "Functional.softmax.1.forward"


class Command:
    """A pickle of this runs a command in whoever unpickles it."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.made}",)


def rewrite(path: Path, change: Callable[[str, bytes], bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))


def runs_a_command(path: Path) -> None:
    evil = pickle.dumps(Command(path.parents[3] / "ran"), 2)
    rewrite(path, lambda name, data: evil if name.endswith("data.pkl") else data)


def claims_too_much(path: Path) -> None:
    """The storage of 96 elements claims 2^33, and so does the shape (2, 6, 8)."""
    huge = b"\x8a\x05" + (1 << 33).to_bytes(5, "little")

    def grow(name: str, data: bytes) -> bytes:
        if not name.endswith("data.pkl"):
            return data
        grown = data.replace(b"K`tq", huge + b"tq").replace(b"K\x02K\x06K\x08\x87", huge + b"K\x01K\x01\x87")
        assert len(grown) == len(data) + 10
        return grown

    rewrite(path, grow)
    assert path.stat().st_size < 2048


def inflates_without_end(path: Path) -> None:
    zeros = bytes(256 << 20)
    rewrite(path, lambda name, data: zeros if "/data/" in name else data, zipfile.ZIP_DEFLATED)


def links_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def is_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def is_rubbish(path: Path) -> None:
    path.write_bytes(b"rubbish" * 40)


HARMS = {
    "Functional.linear.0.forward.input.0": claims_too_much,
    "Functional.linear.0.forward.input.1": runs_a_command,
    "Functional.linear.0.forward.input.2": inflates_without_end,
    "Functional.linear.0.forward.output.0": links_out,
    "Functional.linear.1.forward.input.1": is_a_pipe,
    "Functional.linear.1.forward.input.2": is_rubbish,
}


def writable(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return folder


@pytest.fixture
def harmful(tmp_path: Path, dumps: Path) -> Path:
    """A real dump, some of whose tensor files do harm."""
    folder = writable(dumps / "target_fault" / "step0", tmp_path / "harmful" / "step0")
    (tensors,) = folder.glob("*/dump_tensor_data")
    for name, harm in HARMS.items():
        harm(tensors / f"{name}.pt")
    return folder.parent


def test_every_harm_is_one_problem_of_the_comparison_and_the_rest_is_compared(
    harmful: Path, dumps: Path, make_settings: Make
) -> None:
    golden = dumps / "golden" / "step0"
    begin = time.process_time()
    outcome = compare_layouts(discover(harmful), discover(golden), Options(), paths=("t", "g"), jobs=1)
    assert time.process_time() - begin < 5
    assert outcome.incomplete
    assert sorted(one.loc.rsplit("/", 1)[-1] for one in outcome.answer.problems) == sorted(HARMS)
    assert [origin.node for origin in outcome.answer.origins] == [ORIGIN]

    with TestClient(create_app(make_settings(roots=[harmful, dumps])), base_url=BASE) as client:
        summary = summary_of(client, harmful, golden)
    assert sorted(one["loc"].rsplit("/", 1)[-1] for one in summary["problems"]) == sorted(HARMS)
    assert summary["counts"]["unreadable"] == len(HARMS)
    assert [origin["node"] for origin in summary["origins"]] == [ORIGIN]
    assert not (harmful.parent / "ran").exists()


def summary_of(client: Client, target: Path, golden: Path) -> Any:
    ids = [register(client, path) for path in (target, golden)]
    made = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]}).json()
    assert settled(client, f"/api/comparisons/{made['id']}")["status"] == "done"
    return client.get(f"/api/comparisons/{made['id']}/summary").json()


def test_a_run_that_recorded_nothing_is_an_error_and_not_a_comparison(client: Client, dumps: Path) -> None:
    target, golden = dumps / "crash_stat", dumps / "stat_golden"
    with pytest.raises(UnreadableError, match="nothing was recorded"):
        compare_layouts(discover(target), discover(golden), Options(), paths=("t", "g"))
    ids = [register(client, path) for path in (target, golden)]
    made = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]}).json()
    row = settled(client, f"/api/comparisons/{made['id']}")
    assert row["status"] == "failed"
    assert (row["error"]["error"], row["error"]["status"]) == ("unreadable", 422)
    assert "nothing was recorded" in row["error"]["detail"]
