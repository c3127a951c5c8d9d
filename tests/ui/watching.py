"""What a page costs the browser: rows, elements, heap, replies, and how long a key or click takes to be seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.sync_api import BrowserContext, Page

from ui.expecting import expect

LARGEST_REPLY: Final = 200_000
MOST_ROWS: Final = 2_000
MOST_HEAP: Final = 300e6
LATENCY: Final = 10_000
"""Milliseconds from a key or click to the frame that shows it: a page that stands still takes longer, a busy machine does not."""
WORK: Final = 350.0
"""Milliseconds that `WORKLOAD` takes on two cores of the machine that bounds in seconds are promised for."""
WORKLOAD: Final = """() => {
    const begun = performance.now();
    const rows = Array.from({ length: 200_000 }, (_, index) => ({ key: (index * 7919) % 200_003, name: `call.${index}` }));
    rows.sort((one, other) => one.key - other.key || one.name.localeCompare(other.name));
    JSON.parse(JSON.stringify(rows));
    return performance.now() - begun;
}"""
TRIES: Final = 3
"""Times that a duration is measured: the shortest one is that of the page, what is above it is that of other programs."""


@dataclass(slots=True)
class Watched:
    """What a page cost. replies: largest JSON reply, unpacked, by address"""

    page: Page
    session: Any
    replies: dict[str, int] = field(default_factory=dict)

    def settled(self) -> None:
        """Hold it to the promises: rows, heap after a collection of garbage, replies."""
        assert rows(self.page) <= MOST_ROWS
        self.session.send("HeapProfiler.collectGarbage")
        heap = self.session.send("Runtime.getHeapUsage")["usedSize"]
        assert heap <= MOST_HEAP, f"{heap / 1e6:.0f} MB"
        assert self.elements() <= 10 * MOST_ROWS
        over = {url: size for url, size in self.replies.items() if size > LARGEST_REPLY}
        assert over == {}
        assert len(self.replies) > 5

    def elements(self) -> int:
        return int(self.page.evaluate("document.getElementsByTagName('*').length"))


@contextmanager
def watching(page: Page, context: BrowserContext) -> Iterator[Watched]:
    """The page, held to the promises at the end."""
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("HeapProfiler.enable")
    seen = Watched(page, session)
    kept: dict[str, tuple[str, int]] = {}

    def responded(event: dict[str, Any]) -> None:
        if "/api/" in event["response"]["url"] and "json" in event["response"]["mimeType"]:
            kept[event["requestId"]] = (event["response"]["url"], 0)

    def received(event: dict[str, Any]) -> None:
        if event["requestId"] in kept:
            url, size = kept[event["requestId"]]
            kept[event["requestId"]] = url, size + event["dataLength"]
            seen.replies[url] = max(seen.replies.get(url, 0), size + event["dataLength"])

    session.on("Network.responseReceived", responded)
    session.on("Network.dataReceived", received)
    yield seen
    seen.settled()


def rows(page: Page) -> int:
    return page.locator("[role=row], [role=treeitem], [role=option]").count()


def latency(page: Page, act: Callable[[], None], shown: str, argument: object = None) -> float:
    """Milliseconds in the page from the key or click that `act` makes to the first frame in which the script `shown` is true."""
    page.evaluate(
        """([shown, argument]) => {
            const test = new Function("argument", `return ${shown}`);
            let begun = null;
            for (const kind of ["keydown", "pointerdown", "wheel"]) {
                addEventListener(kind, (event) => { begun ??= event.timeStamp; }, { capture: true, once: true });
            }
            window.shownAfter = new Promise((resolve) => {
                setTimeout(() => resolve(Infinity), 120000);
                const look = () => {
                    if (begun !== null && test(argument)) {
                        requestAnimationFrame(() => resolve(performance.now() - begun));
                    } else requestAnimationFrame(look);
                };
                look();
            });
        }""",
        [shown, argument],
    )
    act()
    return float(page.evaluate("window.shownAfter"))


def allowed(page: Page, bound: float) -> float:
    """A bound in milliseconds, as it is on this machine: longer by as much as it takes longer over a fixed piece of work now."""
    return bound * max(1.0, float(page.evaluate(WORKLOAD)) / WORK)


def first_paint(page: Page, address: str, bound: float) -> float:
    """Milliseconds from the start of the navigation to the first frame with the origin in the banner; the shortest of TRIES
    navigations, or the first within the bound."""
    page.add_init_script(
        """new MutationObserver((_changes, watch) => {
            if (!document.querySelector("[data-testid=origin]")) return;
            watch.disconnect();
            requestAnimationFrame(() => performance.mark("banner"));
        }).observe(document, { childList: true, subtree: true });"""
    )
    shortest = math.inf
    for _ in range(TRIES):
        page.goto("about:blank")
        page.goto(address)
        expect(page.get_by_test_id("origin")).to_be_visible()
        page.wait_for_function("() => performance.getEntriesByName('banner').length > 0")
        shortest = min(shortest, float(page.evaluate("performance.getEntriesByName('banner')[0].startTime")))
        if shortest <= bound:
            break
    return shortest
