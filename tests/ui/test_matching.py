"""Partners of calls: found, missing, and made by hand in the browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server, new_page
from ui.driving import ask, finished, pick, register, show
from ui.expecting import expect

EXTRA = "Functional.gelu.1.forward"
"""A call that only the target makes."""

PARTNER = "Functional.gelu.0.forward"


@pytest.fixture
def address(server: Server, dumps: Path) -> str:
    return finished(server, dumps / "target_extra_op", dumps / "golden")


def open_match(page: Page, address: str, node: str) -> None:
    show(page, f"{address}?n={node}")
    expect(page.get_by_test_id("why")).to_be_visible()
    page.locator("body").press("m")
    expect(page.get_by_test_id("partner-search")).to_be_focused()


def test_a_call_is_matched_by_hand_with_the_keyboard_and_compared_again(page: Page, address: str) -> None:
    open_match(page, address, EXTRA)
    expect(page).to_have_url(re.compile("do=match"))
    page.keyboard.type("gelu.0")
    partners = page.get_by_test_id("partners").get_by_role("option")
    expect(partners).to_have_count(1)
    expect(partners).to_contain_text(PARTNER)
    preview = page.get_by_test_id("preview")
    expect(preview).to_contain_text("records would be compared")
    expect(preview.get_by_role("row").filter(has_text="output")).to_contain_text("float32 [2,6,16]")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("matches-wait")).to_contain_text("1 match made by hand")
    expect(page.get_by_test_id("match-waits")).to_contain_text(PARTNER)
    page.reload()
    expect(page.get_by_test_id("match-waits")).to_contain_text(PARTNER)
    page.get_by_test_id("apply").click()
    evidence = page.get_by_test_id("evidence")
    expect(evidence.get_by_test_id("match").first).to_contain_text("mapped")
    expect(evidence).to_contain_text(f"golden: {PARTNER}")
    expect(page.get_by_test_id("matches-wait")).to_have_count(0)


def test_a_match_is_parted_listed_exported_undone_and_taken_from_a_file(
    page: Page, server: Server, address: str, tmp_path: Path
) -> None:
    show(page, f"{address}?n={PARTNER}")
    page.get_by_test_id("unmatch").click()
    expect(page.get_by_test_id("match-waits")).to_be_visible()
    page.locator("body").press("Shift+M")
    expect(page).to_have_url(re.compile("do=matches"))
    edits = page.get_by_test_id("edit")
    expect(edits).to_have_count(1)
    expect(edits).to_contain_text("waiting")
    with page.expect_download() as download:
        page.get_by_test_id("export-matches").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert f"target: {PARTNER}" in text
    page.get_by_test_id("undo-match").click()
    expect(edits).to_have_count(0)
    file = tmp_path / "matches.yaml"
    file.write_text(text + "- match: {target: nowhere, golden: nobody}\n", encoding="utf-8")
    page.get_by_test_id("import-matches").set_input_files(file)
    expect(edits).to_have_count(2)
    expect(edits.nth(1)).to_contain_text("not in this rank")
    page.get_by_test_id("apply-matches").click()
    expect(page.get_by_test_id("evidence").get_by_test_id("leftover")).to_contain_text("target only")
    comparison = address.rsplit("/", 1)[-1]
    states = [edit["state"] for edit in ask(server, "GET", f"/comparisons/{comparison}/matching")["edits"]]
    assert states == ["applied", "absent"]


def test_another_partner_is_found_for_either_side_of_a_pair(page: Page, address: str) -> None:
    open_match(page, address, PARTNER)
    partners = page.get_by_test_id("partners").get_by_role("option")
    expect(partners.first).to_contain_text("−1")
    expect(partners.first).to_contain_text("same name")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("New partner for the golden call").click()
    expect(partners.first).to_contain_text("target only · inserted")
    page.get_by_test_id("partner-search").fill("no call of this name")
    expect(dialog).to_contain_text("Nothing matches")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page).not_to_have_url(re.compile("do="))


def test_both_halves_of_a_parted_pair_of_one_name_can_be_looked_at(page: Page, address: str) -> None:
    show(page, f"{address}?n={PARTNER}")
    page.get_by_test_id("unmatch").click()
    page.get_by_test_id("apply").click()
    evidence = page.get_by_test_id("evidence")
    expect(evidence.get_by_test_id("leftover")).to_contain_text("target only")
    rows = page.get_by_test_id("calls").locator(f"[data-name='{PARTNER}']")
    expect(rows).to_have_count(2)
    expect(rows.and_(page.locator("[aria-selected='true']"))).to_have_count(1)
    rows.filter(has_text="golden").click()
    expect(evidence.get_by_test_id("leftover")).to_contain_text("golden only")
    expect(page).to_have_url(re.compile(f"n=golden%3A{re.escape(PARTNER)}"))
    page.reload()
    expect(evidence.get_by_test_id("leftover")).to_contain_text("golden only")
    expect(rows.and_(page.locator("[aria-selected='true']"))).to_have_count(1)
    page.locator("body").press("m")
    page.keyboard.type("gelu.0")
    expect(page.get_by_test_id("partners").get_by_role("option").first).to_contain_text(PARTNER)


def test_each_call_without_a_partner_shows_its_cause_and_its_neighbour(page: Page, address: str) -> None:
    show(page, f"{address}?n={EXTRA}")
    expect(page.get_by_test_id("why")).to_contain_text(
        "Only the target makes this call. The other side has no call at this place"
    )
    calls, tree = page.get_by_test_id("calls"), page.get_by_test_id("tree")
    expect(calls.locator(f"[data-name='{EXTRA}']").get_by_test_id("leftover")).to_have_text("target · inserted")
    expect(tree.locator(f"[data-name='{EXTRA}']").get_by_test_id("tree-leftover")).to_have_text("inserted")
    aligned = tree.locator("[data-name='Functional.gelu.2.forward']")
    expect(aligned.get_by_test_id("match")).to_contain_text("0.85")
    page.get_by_test_id("filter").click()
    page.get_by_test_id("filter-left-inserted").click()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("f=left%3Ainserted"))
    expect(page.get_by_test_id("chips")).to_contain_text("no partner: inserted")
    expect(calls.get_by_test_id("leftover")).to_have_count(10)
    before = page.get_by_test_id("beside").get_attribute("title")
    page.get_by_test_id("beside").click()
    name = before.rsplit(" ", 1)[-1]  # type: ignore[union-attr]
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)


def test_rename_rules_are_tried_before_anything_is_compared(page: Page, server: Server, dumps: Path) -> None:
    page.goto(server.url)
    for folder, side in ((dumps / "target_renamed", "target"), (dumps / "golden", "golden")):
        register(page, folder)
        pick(page, folder, side)
    page.get_by_role("button", name="Options").click()
    page.get_by_test_id("rename-rules").fill("layers\\.(\\d+)\\.ffn=layers.\\1.mlp\nnothing=else")
    page.get_by_test_id("try-matching").click()
    tried = page.get_by_test_id("tried")
    rows = tried.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("ffn")
    expect(rows.nth(1)).not_to_have_attribute("data-idle", "true")
    expect(rows.nth(2)).to_have_attribute("data-idle", "true")
    expect(tried).to_contain_text("Every call has a partner.")
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("banner")).to_be_visible()
    comparison = re.search("comparisons/([^?]+)", page.url)[1]  # type: ignore[index]
    rules = ask(server, "GET", f"/comparisons/{comparison}")["options"]["rename"]
    assert rules == ["layers\\.(\\d+)\\.ffn=layers.\\1.mlp", "nothing=else"]


def test_a_rule_that_cannot_be_read_is_told_where_it_was_written(
    context: BrowserContext, server: Server, dumps: Path
) -> None:
    page = new_page(context)  # the 400 is logged by the browser, so not the strict page
    page.goto(server.url)
    for side in ("target", "golden"):
        register(page, dumps / "golden")
        pick(page, dumps / "golden", side)
    page.get_by_role("button", name="Options").click()
    page.get_by_test_id("rename-rules").fill("(=x")
    page.get_by_test_id("try-matching").click()
    expect(page.get_by_test_id("failure")).to_contain_text("rename")


@pytest.mark.parametrize("field", ["search", "tree-search"])
def test_escape_empties_a_search_before_it_leaves_the_field(page: Page, address: str, field: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).not_to_be_empty()
    search = page.get_by_test_id(field)
    search.click()
    page.keyboard.type("gelu")
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect(search).to_be_focused()
    page.wait_for_timeout(400)  # what was typed must not arrive later
    expect(page).not_to_have_url(re.compile("q="))
    page.keyboard.press("Escape")
    expect(search).not_to_be_focused()
