"""Many tabs, tabs that differ, and paths behind a proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from ui.conftest import Server
from ui.driving import finished, start
from ui.proxying import proxied

ORIGIN = "Functional.softmax.1.forward"


@pytest.fixture
def one_at_a_time(tmp_path: Path, dumps: Path) -> Iterator[Server]:
    running = Server(tmp_path / "data", dumps, DUMPSCOPE_JOB_SLOTS="1")
    yield running
    running.stop()


def test_eight_tabs_answer_while_jobs_run(context: BrowserContext, one_at_a_time: Server, dumps: Path) -> None:
    ids = [start(one_at_a_time, dumps / "target_fault", dumps / "golden") for _ in range(20)]
    tabs = [context.new_page() for _ in range(8)]
    for tab, comparison in zip(tabs, ids[-8:], strict=True):
        tab.goto(f"{one_at_a_time.url}/comparisons/{comparison}", wait_until="commit")
    for tab in tabs:
        expect(tab.get_by_test_id("job").or_(tab.get_by_test_id("banner"))).to_be_visible(timeout=60_000)
    expect(tabs[-1].get_by_test_id("job")).to_be_visible()  # all eight watch, and the last one waits
    for tab in tabs:
        expect(tab.get_by_test_id("origin")).to_contain_text(ORIGIN, timeout=120_000)


def test_two_tabs_with_another_rank_and_filter_never_disturb_each_other(
    context: BrowserContext, server: Server, dumps: Path
) -> None:
    address = finished(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden")
    one, other = context.new_page(), context.new_page()
    one.goto(f"{address}?r=0&f=class:exact")
    other.goto(f"{address}?r=1&q=linear&tab=api")
    for tab in (one, other):
        expect(tab.get_by_test_id("selected-name")).not_to_be_empty(timeout=30_000)
    other.locator("body").press("j")
    before = other.url
    one.locator("body").press("]")
    expect(one).to_have_url(re.compile("r=1"))
    one.locator("body").press("Escape")
    expect(one).not_to_have_url(re.compile("f=class"))
    assert other.url == before
    expect(other).to_have_url(re.compile("q=linear"))
    other.reload()
    expect(other.get_by_test_id("search")).to_have_value("linear", timeout=30_000)
    expect(one).to_have_url(re.compile("r=1"))


@pytest.mark.parametrize(("strips", "tells"), [(True, False), (True, True), (False, True)])
def test_everything_works_below_a_path_of_a_proxy(
    page: Page, server: Server, dumps: Path, strips: bool, tells: bool
) -> None:
    address = finished(server, dumps / "target_fault", dumps / "golden").removeprefix(server.url)
    with proxied(server.url, "/tools/dump", strips=strips, tells=tells) as url:
        page.goto(f"{url}/")
        page.get_by_test_id("comparisons").get_by_role("link").first.click()
        expect(page).to_have_url(re.compile(f"^{re.escape(url)}/comparisons/"))
        page.goto(f"{url}{address}")
        expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN, timeout=30_000)
        expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=30_000)
        page.get_by_test_id("export").click()
        with page.expect_download() as download:
            page.get_by_test_id("export-csv").click()
        assert ORIGIN in Path(download.value.path()).read_text(encoding="utf-8")
        page.reload()
        expect(page.get_by_test_id("origin")).to_contain_text(ORIGIN, timeout=30_000)
