"""Screens of work that did not go well, and the lists of the start page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page
from warm_python import DUMPSCOPE, warm_python

from ui.conftest import Server, new_page
from ui.driving import ask, finished, known, register, show, start
from ui.expecting import expect


def test_a_failed_comparison_says_what_where_and_what_to_do_and_starts_again(
    page: Page, server: Server, dumps: Path
) -> None:
    failed = start(server, dumps / "crash_tensor", dumps / "golden")
    show(page, f"{server.url}/comparisons/{failed}")
    failure = page.get_by_test_id("failure")
    expect(failure).to_contain_text("the run probably ended before stop()")
    expect(failure).to_contain_text("crash_tensor/step0/proc")
    reason, remedy = failure.locator("[data-line=detail]"), failure.locator("[data-line=remedy]")
    expect(reason).to_contain_text(re.compile(r"12 tensor files beside it have no records\.$"))
    expect(remedy).to_contain_text(re.compile(r"^What to do: Run it again with start\(\)"))
    expect(page.get_by_test_id("again")).to_have_attribute("data-variant", "default")  # it would most likely fail again
    expect(failure.get_by_role("link", name="Open crash_tensor")).to_be_visible()
    page.get_by_test_id("again").click()
    expect(page).not_to_have_url(re.compile(failed))
    expect(page).to_have_url(re.compile("/comparisons/"))
    expect(page.get_by_test_id("failure")).to_contain_text("ended before stop()")


def cancelled(server: Server, dumps: Path) -> str:
    """Id of a comparison that was cancelled while it waited behind others."""
    sides = {
        side: ask(server, "POST", "/dumps", {"path": str(dumps / name)})["id"]
        for side, name in (("target", "target_fault"), ("golden", "golden"), ("reference", "golden"))
    }
    for _try in range(10):
        ids = [
            ask(server, "POST", "/comparisons", {**sides, "options": {"steps": [0], "tensors": False}})["id"]
            for _ in range(4)
        ]
        ask(server, "POST", f"/comparisons/{ids[-1]}/cancel")
        while (row := ask(server, "GET", f"/comparisons/{ids[-1]}"))["status"] in ("pending", "running"):
            pass
        if row["status"] == "cancelled":
            return str(ids[-1])
    raise AssertionError("every comparison was done before it could be cancelled")


def test_a_cancelled_comparison_starts_again_with_the_same_reference_and_options(
    page: Page, server: Server, dumps: Path
) -> None:
    stopped = cancelled(server, dumps)
    show(page, f"{server.url}/comparisons/{stopped}")
    expect(page.get_by_test_id("cancelled")).to_contain_text("cancelled")
    page.keyboard.press("Tab")
    again = page.get_by_test_id("again")
    again.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.softmax.1.forward")
    old = ask(server, "GET", f"/comparisons/{stopped}")
    new = ask(server, "GET", f"/comparisons/{re.search('comparisons/([^?]+)', page.url)[1]}")  # type: ignore[index]
    assert new["id"] != old["id"]
    given = ("target", "golden", "reference", "options")
    assert old["reference"] is not None
    assert [new[name] for name in given] == [old[name] for name in given]


def test_a_browser_that_believes_itself_offline_still_reaches_the_server(
    page: Page, server: Server, dumps: Path
) -> None:
    page.goto(server.url)
    page.evaluate("() => window.dispatchEvent(new Event('offline'))")  # what a pulled cable or a changed network fires
    register(page, dumps / "target_renamed")
    page.get_by_role("link", name="target_renamed", exact=True).first.click()
    expect(page.get_by_test_id("facts")).to_be_visible()


def test_an_overflow_leaves_a_trail_in_the_tree(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_nan", dumps / "golden"))
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.gelu.0.forward")
    tree = page.get_by_test_id("tree")
    for name in ("layers.0 (Block)", "mlp (Mlp)"):
        row = tree.get_by_role("treeitem").filter(has_text=name).first
        expect(row).to_contain_text("✖1")
    expect(tree.get_by_role("treeitem").filter(has_text="layers.1 (Block)").first).not_to_contain_text("✖")


def test_the_numbers_of_both_sides_are_in_view_at_first(page: Page, server: Server, dumps: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    first = page.get_by_test_id("io").locator("tbody").first
    expect(first).to_have_attribute("data-verdict", "no")
    expect(page.locator("[data-plot] .trace").first).to_be_attached()  # below it, and takes its room when it is drawn
    expect(first).to_be_in_viewport(ratio=0.99)
    expect(first).to_contain_text("3.21533")
    expect(first).to_contain_text("3.217")
    # In the order of a column on request: only the input has negative numbers.
    rows = page.get_by_test_id("io").locator("tbody")
    by_min = page.get_by_test_id("io-sort-min")
    by_min.press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]io=-min\b"))
    expect(by_min.locator("xpath=..")).to_have_attribute("aria-sort", "descending")
    falling = [float(text) for text in rows.locator("tr:first-child td.num:nth-of-type(3)").all_inner_texts()]
    assert falling == sorted(falling, reverse=True)
    assert len(falling) > 1
    by_min.click()
    expect(page).to_have_url(re.compile(r"[?&]io=min\b"))
    expect(rows.first).to_have_attribute("data-verdict", "yes")
    by_min.click()
    expect(rows.first).to_have_attribute("data-verdict", "no")
    expect(page).not_to_have_url(re.compile(r"[?&]io="))


def test_what_is_not_there_is_said_without_a_word_of_rest(context: BrowserContext, server: Server) -> None:
    page = new_page(context)  # the 404 is logged by the browser, so not the strict page
    for noun in ("comparisons", "dumps"):
        page.goto(f"{server.url}/{noun}/nothing")
        expect(page.get_by_test_id("failure")).to_contain_text("It may have been deleted")
        expect(page.get_by_test_id("failure")).not_to_contain_text("/api")
        expect(page.get_by_role("link", name="Back to the start")).to_be_visible()


@pytest.mark.parametrize(
    ("target", "golden", "says"),
    [
        ("cfg_structure", "stat_golden", "No divergence in structure; there were no numbers to compare"),
        ("conv_L1", "conv_L0", "Nothing could be compared: no item of the target has a partner in the golden dump"),
    ],
)
def test_a_pair_without_numbers_is_told_as_the_command_line_tells_it(
    page: Page, server: Server, dumps: Path, target: str, golden: str, says: str
) -> None:
    command = [warm_python(DUMPSCOPE), "-m", "dumpscope", "compare", str(dumps / target), str(dumps / golden)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    assert told.stdout.startswith(says)
    show(page, known(server, dumps / target, dumps / golden))
    expect(page.get_by_test_id("banner")).to_contain_text(says)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("fresh") / "data")
    yield running
    running.stop()


def test_both_lists_search_sort_and_say_when_nothing_is_found(page: Page, fresh: Server, dumps: Path) -> None:
    finished(fresh, dumps / "stat_fault", dumps / "stat_golden")
    finished(fresh, dumps / "md5_fault", dumps / "md5_golden")
    page.goto(fresh.url)
    for noun in ("comparisons", "dumps"):
        box = page.get_by_test_id(noun)
        names = box.locator("tbody tr td[data-column=name] a")
        expect(names.first).to_be_visible()
        newest = names.all_inner_texts()
        box.get_by_role("button", name="Created", exact=True).click()
        expect(box.get_by_role("columnheader", name="Created")).to_have_attribute("aria-sort", "ascending")
        expect(names.last).to_have_text(newest[0])
        box.get_by_role("button", name="Name", exact=True).click()
        expect(box.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
        expect(names.first).to_have_text(min(newest))
        assert names.all_inner_texts() == sorted(newest)
        box.get_by_role("searchbox").fill("md5_fault")
        expect(names.filter(has_text="stat")).to_have_count(0)
        expect(names.first).to_contain_text("md5_fault")
        box.get_by_role("searchbox").fill("nothing of that name")
        expect(box).to_contain_text("Nothing matches")


def test_an_empty_start_page_says_what_to_do_first(page: Page, fresh: Server) -> None:
    page.goto(fresh.url)
    expect(page.get_by_test_id("comparisons")).to_contain_text("No comparison yet")
    expect(page.get_by_test_id("dumps")).to_contain_text("dumpscope serve --root")


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_nothing_is_wider_than_a_phone(
    page_in: Callable[[str], Page], server: Server, dumps: Path, language: str
) -> None:
    address = known(server, dumps / "target_fault", dumps / "golden")
    comparison = re.search("comparisons/(.+)", address)[1]  # type: ignore[index]
    dump = ask(server, "GET", f"/comparisons/{comparison}")["target"]
    page = page_in(language)
    page.set_viewport_size({"width": 390, "height": 844})
    for place in (server.url, address, f"{server.url}/dumps/{dump}"):
        page.goto(place)
        expect(page.locator("html")).to_have_attribute("lang", language[:2])
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, place


NARROW = {390: 3, 720: 2}
"""Widths of a phone, and of a screen that is zoomed to 200 %; rows that the header has there."""


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_no_control_stands_alone_in_a_row_of_a_narrow_header(
    page_in: Callable[[str], Page], server: Server, dumps: Path, language: str
) -> None:
    page = page_in(language)
    page.set_viewport_size({"width": min(NARROW), "height": 844})
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    expect(page.locator("html")).to_have_attribute("lang", language[:2])
    controls = [page.get_by_test_id(name) for name in ("help", "language", "mode", "policy", "export")]
    for width, rows in NARROW.items():
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        tops = []
        for control in controls:
            expect(control).to_be_visible()
            box = control.bounding_box()
            assert box is not None
            tops.append(box["y"] + box["height"] / 2)
        assert abs(tops[0] - tops[1]) < 4, width
        assert abs(tops[3] - tops[4]) < 4, width
        found = sorted(tops)
        assert 1 + sum(later - earlier > 15 for earlier, later in pairwise(found)) == rows, width


def test_an_origin_among_strangers_says_that_most_calls_have_no_partner(
    page: Page, server: Server, dumps: Path
) -> None:
    show(page, finished(server, dumps / "conv_mix_stat", dumps / "stat_golden"))
    page.get_by_test_id("assistant-skip").click()
    expect(page.get_by_test_id("origin")).to_be_visible()
    expect(page.get_by_test_id("strangers")).to_contain_text("Most calls have no partner")
    shown = page.get_by_test_id("calls").get_by_test_id("match").all_text_contents()
    assert all(len(text.rsplit(" ", 1)[-1]) <= 4 for text in shown), shown
