"""The UI's page under all its addresses and prefixes, its plotly.js, and the readable reference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from api.conftest import Client
from dumpscope.api import pages


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built UI in small, in the place of the real one."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(
        '<!doctype html><html><head lang="en"><script>x()</script></head><body></body></html>'
    )
    (folder / "assets" / "main-123.js").write_text("1")
    (folder / "logo.svg").write_text("<svg/>")
    monkeypatch.setattr(pages, "STATIC", folder)
    return folder


def test_every_address_of_the_ui_opens_its_page(bundle: Path, client: Client) -> None:
    addresses = {"/": "./", "/dumps/abc": "../", "/comparisons/abc?n=Functional.softmax.1.forward&tab=hist": "../"}
    for address, base in addresses.items():
        reply = client.get(address)
        assert reply.status_code == 200
        assert f'<head lang="en"><base href="{base}"><script>' in reply.text
        assert reply.headers["cache-control"] == "no-cache"
    assert client.get("/logo.svg").text == "<svg/>"
    for nothing in ("/dumps", "/dumps/a/b", "/other", "/index.html", "/..%2fsecret.txt"):
        assert client.get(nothing).status_code == 404, nothing


@pytest.mark.parametrize(
    ("address", "base"),
    [("/dumps", "./"), ("/dumps/a/b", "../../"), ("/no/such/page/", "../../../"), ("/..%2fsecret.txt", "../")],
)
def test_an_address_that_is_none_shows_readers_a_page_and_programs_an_error(
    bundle: Path, client: Client, address: str, base: str
) -> None:
    shown = client.get(address, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert shown.status_code == 404
    assert f'<base href="{base}">' in shown.text
    assert client.get(address).json()["error"] == "not_found"
    for other in ("/api/nothing", "/assets/nothing.js"):
        assert client.get(other, headers={"Accept": "text/html"}).json()["error"] == "not_found"


@pytest.mark.parametrize(
    ("prefix", "base"),
    [
        ("/dumpscope", "/dumpscope/"),
        ("/a/b/", "/a/b/"),
        ("", "../"),
        ("//evil.example", "../"),
        ('/"><script>', "../"),
        ("javascript:x", "../"),
        ("/user/ünï", "../"),
    ],
)
def test_the_page_follows_a_proxys_prefix_and_no_trick(bundle: Path, client: Client, prefix: str, base: str) -> None:
    reply = client.get("/comparisons/abc", headers={"X-Forwarded-Prefix": prefix.encode()})
    assert f'<base href="{base}">' in reply.text


def test_a_prefix_that_the_proxy_leaves_in_the_path_is_taken_off(bundle: Path, client: Client) -> None:
    headers = {"X-Forwarded-Prefix": "/tools/dump"}
    assert client.get("/tools/dump/api/health", headers=headers).status_code == 200
    assert '<base href="/tools/dump/">' in client.get("/tools/dump/comparisons/abc", headers=headers).text
    assert client.get("/api/health", headers=headers).status_code == 200
    assert client.get("/tools/dump/api/health").status_code == 404
    assert client.get("/tools/dumper/api/health", headers=headers).status_code == 404


def test_the_page_runs_its_own_scripts_only(bundle: Path, client: Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_assets_are_kept_for_good(client: Client) -> None:
    folder = pages.STATIC / "assets"
    files = sorted(folder.glob("*.js")) if folder.is_dir() else []
    if not files:
        pytest.skip("the UI is not built")
    reply = client.get(f"/assets/{files[0].name}")
    assert reply.status_code == 200
    assert "immutable" in reply.headers["cache-control"]
    assert client.get("/assets/../app.py").status_code == 404
    assert client.get("/assets/%2e%2e/%2e%2e/errors.py").status_code == 404


def test_without_a_bundle_the_page_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr(pages, "STATIC", tmp_path)
    reply = client.get("/")
    assert reply.status_code == 503
    assert "npm run build" in reply.text
    assert 'href="api/docs"' in reply.text


def test_plotly_is_that_of_the_page_and_is_kept(client: Client) -> None:
    reply = client.get("/api/plotly.min.js")
    assert reply.status_code == 200
    assert b"* plotly.js (cartesian" in reply.content[:500]
    assert len(reply.content) < 2_000_000
    again = client.get("/api/plotly.min.js", headers={"If-None-Match": reply.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_reference_needs_no_script_and_no_other_server(client: Client) -> None:
    text = client.get("/api/docs").text
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    for path in client.get("/api/openapi.json").json()["paths"]:
        assert path in text


def test_large_answers_travel_compressed(client: Client) -> None:
    reply = client.get("/api/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert reply.headers["content-encoding"] == "gzip"
    small = client.get("/api/health", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


def test_a_file_of_the_bundle_is_compressed_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    (script,) = (pages.STATIC / "assets").glob("page-*.js")
    first = client.get(f"/assets/{script.name}", headers={"Accept-Encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    assert first.headers["vary"] == "Accept-Encoding"
    assert "immutable" in first.headers["cache-control"]
    assert first.content == script.read_bytes()
    monkeypatch.setattr(pages.gzip, "compress", None)
    again = client.get(f"/assets/{script.name}", headers={"Accept-Encoding": "gzip"})
    assert again.content == first.content
    plain = client.get(f"/assets/{script.name}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == first.content


def test_openapi_is_printed_without_a_server_and_equals_the_served_one(client: Client) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "dumpscope.api.openapi"], capture_output=True, text=True, check=True
    )
    assert printed.stderr == ""
    assert json.loads(printed.stdout) == client.get("/api/openapi.json").json()


def test_an_unexpected_failure_gives_an_id_and_no_detail(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*_args: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("dumpscope.api.routes.dumps.catalogue.get_dump", explode)
    client._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    reply = client.get("/api/dumps/abc")
    assert reply.status_code == 500
    body = reply.json()
    assert body["error"] == "internal"
    assert "secret" not in reply.text
    number = body["detail"].split("id ")[1].rstrip(")")
    assert any(number in record.getMessage() for record in caplog.records)
