"""A dump packed by `tar`, whose equal tensor files are hard links, is the same dump: on the command line and uploaded."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from api.conftest import BASE, Client, settled
from torch import nn

from dumpscope.api.app import create_app
from dumpscope.cli.app import main
from dumpscope.settings import Settings

pytestmark = pytest.mark.skipif(shutil.which("tar") is None, reason="no tar here")


@pytest.fixture
def packed(make: Any, tmp_path: Path) -> tuple[Path, Path]:
    """(folder, archive) of two steps with tensors."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    debugger = make(task="tensor")
    for _ in range(2):
        debugger.start(model)
        model(torch.ones(3, 8)).sum().backward()
        optimizer.step()
        debugger.stop()
        debugger.step()
    assert any(path.stat().st_nlink > 1 for path in (tmp_path / "dump").rglob("*.pt"))
    path = tmp_path / "dump.tgz"
    subprocess.run(["tar", "czf", str(path), "dump"], cwd=tmp_path, check=True)
    return tmp_path / "dump", path


def _told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--json"])
    assert end.value.code == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_command_line_reads_every_tensor(packed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder, path = (str(one) for one in packed)
    plain, unpacked = _told(capsys, "info", folder), _told(capsys, "info", path)
    assert unpacked["units"] == plain["units"]
    assert unpacked["problems"] == []
    assert all(unit["tensor_files"] > 30 and unit["tensor_files_missing"] == 0 for unit in unpacked["units"])
    summary = _told(capsys, "compare", path, folder)
    assert summary["mode"] == "tensor"
    assert summary["origins"] == []


def test_info_counts_the_files_that_are_there(packed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(packed[0].rglob("step0/*/dump_tensor_data/*.pt"))
    for path in files[:5]:
        path.unlink()
    unit = _told(capsys, "info", str(packed[0]))["units"][0]
    assert (unit["tensor_files"], unit["tensor_files_missing"]) == (len(files) - 5, 5)


def test_an_upload_reads_every_tensor(packed: tuple[Path, Path], tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", roots=[], executor="threads:2")
    with Client(create_app(settings), base_url=BASE) as client:
        ids = []
        for name in ("one.tgz", "two.tgz"):
            reply = client.post("/api/uploads", files=[("files", (name, packed[1].read_bytes()))])
            row = settled(client, f"/api/dumps/{reply.json()['id']}")
            assert not row["problems"]
            ids.append(row["id"])
        reply = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]})
        row = settled(client, f"/api/comparisons/{reply.json()['id']}")
    assert (row["mode"], row["origin"]) == ("tensor", None)
