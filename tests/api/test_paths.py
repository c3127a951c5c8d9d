"""Folders below the roots can be listed to pick a dump from, and nothing else can."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Make, register, settled
from dumpscope.api.app import create_app


@pytest.fixture
def root(tmp_path: Path, dumps: Path) -> Path:
    """A folder with dumps, what is none, links in and out, and what nobody may see."""
    root = tmp_path / "root"
    for name in ("run10", "run2", "notes", ".hidden", "run2/step0/rank0"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "run10" / "step3").mkdir()
    (root / "run2" / "step0" / "rank0" / "dump.json").write_text("{}")
    (root / "notes" / "readme.txt").write_text("hello")
    (root / "old.tar.gz").write_bytes(b"")
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to(root / "run2")
    (root / "loop").symlink_to(root / "loop")
    os.mkfifo(root / "dump.json")
    os.mkdir(os.fsencode(root) + b"/bad\xff")
    return root


@pytest.fixture
def browsed(make_settings: Make, root: Path, dumps: Path) -> Iterator[Client]:
    with TestClient(create_app(make_settings(roots=[root, dumps])), base_url=BASE) as client:
        yield client


def listed(client: Client, path: Path | str, **more: Any) -> dict[str, Any]:
    reply = client.get("/api/paths", params={"path": str(path), **more})
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def test_the_roots_come_first(browsed: Client, root: Path, dumps: Path) -> None:
    body = browsed.get("/api/paths").json()
    assert (body["path"], body["parent"]) == (None, None)
    assert [item["name"] for item in body["items"]] == [str(root), str(dumps.resolve())]


def test_a_folder_shows_what_can_be_read_in_natural_order_and_no_link_out(browsed: Client, root: Path) -> None:
    body = listed(browsed, root)
    assert (body["path"], body["parent"], body["dump"], body["cut"]) == (str(root), None, False, False)
    assert [(item["name"], item["kind"], item["dump"]) for item in body["items"]] == [
        ("in", "folder", True),
        ("notes", "folder", False),
        ("run2", "folder", True),
        ("run10", "folder", True),
        ("old.tar.gz", "archive", True),
    ]
    below = listed(browsed, root / "run2")
    assert (below["parent"], below["dump"], below["items"][0]["name"]) == (str(root), True, "step0")
    assert listed(browsed, root / "run2/step0/rank0")["items"] == [{"name": "dump.json", "kind": "file", "dump": True}]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 403),
        ("/etc", 403),
        ("{root}/..", 403),
        ("{root}/out", 403),
        ("{root}/none", 404),
        ("{root}/old.tar.gz", 400),
    ],
)
def test_what_lies_outside_is_no_folder_or_is_not_there_is_not_listed(
    browsed: Client, root: Path, path: str, status: int
) -> None:
    assert browsed.get("/api/paths", params={"path": path.format(root=root)}).status_code == status


def test_thousands_of_folders_are_paged_and_searched(browsed: Client, root: Path) -> None:
    for number in range(450):
        (root / "notes" / f"run_{number}").mkdir()
    names: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = listed(browsed, root / "notes", cursor=cursor, limit=200)
        assert page["total"] == 450
        names += [item["name"] for item in page["items"]]
        cursor = page["next"]
    assert names == [f"run_{number}" for number in range(450)]
    assert [item["name"] for item in listed(browsed, root / "notes", q="RUN_44")["items"]] == [
        "run_44",
        *(f"run_{number}" for number in range(440, 450)),
    ]


def test_what_looks_like_a_dump_is_one_when_it_is_registered(browsed: Client, dumps: Path) -> None:
    body = listed(browsed, dumps)
    chosen = next(item["name"] for item in body["items"] if item["dump"] and item["name"] == "stat_fault")
    row = settled(browsed, f"/api/dumps/{register(browsed, Path(body['path'], chosen))}")
    assert row["status"] == "ready"
