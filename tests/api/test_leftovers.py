"""What a killed server left in the middle of an export or a deletion is gone at the next start."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Make, compare, register, settled
from dumpscope.api.app import create_app
from dumpscope.errors import ConflictError
from dumpscope.index.dumps.catalogue import delete_dump
from dumpscope.index.store.database import Database
from dumpscope.pipeline.tasks.cleanup import export_folder, removing_folders


def test_folders_of_exports_that_were_cut_off_are_removed_at_start(make_settings: Make, dumps: Path) -> None:
    settings = make_settings(roots=[dumps])
    cut = settings.data_dir / "export-cut"
    cut.mkdir(parents=True)
    (cut / "result.db").write_bytes(b"half")
    (settings.data_dir / "exports of mine").mkdir()
    with (
        export_folder(settings.data_dir) as used,
        TestClient(create_app(settings), base_url=BASE) as client,
    ):
        assert not cut.exists()
        assert used.is_dir(), "another server writes it"
        assert (settings.data_dir / "exports of mine").is_dir()
        found = compare(client, dumps / "stat_fault", dumps / "stat_golden")
        for kind in ("db", "xlsx"):
            reply = client.get(f"/api/comparisons/{found}/export.{kind}")
            assert len(reply.content) > 1000
        assert list(settings.data_dir.glob("export-*")) == [used]


@pytest.mark.parametrize("committed", [True, False])
def test_a_deletion_that_was_cut_off_is_finished_once_its_dump_is_gone(
    make_settings: Make, dumps: Path, *, committed: bool
) -> None:
    settings = make_settings(roots=[dumps])
    with TestClient(create_app(settings), base_url=BASE) as client:
        found = register(client, dumps / "stat_fault")
        settled(client, f"/api/dumps/{found}")
    kept = settings.prechecks / found
    kept.mkdir(parents=True)
    (kept / "results.json").write_text("{}")
    cut = removing_folders(kept, settings.unpacked / found)
    cut.__enter__()  # and never left: the process was killed
    if committed:
        database = Database.open(settings.database)
        delete_dump(database, found)
        database.close()
    with TestClient(create_app(settings), base_url=BASE) as client:
        assert [one["id"] for one in client.get("/api/dumps").json()["items"]] == ([] if committed else [found])
        assert [one.name for one in settings.prechecks.iterdir()] == ([] if committed else [found])


def test_a_deletion_that_is_refused_leaves_the_folders(make_settings: Make, tmp_path: Path) -> None:
    kept = make_settings().prechecks / "0123456789"
    kept.mkdir(parents=True)
    with pytest.raises(ConflictError), removing_folders(kept):
        raise ConflictError("a comparison uses it")
    assert list(kept.parent.iterdir()) == [kept]
