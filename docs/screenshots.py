"""Pictures for README and docs, from the real demo in a real Chromium: `make screenshots` writes docs/images/*.png."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, sync_playwright

IMAGES: Final = Path(__file__).resolve().parent / "images"
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


@contextmanager
def demo() -> Iterator[str]:
    """Address of the demo's result, served until the block ends."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "dumpscope", "demo", "--port", "0", "--data-dir", data]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                found = re.search(r"http://\S+", line)
                if found:
                    yield found.group()
                    return
            raise RuntimeError("the demo ended without an address")
        finally:
            process.terminate()
            process.wait(timeout=30)


def picture(browser: Browser, address: str, name: str, theme: Literal["light", "dark"]) -> None:
    """Screenshot of a page in one theme, once its figures are drawn."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=theme, locale="en-US")
    try:
        page = context.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1500)  # the figure is drawn a moment after its data is there
        page.screenshot(path=IMAGES / f"{name}-{theme}.png")
    finally:
        context.close()


def main() -> None:
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    IMAGES.mkdir(exist_ok=True)
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=next(filter(None, found)), args=FLAGS)
        for theme in THEMES:
            picture(browser, address, "comparison", theme)
        browser.close()


if __name__ == "__main__":
    main()
