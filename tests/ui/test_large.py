"""Runs too long to hold: lists of up to a million calls, and what they cost the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page

from ui.conftest import Server
from ui.driving import ask, begin, finished, register, sides
from ui.expecting import expect
from ui.sizes import repeated, synthetic
from ui.watching import MOST_ROWS, Watched, allowed, first_paint, rows

# The rows of a run that is made long by repeating one have no places in its tree: looking for them there is answered by a 404.
pytestmark = pytest.mark.expects("/tree/levels")

NODES = 20_000
REAL: Final = 96_000
FIRST_PAINT: Final = 5_000
"""Milliseconds from opening the page of a result to its banner."""


@pytest.fixture(scope="module")
def pair(server: Server, generated: Path, pytestconfig: pytest.Config) -> dict[str, str]:
    """Dumps of NODES calls, for what happens while they are compared. Read once: what is cancelled leaves nothing to be read."""
    make_dump = synthetic(pytestconfig.rootpath).make_dump
    make_dump(generated / "long_target", NODES, 1, NODES // 3)
    make_dump(generated / "long_golden", NODES, 1)
    return sides(server, generated / "long_target", generated / "long_golden")


@dataclass(frozen=True, slots=True)
class Large:
    """A comparison that is done: its address, calls a side, and the name of the call where the error begins."""

    address: str
    nodes: int
    fault: str

    @property
    def id(self) -> str:
        return self.address.rsplit("/", 1)[-1]


@pytest.fixture(scope="module")
def real(server: Server, generated: Path, pytestconfig: pytest.Config) -> Large:
    """Two dumps of REAL calls, read and compared by the server."""
    make_dump = synthetic(pytestconfig.rootpath).make_dump
    fault = make_dump(generated / "larger_target", REAL, 1, REAL // 3).fault
    make_dump(generated / "larger_golden", REAL, 1)
    address = finished(server, generated / "larger_target", generated / "larger_golden", seconds=900)
    return Large(address, REAL, fault)


@pytest.fixture(scope="module")
def larger(server: Server, real: Large) -> Large:
    return _repeated(server, real, 300_000)


@pytest.fixture(scope="module")
def largest(server: Server, real: Large) -> Large:
    return _repeated(server, real, 1_000_000)


def _repeated(server: Server, real: Large, nodes: int) -> Large:
    return Large(f"{server.url}/comparisons/{repeated(server.data, real.id, nodes)}", nodes, real.fault)


def calls_of(page: Page) -> Locator:
    return page.get_by_test_id("calls")


def opened(page: Page, large: Large, more: str = "") -> Locator:
    """The list of a large result, with its first origin in view."""
    page.goto(large.address + more)
    expect(page.get_by_test_id("selected-name")).not_to_be_empty()
    expect(calls_of(page).get_by_role("row", selected=True)).to_be_in_viewport()
    return calls_of(page)


def row_at(calls: Locator, place: int) -> Locator:
    """The row of a call by its place in the list; the titles are row 1."""
    return calls.locator(f"[role=row][aria-rowindex='{place + 2}'][data-name]")


def name_at(server: Server, large: Large, place: int, more: str = "") -> str:
    return str(ask(server, "GET", f"/comparisons/{large.id}/nodes?at={place}&limit=1{more}")["items"][0]["name"])


@pytest.mark.parametrize("size", ["real", "larger", "largest"])
def test_the_banner_of_a_long_run_names_the_origin_within_five_seconds(
    watched: Watched, size: str, request: pytest.FixtureRequest
) -> None:
    large: Large = request.getfixturevalue(size)
    page = watched.page
    assert first_paint(page, large.address, FIRST_PAINT) <= allowed(page, FIRST_PAINT)
    expect(page.get_by_test_id("origin")).to_contain_text(large.fault)
    expect(page.get_by_test_id("selected-name")).to_contain_text(large.fault)
    expect(calls_of(page).get_by_text(large.fault, exact=True)).to_be_in_viewport()
    expect(page.get_by_test_id("total")).to_contain_text(f"{large.nodes:,}".replace(",", "\u202f"))


def test_keys_reach_both_ends_of_a_million_calls_and_all_between(
    watched: Watched, largest: Large, server: Server
) -> None:
    page = watched.page
    calls = opened(page, largest)
    expect(calls).to_have_attribute("aria-rowcount", str(largest.nodes + 1))
    name = page.get_by_test_id("selected-name")
    last = largest.nodes - 1
    for key, place in (("End", last), ("ArrowUp", last - 1), ("Home", 0), ("ArrowDown", 1)):
        calls.press(key)
        expect(name).to_contain_text(name_at(server, largest, place))
        expect(row_at(calls, place)).to_be_in_viewport()
        expect(row_at(calls, place)).to_have_attribute("aria-selected", "true")
        expect(calls).to_have_attribute("aria-activedescendant", str(row_at(calls, place).get_attribute("id")))
        assert rows(page) <= MOST_ROWS
    calls.press("PageDown")
    expect(row_at(calls, 1)).not_to_have_attribute("aria-selected", "true")
    down = int(str(calls.get_by_role("row", selected=True).get_attribute("aria-rowindex"))) - 2
    assert 10 < down < 60
    calls.press("PageUp")
    expect(row_at(calls, 1)).to_have_attribute("aria-selected", "true")


def test_the_scroll_bar_leads_to_the_middle_of_a_million_calls_and_the_wheel_on_row_by_row(
    watched: Watched, largest: Large, server: Server
) -> None:
    page = watched.page
    calls = opened(page, largest)
    selected = page.get_by_test_id("selected-name").inner_text()
    box = calls.locator("[data-rows]")
    box.evaluate("box => { box.scrollTop = (box.scrollHeight - box.clientHeight) / 2 }")
    middle = largest.nodes // 2
    row = row_at(calls, middle)
    expect(row).to_be_in_viewport()
    expect(row).to_have_attribute("data-name", name_at(server, largest, middle))
    before = row.bounding_box()
    calls.hover()
    page.mouse.wheel(0, 52)  # two rows
    expect(row_at(calls, middle + 8)).to_be_in_viewport()
    assert before is not None
    page.wait_for_function(
        "([row, top]) => Math.abs(row.getBoundingClientRect().top - top) < 2",
        arg=[row.element_handle(), before["y"] - 52],
    )
    expect(page.get_by_test_id("selected-name")).to_have_text(selected)
    row.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text(str(row.get_attribute("data-name")))
    page.keyboard.press("j")
    expect(row_at(calls, middle + 1)).to_have_attribute("aria-selected", "true")
    for ends, place in (("box.scrollHeight", largest.nodes - 1), ("0", 0)):
        box.evaluate(f"box => {{ box.scrollTop = {ends} }}")
        expect(row_at(calls, place)).to_be_in_viewport()


@pytest.mark.parametrize(
    ("more", "asked"),
    [("?f=verdict%3Ano", "&verdict=no"), ("?sort=-out_score", "&sort=-out_score"), ("?q=softmax", "&q=softmax")],
    ids=["filtered", "sorted", "searched"],
)
def test_a_filtered_or_sorted_list_has_its_ends_and_its_middle_too(
    watched: Watched, larger: Large, server: Server, more: str, asked: str
) -> None:
    page = watched.page
    page.goto(larger.address + more)
    calls = calls_of(page)
    total = ask(server, "GET", f"/comparisons/{larger.id}/nodes?limit=1{asked}")["total"]
    expect(calls).to_have_attribute("aria-rowcount", str(total + 1))
    for key, place in (("End", total - 1), ("Home", 0)):
        calls.press(key)
        expect(page.get_by_test_id("selected-name")).to_contain_text(name_at(server, larger, place, asked))
        expect(row_at(calls, place)).to_be_in_viewport()
    calls.locator("[data-rows]").evaluate("box => { box.scrollTop = (box.scrollHeight - box.clientHeight) / 2 }")
    row = row_at(calls, total // 2)
    expect(row).to_be_in_viewport()
    expect(row).to_have_attribute("data-name", name_at(server, larger, total // 2, asked))


def test_scrolling_never_fills_the_page_with_rows(watched: Watched, larger: Large) -> None:
    page = watched.page
    calls = opened(page, larger)
    calls.press("Home")
    expect(row_at(calls, 0)).to_be_in_viewport()
    calls.hover()
    for turn in range(1, 21):
        page.mouse.wheel(0, 2600)
        expect(row_at(calls, turn * 100 + 5)).to_be_in_viewport()
        assert rows(page) <= MOST_ROWS


def test_the_list_of_a_long_dump_is_walked_to_its_end(watched: Watched, real: Large, server: Server) -> None:
    page = watched.page
    dump = ask(server, "GET", f"/comparisons/{real.id}")["target"]
    page.goto(f"{server.url}/dumps/{dump}")
    nodes = page.get_by_test_id("nodes")
    expect(nodes.get_by_role("option").first).to_be_visible()
    for key, place in (("End", real.nodes - 1), ("Home", 0)):
        nodes.press(key)
        row = nodes.locator(f"[role=option][aria-posinset='{place + 1}'][data-name]")
        expect(row).to_be_in_viewport()
        expect(row).to_have_attribute("aria-selected", "true")
        expect(page.get_by_test_id("selected-name")).to_contain_text(str(row.get_attribute("data-name")))
        if key == "End":  # what comes above a list makes it lower, as here the window
            size = page.viewport_size
            assert size is not None
            for more in (
                300,
                -200,
            ):  # one that grew past its end is moved by the browser, which is no scroll of the reader's
                page.set_viewport_size({"width": size["width"], "height": size["height"] + more})
                expect(row).to_be_in_viewport()
            page.set_viewport_size(size)
    nodes.evaluate("box => { box.scrollTop = (box.scrollHeight - box.clientHeight) / 2 }")
    expect(nodes.locator(f"[role=option][aria-posinset='{real.nodes // 2}'][data-name]")).to_be_in_viewport()


def test_plots_opened_and_closed_leave_nothing_behind(watched: Watched, real: Large) -> None:
    """Thirty plots: those of a browser's WebGL contexts (16) would be blank, and those that are kept would fill the heap."""
    page = watched.page
    opened(page, real, "?tab=order")

    def cost() -> tuple[float, int]:
        watched.session.send("HeapProfiler.collectGarbage")
        return watched.session.send("Runtime.getHeapUsage")["usedSize"], watched.elements()

    def round_of_plots() -> None:
        for key, tab in (("3", "api"), ("6", "apis"), ("5", "order")):
            page.keyboard.press(key)
            expect(page.locator(f"[data-plot][data-drawn^='{tab}/'] .main-svg").first).to_be_visible()
            expect(page.locator("[data-plot]")).to_have_count(1)

    for _ in range(2):
        round_of_plots()
    heap, elements = cost()
    for _ in range(10):
        round_of_plots()
    assert page.locator("[data-plot] canvas").count() == 0
    after, now = cost()
    assert after < heap + 20e6, f"{heap / 1e6:.1f} MB, then {after / 1e6:.1f}"
    assert now < elements + 500


def test_a_running_comparison_shows_progress_and_can_be_cancelled(
    page: Page, server: Server, pair: dict[str, str]
) -> None:
    queue = [begin(server, pair) for _ in range(5)]
    page.goto(f"{server.url}/comparisons/{queue[-1]}")
    expect(page.get_by_role("progressbar")).to_be_attached()  # without width while it waits
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("This comparison was cancelled.")).to_be_visible()
    assert ask(server, "GET", f"/comparisons/{queue[-1]}")["status"] == "cancelled"
    for comparison in queue[:-1]:
        ask(server, "POST", f"/comparisons/{comparison}/cancel")
    page.goto(server.url)
    row = page.get_by_test_id("comparisons").get_by_role("row").filter(has_text="cancelled").first
    expect(row).to_be_visible()


def test_many_comparisons_at_work_take_no_connection_from_the_rest(
    page: Page, server: Server, dumps: Path, pair: dict[str, str]
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.resource_type))
    queue = [begin(server, pair) for _ in range(7)]  # a browser keeps six connections to a server
    page.goto(server.url)
    expect(page.get_by_role("progressbar").nth(6)).to_be_attached()
    register(page, dumps / "stat_nan")
    for comparison in queue:
        ask(server, "POST", f"/comparisons/{comparison}/cancel")
    page.goto(f"{server.url}/comparisons/{queue[-1]}")
    expect(page.get_by_test_id("cancelled")).to_be_visible()
    assert "fetch" in asked
    assert "eventsource" not in asked  # one that stays open, for every job and in every tab
