"""Pictures from real dumps in a real Chromium: `make screenshots` writes docs/images/*.png of the demo for README and docs, and
every screen and state in both themes and languages to screenshots/, to be looked at after a change of the UI.

    python docs/screenshots.py [--only WORD]...    only pictures whose name holds a word
"""

from __future__ import annotations

import argparse
import itertools
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, sync_playwright

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


@dataclass(frozen=True, slots=True)
class Screen:
    """A picture's page.

    shows: selectors, each of which must be seen before the picture is taken; keys, clicks: pressed and clicked (test ids) before;
    then: what those open
    """

    path: str
    shows: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    clicks: tuple[str, ...] = ()
    then: str | None = None


HOME: Final = ("[data-testid=drop]", "[data-testid=upload-room]")
LISTS: Final = ("[data-testid=banner]", "[data-testid=calls] [data-name]", "[role=treeitem]")
PICTURED: Final = (*LISTS, "[data-plot][data-drawn]")
DIALOG: Final = "[role=dialog]"

AT_REST: Final = """() => {
    const seen = (element) => element.getClientRects().length > 0;
    const busy = "[aria-busy=true], output .mantine-Loader-root, [data-plot]:not([data-drawn])";
    return document.fonts.status === "loaded"
        && ![...document.querySelectorAll(busy)].some(seen)
        && !document.getAnimations().some((animation) => animation.playState === "running");
}"""
QUIET: Final = 300
"""Milliseconds without a request and with the page at rest: what a reply leads to is asked for within a frame or two of it."""
PATIENCE: Final = 30_000


def wait_until_still(page: Page) -> None:
    """Until nothing is being read, drawn or moved any more."""
    page.wait_for_load_state("networkidle", timeout=PATIENCE)
    page.wait_for_function(
        f"""() => {{
            const now = performance.now();
            const asked = performance.getEntriesByType("resource").length;
            if (!({AT_REST})() || asked !== window.askedBefore) window.stillSince = now;
            window.askedBefore = asked;
            return now - window.stillSince >= {QUIET};
        }}""",
        timeout=PATIENCE,
    )


def picture(context: BrowserContext, address: str, screen: Screen, file: Path) -> bool:
    """Screenshot of a page, once all that it is to show is there; False where it did not come, pictured as it then is."""
    page = context.new_page()
    try:
        page.set_default_timeout(PATIENCE)
        page.goto(address + screen.path)
        for selector in screen.shows:
            page.locator(selector).first.wait_for()
        wait_until_still(page)
        for test_id in screen.clicks:
            page.get_by_test_id(test_id).click()
        for key in screen.keys:
            page.keyboard.press(key)
        if screen.then is not None:
            page.locator(screen.then).first.wait_for()
        wait_until_still(page)
        return True
    except TimeoutError as error:
        print(f"{file.name}: {error.message.splitlines()[-1]}", file=sys.stderr)
        return False
    finally:
        page.mouse.move(0, 0)
        page.screenshot(path=file)
        page.close()


@contextmanager
def window(browser: Browser, theme: Theme, language: str, size: tuple[int, int]) -> Iterator[BrowserContext]:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, locale=language)
    try:
        yield context
    finally:
        context.close()


LANGUAGES: Final = ("en-US", "zh-CN")
SIZES: Final = {"": (1280, 800), "-wide": (1440, 900), "-large": (1920, 1080), "-phone": (390, 844)}
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

    def screens(self, dumps: Path) -> dict[str, Screen]:
        """Every screen by name, and the states that real dumps bring about."""
        pairs = {
            "origin": ("target_fault", "golden"),
            "alike": ("golden", "golden"),
            "statistics": ("stat_fault", "stat_golden"),
            "hashes": ("md5_fault", "md5_golden"),
            "nonfinite": ("target_nan", "golden"),
            "renamed": ("target_renamed", "golden"),
            "ranks": ("dist2_stat_fault", "dist2_stat_golden"),
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
        found = {name: Screen(path, PICTURED) for name, path in made.items()}
        for name in ("assistant", "strangers"):
            found[name] = Screen(made[name], (DIALOG,))
        for plot in PLOTS:
            drawn = "[data-testid=values]" if plot == "values" else "[data-plot][data-drawn]"
            found[f"plot-{plot}"] = Screen(f"{origin}?tab={plot}", (*LISTS, drawn))
        for dialog in ("match", "matches", "trends", "policy", "reproduce", "source"):
            found[f"do-{dialog}"] = Screen(f"{origin}?do={dialog}", (*LISTS, DIALOG))
        found["do-note"] = Screen(f"{origin}?do=note", (*PICTURED, "[data-testid=note-form]"))
        dump = f"/dumps/{self.ask('GET', origin)['target']}"
        nonfinite = f"/dumps/{self.ask('GET', made['nonfinite'])['target']}"
        ranked = f"/dumps/{self.ask('GET', made['ranks'])['target']}"
        explored = ("[data-testid=nodes] [data-name]", "[role=treeitem]")
        failed = self.compared(dumps / "crash_tensor", dumps / "golden")
        return found | {
            "unknown": Screen("/comparisons/none", ("[data-testid=failure]",)),
            "failed": Screen(failed, ("[data-testid=failure]",)),
            "do-plan": Screen(f"{made['ranks']}?do=plan", (*LISTS, DIALOG)),
            "filtered": Screen(f"{origin}?q=api:softmax+err%3E1e-6&f=class:origin", PICTURED),
            "filtered-empty": Screen(f"{origin}?q=nothing", ("[data-testid=banner]",)),
            "search-wrong": Screen(f"{origin}?q=clas:origin", ("[data-testid=banner]", "[data-testid=failure]")),
            "strangers-verdict": Screen(f"{made['strangers']}?n=Tensor.mean.0.forward", LISTS),
            "hashes-plot": Screen(f"{made['hashes']}?tab=hist", LISTS),
            "help": Screen(origin, LISTS, keys=("?",), then="[data-testid=keys]"),
            "palette": Screen(origin, LISTS, keys=("Control+k",), then=DIALOG),
            "export": Screen(origin, LISTS, keys=("e",), then="[role=menu]"),
            "filters": Screen(origin, LISTS, clicks=("filter",), then="[role=menu]"),
            "plot-large": Screen(origin, PICTURED, clicks=("plot-large",)),
            "home": Screen("/", (*HOME, "[data-testid=comparisons] a")),
            "home-options": Screen("/", HOME, clicks=("options",)),
            "home-browse": Screen("/", HOME, clicks=("browse",), then="[data-testid=path-picker] button"),
            "dump": Screen(dump, explored),
            "dump-nonfinite": Screen(f"{nonfinite}?do=overflow", ("[data-testid=findings]", "[role=treeitem]")),
            **{
                f"dump-{plot}": Screen(f"{nonfinite}?tab={plot}", (*explored, "[data-plot][data-drawn]"))
                for plot in ("hist", "map", "order", "apis")
            },
            "dump-values": Screen(f"{nonfinite}?tab=values", (*explored, "[data-testid=values-grid]")),
            "dump-help": Screen(nonfinite, explored, keys=("?",), then=DIALOG),
            "dump-compare": Screen(f"{nonfinite}?do=compare", (*explored, DIALOG)),
            "dump-trends": Screen(f"{ranked}?do=trends", (*explored, DIALOG)),
            "dump-reproduce": Screen(f"{dump}?do=reproduce", (*explored, DIALOG)),
        }


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


def gallery(browser: Browser, only: list[str]) -> bool:
    """Every screen and state, in both themes and languages, to GALLERY; False where one did not come."""
    GALLERY.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(IMAGES.parents[1] / "tests" / "data" / "dumps.tar.xz") as archive:
            archive.extractall(folder)
        with served(Path(folder)) as url:
            shown = Gallery(url)
            empty = take(browser, url, {"empty": Screen("/", ("[data-testid=first-steps]", *HOME))}, only)
            return take(browser, url, shown.screens(Path(folder)), only) and empty


def take(browser: Browser, url: str, screens: dict[str, Screen], only: list[str]) -> bool:
    """Pictures of the screens to GALLERY, named SCREEN[-SIZE]-THEME-LANGUAGE; False where one did not come."""
    whole = True
    for theme, language, (word, size) in itertools.product(THEMES, LANGUAGES, SIZES.items()):
        files = {
            file: screen
            for name, screen in screens.items()
            if (not word or name in MAIN) and chosen(file := f"{name}{word}-{theme}-{language[:2]}", only)
        }
        if not files:
            continue
        with window(browser, theme, language, size) as context:
            for file, screen in files.items():
                # A phone shows one panel at a time.
                wanted = replace(screen, shows=screen.shows[:2]) if word == "-phone" else screen
                whole &= picture(context, url, wanted, GALLERY / f"{file}.png")
    return whole


def chosen(name: str, only: list[str]) -> bool:
    return not only or any(word in name for word in only)


def main() -> int:
    """Exit status: 1 where a picture does not show what it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="a part of a picture's name")
    only: list[str] = parser.parse_args().only
    found = [
        shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    ]
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=next(filter(None, found)), args=FLAGS)
        whole = True
        if not only:
            with demo() as address:
                for theme in THEMES:
                    with window(browser, theme, LANGUAGES[0], (1440, 900)) as context:
                        whole &= picture(context, address, Screen("", PICTURED), IMAGES / f"comparison-{theme}.png")
        whole &= gallery(browser, only)
        browser.close()
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
