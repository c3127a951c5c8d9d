"""Dumps of ptdbg over HTTP: registered, uploaded, compared and exported like any other."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from readers.ptdbg_dumps import convert_dump
from readers.test_cases import call, tensor, write

from api.conftest import BASE, Client, Make, compare, register, settled
from api.test_comparisons import get
from api.test_uploads import archive, folder_parts, uploaded
from dumpscope.api.app import create_app

CAUSE = "Functional_softmax_1_forward"


@pytest.fixture(scope="module")
def made(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ptdbg")
    for name, form in (("target_fault", "2.3"), ("golden", "6.0")):
        convert_dump(dumps / name, folder / name, form=form)
    for name, value in (("cases", 2.0), ("other_cases", 3.0)):
        (folder / name).mkdir()
        kept = tensor(folder / name, "Torch.mul.0.0", np.full((2, 2), value, np.float32))
        write(folder / name, "forward", {"Torch.mul.0": call(kept)})
    return folder


@pytest.fixture
def client(make_settings: Make, made: Path, dumps: Path) -> Iterator[Client]:
    with TestClient(create_app(make_settings(roots=[made, dumps])), base_url=BASE) as running:
        yield running


def test_the_true_cause_is_named_and_everything_about_it_can_be_asked(client: Client, made: Path) -> None:
    comparison = compare(client, made / "target_fault", made / "golden")
    address = f"/api/comparisons/{comparison}"
    row = get(client, address)
    assert (row["status"], row["mode"]) == ("done", "tensor")
    assert row["origin"] == {"node": CAUSE, "kind": "computation", "step": 0, "rank": 0}
    node = get(client, f"{address}/nodes/{CAUSE}?step=0&rank=0")
    assert node["api"] == "Functional.softmax"
    assert node["siblings"] == ["Functional_softmax_1_backward"]
    assert "models.py" in str(node["target_stack"])
    pairs = get(client, f"{address}/pairs?step=0&rank=0&api=Functional.softmax")["items"]
    named = {(one["target"], one["golden"]) for one in pairs if one["node"] == CAUSE}
    assert named >= {(f"{CAUSE}_output", "Functional.softmax.1.forward.output")}
    table = client.get(f"{address}/export.csv?step=0&rank=0").text
    assert f"{CAUSE}_output" in {line["NPU Name"] for line in csv.DictReader(io.StringIO(table))}


def test_a_stored_dump_says_what_a_read_one_does(client: Client, made: Path) -> None:
    dump = register(client, made / "target_fault")
    row = settled(client, f"/api/dumps/{dump}")
    assert (row["status"], row["framework"], row["task"], row["level"], row["steps"]) == (
        "ready",
        "pytorch",
        "tensor",
        "L1",
        [0],
    )
    node = get(client, f"/api/dumps/{dump}/nodes/{CAUSE}")
    names = [leaf["name"] for leaf in node["items"]]
    assert names == [f"{CAUSE}_input.0", f"{CAUSE}_output"]
    assert [leaf["data_name"] for leaf in node["items"]] == [f"{name}.npy" for name in names]
    assert node["siblings"] == ["Functional_softmax_1_backward"]


@pytest.mark.parametrize("way", ["folder", "zip", "tar"])
def test_an_uploaded_dump_is_the_same(client: Client, made: Path, dumps: Path, way: str) -> None:
    source = made / "target_fault"
    parts = folder_parts(source) if way == "folder" else [("files", (f"dump.{way}", archive(source, way)))]
    row = uploaded(client, parts)
    assert (row["status"], row["problems"]) == ("ready", [])
    direct = settled(client, f"/api/dumps/{register(client, source)}")
    assert [row[key] for key in ("nodes", "items", "steps", "ranks")] == [
        direct[key] for key in ("nodes", "items", "steps", "ranks")
    ]
    golden = register(client, dumps / "golden")
    reply = client.post("/api/comparisons", json={"target": row["id"], "golden": golden})
    found = settled(client, f"/api/comparisons/{reply.json()['id']}")
    assert found["origin"]["node"] == CAUSE


def test_its_folders_are_offered_where_paths_are_picked(client: Client, made: Path) -> None:
    tag = made / "target_fault" / "ptdbg_dump_v4.0"
    listed = client.get("/api/paths", params={"path": str(tag / "rank0")}).json()
    assert listed["dump"]
    assert [(item["name"], item["kind"]) for item in listed["items"]] == [("dump", "folder"), ("dump.pkl", "file")]
    assert client.get("/api/paths", params={"path": str(tag)}).json()["dump"]


@pytest.mark.parametrize("way", ["registered", "folder", "zip"])
def test_what_need_replicate_kept_is_shown_and_compared(client: Client, made: Path, way: str) -> None:
    source = made / "cases"
    if way == "registered":
        dump = register(client, source)
    else:
        parts = folder_parts(source) if way == "folder" else [("files", (f"dump.{way}", archive(source, way)))]
        dump = uploaded(client, parts)["id"]
    assert settled(client, f"/api/dumps/{dump}")["problems"] == []
    (leaf,) = get(client, f"/api/dumps/{dump}/nodes/Torch.mul.0.forward")["items"]
    assert (leaf["dtype"], leaf["shape"]) == ("torch.float32", [2, 2])
    row = get(client, f"/api/comparisons/{compare(client, source, made / 'other_cases')}")
    assert (row["status"], row["mode"]) == ("done", "tensor")
    assert row["origin"]["node"] == "Torch.mul.0.forward"
