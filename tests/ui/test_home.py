"""The start page: from two folders to the named origin, with nothing else to click."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page

from ui.conftest import Server, new_page
from ui.driving import ask
from ui.expecting import expect

ORIGIN = "Functional.softmax.1.forward"


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("home") / "data", dumps)
    yield running
    running.stop()


DROPPED = ("dragEnter", "dragOver", "drop")


def drag(page: Page, over: Locator, *paths: Path, kinds: tuple[str, ...] = DROPPED) -> None:
    """Drop real files and folders, as a file manager does."""
    box = over.bounding_box()
    assert box is not None
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in kinds:
        session.send(
            "Input.dispatchDragEvent",
            {"type": kind, "x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "data": data},
        )


def named(page: Page) -> None:
    """The origin stands there with its call stack and a plot."""
    expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN)
    expect(page.get_by_test_id("origin-place")).to_be_visible()
    expect(page.locator("[data-testid^=stack-]").first).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()


def test_two_folders_dropped_at_once_lead_to_the_origin(page: Page, fresh: Server, dumps: Path) -> None:
    page.goto(fresh.url)
    expect(page.get_by_test_id("first-steps")).to_be_visible()
    drag(page, page.get_by_test_id("first-steps"), dumps / "golden", dumps / "target_fault")
    named(page)
    (made,) = ask(fresh, "GET", "/comparisons")["items"]
    assert (made["target_name"], made["golden_name"]) == ("target_fault", "golden")


def test_a_folder_dropped_on_each_side_leads_to_the_origin(page: Page, fresh: Server, dumps: Path) -> None:
    page.goto(fresh.url)
    zones = [page.get_by_test_id(f"zone-{side}") for side in ("target", "golden")]
    drag(page, zones[1], dumps / "stat_golden")
    expect(zones[1].get_by_test_id("detected")).to_contain_text("statistics")
    expect(page).to_have_url(re.compile("/$"))
    drag(page, zones[0], dumps / "stat_fault")
    expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN)
    (made,) = ask(fresh, "GET", "/comparisons")["items"]
    assert (made["target_name"], made["golden_name"]) == ("stat_fault", "stat_golden")


def test_two_chosen_folders_lead_to_the_origin(page: Page, fresh: Server, dumps: Path) -> None:
    page.goto(fresh.url)
    page.get_by_test_id("target-folder-input").set_input_files(dumps / "stat_fault")
    page.get_by_test_id("golden-folder-input").set_input_files(dumps / "stat_golden")
    expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN)


def test_files_held_over_the_page_show_where_they_would_go(page: Page, fresh: Server, dumps: Path) -> None:
    page.goto(fresh.url)
    expect(page.get_by_test_id("first-steps")).to_be_visible()
    overlay, lit = page.get_by_test_id("drop-overlay"), page.get_by_test_id("drop-overlay").locator("[data-over]")
    for place, side in (("zone-target", "Target"), ("zone-golden", "Golden"), ("drop", "Add a dump")):
        drag(page, page.get_by_test_id(place), dumps / "golden", kinds=("dragEnter", "dragOver"))
        expect(overlay).to_contain_text("Two folders dropped at once are compared")
        expect(lit).to_have_count(1)
        expect(lit).to_contain_text(side)
    overlay.dispatch_event("dragleave")  # out of the window
    expect(overlay).to_have_count(0)


def test_two_pasted_server_paths_lead_to_the_origin(page: Page, fresh: Server, dumps: Path) -> None:
    page.goto(fresh.url)
    for side, name in (("target", "stat_fault"), ("golden", "stat_golden")):
        field = page.get_by_test_id(side)
        field.fill(str(dumps / name))
        path = page.get_by_role("option").filter(has_text="read this path on the server").and_(page.locator(":visible"))
        expect(path).to_contain_text(str(dumps / name))
        field.press("Enter")
        if side == "target":  # with the second one the page goes on by itself, and the field is gone
            expect(field).to_have_value(name)
    expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN)


def test_nothing_starts_by_itself_while_the_options_are_open(page: Page, fresh: Server, dumps: Path) -> None:
    page.goto(fresh.url)
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_test_id("rename-rules")).to_be_visible()
    for side, name in (("target", "stat_fault"), ("golden", "stat_golden")):
        page.get_by_test_id(f"{side}-folder-input").set_input_files(dumps / name)
        expect(page.get_by_test_id(f"zone-{side}").get_by_test_id("detected")).to_be_visible()
    expect(page.get_by_test_id("compare")).to_be_enabled()
    assert ask(fresh, "GET", "/comparisons")["total"] == 0
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN)


def test_the_sample_opens_at_one_click_and_the_last_result_at_another(page: Page, fresh: Server) -> None:
    page.goto(fresh.url)
    expect(page.get_by_test_id("first-steps")).to_contain_text("dumpscope compare TARGET GOLDEN")
    page.get_by_test_id("open-sample").click()
    named(page)
    page.goto(fresh.url)
    row = page.get_by_test_id("comparisons").get_by_role("row").nth(1)
    expect(row).to_contain_text(ORIGIN)
    row.get_by_role("link").first.click()
    expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN)


def test_a_wrong_path_is_told_where_it_was_pasted(context: BrowserContext, server: Server, dumps: Path) -> None:
    page = new_page(context)  # the 404 is logged by the browser, so not the strict page
    page.goto(server.url)
    page.get_by_test_id("target").fill(str(dumps / "nowhere"))
    page.get_by_role("option").filter(has_text="read this path").click()
    failure = page.get_by_test_id("zone-target").get_by_test_id("failure")
    expect(failure).to_contain_text("nothing is there")
    expect(page.get_by_test_id("compare")).to_be_disabled()
