"""Tolerances are tried on the screen before a comparison is judged by them."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server, new_page
from ui.driving import ask, finished, show
from ui.expecting import expect


def test_a_policy_of_ones_own_is_tried_and_then_used(page: Page, server: Server, dumps: Path) -> None:
    address = finished(server, dumps / "stat_fault", dumps / "stat_golden")
    show(page, address)
    expect(page.get_by_test_id("origin")).to_contain_text("softmax")
    page.keyboard.press("t")
    dialog = page.get_by_test_id("policies")
    dialog.get_by_text("own", exact=True).click()
    dialog.get_by_test_id("policy-text").fill("name: loose\nscale: {'.*': 1e9}\n")
    dialog.get_by_test_id("try-policy").click()
    no = dialog.get_by_test_id("policy-trial").locator("tr[data-verdict=no] td")
    expect(no.nth(1)).to_have_text("0")
    assert int(no.nth(0).inner_text()) > 0
    expect(dialog.get_by_test_id("policy-trial")).to_contain_text(re.compile(r"[0-9]+ calls change"))
    scores = dialog.get_by_test_id("policy-trial").locator("li > .num")
    assert all(re.fullmatch(r"[0-9.e-]{1,7}×?|∞|—", score) for score in scores.all_inner_texts())
    assert ask(server, "GET", address.removeprefix(server.url))["policy"] == "default"
    dialog.get_by_test_id("judge-policy").click()
    expect(page.get_by_test_id("no-origin")).to_be_visible()
    assert ask(server, "GET", address.removeprefix(server.url))["policy"] == "loose"
    expect(dialog).to_have_count(0)
    page.keyboard.press("t")
    expect(page.get_by_test_id("policy-text")).to_have_value(re.compile("name: loose"))
    expect(page.get_by_test_id("judge-policy")).to_be_disabled()


def test_what_is_no_policy_is_said_by_key_and_value(context: BrowserContext, server: Server, dumps: Path) -> None:
    page = new_page(context)
    page.goto(finished(server, dumps / "stat_fault", dumps / "stat_golden") + "?do=policy")
    dialog = page.get_by_test_id("policies")
    dialog.get_by_text("own", exact=True).click()
    dialog.get_by_test_id("policy-text").fill("floors: {float32: {bulk: -1}}")
    dialog.get_by_test_id("try-policy").click()
    expect(dialog.get_by_test_id("failure")).to_contain_text("floors.float32.bulk is -1")
