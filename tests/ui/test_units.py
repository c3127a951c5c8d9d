"""Steps and ranks are walked through without losing the place."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import known
from ui.expecting import expect


def test_the_selection_is_kept_from_rank_to_rank(page: Page, server: Server, dumps: Path) -> None:
    page.goto(known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"))
    name = page.get_by_test_id("selected-name")
    expect(name).to_contain_text("Tensor.__add__.0.forward")
    page.get_by_test_id("calls").get_by_text("Functional.layer_norm.0.forward", exact=True).click()
    expect(page).to_have_url(re.compile(r"[?&]r=1\b"))
    page.locator("body").press("[")
    expect(page).to_have_url(re.compile(r"[?&]r=0\b"))
    expect(name).to_contain_text("Functional.layer_norm.0.forward")
    expect(page.get_by_test_id("calls").get_by_role("row", selected=True)).to_contain_text(
        "Functional.layer_norm.0.forward"
    )
    page.locator("body").press("]")
    expect(page).to_have_url(re.compile(r"[?&]r=1\b"))
    expect(name).to_contain_text("Functional.layer_norm.0.forward")
    expect(page.get_by_test_id("banner")).to_contain_text("Tensor.__add__.0.forward")


def test_the_selection_is_kept_from_step_to_step(page: Page, server: Server, dumps: Path) -> None:
    page.goto(known(server, dumps / "target_fault", dumps / "golden"))
    name = page.get_by_test_id("selected-name")
    expect(name).to_contain_text("Functional.softmax.1.forward")
    page.locator("body").press("}")
    expect(page).to_have_url(re.compile(r"[?&]s=1\b"))
    expect(name).to_contain_text("Functional.softmax.1.forward")
    expect(page.get_by_test_id("calls").get_by_text("Functional.softmax.1.forward", exact=True)).to_be_in_viewport()
    page.locator("body").press("{")
    expect(page).to_have_url(re.compile(r"[?&]s=0\b"))
    expect(name).to_contain_text("Functional.softmax.1.forward")


def test_an_address_with_a_rank_that_is_not_there_opens_one_that_is(page: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden")
    page.goto(f"{address}?s=7&r=9&n=Functional.gelu.0.forward")
    expect(page).to_have_url(re.compile(r"[?&]s=0&r=0\b"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.gelu.0.forward")
    expect(page.get_by_test_id("calls").get_by_text("Functional.gelu.0.forward", exact=True)).to_be_visible()
