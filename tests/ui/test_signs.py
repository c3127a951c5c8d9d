"""Marks, units and keys that say one thing: what the row, the banner and the help tell belongs together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import finished, known, show
from ui.expecting import expect
from ui.made import cut_rank, late

CAUSE = "Functional.softmax.1.forward"
ABSORBING = "Functional.cross_entropy.0.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def opened(page: Page, address: str, name: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)
    expect(page.get_by_test_id("why")).to_be_visible()


def test_a_call_that_only_received_an_error_has_no_check_mark_beside_its_no(page: Page, address: str) -> None:
    opened(page, f"{address}?s=0&r=0&n={ABSORBING}", ABSORBING)
    row = page.get_by_test_id("calls").locator(f"[data-name='{ABSORBING}']")
    expect(row).to_contain_text("No")
    expect(row).to_contain_text("↓")
    expect(row).not_to_contain_text("✓")
    expect(page.get_by_test_id("evidence").get_by_text("absorbed", exact=True).last).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("has none above the floor")


def test_every_error_says_its_unit_in_the_cell_and_in_full_behind_it(page: Page, address: str) -> None:
    opened(page, address, CAUSE)
    row = page.get_by_test_id("calls").locator(f"[data-name='{CAUSE}']")
    expect(row.get_by_title(re.compile("Largest output error: relative error 0.0032.* times the floor"))).to_have_text(
        "0.32%"
    )
    head = page.get_by_test_id("calls").get_by_role("columnheader", name="out", exact=True)
    head.locator("[data-term]").hover()
    expect(page.get_by_role("tooltip")).to_contain_text(re.compile("relative in %.*times the floor"))


def test_a_cause_that_was_not_dumped_is_not_called_a_computation(
    page: Page, server: Server, generated: Path, dumps: Path
) -> None:
    made = late(dumps / "stat_golden", generated / "signs" / "late", "Functional.linear.4.forward")
    show(page, finished(server, made, dumps / "stat_golden"))
    expect(page.get_by_test_id("banner").get_by_role("heading")).to_have_text("First visible divergence")
    expect(page.get_by_test_id("origin-kind")).to_have_text("cause not dumped")


def test_a_damaged_file_says_in_chinese_too_how_much_of_it_was_kept(
    chinese: Page, server: Server, generated: Path, dumps: Path
) -> None:
    made = cut_rank(dumps / "dist2_stat_fault", generated / "signs" / "cut")
    show(chinese, finished(server, made, dumps / "dist2_stat_golden"))
    expect(chinese.get_by_test_id("damage")).to_contain_text("保留了 28 条完整记录")


def test_the_start_page_says_that_a_yes_is_of_another_structure(page: Page, server: Server, dumps: Path) -> None:
    name = "target_extra_op against golden"
    finished(server, dumps / "target_extra_op", dumps / "golden")
    show(page, server.url)
    row = page.get_by_test_id("comparisons").get_by_role("row").filter(has_text=name).first
    expect(row).to_contain_text("Yes")
    expect(row.get_by_test_id("structure-differs")).to_have_text("structure differs")


def test_few_calls_that_met_make_no_sure_origin(page: Page, server: Server, dumps: Path) -> None:
    show(page, finished(server, dumps / "conv_mix_stat", dumps / "stat_golden"))
    page.get_by_test_id("assistant-skip").click()
    expect(page.get_by_test_id("banner")).to_contain_text(": low (42 %)")


def test_the_script_dialog_opens_on_its_copy_button(page: Page, address: str) -> None:
    opened(page, address, CAUSE)
    page.keyboard.press("r")
    dialog = page.get_by_test_id("reproduce-dialog")
    expect(dialog.get_by_test_id("script-text")).to_be_visible()
    expect(dialog.get_by_role("button", name="Copy", exact=False).first).to_be_focused()


def test_the_key_o_shows_the_lines_of_code_by_whole_path(page: Page, address: str) -> None:
    opened(page, address, CAUSE)
    page.keyboard.press("o")
    dialog = page.get_by_test_id("source-dialog")
    target = dialog.get_by_role("region", name="target")
    expect(target.get_by_role("listitem").first).to_contain_text("a = s.drop(F.softmax(a, dim=-1))")
    expect(target.get_by_role("listitem").first).to_contain_text(re.compile(r"/.*models\.py:14"))
    link = target.get_by_role("link", name="Open in VS Code").first
    expect(link).to_have_attribute("href", re.compile(r"^vscode://file/.*models\.py:14$"))
    expect(target.get_by_role("button", name="Copy path and line").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_g_and_f_lead_back_to_the_first_origin(page: Page, address: str) -> None:
    for keys in ("g", "f", "gf"):
        opened(page, f"{address}?s=0&r=0&n={ABSORBING}", ABSORBING)
        for key in keys:
            page.keyboard.press(key)
            expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
            expect(page.get_by_test_id("why")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_test_id("keys").get_by_role("row").filter(has_text="back to the first origin")).to_contain_text(
        "gf"
    )


def test_the_keys_of_the_calls_also_walk_one_dump(page: Page, server: Server, address: str) -> None:
    dump = page.request.get(address.replace("/comparisons/", "/api/comparisons/")).json()["target"]
    show(page, f"{server.url}/dumps/{dump}")
    selected = page.get_by_test_id("selected-name")
    expect(selected).to_contain_text("Functional.embedding.0.forward")
    page.keyboard.press("j")
    expect(selected).to_contain_text("Module.tok.Embedding.forward.0")
    page.keyboard.press("k")
    expect(selected).to_contain_text("Functional.embedding.0.forward")
    expect(page.get_by_test_id("node")).to_have_attribute("data-node", "Functional.embedding.0.forward")
    page.keyboard.press("u")
    expect(selected).to_contain_text("Module.tok.Embedding.forward.0")
    page.keyboard.press("o")
    expect(page.get_by_test_id("source-dialog")).to_contain_text("models.py:39")
