"""msprobe's graph view in TensorBoard on the same two dumps: what it takes to open it, and what its replies weigh."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from measure import folder_size, run
from playwright.sync_api import Playwright, Request

QUIET: Final = 3.0
"""Seconds without a request after which the page is taken to be whole."""


def measure_peer(
    playwright: Playwright,
    launch: Callable[[Playwright], Any],
    binaries: Path,
    target: Path,
    golden: Path,
    folder: Path,
) -> None:
    """Builds its graph into `folder`, opens it, asks for the calls that it marks as wrong, and prints what each cost."""
    built = folder / "graph"
    built.mkdir(parents=True, exist_ok=True)
    if not any(built.iterdir()):
        sides = ["-tp", str(rank_of(target)), "-gp", str(rank_of(golden))]
        cost = run([str(binaries / "msprobe"), "graph_visualize", *sides, "-o", str(built)])
        print(f"\nmsprobe graph_visualize: {cost.wall:.0f} s, {cost.peak / 1e9:.2f} GB of memory")
    print(f"its file: {folder_size(built) / 1e6:.0f} MB")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(binaries / "tensorboard"), "--logdir", str(built), "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        open_view(playwright, launch, f"http://127.0.0.1:{port}/#graph_ascend")
    finally:
        server.terminate()
        server.wait(timeout=30)


def rank_of(dump: Path) -> Path:
    """The folder of the only rank of a synthetic dump."""
    return next(dump.glob("step*/*"))


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def open_view(playwright: Playwright, launch: Callable[[Playwright], Any], address: str) -> None:
    browser = launch(playwright)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    replies: list[tuple[str, float, int, float]] = []
    begun = time.perf_counter()

    def finished(request: Request) -> None:
        path = request.url.split("?")[0].rsplit("/", 1)[-1] or "/"
        size = request.sizes()["responseBodySize"]
        replies.append((path, request.timing["responseEnd"], size, time.perf_counter() - begun))

    def rest(what: str) -> None:
        while time.perf_counter() - begun - max((one[3] for one in replies), default=0) < QUIET:
            page.wait_for_timeout(200)
        print(
            f"{what}: {max(one[3] for one in replies):.1f} s, {sum(one[2] for one in replies) / 1000:.0f} kB, the largest:"
        )
        for path, span, size, _ in sorted(replies, key=lambda one: -one[2])[:4]:
            print(f"  {path:40} {span:8.0f} ms {size / 1000:8.0f} kB")
        replies.clear()

    page.on("requestfinished", finished)
    page.goto(address)
    rest("TensorBoard, page open")
    view = page.frame_locator("iframe")
    for word in ("Error", "Warning"):
        begun = time.perf_counter()
        view.get_by_text(word, exact=True).first.click()
        replies.append(("(click)", 0.0, 0, 0.0))
        rest(f"its {word} box, 1 click")
        print(f"  {view.get_by_text('Node List').first.inner_text()}")
    browser.close()


if __name__ == "__main__":
    raise SystemExit("python bench/screen_speed.py --peer-bin VENV/bin")
