"""A run too long to hold: 20 000 calls a side."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ui.conftest import Server
from ui.driving import ask, finished, register, start

NODES = 20_000
MOST_ROWS = 2_000


@pytest.fixture(scope="module")
def pair(generated: Path, pytestconfig: pytest.Config) -> tuple[Path, Path, str]:
    """(target, golden, name of the call that is wrong)."""
    spec = importlib.util.spec_from_file_location("synthetic", pytestconfig.rootpath / "bench" / "synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["synthetic"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    truth = module.make_dump(generated / "long_target", NODES, 1, NODES // 3)
    module.make_dump(generated / "long_golden", NODES, 1)
    return generated / "long_target", generated / "long_golden", truth.fault


@pytest.fixture(scope="module")
def address(server: Server, pair: tuple[Path, Path, str]) -> str:
    return finished(server, pair[0], pair[1])


def rows(page: Page) -> int:
    return page.locator("[role=row], [role=treeitem], [role=option]").count()


def test_the_first_origin_of_a_long_run_is_selected_at_once(
    page: Page, address: str, pair: tuple[Path, Path, str]
) -> None:
    page.goto(address)
    expect(page.get_by_test_id("origin")).to_contain_text(pair[2], timeout=30_000)
    expect(page.get_by_test_id("selected-name")).to_contain_text(pair[2])
    expect(page.get_by_test_id("calls").get_by_text(pair[2], exact=True)).to_be_in_viewport()
    expect(page.get_by_test_id("total")).to_contain_text("20\u202f000")


def test_the_end_and_home_keys_reach_the_last_and_the_first_call(page: Page, address: str, server: Server) -> None:
    page.goto(address)
    calls = page.get_by_test_id("calls")
    expect(page.get_by_test_id("selected-name")).not_to_be_empty(timeout=30_000)
    comparison = address.rsplit("/", 1)[-1]
    for key, query in (("End", f"from={NODES - 1}"), ("Home", "to=0")):
        (row,) = ask(server, "GET", f"/comparisons/{comparison}/nodes?{query}")["items"]
        calls.press(key)
        expect(page.get_by_test_id("selected-name")).to_contain_text(row["name"], timeout=15_000)
        expect(calls.get_by_text(row["name"], exact=True)).to_be_in_viewport(timeout=15_000)
        assert rows(page) <= MOST_ROWS


def test_scrolling_never_fills_the_page_with_rows(page: Page, address: str) -> None:
    page.goto(address)
    calls = page.get_by_test_id("calls")
    expect(calls.get_by_role("row").nth(5)).to_be_visible(timeout=30_000)
    calls.press("Home")
    expect(calls.get_by_role("row").nth(1)).to_contain_text("Functional.embedding.0.forward", timeout=15_000)
    calls.hover()
    seen = set()
    for _ in range(25):
        page.mouse.wheel(0, 4000)
        page.wait_for_timeout(60)
        assert rows(page) <= MOST_ROWS
        seen.add(calls.get_by_role("row").nth(3).get_attribute("data-name"))
    assert len(seen) > 15  # it did scroll, through more than one page of the list


def test_a_running_comparison_shows_progress_and_can_be_cancelled(
    page: Page, server: Server, pair: tuple[Path, Path, str]
) -> None:
    target, golden, _ = pair
    queue = [start(server, target, golden) for _ in range(5)]
    page.goto(f"{server.url}/comparisons/{queue[-1]}")
    expect(page.get_by_role("progressbar")).to_be_attached(timeout=15_000)  # without width while it waits
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("This comparison was cancelled.")).to_be_visible(timeout=30_000)
    assert ask(server, "GET", f"/comparisons/{queue[-1]}")["status"] == "cancelled"
    for comparison in queue[:-1]:
        ask(server, "POST", f"/comparisons/{comparison}/cancel")
    page.goto(server.url)
    row = page.get_by_test_id("comparisons").get_by_role("row").filter(has_text="cancelled").first
    expect(row).to_be_visible(timeout=30_000)


def test_many_comparisons_at_work_take_no_connection_from_the_rest(
    page: Page, server: Server, dumps: Path, pair: tuple[Path, Path, str]
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.resource_type))
    target, golden, _ = pair
    queue = [start(server, target, golden) for _ in range(7)]  # a browser keeps six connections to a server
    page.goto(server.url)
    expect(page.get_by_role("progressbar").nth(6)).to_be_attached(timeout=15_000)
    register(page, dumps / "stat_nan")
    for comparison in queue:
        ask(server, "POST", f"/comparisons/{comparison}/cancel")
    page.goto(f"{server.url}/comparisons/{queue[-1]}")
    expect(page.get_by_test_id("cancelled")).to_be_visible(timeout=30_000)
    assert "fetch" in asked
    assert "eventsource" not in asked  # one that stays open, for every job and in every tab
