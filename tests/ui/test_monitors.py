"""Monitored runs in the browser: from the start page to the step and series where one leaves the other; what stands out."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from dumpscope_format.monitor import FIRST_LINE, Group, Layout, layout_frame, values_frame
from ui.conftest import Server
from ui.expecting import expect
from ui.test_access import AT_REST, grave

pytest.importorskip("torch")

from monitored_training import FAULT, train

SERIES = "2.0.weight"


@pytest.fixture(scope="module")
def runs(generated: Path) -> Path:
    """A golden run, one with a gradient that is 5 % too large from step FAULT on, and one with two spikes."""
    folder = generated / "monitors"
    train(folder / "golden")
    train(folder / "faulty", factor=1.05)
    layout = Layout(0, ("loss",), (Group("grad_reduced", ("norm", "max"), ("first.weight", "second.weight")),))
    frames = [
        values_frame(
            layout, step, [2.0], struct.pack("<4f", 90.0 if step == 50 else 1.0, 1, 30.0 if step == 60 else 2, 1)
        )
        for step in range(96)
    ]
    (folder / "spiky").mkdir()
    (folder / "spiky" / "rank0.monitor").write_bytes(FIRST_LINE + layout_frame(layout) + b"".join(frames))
    return folder


def accessible(page: Page, pytestconfig: pytest.Config) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        page.wait_for_function(AT_REST)
        assert grave(page, pytestconfig) == []


@pytest.mark.expects("/api/monitors")
def test_the_step_and_series_where_a_run_leaves_another_are_found_from_the_start_page(
    page: Page, server: Server, runs: Path, page_in: Callable[[str], Page], pytestconfig: pytest.Config
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(server.url)
    page.get_by_test_id("monitor-path").fill(str(runs / "nothing"))
    page.get_by_test_id("start-monitor").click()
    expect(page.get_by_test_id("monitors").get_by_test_id("failure")).to_be_visible()
    page.get_by_test_id("monitor-path").fill(str(runs / "faulty"))
    page.get_by_test_id("monitor-other").fill(str(runs / "golden"))
    page.get_by_test_id("start-monitor").click()

    expect(page.get_by_test_id("monitor-summary")).to_contain_text(
        f"faulty leaves golden at step {FAULT}: the gradient that the optimizer gets of {SERIES} first"
    )
    curve = page.get_by_test_id("monitor-curve")
    expect(curve).to_contain_text(f"step {FAULT}")
    expect(curve.locator("[data-drawn] .legendtext")).to_have_text(["faulty", "golden"])
    table = page.get_by_test_id("monitor-map")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(16)
    expect(rows.first).to_contain_text(SERIES)
    expect(table.locator("[aria-current]")).to_have_attribute("title", re.compile(f"^{SERIES}, step {FAULT}: 4.8"))

    table.get_by_role("searchbox").fill("3.2")
    expect(rows).to_have_count(2)
    accessible(page, pytestconfig)
    rows.filter(has_text="3.2.weight").get_by_role("button").first.click()
    expect(curve).to_contain_text("3.2.weight (faulty): ")
    rows.filter(has_text="3.2.bias").locator("td button").nth(10).click(modifiers=["Shift"])
    expect(curve).to_contain_text("3.2.bias (golden): ")
    expect(curve).to_contain_text("step 10")
    page.keyboard.press("Escape")
    expect(curve).to_be_hidden()
    page.keyboard.press("j")
    expect(curve).to_be_visible()
    page.get_by_text("This run alone").click()
    expect(rows.first.locator("td button").first).to_have_attribute("title", re.compile("usually"))
    table.get_by_text("Modules", exact=True).click()
    expect(rows).to_have_count(1)
    rows.first.get_by_role("button").first.click()  # it opens to its series
    expect(rows).to_have_count(3)
    expect(table.get_by_role("button", expanded=True)).to_contain_text("3.2")
    expect(table.locator("[data-inner]").filter(has_text="3.2.bias")).to_have_count(1)
    accessible(page, pytestconfig)
    page.emulate_media(color_scheme="light")
    table.get_by_label("from step").fill("44")
    expect(rows.first.locator("td button")).to_have_count(4)

    other = page_in("zh-CN")  # the address shows a colleague the same, in the colleague's language
    other.goto(page.url)
    expect(other.get_by_test_id("monitor-summary")).to_contain_text(f"faulty 在 step {FAULT} 偏离 golden")
    expect(other.get_by_test_id("monitor-curve")).to_contain_text("优化器收到的梯度")
    expect(other.get_by_test_id("monitor-map").locator("tbody tr").first.locator("td button")).to_have_count(4)
    other.get_by_test_id("monitor-map").get_by_role("searchbox").fill("nothing like this")
    expect(other.get_by_test_id("monitor-map")).to_contain_text("没有符合搜索的序列")


@pytest.mark.expects("/runs")  # the page shows curves before a run is examined, and here there is no run
def test_what_stands_out_is_listed_sorted_and_shown(
    page: Page, server: Server, runs: Path, pytestconfig: pytest.Config
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(server.url)
    page.get_by_test_id("monitor-path").fill(str(runs))
    page.get_by_test_id("start-monitor").click()
    expect(page.get_by_test_id("failure")).to_contain_text("name the folder that Monitor got")
    expect(page.get_by_test_id("examine-again")).to_be_visible()
    page.get_by_role("link", name="Back to the start").click()
    page.get_by_test_id("monitor-path").fill(str(runs / "spiky"))
    page.get_by_test_id("start-monitor").click()
    expect(page.get_by_test_id("monitor-summary")).to_contain_text("2 anomalies, the gravest: spike at step 50")
    listed = page.get_by_test_id("anomalies").locator("tbody tr")
    expect(listed).to_have_count(2)
    expect(listed.first).to_contain_text("first.weight")
    curve = page.get_by_test_id("monitor-curve")
    expect(curve).to_contain_text("first.weight (spiky): 1 at step 0, 1 at step 95, between 1 and 90.")
    page.get_by_role("button", name="Steps").click()
    page.get_by_role("button", name="Steps").click()
    expect(listed.first).to_contain_text("second.weight")
    listed.first.get_by_role("button").click()
    expect(curve).to_contain_text("between 2 and 30")
    expect(curve).to_contain_text("step 60")
    accessible(page, pytestconfig)
    page.get_by_test_id("anomalies").get_by_role("searchbox").fill("first")
    expect(listed).to_have_count(1)

    page.goto(server.url)
    row = page.get_by_test_id("monitors").get_by_role("row").first
    expect(row).to_contain_text("2 anomalies")
    row.get_by_role("button").click()
    expect(page.get_by_test_id("monitors").get_by_role("row").filter(has_text="spiky")).to_have_count(0)
