"""Where most calls have no partner, renames are proposed before a verdict on the rest is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from match.renamed import ported
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import ask, finished, show
from ui.expecting import expect


@pytest.fixture(scope="module")
def renamed(generated: Path, dumps: Path) -> Path:
    return ported(dumps / "cfg_L0_stat", generated / "ported")


@pytest.fixture
def address(server: Server, renamed: Path, dumps: Path) -> str:
    return finished(server, renamed, dumps / "cfg_L0_stat")


def test_renames_are_proposed_before_the_verdict_and_one_key_compares_again_with_them(
    page: Page, server: Server, address: str
) -> None:
    show(page, address)
    assistant = page.get_by_test_id("assistant")
    expect(assistant).to_contain_text("114 calls have no partner, 7 have one")
    expect(page.get_by_test_id("banner")).to_have_count(0)
    rules = assistant.get_by_test_id("proposed-rule")
    expect(rules).to_have_count(14)
    expect(rules.filter(has_text="TransformerLayer")).to_contain_text("layers.0.Block")
    expect(page.get_by_test_id("assistant-effect")).to_contain_text("7 → 64 pairs")
    expect(page.get_by_test_id("assistant-effect")).to_contain_text("Every call has a partner")
    expect(page.get_by_test_id("assistant-accept")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("banner")).to_contain_text("No origin")
    expect(page.get_by_test_id("assistant")).to_have_count(0)
    expect(page).not_to_have_url(re.compile(re.escape(address)))
    again = ask(server, "GET", f"/comparisons/{comparison_of(page.url)}")
    assert len(again["options"]["rename"]) == 14
    assert ask(server, "GET", f"/comparisons/{comparison_of(address)}")["options"]["rename"] == []


def comparison_of(url: str) -> str:
    return str(re.search("comparisons/([^?]+)", url)[1])  # type: ignore[index]


def test_a_rule_left_out_or_written_by_hand_is_counted_before_it_is_used(page: Page, address: str) -> None:
    show(page, address)
    effect = page.get_by_test_id("assistant-effect")
    expect(effect).to_contain_text("7 → 64 pairs")
    head = page.get_by_test_id("proposed-rule").filter(has_text="output_layer")
    head.get_by_role("checkbox").uncheck()
    expect(effect).to_contain_text("7 → 61 pairs")
    expect(effect).to_contain_text("6 calls without a partner")
    page.get_by_test_id("own-rules").fill(r"^output_layer\.ColumnParallelLinear$=head.Linear")
    expect(effect).to_contain_text("7 → 64 pairs")


def test_the_verdict_can_be_read_without_the_assistant_and_a_link_keeps_to_what_was_shown(
    page: Page, address: str
) -> None:
    show(page, address)
    expect(page.get_by_test_id("assistant-accept")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("banner")).to_contain_text("Most calls have no partner")
    page.reload()
    expect(page.get_by_test_id("banner")).to_be_visible()
    expect(page.get_by_test_id("assistant")).to_have_count(0)
    page.keyboard.press("a")
    expect(page.get_by_test_id("assistant-effect")).to_contain_text("7 → 64 pairs")


def test_strangers_are_named_as_such_where_no_rename_helps(page: Page, server: Server, dumps: Path) -> None:
    show(page, finished(server, dumps / "conv_mix_stat", dumps / "stat_golden"))
    assistant = page.get_by_test_id("assistant")
    expect(assistant).to_contain_text("No rename explains this")
    expect(assistant.get_by_role("region", name="golden")).to_contain_text("Functional.embedding.0.forward")
    expect(page.get_by_test_id("assistant-accept")).to_be_disabled()
    page.get_by_test_id("assistant-skip").click()
    expect(page.get_by_test_id("origin")).to_be_visible()
    expect(page.get_by_test_id("strangers")).to_contain_text("this result says little")


def test_the_start_page_says_of_how_few_items_a_verdict_is(
    page: Page, server: Server, address: str, dumps: Path
) -> None:
    finished(server, dumps / "golden", dumps / "golden")
    page.goto(server.url)
    rows = page.get_by_test_id("comparisons").get_by_role("row")
    expect(rows.filter(has_text="ported").first.get_by_test_id("some-compared")).to_have_text("15 of 297 items")
    whole = rows.filter(has_text="golden against golden").first
    expect(whole).to_contain_text("Yes")
    expect(whole.get_by_test_id("some-compared")).to_have_count(0)

    # Its dialogs are there while they are open, and what opened one has the focus again.
    for word, says in (("Rename", "golden against golden"), ("Delete", "Delete")):
        opener = whole.get_by_role("button", name=f"{word}: golden against golden")
        opener.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        if word == "Rename":
            expect(dialog.get_by_role("textbox")).to_have_value(says)
            expect(dialog.get_by_role("textbox")).to_be_focused()
        else:
            expect(dialog.get_by_role("heading")).to_contain_text(says)
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(opener).to_be_focused()
