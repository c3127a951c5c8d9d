"""Recordings of other tools on a server: registered, compared, browsed, and found by the page that lists what may be opened."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, compare, register, settled
from api.test_comparisons import get
from dumpscope.api.app import create_app
from dumpscope.settings import Settings

ARCHIVE = Path(__file__).parents[1] / "data" / "recordings.tar.xz"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, recordings: Path) -> Iterator[Client]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), roots=[recordings], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


@pytest.mark.parametrize(
    ("fault", "golden", "cause"),
    [
        ("debug_mode/fault.log", "debug_mode/golden.log", "Aten.mul.Tensor.0.forward"),
        ("torchtitan/fault", "torchtitan/golden", "Aten.mul.0.forward"),
        ("transformers/saved_fault", "ours/llama", "Module.model.layers.1.mlp.act_fn.Module.forward.0"),
        ("sglang/fault", "sglang/golden", "Module.layers.1.mlp_act.Module.forward.0"),
    ],
)
def test_a_server_names_the_cause_from_what_other_tools_recorded(
    server: Client, recordings: Path, fault: str, golden: str, cause: str
) -> None:
    comparison = compare(server, recordings / fault, recordings / golden)
    (origin,) = get(server, f"/api/comparisons/{comparison}/origins")["items"]
    assert origin["node"] == cause
    node = f"/api/comparisons/{comparison}/nodes/{quote(cause)}"
    assert get(server, node)["verdict"] == "no"
    # Judged again, from what was stored, it is the same: traits and what stood in the dump came back from the database.
    assert server.patch(f"/api/comparisons/{comparison}", json={"policy": "ptdbg"}).is_success
    settled(server, f"/api/comparisons/{comparison}")
    assert server.patch(f"/api/comparisons/{comparison}", json={"policy": "default"}).is_success
    settled(server, f"/api/comparisons/{comparison}")
    assert [one["node"] for one in get(server, f"/api/comparisons/{comparison}/origins")["items"]] == [cause]


def test_values_of_a_tensor_inside_a_file_are_shown(server: Client, recordings: Path) -> None:
    np.savez(recordings / "acts.npz", a=np.arange(6.0).reshape(2, 3), b=np.ones(2))
    dump = register(server, recordings / "acts.npz")
    assert settled(server, f"/api/dumps/{dump}")["status"] == "ready"
    shown = get(server, f"/api/dumps/{dump}/nodes/Module.a.Module.forward.0")
    (item,) = shown["items"]
    assert get(server, f"/api/dumps/{dump}/items/{item['id']}/values")["rows"] == [
        ["0.0", "1.0", "2.0"],
        ["3.0", "4.0", "5.0"],
    ]


def test_the_page_that_browses_marks_them_as_dumps(server: Client, recordings: Path) -> None:
    listed = get(server, f"/api/paths?path={quote(str(recordings / 'transformers' / 'printed'))}")
    assert [entry["dump"] for entry in listed["items"] if entry["name"].endswith("FULL_TENSORS.json")] == [True]
    above = get(server, f"/api/paths?path={quote(str(recordings / 'sglang'))}")
    assert {entry["name"]: entry["dump"] for entry in above["items"]} == {"fault": True, "golden": True}
