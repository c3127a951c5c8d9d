"""A note on a call is written, shown, taken into account, carried on and taken back."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import ask, finished, show
from ui.expecting import expect

CAUSE = "Functional.softmax.1.forward"


def test_a_known_origin_gives_way_to_what_is_open_and_stays_with_the_pair(
    page: Page, server: Server, dumps: Path
) -> None:
    first = finished(server, dumps / "target_fault", dumps / "golden")
    show(page, first)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.keyboard.press("v")
    form = page.get_by_test_id("note-form")
    form.get_by_text("known", exact=True).click()
    form.get_by_test_id("note-text").fill("kernel of May, <b>fixed</b>")
    form.get_by_test_id("save-note").click()
    expect(page.get_by_test_id("note")).to_contain_text("kernel of May, <b>fixed</b>")
    expect(page.get_by_test_id("calls").get_by_test_id("note-chip")).to_have_text("known")
    expect(page.get_by_test_id("banner").get_by_test_id("note-chip")).to_have_text("known")
    page.get_by_test_id("search").fill("note:known")
    expect(page.get_by_test_id("total")).to_contain_text("1 ")

    show(page, finished(server, dumps / "target_fault", dumps / "golden"))
    expect(page.get_by_test_id("note")).to_contain_text("kernel of May")
    page.get_by_test_id("say-note").click()
    page.get_by_test_id("delete-note").click()
    expect(page.get_by_test_id("note")).to_have_count(0)
    assert ask(server, "GET", first.removeprefix(server.url) + "/notes")["items"] == []


def test_the_page_opens_at_the_first_origin_that_nobody_accepted(page: Page, server: Server, dumps: Path) -> None:
    address = finished(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden")
    path = address.removeprefix(server.url)
    origins = [one["node"] for one in ask(server, "GET", f"{path}/origins")["items"]]
    names = list(dict.fromkeys(origins))
    ask(server, "PUT", f"{path}/notes/{names[0]}", {"standing": "accepted"})
    show(page, address)
    expected = next((name for name in origins if name != names[0]), names[0])
    expect(page.get_by_test_id("origin")).to_contain_text(expected)
    expect(page.get_by_test_id("selected-name")).to_contain_text(expected)
    form = page.get_by_test_id("note-form")
    for leave in (None, "document.activeElement.blur()"):
        page.keyboard.press("v")
        expect(form.get_by_test_id("note-text")).to_be_focused()
        if leave:
            page.evaluate(leave)
        page.keyboard.press("Escape")
        expect(form).to_have_count(0)
    ask(server, "DELETE", f"{path}/notes/{names[0]}")
