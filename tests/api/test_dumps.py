"""Every real dump can be registered and looked into, whatever is odd about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter

from api.conftest import ERROR_KEYS, Client, register, settled
from dumpscope.api.models import dumps as models

DUMPS = (
    "golden", "conv_L0", "conv_L1", "weird_mix", "types_L1", "types_L1_md5", "microbatch", "modellist", "checkpoint",
    "crash_stat", "debug_save_tensor", "cfg_structure", "cfg_noextra", "dist2_stat_golden", "xor_fault", "md5_bf16",
)  # fmt: skip


def everything(client: Client, address: str, **params: Any) -> list[Any]:
    rows: list[Any] = []
    cursor = ""
    while True:
        page = client.get(address, params={**params, "limit": 500, "cursor": cursor}).json()
        rows += page["items"]
        if page["next"] is None:
            assert len(rows) == page["total"]
            return rows
        cursor = page["next"]


@pytest.mark.parametrize("name", DUMPS)
def test_a_real_dump_is_listed_walked_and_opened(served: Client, dumps: Path, name: str) -> None:
    dump = register(served, dumps / name)
    row = settled(served, f"/api/dumps/{dump}")
    TypeAdapter(models.Dump).validate_python(row)
    assert (row["status"], row["name"]) == ("ready", name), row
    listed = 0
    for step in row["steps"]:
        for rank in row["ranks"]:
            unit = f"step={step}&rank={rank}"
            nodes = everything(served, f"/api/dumps/{dump}/nodes", step=step, rank=rank)
            listed += len(nodes)
            top = everything(served, f"/api/dumps/{dump}/tree", step=step, rank=rank)
            assert sum(entry["nodes"] for entry in top) == len(nodes), "the tree holds every node once"
            for node in nodes[:: max(1, len(nodes) // 7)]:
                detail = served.get(f"/api/dumps/{dump}/nodes/{quote(node['name'], safe='')}?{unit}")
                assert detail.status_code == 200, detail.text
                TypeAdapter(models.DumpNode).validate_python(detail.json())
                way = served.get(f"/api/dumps/{dump}/tree", params={"step": step, "rank": rank, "reveal": node["name"]})
                assert way.json()["path"][-1] == node["ordinal"]
    assert listed == row["nodes"]


def test_a_path_to_one_rank_or_file_is_a_dump_too(client: Client, dumps: Path) -> None:
    for path in (dumps / "dist2_stat_golden" / "step0" / "rank1", dumps / "dist2_stat_golden" / "step0"):
        row = settled(client, f"/api/dumps/{register(client, path)}")
        assert row["status"] == "ready"
        assert row["name"] == "dist2_stat_golden"


def test_a_dump_is_renamed_and_found(client: Client, dumps: Path) -> None:
    dump = register(client, dumps / "golden")
    settled(client, f"/api/dumps/{dump}")
    name = "名前 <b>&\"' 100%_ \u202e"
    assert client.patch(f"/api/dumps/{dump}", json={"name": name}).json()["name"] == name
    for part, found in (("100%_", 1), ("100%x", 0), ("名前", 1), ("\\", 0), ("GOLDEN", 1)):
        assert client.get("/api/dumps", params={"q": part}).json()["total"] == found, part
    assert client.patch(f"/api/dumps/{dump}", json={"name": ""}).status_code == 422


def test_names_with_every_awkward_character_open(client: Client, tmp_path: Path, dumps: Path) -> None:
    awkward = [
        "a/b c",
        "<img src=x>",
        "50%#?&+",
        "模块.前向",
        '"quoted"',
        "x" * 300,
        "..",
        "tab\tand\nline",
        "sur\ud800",
    ]
    folder = dumps / "awkward"
    record = {"input_args": [], "input_kwargs": {}, "output": [{"type": "int", "value": 1}]}
    text = json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "data": dict.fromkeys(awkward, record)}
    )
    reply = client.post("/api/uploads", files=[("files", (f"{folder.name}/dump.json", text.encode()))])
    row = settled(client, f"/api/dumps/{reply.json()['id']}")
    assert row["status"] == "ready", row
    names = [node["name"] for node in everything(client, f"/api/dumps/{row['id']}/nodes")]
    assert len(names) == len(awkward)
    for name in names:
        if name == "..":
            continue  # every HTTP client resolves this path itself
        detail = client.get(f"/api/dumps/{row['id']}/nodes/{quote(name, safe='')}")
        assert detail.status_code == 200, name
        assert detail.json()["name"] == name


def test_a_failed_dump_says_why(client: Client, dumps: Path) -> None:
    row = settled(client, f"/api/dumps/{register(client, dumps / 'README.md')}")
    assert row["status"] == "failed"
    assert row["error"]["detail"]
    ready = register(client, dumps / "golden")
    settled(client, f"/api/dumps/{ready}")
    refused = client.post("/api/comparisons", json={"target": row["id"], "golden": ready})
    assert refused.status_code == 409


@pytest.mark.parametrize(
    "address",
    [
        "/api/dumps/none", "/api/dumps/none/tree", "/api/comparisons/none", "/api/comparisons/none/summary",
        "/api/comparisons/none/nodes", "/api/comparisons/none/pairs/7", "/api/jobs/none", "/api/jobs/none/events",
        "/api/comparisons/none/export.csv", "/api/comparisons/none/figures/histogram", "/api/none", "/none/none/none",
    ],
)  # fmt: skip
def test_what_does_not_exist_is_a_404_with_the_one_body(served: Client, address: str) -> None:
    reply = served.get(address)
    assert reply.status_code == 404
    assert set(reply.json()) == ERROR_KEYS


@pytest.mark.parametrize(
    "query",
    [
        "cursor=rubbish", "cursor=W10", "cursor=W1siYSJdLDEsMF0", "limit=0", "limit=501", "limit=x", "parent=-1",
        "parent=99999999999999999999", "step=99999999999", "rank=x",
    ],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(served: Client, fault: str, query: str) -> None:
    reply = served.get(f"/api/comparisons/{fault}/tree?{query}")
    assert reply.status_code in (400, 422), reply.text
    assert set(reply.json()) == ERROR_KEYS


def test_a_missing_field_is_named(client: Client) -> None:
    reply = client.post("/api/dumps", json={})
    assert reply.status_code == 422
    assert reply.json()["detail"] == "path: Field required"


def test_an_unknown_rank_is_named_as_it_was_asked_for(client: Client, dumps: Path) -> None:
    dump = register(client, dumps / "stat_golden")
    settled(client, f"/api/dumps/{dump}")
    assert client.get(f"/api/dumps/{dump}/nodes?rank=7").json()["detail"] == "the dump has no rank 7"


@pytest.mark.parametrize("name", ["", " ", "\t\n "])
def test_a_name_that_nobody_can_see_is_refused(client: Client, dumps: Path, name: str) -> None:
    dump = register(client, dumps / "stat_golden")
    assert client.patch(f"/api/dumps/{dump}", json={"name": name}).status_code == 422
    assert client.patch(f"/api/dumps/{dump}", json={"name": f" mine{name} "}).json()["name"] == "mine"
