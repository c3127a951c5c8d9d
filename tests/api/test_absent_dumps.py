"""A comparison whose dumps are elsewhere: what was measured stays, what needs their files says so."""

from __future__ import annotations

import shutil
from pathlib import Path

from fastapi.testclient import TestClient

from api.conftest import BASE, Make, compare, settled
from api.test_result_files import CAUSE, exported, opened, seen
from dumpscope.api.app import create_app


def test_what_needs_the_dumps_says_that_they_are_not_here(make_settings: Make, dumps: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in ("target_fault", "golden"):
        shutil.copytree(dumps / name, mine / name)
    with TestClient(create_app(make_settings(roots=[mine])), base_url=BASE) as client:
        comparison = compare(client, mine / "target_fault", mine / "golden")
        file = exported(client, comparison, tmp_path / "mine.db")
    shutil.rmtree(mine)
    with opened(file, folder=tmp_path / "there") as (copy, _):
        root = f"/api/comparisons/{comparison}"
        figure = copy.get(f"{root}/figures/histogram", params={"node": CAUSE}).json()
        assert figure["figure"] is None
        assert f"not here: there is no folder {mine / 'target_fault'}" in figure["missing"]
        stored = copy.get(f"{root}/figures/error-histogram", params={"node": CAUSE}).json()
        assert stored["figure"] is not None
        pair = copy.get(f"{root}/nodes/{CAUSE}").json()["items"][0]["id"]
        assert "not here" in copy.get(f"{root}/pairs/{pair}/values").json()["missing"]
        before = seen(copy, comparison)
        sides = copy.get(root).json()
        for reply in (
            copy.post(f"{root}/matching/apply"),
            copy.post("/api/comparisons", json={"target": sides["target"], "golden": sides["golden"]}),
        ):
            assert reply.status_code == 409
            assert "the tensor files of the dump target_fault are not here" in reply.json()["detail"]
            assert str(mine / "target_fault") in reply.json()["detail"]
        assert seen(copy, comparison) == before
        body = {"target": sides["target"], "golden": sides["golden"], "options": {"tensors": False}}
        other = copy.post("/api/comparisons", json=body).json()["id"]
        assert settled(copy, f"/api/comparisons/{other}")["mode"] == "statistics"
        assert "<html" in copy.get(f"{root}/export.html").text


def test_statistics_are_compared_again_without_their_dumps(make_settings: Make, dumps: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in ("stat_fault", "stat_golden"):
        shutil.copytree(dumps / name, mine / name)
    with TestClient(create_app(make_settings(roots=[mine])), base_url=BASE) as client:
        comparison = compare(client, mine / "stat_fault", mine / "stat_golden")
        file = exported(client, comparison, tmp_path / "mine.db")
    shutil.rmtree(mine)
    with opened(file, folder=tmp_path / "there") as (copy, _):
        root = f"/api/comparisons/{comparison}"
        before = copy.get(f"{root}/origins").json()
        assert copy.post(f"{root}/matching/apply").status_code == 202
        assert settled(copy, root)["status"] == "done"
        assert copy.get(f"{root}/origins").json() == before
