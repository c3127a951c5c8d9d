"""The frontend is typed by the server's own OpenAPI document."""

from __future__ import annotations

from pathlib import Path

from dumpscope.api.openapi import document

STORED = Path(__file__).resolve().parents[2] / "frontend" / "src" / "api" / "openapi.json"


def test_the_frontend_holds_the_present_openapi_document() -> None:
    assert STORED.read_text(encoding="utf-8") == document(), (
        "python -m dumpscope.api.openapi > frontend/src/api/openapi.json, then npm run gen in frontend"
    )
