"""The search of the list takes terms, goes to ranks, and says what is wrong with it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server
from ui.driving import known
from ui.expecting import expect

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def test_terms_narrow_the_list_and_stand_in_the_address(page: Page, address: str) -> None:
    page.goto(address)
    search = page.get_by_test_id("search")
    search.fill("api:softmax class:origin")
    expect(page.get_by_test_id("total")).to_have_text(re.compile(r"^1 "))
    expect(page.get_by_test_id("calls")).to_contain_text(CAUSE)
    search.fill("api:softmax -class:origin err>1e-6")
    expect(page.get_by_test_id("calls")).not_to_contain_text(CAUSE)
    expect(page.get_by_test_id("chips")).to_contain_text("err>1e-6")
    page.reload()
    expect(page.get_by_test_id("search")).to_have_value("api:softmax -class:origin err>1e-6")
    expect(page.get_by_test_id("calls")).not_to_contain_text(CAUSE)


def test_what_the_list_shows_is_exported(page: Page, address: str) -> None:
    page.goto(f"{address}?q=api%3Asoftmax+class%3Aorigin")
    expect(page.get_by_test_id("total")).to_have_text(re.compile(r"^1 "))
    page.get_by_test_id("export").click()
    with page.expect_download() as held:
        page.get_by_test_id("export-list-csv").click()
    rows = list(csv.DictReader(held.value.path().open(newline="")))
    assert {row["Node"] for row in rows} == {CAUSE}
    page.get_by_test_id("export").click()
    with page.expect_download() as held:
        page.get_by_test_id("export-list-junit.xml").click()
    (case,) = ElementTree.parse(held.value.path()).getroot().findall("testsuite/testcase")
    assert case.get("name") == CAUSE


def test_a_rank_in_the_search_is_gone_to(page: Page, server: Server, dumps: Path) -> None:
    page.goto(known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"))
    expect(page.get_by_test_id("banner")).to_be_visible()
    search = page.get_by_test_id("search")
    search.fill("rank:0 direction:forward")
    expect(page).to_have_url(re.compile(r"[?&]r=0(&|$)"))
    search.fill("rank:1 direction:forward")
    expect(page).to_have_url(re.compile(r"[?&]r=1(&|$)"))
    expect(search).to_have_value("direction:forward")
    search.fill("rank:7")
    expect(page.get_by_text("There are ranks 0 1 and steps")).to_be_visible()


def test_what_is_no_search_is_said_with_place_and_remedy_while_the_list_stays(
    context: BrowserContext, address: str
) -> None:
    page = context.new_page()
    page.goto(address)
    page.get_by_test_id("search").fill("softmax")
    expect(page.get_by_test_id("total")).to_have_text("4 calls match")
    page.get_by_test_id("search").fill("softmax clas:origin")
    refused = page.get_by_test_id("search-refused")
    expect(refused).to_contain_text("there is no clas:")
    expect(refused).to_contain_text("character 9")
    expect(refused).to_contain_text("class:")
    expect(page.get_by_test_id("failure")).to_have_count(0)
    expect(page.get_by_test_id("calls").locator("[data-name]")).to_have_count(4)
    expect(page.get_by_test_id("total")).to_have_text("…")
    page.get_by_test_id("search").fill("softmax class:origin")
    expect(refused).to_have_count(0)
    expect(page.get_by_test_id("total")).to_have_text("1 call matches")
    expect(page.get_by_test_id("calls")).to_contain_text(CAUSE)


def test_the_help_lists_the_terms(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_test_id("banner")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_test_id("search-terms")).to_contain_text("err>1e-2")
