"""A comparison in one file: opened from the disk by a browser that reaches nothing, it names the cause and says what it lacks."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Page

from ui.conftest import PATIENCE, Server
from ui.driving import known
from ui.expecting import expect
from ui.sizes import synthetic
from ui.test_access import AT_REST, grave

NODES = 10_000
BASE_BYTES = 3_000_000
"""Scripts, styles and plotly.js of the page in a file."""
BYTES = BASE_BYTES + 250 * NODES
"""Of a file of NODES calls; in proportion, one of 100 000 calls would be beyond the 10 MB that it may have at most."""

ABSENT = "Not in this file. Open the comparison on the server that wrote the file"


@dataclass(frozen=True, slots=True)
class File:
    path: Path
    size: int

    @property
    def address(self) -> str:
        return self.path.as_uri()


Write = Callable[[Path, Path], File]


@pytest.fixture(scope="module")
def write(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Write:
    """The file of two dumps, made once."""

    @cache
    def written(target: Path, golden: Path) -> File:
        address = known(server, target, golden).replace("/comparisons/", "/api/comparisons/")
        with urllib.request.urlopen(f"{address}/export.page.html", timeout=PATIENCE / 1000) as reply:
            content = reply.read()
        path = tmp_path_factory.mktemp("files") / f"{target.name}.html"
        path.write_bytes(content)
        return File(path, len(content))

    return written


@pytest.fixture
def alone(page: Page) -> Page:
    """A page that reaches nothing but files; whatever it asks for makes the test fail."""
    page.route(re.compile("^(?!file:|data:|blob:)"), lambda route: route.abort())
    return page


CAUSES = {
    "target_fault": ("golden", "Functional.softmax.1.forward", "4 of 144 elements differ"),
    "target_nan": ("golden", "Functional.gelu.0.forward", "NaN or infinity"),
    "stat_fault_bwd": ("stat_golden", "Functional.layer_norm.3.backward", "Norm"),
    "dist2_tensor_fault": ("dist2_tensor_golden", "Tensor.__add__.0.forward", ""),
}
"""Dumps of a known fault: their golden, the call that is at fault, and a part of the reason."""


@pytest.mark.parametrize("name", CAUSES)
def test_it_names_the_cause_with_stack_numbers_and_plot(alone: Page, write: Write, dumps: Path, name: str) -> None:
    golden, cause, why = CAUSES[name]
    alone.goto(write(dumps / name, dumps / golden).address)
    expect(alone.get_by_test_id("banner")).to_contain_text(cause)
    expect(alone.get_by_test_id("banner")).to_contain_text(why)
    expect(alone.get_by_test_id("selected-name")).to_contain_text(cause)
    expect(alone.get_by_test_id("why")).not_to_be_empty()
    expect(alone.get_by_test_id("evidence")).to_contain_text("models.py" if name != "dist2_tensor_fault" else ".py")
    expect(alone.locator(".main-svg").first).to_be_visible()
    expect(alone.get_by_test_id("tree").locator("[aria-selected=true]")).to_be_visible()
    expect(alone.get_by_test_id("flow")).to_be_visible()
    expect(alone.get_by_test_id("file-note")).to_contain_text("This file holds all")
    expect(alone.get_by_test_id("not-in-file")).to_have_count(0)
    expect(alone.get_by_test_id("failure")).to_have_count(0)


def test_two_runs_that_agree_are_silent_in_it_too(alone: Page, write: Write, dumps: Path) -> None:
    side = dumps / "stat_golden"  # a file of tensors takes thrice as long to write
    alone.goto(write(side, side).address)
    expect(alone.get_by_test_id("no-origin")).to_be_visible()
    expect(alone.get_by_test_id("largest")).to_be_visible()
    expect(alone.get_by_test_id("selected-name")).not_to_be_empty()
    expect(alone.get_by_test_id("failure")).to_have_count(0)


def test_its_keys_walk_suspects_and_calls_and_show_all_plots(alone: Page, write: Write, dumps: Path) -> None:
    alone.goto(write(dumps / "target_fault_bwd", dumps / "target_fault_weight").address)
    name = alone.get_by_test_id("selected-name")
    expect(alone.locator(".main-svg").first).to_be_visible()
    first = name.inner_text()
    alone.keyboard.press("n")
    expect(alone.get_by_test_id("notice")).to_contain_text("Suspect 2 of")
    expect(name).not_to_have_text(first)
    expect(alone.get_by_test_id("tree").locator("[data-reached]").first).to_be_visible()
    for tab in ("pair", "api", "map", "order", "apis", "error", "runs"):
        alone.keyboard.press(
            str(["hist", "pair", "api", "map", "order", "apis", "error", "values", "runs"].index(tab) + 1)
        )
        expect(alone.locator(".main-svg").first).to_be_visible()
        assert f"tab={tab}" in alone.url
        expect(alone.get_by_test_id("not-in-file")).to_have_count(0)
    alone.keyboard.press("8")
    expect(alone.get_by_test_id("values-grid")).to_be_visible()
    alone.keyboard.press("w")
    expect(alone.locator("[data-middle]")).to_be_visible()
    alone.keyboard.press("Escape")
    before = name.inner_text()
    alone.keyboard.press("j")
    expect(name).not_to_have_text(before)
    alone.keyboard.press("p")
    address = alone.url
    alone.reload()
    expect(name).not_to_be_empty()
    assert alone.url == address  # a file keeps what it shows, as any page of a server does


def test_its_list_is_searched_filtered_and_sorted(alone: Page, write: Write, dumps: Path) -> None:
    alone.goto(write(dumps / "target_fault", dumps / "golden").address)
    total = alone.get_by_test_id("total")
    expect(total).to_have_text("163 calls")
    alone.get_by_test_id("search").fill("softmax")
    expect(total).to_contain_text("4 calls")
    alone.get_by_test_id("search").fill("softmax -backward")
    expect(total).to_contain_text("2 calls")
    alone.get_by_test_id("search").fill("err>1e-2")
    expect(alone.get_by_test_id("search-refused")).to_contain_text("A file is searched by parts of names")
    alone.get_by_test_id("search").fill("")
    alone.get_by_test_id("count-origin").click()
    expect(total).to_contain_text("1 call")
    alone.keyboard.press("Control+K")
    alone.keyboard.type("gelu")
    expect(alone.get_by_role("option", name="Functional.gelu.1.forward")).to_be_visible()
    alone.keyboard.press("Enter")
    expect(alone.get_by_test_id("selected-name")).to_contain_text("gelu")


def test_it_speaks_both_languages_and_opens_modules(alone: Page, write: Write, dumps: Path) -> None:
    alone.goto(write(dumps / "target_fault", dumps / "golden").address)
    tree = alone.get_by_test_id("tree")
    first = tree.locator("[role=treeitem][data-name='Module.layers.0.Block.forward.0']")
    expect(first).to_have_attribute("aria-expanded", "false")
    inside = tree.locator("[role=treeitem][data-name='Module.layers.0.ln1.LayerNorm.forward.0']")
    expect(inside).to_have_count(0)
    first.locator("[data-toggle]").click()
    expect(first).to_have_attribute("aria-expanded", "true")
    expect(inside).to_be_visible()
    alone.get_by_test_id("language").click()
    expect(alone.locator("html")).to_have_attribute("lang", "zh")
    expect(alone.get_by_test_id("banner")).to_contain_text("首个异常源头")
    expect(alone.get_by_test_id("why")).to_contain_text("输入")
    expect(alone.get_by_test_id("file-note")).to_contain_text("此文件包含全部")
    alone.get_by_test_id("language").click()
    expect(alone.get_by_test_id("banner")).to_contain_text("First origin")


def test_its_maps_of_ranks_and_steps_lead_to_calls(alone: Page, write: Write, dumps: Path) -> None:
    alone.goto(write(dumps / "dist2_tensor_fault", dumps / "dist2_tensor_golden").address)
    alone.get_by_test_id("open-rank-map").click()
    maps = alone.get_by_test_id("trends")
    rows = maps.locator("tbody").get_by_role("row")
    expect(maps.get_by_role("columnheader")).to_have_text([r"Node \ rank", "No", "0", "1"])
    maps.get_by_placeholder("Search modules").fill("LN.LayerNorm.forward")
    expect(rows).to_have_count(1)
    maps.get_by_text("Steps", exact=True).click()
    maps.get_by_placeholder("Search modules").fill("ln.LayerNorm.forward")
    expect(rows).to_have_count(2)
    maps.get_by_role("checkbox", name="A row per rank").uncheck()
    expect(rows).to_have_count(1)
    expect(alone.get_by_test_id("not-in-file")).to_have_count(0)
    maps.get_by_role("checkbox", name="A row per rank").check()
    maps.get_by_role("button", name=re.compile(r"ln\.LayerNorm.*step 0, rank 1")).click()
    expect(maps).to_be_hidden()
    assert re.search(r"[#&]s=0&r=1&n=Module\.module\.ln\.LayerNorm", alone.url)
    expect(alone.get_by_test_id("flow")).to_be_visible()


SERVERS = (
    "policy", "open-policy", "hand-matches", "export", "copy-link", "match-with", "unmatch", "say-note", "reproduce", "alone-how",
    "open-assistant", "plan-join", "copy-mark",
)  # fmt: skip
"""What only a server can do."""


def test_what_needs_a_server_is_not_offered(alone: Page, write: Write, dumps: Path) -> None:
    alone.goto(write(dumps / "target_fault", dumps / "golden").address)
    expect(alone.get_by_test_id("flow")).to_be_visible()
    for name in SERVERS:
        expect(alone.get_by_test_id(name)).to_have_count(0)
    before = alone.url
    for key in "emMavrtc":
        alone.keyboard.press(key)
    expect(alone.get_by_role("dialog")).to_have_count(0)
    assert alone.url == before
    expect(alone.get_by_role("link")).to_have_count(alone.locator("a[href^='#'], a[href^='vscode:']").count())
    alone.keyboard.press("?")
    expect(alone.get_by_test_id("keys")).to_contain_text("next, previous suspect")
    expect(alone.get_by_test_id("keys")).not_to_contain_text("copy link")


def test_of_a_long_run_it_holds_the_calls_that_matter_and_says_what_it_lacks(
    alone: Page, write: Write, generated: Path, pytestconfig: pytest.Config
) -> None:
    make_dump = synthetic(pytestconfig.rootpath).make_dump
    fault = make_dump(generated / "file_target", NODES, 1, NODES // 3).fault
    make_dump(generated / "file_golden", NODES, 1)
    file = write(generated / "file_target", generated / "file_golden")
    assert file.size < BYTES
    alone.goto(file.address)
    expect(alone.get_by_test_id("selected-name")).to_contain_text(fault)
    expect(alone.get_by_test_id("total")).to_have_text("400 of 10 000 calls")
    note = alone.get_by_test_id("file-note")
    expect(note).to_contain_text("400 of 10 000 calls")
    expect(note).to_contain_text("The other 9 600 are only on the server")
    strip = alone.get_by_test_id("strip").bounding_box()
    assert strip is not None
    alone.mouse.click(strip["x"] + 5, strip["y"] + 8)  # a call far from everything
    expect(alone.get_by_test_id("notice")).to_contain_text("This call is not in the file")
    alone.goto(file.address + "#s=0&r=0&n=Tensor.__add__.9.forward&tab=map")
    alone.reload()
    expect(alone.get_by_test_id("not-in-file").first).to_contain_text(ABSENT)
    expect(alone.get_by_test_id("failure")).to_have_count(0)
    expect(alone.get_by_test_id("tree").get_by_text("not in this file").first).to_be_visible()


@pytest.mark.parametrize("pair", ["target_fault golden", "target_nan golden"])
def test_axe_finds_nothing_serious_in_it(
    alone: Page, write: Write, dumps: Path, pytestconfig: pytest.Config, pair: str
) -> None:
    target, golden = pair.split()
    alone.emulate_media(color_scheme="light", reduced_motion="reduce")
    alone.goto(write(dumps / target, dumps / golden).address)
    expect(alone.locator(".main-svg").first).to_be_visible()
    expect(alone.get_by_test_id("flow")).to_be_visible()
    for scheme in ("light", "dark"):
        alone.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(alone.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        alone.wait_for_function(AT_REST)
        assert grave(alone, pytestconfig) == []
    assert alone.evaluate("performance.getEntriesByType('resource').length") == 0


LEFT_OUT = (
    "[data-testid=tree]", "[data-testid=calls]", "[data-testid=strip]", "[data-testid=language]", "[role=tablist]",
    "[data-testid=file-note]", ".mantine-ActionIcon-root", ".mantine-Button-root", "header button", "input", "nav",
)  # fmt: skip
"""What a sheet of paper has no use for."""

CUT = """() => [...document.querySelectorAll("main *")]
    .filter((one) => one.checkVisibility() && !one.closest("svg, .sr, [data-plot]"))
    .filter((one) => getComputedStyle(one).overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 200))"""
"""What is wider than the place that cuts it."""


@pytest.mark.parametrize("kind", ["file", "server"])
def test_printed_it_is_two_pages_of_cause_suspects_evidence_and_plot(
    alone: Page, page: Page, server: Server, write: Write, dumps: Path, kind: str
) -> None:
    sides = (dumps / "target_fault_bwd", dumps / "target_fault_weight")
    if kind == "server":
        page.unroute_all()
    page.goto(known(server, *sides) if kind == "server" else write(*sides).address)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        expect(page.locator(".main-svg").first).to_be_visible()
        expect(page.get_by_test_id("flow")).to_be_visible()
        printed = page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)  # the screen is as before
        page.set_viewport_size({"width": 718, "height": 1000})
        page.emulate_media(media="print")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "light")
        expect(page.get_by_test_id("suspect")).to_have_count(3)
        for name in ("banner", "reason", "why", "flow", "figure", "stack-target"):
            expect(page.get_by_test_id(name)).to_be_visible()
        expect(page.locator("#section-inputs table")).to_be_visible()
        expect(page.get_by_text("step 0 · rank 0")).to_be_visible()
        assert {name for name in LEFT_OUT if page.locator(name).filter(visible=True).count()} == set()
        assert page.evaluate(CUT) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 718
        plot = page.locator("[data-plot] .main-svg").first.bounding_box()
        assert plot is not None
        assert plot["width"] == 680
        page.emulate_media(media="screen")
        expect(page.get_by_test_id("suspect")).to_have_count(0)
        page.set_viewport_size({"width": 1440, "height": 900})
