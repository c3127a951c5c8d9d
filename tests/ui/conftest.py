"""A real server process and a real Chromium."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import (
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from warm_python import warm_python

from ui.expecting import PATIENCE
from ui.keeping import errors_of, hand_out, note_sessions, take_back, tell_replies
from ui.watching import Watched, watching

PLAIN = "plain.test"
"""A host name that is not this machine's own: over http, browsers do not call it secure and give no clipboard."""

TEST_SECONDS = 1200
"""What a test with several such waits may take."""

IMPORTED: Final = "dumpscope.api.app,dumpscope.cli.commands.serve,dumpscope.index.store.upgrade,uvicorn"
"""What a server and its workers need seconds to import."""

VIEW: Final[dict[str, Any]] = {"viewport": {"width": 1440, "height": 900}, "locale": "en-US"}

FLAGS = [
    f"--host-resolver-rules=MAP {PLAIN} 127.0.0.1",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # pages of all tests share a process, and with it the scripts that were compiled: see `new_page`
    "--force-prefers-reduced-motion",  # the browser's own tabs do not glide in and out; Playwright tells pages of no preference
    "--js-flags=--no-maglev --no-opt",  # no page lives long enough to win back what optimizing its functions costs
]

ANCHOR: Final = "http://127.0.0.1/anchor"
"""Address of the one page that every profile keeps. It has the servers' site, whose process so outlives the tests' pages."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


class Server:
    """`dumpscope serve` on a free port; `restart` keeps the address and the data."""

    def __init__(self, data: Path, *roots: Path, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.data, self.roots, self.environment = data, roots, environment
        self.url = f"http://127.0.0.1:{self.port}"
        self.known: dict[tuple[Path, Path], str] = {}
        self.start()

    def start(self) -> None:
        python = warm_python(IMPORTED)
        command = [python, "-m", "dumpscope", "serve", "--port", str(self.port), "--data-dir", str(self.data)]
        log = (self.data.parent / f"serve-{self.port}.log").open("ab")
        self.process = subprocess.Popen(
            [*command, *(part for root in self.roots for part in ("--root", str(root)))],
            stdout=log,
            stderr=log,
            env={**os.environ, "DUMPSCOPE_EXECUTOR": "processes:1", **self.environment},
        )
        deadline = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/api/health", timeout=20):
                    return
            except urllib.error.HTTPError:  # it answers, and asks for a token
                return
            except OSError:
                assert self.process.poll() is None, "the server ended at start"
                time.sleep(0.1)
        raise AssertionError("the server did not answer in time")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=PATIENCE / 1000)

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder whose dumps the server may open besides the real ones."""
    return tmp_path_factory.mktemp("generated")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, dumps: Path, generated: Path) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("ui") / "data"
    running = Server(data, dumps, generated, DUMPSCOPE_ALLOWED_HOSTS=f'["{PLAIN}"]')
    yield running
    running.stop()


@pytest.fixture(scope="session")
def sourced(generated: Path) -> Path:
    """Folder of three runs that our capture recorded with their source: `plain`, `again` as it, and `tanh`, whose layer 1 calls
    gelu with another argument (pipeline/source_run.py). Each has `dump` and `code`."""
    pytest.importorskip("torch")
    folder = generated / "sourced"
    script = Path(__file__).parents[1] / "pipeline" / "source_run.py"
    for name, more in (("plain", []), ("again", []), ("tanh", ["--tanh"])):
        subprocess.run([warm_python(), script, folder / name, *more], check=True, timeout=300, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser without a window, where it is installed: the same pages cost it a seventh less. Else one that has windows."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("no Chromium on PATH (Debian: apt-get install chromium)")
    return path


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def profile(
    playwright: Playwright, chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    """A browser with a profile on disk keeps the page's compiled scripts, and so opens it in half the time of a fresh context."""
    folder = tmp_path_factory.mktemp("profile")
    kept = playwright.chromium.launch_persistent_context(folder, executable_path=chromium, args=FLAGS, **VIEW)
    anchor(kept)
    yield kept
    kept.close()


@pytest.fixture(scope="session")
def chinese_profile(
    playwright: Playwright, chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    folder, view = tmp_path_factory.mktemp("chinese"), {"viewport": {"width": 1280, "height": 800}, "locale": "zh-CN"}
    kept = playwright.chromium.launch_persistent_context(folder, executable_path=chromium, args=FLAGS, **view)
    anchor(kept)
    yield kept
    kept.close()


def anchor(profile: BrowserContext) -> None:
    profile.set_default_timeout(PATIENCE)
    (first,) = profile.pages
    first.route(ANCHOR, lambda route: route.fulfill(content_type="text/html", body=""))
    first.goto(ANCHOR)
    note_sessions(profile)


def new_page(profile: BrowserContext) -> Page:
    """A page in the process of the profile's first one: it has the bundle and plotly compiled there already. It is the page of
    the test before, where nothing was left in that."""

    def opened() -> Page:
        with profile.expect_page() as page:
            profile.pages[0].evaluate("() => { window.open('about:blank'); }")
        return page.value

    return hand_out(profile, opened)


def forget(profile: BrowserContext, *, failed: bool = False) -> None:
    first, *used = profile.pages
    origins = {"/".join(one.url.split("/", 3)[:3]) for one in used if one.url.startswith("http")}
    take_back(profile, failed=failed)
    session = profile.new_cdp_session(first)
    for origin in origins:
        session.send(
            "Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "cookies,local_storage,indexeddb"}
        )
    session.detach()
    profile.clear_permissions()


@pytest.fixture
def context(profile: BrowserContext, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """As good as new: what a test leaves in the profile is removed, but for scripts."""
    failures = request.session.testsfailed
    yield profile
    forget(profile, failed=request.session.testsfailed > failures)


@pytest.fixture
def chinese(chinese_profile: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    failures = request.session.testsfailed
    yield new_page(chinese_profile)
    forget(chinese_profile, failed=request.session.testsfailed > failures)


@pytest.fixture
def page_in(request: pytest.FixtureRequest) -> Callable[[str], Page]:
    """A page whose reader's language is this one: "en-US" or "zh-CN"."""

    def opened(language: str) -> Page:
        if language == "zh-CN":
            return request.getfixturevalue("chinese")
        return new_page(request.getfixturevalue("context"))

    return opened


@pytest.fixture
def page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page whose script errors, console errors and replies above the promised size fail the test."""
    marks = request.node.iter_markers("expects")
    expected = [path for mark in marks for path in mark.args]
    fresh = new_page(context)
    errors = errors_of(fresh)
    yield fresh
    tell_replies(fresh)
    assert [error for error in errors if not any(path in error for path in expected) and not from_an_end(error)] == []


BROKEN_OFF = (
    "CONNECTION_(?:REFUSED|RESET|CLOSED|ABORTED)|SOCKET_NOT_CONNECTED|EMPTY_RESPONSE"
    "|INCOMPLETE_CHUNKED_ENCODING|CONTENT_LENGTH_MISMATCH"
)
"""What Chromium says of a server that ended before its reply, or within it."""


def from_an_end(error: str) -> bool:
    """A page asked a server that has ended since, as the test's own does: it goes on with what it loads until it is left."""
    refused = re.search(rf"net::ERR_(?:{BROKEN_OFF}) http://127\.0\.0\.1:(\d+)/", error)
    if refused is None:
        return False
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(refused[1]))) != 0


@pytest.fixture
def watched(page: Page) -> Iterator[Watched]:
    """A page that in the end may not have cost more than is promised of any size: rows, heap, unpacked replies."""
    with watching(page, page.context) as seen:
        yield seen
