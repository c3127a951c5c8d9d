"""Ctrl-K does what every key does, and finds calls by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import known, show
from ui.expecting import expect


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def test_a_call_is_found_by_its_name_and_gone_to(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text("softmax")
    page.get_by_test_id("search").focus()  # also while typing elsewhere
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette").fill("cross_entropy")
    expect(page.get_by_role("option").first).to_contain_text("Functional.cross_entropy.0.forward")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.cross_entropy.0.forward")
    expect(page.get_by_test_id("palette")).to_have_count(0)


def test_of_equal_matches_the_worst_comes_first(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text("softmax")
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette").fill("softm")
    expect(page.get_by_role("option").first).to_contain_text("Functional.softmax.1.forward")
    expect(page.get_by_role("option").first).to_contain_text("origin")
    page.get_by_test_id("palette").fill("softmax.0")
    expect(page.get_by_role("option").first).to_contain_text("Functional.softmax.0")


def test_an_action_is_found_by_its_words_and_done(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text("softmax")
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette").fill("step next")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]s=1(&|$)"))
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette").fill("made by hand")
    page.get_by_role("option").first.click()
    expect(page).to_have_url(re.compile("do=matches"))


def test_the_arrow_keys_walk_the_choices_and_escape_leaves_all_as_it_was(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text("softmax")
    before = page.url
    page.keyboard.press("Control+k")
    expect(page.get_by_test_id("palette")).to_be_focused()
    expect(page.get_by_role("option", selected=True)).to_contain_text("Next call")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Plot")
    page.get_by_test_id("palette").fill("nothing of this name")
    expect(page.get_by_text("Nothing has this name")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("palette")).to_have_count(0)
    assert page.url == before


def test_what_is_typed_before_its_field_is_there_is_typed_into_it(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text("softmax")
    page.evaluate(
        """() => {
            const press = (key, ctrlKey) =>
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
            press("k", true);
            for (const key of "gelu") press(key, false);
        }"""
    )
    expect(page.get_by_test_id("palette")).to_have_value("gelu")
    expect(page.get_by_role("option").first).to_contain_text("gelu")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("palette")).to_have_count(0)
    page.keyboard.press("n")  # keys are the screen's again
    expect(page.get_by_test_id("selected-name")).to_be_visible()
