"""Pictures from real dumps in a real Chromium: `make screenshots` writes docs/images/*.png of the demo for README and docs, and
every screen and state in both themes and languages to screenshots/, to be looked at after a change of the UI.

    python docs/screenshots.py [--only WORD]...    only pictures whose name holds a word
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, sync_playwright

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # what makes dumps of one state each

from match.renamed import ported
from ui.made import cut_rank, late, other_inputs

IMAGES: Final = Path(__file__).resolve().parent / "images"
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
GALLERY: Final = IMAGES.parents[1] / "screenshots"
Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")


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


def picture(
    browser: Browser,
    address: str,
    file: Path,
    theme: Theme,
    language: str = "en-US",
    size: tuple[int, int] = (1440, 900),
) -> None:
    """Screenshot of a page in one theme, once its figures are drawn."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, locale=language)
    try:
        page = context.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1500)  # the figure is drawn a moment after its data is there
        page.screenshot(path=file)
    finally:
        context.close()


LANGUAGES: Final = ("en-US", "zh-CN")
SIZES: Final = {"": (1440, 900), "-large": (1920, 1080), "-small": (1280, 720), "-phone": (390, 844)}
"""Names and sizes of windows; the others than the first show the main screens only."""
MAIN: Final = ("home", "origin", "dump", "assistant", "inputs", "cut")
PLOTS: Final = ("hist", "pair", "api", "map", "order", "apis", "error", "values", "runs")


class Gallery:
    """Comparisons on a server of its own whose screens are to be pictured."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One REST call; the parsed answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/api{path}", method=method, data=data, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read())

    def compared(self, target: Path, golden: Path) -> str:
        """Path of a comparison that has ended."""
        sides = {
            side: self.ask("POST", "/dumps", {"path": str(path)})["id"]
            for side, path in (("target", target), ("golden", golden))
        }
        path = f"/comparisons/{self.ask('POST', '/comparisons', sides)['id']}"
        while self.ask("GET", path)["status"] in ("pending", "running"):
            time.sleep(0.2)
        return path

    def screens(self, dumps: Path) -> dict[str, str]:
        """Addresses below the server's by name: every screen and the states that real dumps bring about."""
        found = {"unknown": "/comparisons/none"}
        pairs = {
            "origin": ("target_fault", "golden"),
            "alike": ("golden", "golden"),
            "statistics": ("stat_fault", "stat_golden"),
            "hashes": ("md5_fault", "md5_golden"),
            "nonfinite": ("target_nan", "golden"),
            "renamed": ("target_renamed", "golden"),
            "ranks": ("dist2_stat_fault", "dist2_stat_golden"),
            "damaged": ("crash_stat", "stat_golden"),
            "strangers": ("conv_mix_stat", "stat_golden"),
            "task": ("stat_fault", "golden"),
            "level": ("cfg_L1_stat", "stat_golden"),
            "inferred": ("types_L1_stat", "types_L1_stat"),
            "precision": ("stat_bf16", "stat_golden"),
            "assistant": ("made/ported", "cfg_L0_stat"),
            "inputs": ("made/inputs", "stat_golden"),
            "hidden": ("made/late", "stat_golden"),
            "cut": ("made/cut", "dist2_stat_golden"),
        }
        ported(dumps / "cfg_L0_stat", dumps / "made" / "ported")
        other_inputs(dumps / "stat_golden", dumps / "made" / "inputs")
        late(dumps / "stat_golden", dumps / "made" / "late", "Functional.linear.4.forward")
        cut_rank(dumps / "dist2_stat_fault", dumps / "made" / "cut")
        made = {name: self.compared(dumps / target, dumps / golden) for name, (target, golden) in pairs.items()}
        origin = made["origin"]
        note = {"standing": "ticket", "text": "NPU-1234: fixed in the May build"}
        self.ask("PUT", f"{origin}/notes/Functional.softmax.1.forward", note)
        found |= made
        found |= {f"plot-{plot}": f"{origin}?tab={plot}" for plot in PLOTS}
        found |= {
            f"do-{dialog}": f"{origin}?do={dialog}" for dialog in ("match", "matches", "trends", "note", "policy")
        }
        found |= {
            "do-plan": f"{made['ranks']}?do=plan",
            "filtered": f"{origin}?q=api:softmax+err%3E1e-6&f=class:origin",
            "filtered-empty": f"{origin}?q=nothing",
            "search-wrong": f"{origin}?q=clas:origin",
            "home": "/",
            "strangers-verdict": f"{made['strangers']}?n=Tensor.mean.0.forward",
            "hashes-plot": f"{made['hashes']}?tab=hist",
            "dump": f"/dumps/{self.ask('GET', origin)['target']}",
        }
        return found


@contextmanager
def served(roots: Path) -> Iterator[str]:
    """Address of a server with an empty data folder."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "dumpscope", "serve", "--port", "0", "--data-dir", data, "--root", str(roots)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield next(found.group() for line in process.stdout if (found := re.search(r"http://[\w.:]+", line)))
        finally:
            process.terminate()
            process.wait(timeout=30)


def gallery(browser: Browser, only: list[str]) -> None:
    """Every screen and state, in both themes and languages, to GALLERY."""
    GALLERY.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(IMAGES.parents[1] / "tests" / "data" / "dumps.tar.xz") as archive:
            archive.extractall(folder)
        with served(Path(folder)) as url:
            shown = Gallery(url)
            for theme in THEMES:
                for language in LANGUAGES:
                    file = f"empty-{theme}-{language[:2]}"
                    if chosen(file, only):
                        picture(browser, url, GALLERY / f"{file}.png", theme, language)
            screens = shown.screens(Path(folder))
            for theme in THEMES:
                for language in LANGUAGES:
                    for name, path in screens.items():
                        for word, size in SIZES.items():
                            file = f"{name}{word}-{theme}-{language[:2]}"
                            if (not word or name in MAIN) and chosen(file, only):
                                picture(browser, url + path, GALLERY / f"{file}.png", theme, language, size)


def chosen(name: str, only: list[str]) -> bool:
    return not only or any(word in name for word in only)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="a part of a picture's name")
    only: list[str] = parser.parse_args().only
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=next(filter(None, found)), args=FLAGS)
        if not only:
            with demo() as address:
                for theme in THEMES:
                    picture(browser, address, IMAGES / f"comparison-{theme}.png", theme)
        gallery(browser, only)
        browser.close()


if __name__ == "__main__":
    main()
