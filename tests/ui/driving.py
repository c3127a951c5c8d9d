"""What a test does before it looks: over the page where that is the subject, over REST where it is not."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from ui.conftest import PATIENCE, Server
from ui.expecting import expect
from ui.keeping import is_loaded

COUNTING: Final = """() => {
    if (!window.acts) {
        addEventListener("pointerdown", () => { window.acts.clicks += 1; }, true);
        addEventListener("keydown", (event) => {
            if (!["Shift", "Control", "Alt", "Meta"].includes(event.key)) window.acts.keys += 1;
        }, true);
    }
    window.acts = { clicks: 0, keys: 0 };
}"""


def show_counting(page: Page, address: str) -> None:
    """`show`, and clicks and keys are counted from then on (`acts`). Text is filled in without keys: typing a part of a name
    counts as no key, since nobody compares how long names are."""
    show(page, address)
    page.evaluate(COUNTING)


def acts(page: Page) -> dict[str, int]:
    found: dict[str, int] = page.evaluate("window.acts")
    return found


def go_on(page: Page, address: str) -> None:
    """Another address of the server that the page shows, as its links go there: nothing is loaded that is there already."""
    page.evaluate(
        "(address) => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); }", address
    )


def show(page: Page, address: str) -> None:
    """Opens a screen of a server, in the page that is loaded already where the test before left one (`keeping`).

    For tests of what a screen shows and does, not of how a page is loaded; what they set is in the address.
    """
    if is_loaded(page, "/".join(address.split("/", 3)[:3])):
        go_on(page, address)
    else:
        page.goto(address)


def choose(page: Page, name: str) -> None:
    """Click a call in the list, once that has gone to the selected one: no row moves under the pointer then."""
    calls = page.get_by_test_id("calls")
    expect(calls.get_by_role("row", selected=True)).to_be_in_viewport()
    calls.get_by_text(name, exact=True).click()


def register(page: Page, folder: Path) -> None:
    page.get_by_test_id("server-path").fill(str(folder))
    page.get_by_test_id("register").click()
    expect(page.get_by_role("link", name=folder.name, exact=True).first).to_be_visible()


def pick(page: Page, folder: Path, side: str) -> None:
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=folder.name, exact=True)).first
    row.get_by_role("button", name=f"Use {folder.name} as {side}", exact=True).click()


def compare(page: Page, server: Server, target: Path, golden: Path) -> str:
    """Register two dumps, compare them, wait for the verdict; the address of the result."""
    page.goto(server.url)
    register(page, target)
    register(page, golden)
    pick(page, target, "target")
    pick(page, golden, "golden")
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("banner")).to_be_visible()
    return page.url


def ask(server: Server, method: str, path: str, body: object = None) -> Any:
    """One REST call; the parsed answer, None for an empty one."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server.url}/api{path}", method=method, data=data, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE / 1000) as reply:
        text = reply.read()
    return json.loads(text) if text else None


def sides(server: Server, target: Path, golden: Path) -> dict[str, str]:
    """Ids of two dumps that are read now; each call has them read anew."""
    return {
        side: ask(server, "POST", "/dumps", {"path": str(path)})["id"]
        for side, path in (("target", target), ("golden", golden))
    }


def start(server: Server, target: Path, golden: Path) -> str:
    """Id of a comparison that was only asked for."""
    return begin(server, sides(server, target, golden))


def begin(server: Server, dumps: dict[str, str]) -> str:
    """Id of a comparison of these dumps that was only asked for."""
    return str(ask(server, "POST", "/comparisons", dumps)["id"])


def finished(server: Server, target: Path, golden: Path, *, seconds: float = PATIENCE / 1000) -> str:
    """Address of a comparison that is done."""
    comparison = start(server, target, golden)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = ask(server, "GET", f"/comparisons/{comparison}")["status"]
        if status == "done":
            return f"{server.url}/comparisons/{comparison}"
        assert status in ("pending", "running"), status
        time.sleep(0.1)
    raise AssertionError(f"the comparison was not done within {seconds} seconds")


def known(server: Server, target: Path, golden: Path) -> str:
    """Address of a comparison that is done, the same one for all tests of a server: it may be looked at and not be changed."""
    if (target, golden) not in server.known:
        server.known[target, golden] = finished(server, target, golden)
    return server.known[target, golden]


def ready(server: Server, folder: Path) -> str:
    """Address of a dump that is read."""
    dump = ask(server, "POST", "/dumps", {"path": str(folder)})["id"]
    deadline = time.monotonic() + PATIENCE / 1000
    while ask(server, "GET", f"/dumps/{dump}")["status"] == "pending":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return f"{server.url}/dumps/{dump}"
