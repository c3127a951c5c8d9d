"""The search of the list takes terms, goes to ranks, and says what is wrong with it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server, new_page
from ui.driving import known, show
from ui.expecting import expect

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def test_terms_narrow_the_list_and_stand_in_the_address(page: Page, address: str) -> None:
    show(page, address)
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
    show(page, f"{address}?q=api%3Asoftmax+class%3Aorigin")
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
    show(page, known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"))
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
    page = new_page(context)
    show(page, address)
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


SEARCHES = (
    (r"/softmax\.(0|1)\.f/", "2 calls match", "Functional.softmax.0.forward"),
    ("module:layers.1.attn api:softmax", "2 calls match", CAUSE),
    ("line:models.py:14 api:softmax -direction:backward", "2 calls match", CAUSE),
    ("dtype:int64", "5 calls match", "Functional.embedding.0.forward"),
    ("shape:[2,6]", "2 calls match", "Functional.embedding.0.forward"),
)
"""An expression or what calls are made of, how many there are, and one of them."""


def test_calls_are_found_by_expression_and_by_what_they_are_made_of(page: Page, address: str) -> None:
    show(page, address)
    for search, count, name in SEARCHES:
        page.get_by_test_id("search").fill(search)
        page.wait_for_function("q => new URLSearchParams(location.search).get('q') === q", arg=search)
        expect(page.get_by_test_id("total")).to_have_text(count)
        expect(page.get_by_test_id("calls")).to_contain_text(name)
        page.reload()  # nothing of the search before is left
        expect(page.get_by_test_id("search")).to_have_value(search)
        expect(page.get_by_test_id("total")).to_have_text(count)
        expect(page.get_by_test_id("calls")).to_contain_text(name)


def test_the_fault_of_an_expression_is_said_with_its_place(context: BrowserContext, address: str) -> None:
    page = new_page(context)  # the browser logs the 400
    show(page, address)
    page.get_by_test_id("search").fill("gelu /soft(max/")
    refused = page.get_by_test_id("search-refused")
    expect(refused).to_contain_text("a ) is missing")
    expect(refused).to_contain_text("character 14")
    expect(refused).to_contain_text("RE2")


def test_the_filter_counts_all_its_entries_by_one_request(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("why")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/counts?" in request.url else None)
    page.get_by_test_id("filter").click()
    expect(page.get_by_test_id("filter-origin")).to_contain_text(re.compile(r"origin\s*1$"))
    expect(page.get_by_test_id("filter-absorbed")).to_contain_text(re.compile(r"absorbed\s*6$"))
    expect(page.get_by_test_id("filter-left-fused")).to_contain_text(re.compile(r"0$"))
    assert len(asked) == 1
    page.get_by_test_id("filter-absorbed").click()
    expect(page.get_by_test_id("total")).to_have_text("6 calls match")
    expect(page).to_have_url(re.compile("class%3Aabsorbed"))
    expect(page.get_by_test_id("filter-verdict-no")).to_contain_text(re.compile(r"No\s*6$"))
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("chips")).to_contain_text("absorbed")


def test_a_filter_is_kept_under_a_name_and_opened_by_a_click_or_by_its_address(page: Page, address: str) -> None:
    show(page, f"{address}?q=softmax&f=class:origin")
    expect(page.get_by_test_id("total")).to_have_text("1 call matches")
    page.get_by_test_id("save-filter").click()
    page.get_by_test_id("filter-name").fill("suspect softmax")
    page.keyboard.press("Enter")
    saved = page.get_by_test_id("saved-filter")
    expect(saved).to_contain_text("suspect softmax")
    expect(saved.get_by_role("button", name="suspect softmax", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_test_id("clear-filter").click()
    expect(page.get_by_test_id("total")).to_have_text("163 calls")
    page.reload()
    saved.get_by_role("button", name="suspect softmax", exact=True).click()
    expect(page.get_by_test_id("total")).to_have_text("1 call matches")
    assert "q=softmax" in page.url
    assert "class%3Aorigin" in page.url
    page.get_by_test_id("clear-filter").click()
    saved.get_by_role("button", name="Forget the filter suspect softmax").click()
    expect(saved).to_have_count(0)
    expect(page.get_by_test_id("chips")).to_have_count(0)


def test_a_filter_that_the_address_brought_is_taken_away_around_the_selected_call(page: Page, address: str) -> None:
    page.goto(f"{address}?f=class:origin")
    expect(page.get_by_test_id("total")).to_have_text("1 call matches")
    expect(page.get_by_test_id("calls").get_by_role("row", selected=True)).to_contain_text(CAUSE)
    page.get_by_test_id("clear-filter").click()
    expect(page.get_by_test_id("total")).to_have_text("163 calls")
    selected = page.get_by_test_id("calls").get_by_role("row", selected=True)
    expect(selected).to_contain_text(CAUSE)
    expect(selected).to_be_in_viewport()
    assert int(str(selected.get_attribute("aria-rowindex"))) > 2


def test_the_help_lists_the_terms(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("banner")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_test_id("search-terms")).to_contain_text("err>1e-2")
