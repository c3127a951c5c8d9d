"""The heat map of modules over steps."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from ui.conftest import Server
from ui.driving import finished


def test_a_cell_of_the_heat_map_leads_to_its_step_and_module(page: Page, server: Server, dumps: Path) -> None:
    address = finished(server, dumps / "target_fault", dumps / "golden")
    page.goto(f"{address}?do=trends")
    trends = page.get_by_test_id("trends")
    expect(trends.get_by_role("row").nth(1)).to_be_visible(timeout=30_000)
    trends.get_by_placeholder("Search modules").fill("ln1")
    trends.get_by_role("button", name=re.compile(r"Module\.layers\.1\.ln1.*forward.*step 1, rank 0")).click()
    expect(trends).to_be_hidden()
    expect(page.get_by_test_id("selected-name")).to_contain_text("layers.1.ln1")
    assert re.search(r"[?&]s=1&r=0&n=Module\.layers\.1\.ln1", page.url)
    assert "do=" not in page.url


def test_the_heat_map_opens_ready_to_search_and_explains_its_cells(page: Page, server: Server, dumps: Path) -> None:
    page.goto(f"{finished(server, dumps / 'target_fault', dumps / 'golden')}?do=trends")
    trends = page.get_by_test_id("trends")
    expect(trends.get_by_role("columnheader", name="step", exact=True)).to_be_visible(timeout=30_000)
    expect(trends.get_by_placeholder("Search modules")).to_be_focused()
    expect(trends).to_contain_text("Each cell is the worst verdict of all ranks")
    warned = trends.get_by_role("button", name=re.compile(r"layers\.0\.ln1.*step 1, rank 0: Warning"))
    expect(warned).to_have_text("!")
