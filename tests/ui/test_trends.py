"""The heat map of modules over steps."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

from playwright.sync_api import Page

from ui.conftest import PATIENCE, Server
from ui.driving import ask, finished, known, show
from ui.expecting import expect


def test_a_cell_of_the_heat_map_leads_to_its_step_and_module(page: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "target_fault", dumps / "golden")
    show(page, f"{address}?do=trends")
    trends = page.get_by_test_id("trends")
    expect(trends.get_by_role("row").nth(1)).to_be_visible()
    trends.get_by_placeholder("Search modules").fill("ln1")
    expect(trends.locator("tbody").get_by_role("rowheader").filter(has_not_text="ln1")).to_have_count(
        0
    )  # rows move until then
    trends.get_by_role("button", name=re.compile(r"Module\.layers\.1\.ln1.*forward.*step 1, rank 0")).click()
    expect(trends).to_be_hidden()
    expect(page.get_by_test_id("selected-name")).to_contain_text("layers.1.ln1")
    assert re.search(r"[?&]s=1&r=0&n=Module\.layers\.1\.ln1", page.url)
    assert "do=" not in page.url


def test_the_heat_map_opens_ready_to_search_and_explains_its_cells(page: Page, server: Server, dumps: Path) -> None:
    show(page, f"{known(server, dumps / 'target_fault', dumps / 'golden')}?do=trends")
    trends = page.get_by_test_id("trends")
    expect(trends.get_by_role("columnheader", name="step", exact=True)).to_be_visible()
    expect(trends.get_by_placeholder("Search modules")).to_be_focused()
    expect(trends).to_contain_text("Each cell is the worst verdict of all ranks")
    warned = trends.get_by_role("button", name=re.compile(r"layers\.0\.ln1.*step 1, rank 0: Warning"))
    expect(warned).to_have_text("!")


def test_on_a_phone_the_heat_map_keeps_its_controls_on_the_screen(page: Page, server: Server, dumps: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, f"{known(server, dumps / 'target_fault', dumps / 'golden')}?do=trends")
    trends = page.get_by_test_id("trends")
    expect(trends.get_by_role("row").nth(1)).to_be_visible()
    expect(trends.get_by_test_id("trend-statistic")).to_be_in_viewport(ratio=1)
    box = trends.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390


def test_ranks_have_rows_of_their_own_and_a_cell_leads_to_its_rank(page: Page, server: Server, dumps: Path) -> None:
    show(page, f"{known(server, dumps / 'dist2_stat_fault', dumps / 'dist2_stat_golden')}")
    page.get_by_test_id("open-rank-map").click()
    trends = page.get_by_test_id("trends")
    trends.get_by_text("Steps", exact=True).click()
    trends.get_by_placeholder("Search modules").fill("ln.LayerNorm.forward")
    rows = trends.locator("tbody").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(trends).to_contain_text("Each cell is the verdict of one rank")
    trends.get_by_role("checkbox", name="A row per rank").uncheck()
    expect(rows).to_have_count(1)
    trends.get_by_role("checkbox", name="A row per rank").check()
    trends.get_by_role("button", name=re.compile(r"ln\.LayerNorm.*step 0, rank 1: No")).click()
    expect(trends).to_be_hidden()
    assert re.search(r"[?&]s=0&r=1&n=Module\.module\.ln\.LayerNorm", page.url)


def test_the_numbers_of_both_sides_stand_in_the_cells(page: Page, server: Server, dumps: Path) -> None:
    show(page, f"{known(server, dumps / 'target_fault', dumps / 'golden')}?do=trends")
    trends = page.get_by_test_id("trends")
    trends.get_by_test_id("trend-statistic").click()
    page.get_by_role("option", name="Max", exact=True).click()
    cell = trends.get_by_role("button", name=re.compile(r"layers\.0\.ln1.*forward.*step 1")).first
    expect(cell).to_have_text(re.compile(r"^[-\d.e]+$"))
    expect(cell).to_have_attribute("title", re.compile(r"Max of target [-\d.e]+, golden [-\d.e]+"))


def shown_dump(server: Server, folder: Path) -> str:
    """Address of a dump that is read."""
    dump = ask(server, "POST", "/dumps", {"path": str(folder)})["id"]
    deadline = time.monotonic() + PATIENCE / 1000
    while ask(server, "GET", f"/dumps/{dump}")["status"] == "pending":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return f"{server.url}/dumps/{dump}"


def test_a_call_of_a_dump_tells_its_numbers_over_steps_and_the_first_that_is_not_finite(
    page: Page, server: Server, dumps: Path, generated: Path
) -> None:
    turning = generated / "turning"
    for step, source in enumerate((dumps / "golden" / "step0", dumps / "target_nan" / "step0")):
        shutil.copytree(source, turning / f"step{step}", ignore=shutil.ignore_patterns("dump_tensor_data"))
    show(page, f"{shown_dump(server, turning)}?s=0&r=0&n=Functional.gelu.0.forward")
    trend = page.get_by_test_id("node-trend")
    expect(trend).to_contain_text("First number that is not finite: step 1, rank 0.")
    page.get_by_test_id("open-trends").click()
    trends = page.get_by_test_id("trends")
    trends.get_by_placeholder("Search modules").fill("layers.1.ln1")
    expect(trends.locator("tbody").get_by_role("rowheader").filter(has_not_text="layers.1.ln1")).to_have_count(0)
    cell = trends.get_by_role("button", name=re.compile(r"layers\.1\.ln1\.LayerNorm\.forward.*step 1, rank 0: Norm"))
    cell.click()
    expect(trends).to_be_hidden()
    expect(page.get_by_test_id("selected-name")).to_contain_text("layers.1.ln1")
    expect(trend.get_by_role("img", name=re.compile("Norm over steps 0–1"))).to_be_visible()
    trend.get_by_test_id("trend-statistic").click()
    page.get_by_role("option", name="Min", exact=True).click()
    expect(trend.get_by_role("img", name=re.compile("Min over steps"))).to_be_visible()
    trend.get_by_role("button", name=re.compile("step 0, rank 0: Min")).click()
    assert re.search(r"[?&]s=0&r=0&n=Module\.layers\.1\.ln1", page.url)


def test_the_page_of_a_dump_says_how_it_was_run_and_a_comparison_what_differs(
    page: Page, server: Server, dumps: Path, generated: Path
) -> None:
    sides = []
    for name, seed in (("told_target", 1), ("told_golden", 2)):
        sides.append(generated / name)
        shutil.copytree(dumps / "stat_golden", sides[-1])
        for dump in sides[-1].rglob("dump.json"):
            run = {"versions": {"torch": "2.5.1"}, "seeds": {"seed": seed}, "devices": ["cpu x8"]}
            (dump.parent / "run.json").write_text(json.dumps(run))
    show(page, shown_dump(server, sides[0]))
    page.get_by_test_id("run").click()
    told = page.get_by_test_id("run-list")
    expect(told).to_contain_text("torch 2.5.1")
    expect(told).to_contain_text("risk_level FOCUS")
    expect(page.get_by_test_id("node-trend")).to_have_count(0)
    show(page, finished(server, *sides))
    page.get_by_role("button", name="1 setting differs").click()
    expect(page.get_by_text("Seeds differ: seed 1 against 2.")).to_be_visible()
