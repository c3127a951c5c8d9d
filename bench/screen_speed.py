"""What the triage screen feels like in a real browser: time to the banner and to the whole screen, key to paint, frames while a
list scrolls, heap after an hour's work, bytes of scripts.

    python bench/screen_speed.py --nodes 100000 [--at ADDRESS] [--peer-bin VENV/bin]

Starts a server on two synthetic dumps and compares them, unless ADDRESS is a result that some server shows already. With
--peer-bin the same dumps go through msprobe's graph view in TensorBoard: how long until it can be opened, what its replies weigh.
Prints figures beside goals; it is no test. What else runs on the machine is in all of them but the bytes, the heap, and "work":
the time for which the page's main thread computed, most of the time that passes on a quiet machine.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from api_latency import compare, serve
from compare_statistics import make_pair
from graph_view import measure_peer
from playwright.sync_api import BrowserContext, CDPSession, Page, Playwright, sync_playwright

VIEW: Final[Any] = {"width": 1440, "height": 900}
TRIES: Final = 5
"""Navigations of which the median is told."""
PRESSES: Final = 30
FRAMES: Final = 300

MARKS: Final = """
    const seen = {
        banner: () => document.querySelector("[data-testid=origin]"),
        screen: () => document.querySelector("[data-testid=tree] [role=treeitem]")
            && document.querySelector("[data-testid=calls] [role=row][aria-selected=true][data-name]")
            && document.querySelector("[data-testid=why]")
            && document.querySelector("[data-testid=io] tbody tr")
            && document.querySelector("[data-plot][data-drawn]"),
    };
    window.painted = {};
    const look = () => {
        for (const [name, test] of Object.entries(seen)) {
            if (!(name in window.painted) && test()) {
                window.painted[name] = 0;
                after(() => { window.painted[name] = performance.now(); });
            }
        }
        if (Object.keys(window.painted).length < 2) requestAnimationFrame(look);
    };
    const after = (tell) => {  // behind the frame that is drawn now
        const channel = new MessageChannel();
        channel.port1.onmessage = tell;
        channel.port2.postMessage(0);
    };
    requestAnimationFrame(look);
"""

PRESSED: Final = """(shown) => {
    const test = new Function(`return ${shown}`);
    const before = String(test());
    let begun = null;
    addEventListener("keydown", (event) => { begun = event.timeStamp; }, { capture: true, once: true });
    window.shownAfter = new Promise((resolve) => {
        setTimeout(() => resolve(null), 4000);
        const look = () => requestAnimationFrame(() => {
            if (begun === null || String(test()) === before) return look();
            const channel = new MessageChannel();
            channel.port1.onmessage = () => resolve(performance.now() - begun);
            channel.port2.postMessage(0);
        });
        look();
    });
}"""
"""Milliseconds from a key to the end of the first frame that shows something else at the place that `shown` looks at."""

SCROLLED: Final = """async ([step, frames]) => {
    const box = document.querySelector("[data-testid=calls] [data-rows]");
    const row = 26;
    const spans = [];
    let blank = 0, coming = 0, last = performance.now();
    for (let at = 0; at < frames; at += 1) {
        box.scrollTop += step;
        await new Promise((done) => requestAnimationFrame(done));
        const now = performance.now();
        spans.push(now - last);
        last = now;
        const { top, bottom } = box.getBoundingClientRect();
        const shown = [...box.querySelectorAll("[role=row]")].filter((one) => {
            const at = one.getBoundingClientRect();
            return at.bottom > top + 1 && at.top < bottom - 1;
        });
        if (shown.length < Math.floor((bottom - top) / row)) blank += 1;
        if (shown.some((one) => one.hasAttribute("aria-busy"))) coming += 1;
    }
    return { spans, blank, coming };
}"""

SELECTED: Final = "document.querySelector('[data-testid=calls] [aria-selected=true]')?.dataset.name"
EVIDENCE: Final = "document.querySelector('[data-testid=selected-name]')?.textContent"
TAB: Final = "document.querySelector('[role=tab][aria-selected=true]')?.textContent"
NOTICE: Final = "document.querySelector('[data-testid=notice]')?.textContent"
FIGURE: Final = """document.querySelector("[data-plot]")?.dataset.drawn
    ?? [...document.querySelectorAll("#section-plots p")].map((one) => one.textContent).join()"""
"""Which figure is drawn, or why there is none."""
KEYS: Final = {"j": SELECTED, "k": SELECTED, "J": SELECTED, "n": EVIDENCE, "]": NOTICE, "digits": TAB}
"""What answers a key at once: the selected row, the name above the evidence, the tab of a plot."""
SEARCHES: Final = ("softmax", "api:linear", "err>1e-2", "class:propagated", "layers.3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes a side (default 100000)")
    parser.add_argument("--at", help="address of a result that is served already; no dumps are made then")
    parser.add_argument("--peer-bin", type=Path, help="bin folder of an environment that has msprobe and TensorBoard")
    parser.add_argument("--peer-dumps", type=Path, nargs=2, help="with --at: the two dumps of that result")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        if arguments.at:
            measure(playwright, arguments.at)
            dumps = arguments.peer_dumps
        else:
            dumps = make_pair(Path(scratch), arguments.nodes)[:2]
            with serve(Path(scratch), Path(scratch) / "data") as client:
                root = str(client.base_url).removesuffix("/api/")
                measure(playwright, f"{root}/comparisons/{compare(client, *dumps)}")
        if arguments.peer_bin and dumps:
            measure_peer(playwright, launch, arguments.peer_bin, *dumps, folder=Path(scratch) / "peer")


def launch(playwright: Playwright) -> Any:
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--enable-precise-memory-info"])


def measure(playwright: Playwright, address: str) -> None:
    browser = launch(playwright)
    print(f"\n{'':44} {'found':>10} {'goal':>10}")
    for name, language in (("English", "en-US"), ("Chinese", "zh-CN")):
        opened = [open_fresh(browser.new_context(viewport=VIEW, locale=language), address) for _ in range(TRIES)]
        for part, goal in (("banner", 600), ("screen", 1500)):
            tell(f"{name}, {part} after navigation, ms", [one[part] for one in opened], goal)
        tell(f"{name}, work until the screen is whole, ms", [one["work"] for one in opened], None)
        tell(f"{name}, scripts before the banner, gzip kB", [one["first"] / 1000 for one in opened], 150)
        tell(f"{name}, all scripts but plotly.js, gzip kB", [one["all"] / 1000 for one in opened], None)
    context = browser.new_context(viewport=VIEW, locale="en-US")
    open_fresh(context, address, close=False)
    again = [open_fresh(context, address, close=False) for _ in range(TRIES)]
    for part, goal in (("banner", 600), ("screen", 1500)):
        tell(f"from the browser's cache, {part}, ms", [one[part] for one in again], goal)
    for page in context.pages[1:]:
        page.close()
    page = context.pages[0]
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    spans: dict[str, list[float]] = {}
    page.locator("body").click(position={"x": 400, "y": 5})
    for key, shown in KEYS.items():
        before = worked(session)
        spans[key] = press(page, key, shown)
        each = (worked(session) - before) / PRESSES
        name, took = f"key {key}: to paint, median and p95; work, ms", spans[key]
        print(f"{name:46} {middle(took):8.0f} {p95(took):8.0f} {each:8.0f}", flush=True)
    print_line("all keys to paint, p95, ms", p95([one for times in spans.values() for one in times]), 50)
    figures = press(page, "digits", FIGURE)
    print(
        f"{'plot digits: to the figure, median and p95, ms':46} {middle(figures):8.0f} {p95(figures):8.0f}", flush=True
    )
    for step in (100, 300):
        page.keyboard.press("g")
        before = worked(session)
        found = page.evaluate(SCROLLED, [step, FRAMES])
        print_line(f"list, {step} px a frame: work a frame, ms", (worked(session) - before) / FRAMES, 16)
        print_line(f"list, {step} px a frame: p95 of a frame, ms", p95(found["spans"]), 33)
        print_line(f"list, {step} px a frame: frames with a blank row", found["blank"], 0)
        print_line(f"list, {step} px a frame: frames with rows being read", found["coming"], None)
    fresh = heap(context.new_cdp_session(page))
    work(page)
    print_line("heap of a fresh tab, MB", fresh / 1e6, None)
    print_line("heap after the work of an hour, MB", heap(context.new_cdp_session(page)) / 1e6, 60)
    print_line("elements of the page", page.evaluate("document.getElementsByTagName('*').length"), None)
    browser.close()


def open_fresh(context: BrowserContext, address: str, *, close: bool = True) -> dict[str, float]:
    """banner, screen: milliseconds from the navigation; first, all: compressed bytes of the page's scripts until the banner, and
    when the browser is at rest"""
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    scripts: dict[str, str] = {}
    sizes: list[tuple[str, int]] = []

    def responded(event: dict[str, Any]) -> None:
        if event["type"] == "Script":
            scripts[event["requestId"]] = event["response"]["url"]

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] in scripts:
            sizes.append((scripts[event["requestId"]], event["encodedDataLength"]))

    session.on("Network.responseReceived", responded)
    session.on("Network.loadingFinished", finished)
    page.add_init_script(MARKS)
    page.goto(address)
    page.wait_for_function("() => window.painted?.screen > 0", timeout=120_000)
    work = worked(session)
    page.wait_for_load_state("networkidle")
    painted = page.evaluate("window.painted")
    early = page.evaluate(
        """(banner) => performance.getEntriesByType("resource")
            .filter((one) => one.name.endsWith(".js") && one.responseEnd <= banner).map((one) => one.name)""",
        painted["banner"],
    )
    own = [(url, size) for url, size in sizes if "plotly" not in url]
    found = {
        **painted,
        "work": work,
        "first": sum(size for url, size in own if url in early),
        "all": sum(size for _, size in own),
    }
    if close:
        context.close()
    return found


def press(page: Page, key: str, shown: str) -> list[float]:
    """Milliseconds from each of PRESSES presses to the frame that shows it; of those that change nothing, nothing."""
    found = []
    for number in range(PRESSES):
        page.evaluate(PRESSED, shown)
        page.keyboard.press(str(number % 8 + 1) if key == "digits" else key)
        after = page.evaluate("window.shownAfter")
        if after is not None:
            found.append(after)
        page.wait_for_timeout(100)
    return found


def worked(session: CDPSession) -> float:
    """Milliseconds that the page's main thread has computed."""
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"]) * 1000


def work(page: Page) -> None:
    """What somebody does in an hour: walks calls, searches, looks at plots, the path and dialogs; some 400 actions."""
    page.set_default_timeout(60_000)
    for turn in range(8):
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        for key in "jjjjjjjjkkJJJJKnNupd":
            page.keyboard.press(key)
            page.wait_for_timeout(60)
        for digit in "12345678":
            page.keyboard.press(digit)
            page.wait_for_timeout(150)
        search = page.get_by_test_id("search")
        search.fill(SEARCHES[turn % len(SEARCHES)])
        page.wait_for_timeout(600)
        search.fill("")
        search.press("Escape")
        for key in ("w", "Escape", "t", "Escape", "?", "Escape", "r", "Escape", "v", "Escape", "Control+k", "Escape"):
            page.keyboard.press(key)
            page.wait_for_timeout(300)
        page.evaluate(SCROLLED, [2000, 30])
    page.wait_for_load_state("networkidle")


def heap(session: CDPSession) -> float:
    """Bytes that are in use after garbage was collected."""
    session.send("HeapProfiler.enable")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"])


def middle(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def p95(values: Sequence[float]) -> float:
    ordered = sorted(values) or [math.nan]
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def tell(name: str, values: Sequence[float], goal: float | None) -> None:
    print_line(name, middle(values), goal)


def print_line(name: str, found: float, goal: float | None) -> None:
    over = goal is not None and found > goal
    print(f"{name:44} {found:10.0f} {'' if goal is None else f'{goal:.0f}':>10}{'   over' if over else ''}", flush=True)


if __name__ == "__main__":
    main()
