"""A dump format of another package opens like any other: in `info`, in a comparison, in a folder list and over REST."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

LAYERS = [f"layers.{number}.mlp" for number in range(12)]
FAULT = "Module.layers.7.mlp.Layer.forward.0"
SERVER = """
import json, sys, time
from pathlib import Path
from fastapi.testclient import TestClient
from dumpscope.api.app import create_app
from dumpscope.settings import Settings

root = Path(sys.argv[1])
settings = Settings(data_dir=root / "data", roots=[root], executor="threads:2")
with TestClient(create_app(settings), base_url="http://127.0.0.1:8000") as client:
    def wait(address):
        while (body := client.get(address).json())["status"] in ("pending", "running", "queued"):
            time.sleep(0.05)
        return body
    sides = [client.post("/api/dumps", json={"path": str(root / name)}).json()["id"] for name in ("target", "golden")]
    dumps = [wait(f"/api/dumps/{side}") for side in sides]
    begun = client.post("/api/comparisons", json={"target": sides[0], "golden": sides[1]}).json()["id"]
    listed = client.get("/api/paths", params={"path": str(root)}).json()
    print(json.dumps([dumps, wait(f"/api/comparisons/{begun}"), listed]))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of one file a layer; the target's layers from the seventh on hold other numbers."""
    root = tmp_path_factory.mktemp("npy")
    random = np.random.default_rng(5)
    for name in ("target", "golden"):
        (root / name).mkdir()
    for number, layer in enumerate(LAYERS):
        values = random.standard_normal((8, 16), np.float32)
        np.save(root / "golden" / f"{number:03}_{layer}.npy", values)
        np.save(root / "target" / f"{number:03}_{layer}.npy", values if number < 7 else values * np.float32(1.5))
    return root


def run(extended: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dumpscope", *arguments]
    return subprocess.run(command, env=extended, capture_output=True, text=True, check=False, timeout=250)


def test_info_says_what_is_in_it(extended: dict[str, str], folders: Path) -> None:
    told = run(extended, "info", str(folders / "target"), "--json")
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert (document["layout"], document["nodes"], document["items"]) == ("npy-folder", len(LAYERS), len(LAYERS))
    assert document["problems"] == []
    assert "form of npy-folder" in run(extended, "info", str(folders / "target")).stdout


def test_a_comparison_names_the_layer_that_went_wrong_first(extended: dict[str, str], folders: Path) -> None:
    compared = run(extended, "compare", str(folders / "target"), str(folders / "golden"), "--json")
    assert compared.returncode == 1, compared.stderr
    document = json.loads(compared.stdout)
    assert [origin["node"] for origin in document["origins"]] == [FAULT]


def test_without_the_package_the_folder_is_one_of_any_tensors(folders: Path) -> None:
    command = [sys.executable, "-m", "dumpscope", "info", str(folders / "target"), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["layout"] == "tensor files"


def test_a_server_lists_opens_and_compares_it(extended: dict[str, str], folders: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVER, folders], env=extended, capture_output=True, text=True, check=False, timeout=250
    )
    assert done.returncode == 0, done.stderr
    dumps, comparison, listed = json.loads(done.stdout)
    assert [(dump["status"], dump["nodes"]) for dump in dumps] == [("ready", len(LAYERS))] * 2
    assert comparison["status"] == "done"
    assert comparison["origin"]["node"] == FAULT
    assert {entry["name"] for entry in listed["items"] if entry["dump"]} == {"target", "golden"}
