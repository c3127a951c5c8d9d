"""One dump alone: where its NaN and infinities began, without a comparison."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import ready, show
from ui.expecting import expect

CAUSE = "Functional.gelu.0.forward"


@pytest.fixture(scope="module")
def broken(server: Server, dumps: Path) -> str:
    return ready(server, dumps / "target_nan")


def test_the_first_nan_is_named_and_one_click_away(page: Page, broken: str) -> None:
    show(page, broken)
    first = page.get_by_test_id("first-overflow")
    expect(first).to_contain_text(CAUSE)
    first.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("finding")).to_contain_text("every recorded input is finite, the output holds inf")
    expect(page.get_by_test_id("finding")).to_contain_text("run it alone")


def test_the_list_shows_only_what_it_reached_and_stands_in_the_address(page: Page, broken: str) -> None:
    show(page, broken)
    page.get_by_test_id("show-findings").get_by_text("NaN/Inf").click()
    found = page.get_by_test_id("findings")
    born = found.get_by_role("option").filter(has_text="born here")
    expect(born).to_have_attribute("data-name", CAUSE)
    expect(found.get_by_role("option").first).to_contain_text("intended")
    expect(page).to_have_url(re.compile("do=overflow"))
    page.reload()
    expect(born).to_have_attribute("data-name", CAUSE)
    found.get_by_role("option").filter(has_text="Functional.linear.3.forward").click()
    expect(page.get_by_test_id("finding")).to_contain_text("propagated")


def test_a_dump_of_finite_numbers_says_so(page: Page, server: Server, dumps: Path) -> None:
    show(page, ready(server, dumps / "golden"))
    expect(page.get_by_test_id("no-overflow")).to_contain_text("no NaN or Inf")
    page.get_by_test_id("show-findings").get_by_text("NaN/Inf").click()  # what a mask asked for
    expect(page.get_by_test_id("findings").get_by_text("intended").first).to_be_visible()
    expect(page.get_by_test_id("findings").get_by_text("born here")).to_have_count(0)


def test_it_is_said_in_chinese(chinese: Page, broken: str) -> None:
    show(chinese, f"{broken}?n={CAUSE}&do=overflow")
    expect(chinese.get_by_test_id("finding")).to_contain_text("记录的全部输入有限，输出含 inf。")


def test_the_tree_of_a_dump_marks_what_saw_such_a_number(page: Page, server: Server, dumps: Path) -> None:
    show(page, f"{ready(server, dumps / 'target_nan')}?n=Functional.gelu.0.forward")
    tree = page.get_by_test_id("tree")
    born = tree.locator("[data-name='Functional.gelu.0.forward']")
    expect(born.locator("[data-part]")).to_have_attribute("data-part", "origin")
    block = tree.locator("[data-name='Module.layers.0.Block.forward.0']")
    expect(block.locator("[data-part=origin]")).to_have_attribute(
        "title", re.compile(r"born here: the worst of \d+ calls")
    )
    clean = tree.locator("[data-name='Module.tok.Embedding.forward.0']")
    expect(clean).to_be_visible()
    expect(clean.locator("[data-part]")).to_have_count(0)
