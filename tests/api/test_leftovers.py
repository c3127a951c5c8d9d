"""What a killed server left in the middle of an export is gone at the next start."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from api.conftest import BASE, Make, compare
from dumpscope.api.app import create_app
from dumpscope.pipeline.tasks.cleanup import export_folder


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
