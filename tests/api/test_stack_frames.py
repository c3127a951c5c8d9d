"""Which frames are the user's own is decided once: the same over REST, on the command line and in the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from api.conftest import Client, Make, compare
from dumpscope.api.app import create_app
from dumpscope.cli.app import status
from dumpscope.export.stack_frames import read_frames, user_frame

MEGATRON = "File /opt/Megatron-LM/megatron/core/transformer/mlp.py, line 40, in forward, \n y = self.act(x)"
OWN = "/home/user/train/models.py"


@pytest.fixture
def sides(dumps: Path, tmp_path: Path) -> tuple[Path, Path]:
    """target_fault and golden, every call of both made by a line of megatron/core."""
    for name in ("target_fault", "golden"):
        shutil.copytree(dumps / name / "step0", tmp_path / name / "step0", copy_function=shutil.copyfile)
        for folder in [tmp_path / name, *(tmp_path / name).rglob("*")]:
            folder.chmod(0o755 if folder.is_dir() else 0o644)
        for file in (tmp_path / name).rglob("stack.json"):
            stacks = json.loads(file.read_text())
            file.write_text(json.dumps({key: [names, [MEGATRON, *stack]] for key, (names, stack) in stacks.items()}))
    return tmp_path / "target_fault", tmp_path / "golden"


def test_a_frame_in_megatron_core_is_nobodys_own(
    sides: tuple[Path, Path], make_settings: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, golden = sides
    with Client(create_app(make_settings(roots=[tmp_path])), base_url="http://127.0.0.1:8000") as client:
        made = compare(client, target, golden)
        origin = client.get(f"/api/comparisons/{made}/origins").json()["items"][0]
        first_no = client.get(f"/api/comparisons/{made}/summary").json()["first_no"]
        node = client.get(f"/api/comparisons/{made}/nodes/{origin['node']}").json()
        dump = client.get(f"/api/comparisons/{made}").json()["target"]
        record = client.get(f"/api/dumps/{dump}/nodes/{origin['node']}").json()
    assert origin["stack"][0] == MEGATRON
    assert origin["frames"][0] == {
        "file": "/opt/Megatron-LM/megatron/core/transformer/mlp.py",
        "line": 40,
        "function": "forward",
        "code": "y = self.act(x)",
        "own": False,
    }
    assert len(origin["frames"]) == len(origin["stack"])
    own = next(frame for frame in origin["frames"] if frame["own"])
    assert (own["file"], own["line"]) == (OWN, 14)
    assert first_no["frames"] == origin["frames"]
    assert node["target_frames"] == record["frames"] == origin["frames"]
    assert [frame["own"] for frame in node["golden_frames"]] == [frame["own"] for frame in origin["frames"]]

    assert status(["compare", str(target), str(golden), "-o", str(tmp_path / "out"), "--format", "html"]) == 1
    assert f"called at {OWN}:14 in forward" in capsys.readouterr().out
    assert f"Called at <code>{OWN}:14 in forward" in (tmp_path / "out" / "report.html").read_text()
    assert status(["compare", str(target), str(golden), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["origins"][0]["frames"] == origin["frames"]


def test_a_text_of_an_unknown_form_is_shown_and_names_no_line() -> None:
    (frame,) = read_frames(["  <something else>  "])
    assert (frame.file, frame.line, frame.own) == ("<something else>", None, True)
    assert user_frame(["<something else>"]) is None


@pytest.mark.parametrize(
    "file",
    [
        "/usr/lib/python3.11/threading.py",
        r"C:\Python311\Lib\python\ast.py",
        "/venv/lib/python3.12/site-packages/x/y.py",
        "/opt/Megatron-LM/megatron/core/pipeline.py",
        "/opt/DeepSpeed/deepspeed/runtime/engine.py",
        "<frozen runpy>",
    ],
)
def test_a_librarys_frame_is_not_the_users(file: str) -> None:
    (frame,) = read_frames([f"File {file}, line 1, in f, \n g()"])
    assert not frame.own
