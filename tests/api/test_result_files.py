"""A server gives one comparison as a file of its own, and such a file shows the same elsewhere."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Compared, compare, settled
from dumpscope.api.app import create_app
from dumpscope.api.downloads import OpenFile
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.results.result_files import open_copies
from dumpscope.settings import Settings

CAUSE = "Functional.softmax.1.forward"


def exported(client: Client, comparison: str, file: Path) -> Path:
    reply = client.get(f"/api/comparisons/{comparison}/export.db")
    assert reply.status_code == 200, reply.text
    file.write_bytes(reply.content)
    return file


@contextmanager
def opened(*files: Path, folder: Path) -> Iterator[tuple[Client, list[str]]]:
    """A server over copies of result files, and the ids of their comparisons."""
    folder.mkdir()
    found = open_copies(files, folder / "dumpscope.db")
    settings = Settings(data_dir=folder, roots=[folder], executor="threads:2")
    with TestClient(create_app(settings, [str(file) for file in files]), base_url=BASE) as client:
        yield client, [one for result in found for one in result.comparisons]


def seen(client: Client, comparison: str) -> dict[str, Any]:
    """What a person looks at, without the keys that each database gives by itself."""
    root = f"/api/comparisons/{comparison}"
    shown: dict[str, Any] = {}
    for unit in client.get(f"{root}/summary").json()["units"]:
        place = {"step": unit["step"], "rank": unit["rank"]}
        rows = client.get(f"{root}/nodes", params={**place, "limit": 500}).json()
        tree = client.get(f"{root}/tree", params={**place, "limit": 500}).json()
        nodes = [client.get(f"{root}/nodes/{row['name']}", params=place).json() for row in rows["items"][:5]]
        shown[f"{place}"] = [rows, tree, nodes, client.get(f"{root}/nodes/{CAUSE}/flow", params=place).json()]
    for name in ("summary", "origins", "notes", "matching", "collectives", "plan", "trends"):
        reply = client.get(f"{root}/{name}")
        assert reply.status_code == 200, reply.text
        shown[name] = reply.json()
    shown["csv"] = client.get(f"{root}/export.csv").text
    shown["json"] = client.get(f"{root}/export.json", params={"pairs": True}).json()
    return without_keys(shown)  # type: ignore[no-any-return]


def without_keys(data: Any) -> Any:
    if isinstance(data, dict):
        dropped = ("id", "key", "parent", "cursor", "next", "pair", "changed")
        return {name: without_keys(value) for name, value in data.items() if name not in dropped}
    return [without_keys(one) for one in data] if isinstance(data, list) else data


@pytest.mark.parametrize(
    ("target", "golden"),
    [("target_fault", "golden"), ("md5_fault", "md5_golden"), ("dist2_stat_fault", "dist2_stat_golden")],
)
def test_a_file_shows_the_same_as_the_server_it_came_from(
    served: Client, compared: Compared, tmp_path: Path, target: str, golden: str
) -> None:
    compared(served, "stat_nan", "stat_golden")  # another's rows lie before ours
    comparison = compared(served, target, golden)
    file = exported(served, comparison, tmp_path / "mine.db")
    with opened(file, folder=tmp_path / "there") as (client, ids):
        assert ids == [comparison]
        assert seen(client, comparison) == seen(served, comparison)


def test_a_file_holds_one_comparison_and_nothing_of_other_people(client: Client, dumps: Path, tmp_path: Path) -> None:
    other = compare(client, dumps / "target_nan", dumps / "golden")
    mine = compare(client, dumps / "target_fault", dumps / "golden")
    for comparison, words in ((other, "theirs"), (mine, "ours")):
        said = client.put(f"/api/comparisons/{comparison}/notes/{CAUSE}", json={"standing": "note", "text": words})
        assert said.status_code == 200, said.text
    file = exported(client, mine, tmp_path / "mine.db")
    content = file.read_bytes()
    assert b"ours" in content
    assert b"theirs" not in content
    assert b"target_nan" not in content
    with closing(sqlite3.connect(file)) as database:
        counts = {
            name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables.metadata.tables
        }
    assert (counts["comparison"], counts["dump"], counts["note"], counts["job"]) == (1, 2, 1, 0)


def test_an_export_leaves_nothing_behind_on_the_server(client: Client, dumps: Path, tmp_path: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    before = sorted((tmp_path / "data").iterdir())
    exported(client, comparison, tmp_path / "mine.db")
    assert sorted((tmp_path / "data").iterdir()) == before


def test_a_download_that_is_broken_off_gives_its_file_back(tmp_path: Path) -> None:
    stream = (tmp_path / "file").open("w+b")

    async def gone(_message: Any = None) -> Any:
        raise OSError("the other end has gone")

    with pytest.raises(BaseException):  # noqa: B017, PT011
        asyncio.run(
            OpenFile(stream, {}, "application/octet-stream")(
                {"type": "http", "asgi": {"spec_version": "2.4"}}, gone, gone
            )
        )
    assert stream.closed


def test_a_part_of_a_comparison_is_no_result_file(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    for part in ({"step": 0}, {"rank": 0}, {"verdict": "no"}):
        reply = client.get(f"/api/comparisons/{comparison}/export.db", params=part)
        assert reply.status_code == 400
        assert "whole comparison" in reply.json()["detail"]
    assert client.get("/api/comparisons/nobody/export.db").status_code == 404


def test_notes_and_policies_work_on_the_copy_and_leave_with_its_own_file(
    client: Client, dumps: Path, tmp_path: Path
) -> None:
    comparison = compare(client, dumps / "target_fault", dumps / "golden")
    file = exported(client, comparison, tmp_path / "first.db")
    content = file.read_bytes()
    with opened(file, folder=tmp_path / "there") as (copy, _):
        root = f"/api/comparisons/{comparison}"
        before = copy.get(f"{root}/summary").json()
        assert copy.put(f"{root}/notes/{CAUSE}", json={"standing": "known", "text": "kernel"}).status_code == 200
        copy.patch(root, json={"policy": "msprobe"})
        assert settled(copy, root)["status"] == "done"
        after = copy.get(f"{root}/summary").json()
        assert after["policy"] == "msprobe"
        assert (after["target"], after["golden"]) == (before["target"], before["golden"])
        second = exported(copy, comparison, tmp_path / "second.db")
    assert file.read_bytes() == content
    with opened(second, folder=tmp_path / "again") as (copy, _):
        assert [one["text"] for one in copy.get(f"/api/comparisons/{comparison}/notes").json()["items"]] == ["kernel"]
        assert copy.get(f"/api/comparisons/{comparison}").json()["policy"] == "msprobe"


def test_several_files_stand_side_by_side_even_where_one_is_given_twice(
    client: Client, dumps: Path, tmp_path: Path
) -> None:
    ids = [compare(client, dumps / name, dumps / "golden") for name in ("target_fault", "target_nan")]
    files = [exported(client, one, tmp_path / f"{one}.db") for one in ids]
    with opened(files[0], files[1], files[0], folder=tmp_path / "there") as (copy, known):
        assert known[:2] == ids
        assert len(set(known)) == 3
        expected = [seen(client, one) for one in (*ids, ids[0])]
        assert [seen(copy, one) for one in known] == expected
        assert copy.get("/api/health").json()["results"] == [str(file) for file in (files[0], files[1], files[0])]


def test_jobs_that_wait_in_a_copied_database_are_not_done(client: Client, dumps: Path, tmp_path: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    file = exported(client, comparison, tmp_path / "mine.db")
    database = Database.open(sqlite_url(file))
    with database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO job (id, kind, subject, status, payload, progress, message, cancel, version, created)"
            f" VALUES ('j', 'compare', '{comparison}', 'queued', '{json.dumps({})}', 0, '', 0, 1, 0)"
        )
    database.close()
    with opened(file, folder=tmp_path / "there") as (copy, _):
        assert copy.get("/api/jobs").json()["items"] == []
        assert copy.get(f"/api/comparisons/{comparison}").json()["status"] == "done"
