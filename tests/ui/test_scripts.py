"""The scripts of the page: few before the answer, the others in time, no key lost meanwhile, and a way on without one."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from dumpscope.api.pages import STATIC
from ui.conftest import Server, new_page
from ui.driving import ask, known
from ui.expecting import expect

ROOT: Final = Path(__file__).resolve().parents[2]
LARGEST: Final = 150_000
"""Compressed bytes of scripts before the banner, in either language."""
LEVEL: Final = 5
"""How hard the server compresses (api/app.py)."""
SHOWN: Final = """
    new MutationObserver((_changes, watch) => {
        if (!document.querySelector("[data-testid=banner]")) return;
        watch.disconnect();
        window.before = performance.getEntriesByType("resource").filter((one) => one.name.endsWith(".js")).map((one) => one.name);
    }).observe(document, { childList: true, subtree: true });
"""


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def compressed(url: str) -> int:
    return len(gzip.compress((STATIC / urlsplit(url).path.lstrip("/")).read_bytes(), LEVEL))


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_the_banner_shows_from_few_scripts(page_in: Callable[[str], Page], address: str, language: str) -> None:
    page = page_in(language)
    page.add_init_script(SHOWN)
    page.goto(address)
    expect(page.get_by_test_id("banner")).to_be_visible()
    sizes = {url.rsplit("/", 1)[1]: compressed(url) for url in page.evaluate("window.before")}
    assert len(sizes) > 2
    assert sum(sizes.values()) <= LARGEST, sizes
    expect(page.get_by_test_id("why")).to_be_visible()  # the others come behind it


@pytest.mark.parametrize(
    "pair",
    ["target_fault golden", "target_nan golden", "target_extra_op golden", "target_fault_gelu_arg golden", "target_bf16 golden",
     "dist2_stat_fault dist2_stat_golden", "xor_fault xor_golden", "target_fault_weight golden"],
)  # fmt: skip
def test_the_answer_is_said_with_the_sentences_that_come_first(server: Server, dumps: Path, pair: str) -> None:
    source = (ROOT / "frontend" / "bundling" / "texts.ts").read_text(encoding="utf-8")
    (sections,) = re.findall(r"const ANSWERS =\s*/\^\(\?:([a-z|]+)\)", source)
    id = known(server, *(dumps / name for name in pair.split())).rsplit("/", 1)[-1]
    summary, origins, suspects = (
        ask(server, "GET", f"/comparisons/{id}/{part}") for part in ("summary", "origins", "suspects")
    )
    shown = [summary["settings_said"], (summary["coverage"] or {}).get("first"), origins, suspects]
    assert {one.split(".")[0] for one in ids(shown)} <= set(sections.split("|"))
    assert not any(one.startswith("setting.note.") for one in ids(shown))


def ids(part: Any) -> Iterator[str]:
    """Ids of all phrases in a reply."""
    if isinstance(part, list):
        for one in part:
            yield from ids(one)
    elif isinstance(part, dict):
        if part.keys() == {"id", "values"}:
            yield part["id"]
        for one in part.values():
            yield from ids(one)


@contextmanager
def holding(page: Page, script: str) -> Iterator[Callable[[], None]]:
    """Scripts of this name do not come until the function is called."""
    held: list[Route] = []
    open_ = False

    def hold(route: Route) -> None:
        if open_:
            route.fallback()
        else:
            held.append(route)

    def release() -> None:
        nonlocal open_
        open_ = True
        while held:
            held.pop().continue_()

    page.route(re.compile(rf"/assets/{script}-[^/]*\.js"), hold)
    yield release


def test_a_key_pressed_before_its_dialog_is_there_opens_it(page: Page, address: str) -> None:
    with holding(page, "DialogSet") as release:
        page.goto(address)
        expect(page.get_by_test_id("why")).to_be_visible()
        page.keyboard.press("t")
        expect(page).to_have_url(re.compile("do=policy"))
        expect(page.get_by_role("dialog")).to_have_count(0)
        release()
        expect(page.get_by_role("dialog")).to_contain_text("Tolerances")


def test_what_is_typed_behind_ctrl_k_goes_into_the_palette_once_it_is_there(page: Page, address: str) -> None:
    with holding(page, "PaletteDialog") as release:
        page.goto(address)
        expect(page.get_by_test_id("why")).to_be_visible()
        before = page.url
        page.keyboard.press("Control+k")
        page.keyboard.type("cross_entropy.0.f")  # none of these letters may act as a key of the screen
        assert page.url == before
        release()
        expect(page.get_by_test_id("palette")).to_have_value("cross_entropy.0.f")
        expect(page.get_by_role("option").first).to_contain_text("Functional.cross_entropy.0.forward")
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.cross_entropy.0.forward")


def test_keys_for_panels_wait_for_them_in_their_order(page: Page, address: str) -> None:
    with holding(page, "belowStrip") as release:
        page.goto(address)
        expect(page.get_by_test_id("banner")).to_be_visible()
        expect(page.get_by_test_id("calls")).to_have_count(0)
        page.keyboard.type("/gelu")
        release()
        expect(page.get_by_test_id("search")).to_have_value("gelu")
        expect(page.get_by_test_id("total")).to_have_text("4 calls match")


def settled(page: Page, script: str) -> list[str]:
    """What a script says of the page, once it has said so five times in a row."""
    said: list[list[str]] = []
    while len(said) < 5 or said[-5:] != said[-1:] * 5:
        page.wait_for_timeout(100)
        said.append(page.evaluate(script))
    return said[-1]


def test_the_panels_stand_where_they_will_be_before_they_are_there(page: Page, address: str) -> None:
    places = """() => [...document.querySelectorAll("main section.panel, main > *, #root > * > header")].map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return [one.getAttribute("aria-label") ?? one.tagName, x, y, width, height].join(" ");
    })"""
    with holding(page, "(?:belowStrip|Controls|NotesPopup|ThemeMenu)") as release:
        page.goto(address)
        expect(page.get_by_test_id("reason")).to_be_visible()
        expect(page.get_by_test_id("suspects")).to_be_visible()  # a reply of its own, and a line of the banner
        before = settled(page, places)
        release()
        expect(page.get_by_test_id("why")).to_be_visible()
        expect(page.get_by_test_id("policy")).to_be_visible()
        assert settled(page, places) == before


@pytest.mark.parametrize(
    ("script", "act"),
    [("DialogSet", "t"), ("PaletteDialog", "Control+k"), ("HelpOverlay", "?")],
)
def test_a_dialog_whose_script_is_gone_says_so_and_offers_a_reload(
    context: BrowserContext, address: str, script: str, act: str
) -> None:
    page = new_page(context)  # a missing script is logged by the browser, so not the strict page
    gone = re.compile(rf"/assets/{script}-[^/]*\.js")
    page.route(gone, lambda route: route.fulfill(status=404, json={"error": "not_found", "detail": "x", "hint": None}))
    page.goto(address)
    expect(page.get_by_test_id("why")).to_be_visible()
    page.keyboard.press(act)
    missing = page.get_by_test_id("part-missing")
    expect(missing).to_contain_text("could not be loaded")
    expect(missing).to_contain_text("newer version")
    page.unroute(gone)
    missing.get_by_test_id("reload").click()
    expect(page.get_by_test_id("why")).to_be_visible()
    expect(missing).to_have_count(0)
    page.keyboard.press(act)
    expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.parametrize("script", ["ComparisonView", "belowStrip"])
def test_a_screen_whose_script_is_gone_says_so_and_offers_a_reload(
    context: BrowserContext, address: str, script: str
) -> None:
    page = new_page(context)  # as above
    gone = re.compile(rf"/assets/{script}-[^/]*\.js")
    page.route(gone, lambda route: route.abort())
    page.goto(address)
    missing = page.locator("[data-testid=part-missing]:visible").first  # another one is for narrow screens
    expect(missing).to_contain_text("could not be loaded")
    page.unroute(gone)
    missing.get_by_test_id("reload").click()
    expect(page.get_by_test_id("why")).to_be_visible()
