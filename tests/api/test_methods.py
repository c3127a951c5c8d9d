"""HEAD, OPTIONS and refused methods answer as HTTP says, whatever the address."""

from __future__ import annotations

import pytest

from api.conftest import Client

ANYTHING = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@pytest.mark.parametrize(
    ("address", "methods"),
    [
        ("/api/dumps", "GET, HEAD, POST, OPTIONS"),
        ("/api/dumps/x", "GET, HEAD, PATCH, DELETE, OPTIONS"),
        ("/api/comparisons", "GET, HEAD, POST, OPTIONS"),
        ("/api/comparisons/x/cancel", "POST, OPTIONS"),
        ("/api/comparisons/x/nodes/Functional.relu.0.forward", "GET, HEAD, OPTIONS"),
        ("/api/uploads", "GET, HEAD, POST, OPTIONS"),
        ("/api/uploads/x", "GET, HEAD, PUT, DELETE, OPTIONS"),
        ("/api/uploads/x/files", "GET, HEAD, POST, PUT, OPTIONS"),
        ("/api/health", "GET, HEAD, OPTIONS"),
        ("/api/openapi.json", "GET, HEAD, OPTIONS"),
        ("/", "GET, HEAD, OPTIONS"),
        ("/comparisons/x", "GET, HEAD, OPTIONS"),
        ("/assets/index.js", "GET, HEAD, OPTIONS"),
    ],
)
def test_every_address_says_what_it_takes_and_refuses_the_rest(served: Client, address: str, methods: str) -> None:
    options = served.options(address)
    assert (options.status_code, options.headers["allow"], options.content) == (204, methods, b"")
    for method in {*ANYTHING, "TRACE"} - set(methods.split(", ")):
        refused = served.request(method, address)
        assert (refused.status_code, refused.headers["allow"]) == (405, methods), method
        if method != "HEAD":
            assert refused.json()["error"] == "method_not_allowed"
            assert methods in refused.json()["hint"]


@pytest.mark.parametrize("address", ["/api", "/api/nothing", "/api/dumps/x/y/z", "/nothing/at/all"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "HEAD"])
def test_an_address_that_is_none_is_not_found_by_any_method(served: Client, method: str, address: str) -> None:
    missed = served.request(method, address)
    assert missed.status_code == 404
    assert "allow" not in missed.headers
    if method != "HEAD":
        assert missed.json()["detail"] == f"there is nothing at {address}"


def test_head_is_get_without_the_body(served: Client, fault: str) -> None:
    comparison = f"/api/comparisons/{fault}"
    addresses = [
        "/api/health",
        "/api/dumps",
        "/api/docs",
        "/api/plotly.min.js",
        "/",
        comparison,
        f"{comparison}/summary",
    ]
    addresses += [f"{comparison}/export.{kind}" for kind in ("csv", "xlsx", "json", "html", "junit.xml")]
    for address in [*addresses, "/api/dumps/none"]:
        plain = {"Accept-Encoding": "identity"}
        get, head = served.get(address, headers=plain), served.head(address, headers=plain)
        assert head.status_code == get.status_code, address
        assert head.content == b"", address
        for name in ("content-type", "content-disposition", "cache-control"):
            assert head.headers.get(name) == get.headers.get(name), (address, name)
        if ".xlsx" not in address:  # holds the time it was written
            assert head.headers.get("content-length") == get.headers.get("content-length"), address


def test_head_of_a_stream_of_events_ends_at_once(served: Client, fault: str) -> None:
    table = served.app.state.shared.jobs  # type: ignore[attr-defined]
    job = table.create("compare", "nobody", {})
    table.change(job.id, status="running")
    head = served.head(f"/api/jobs/{job.id}/events")
    assert head.status_code == 200
    assert head.headers["content-type"].startswith("text/event-stream")
    table.finish(job.id, "cancelled")
