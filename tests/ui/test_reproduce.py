"""The script that runs a call alone, two keys from the answer."""

from __future__ import annotations

import zipfile
from pathlib import Path

from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import known, show
from ui.expecting import expect


def test_the_key_r_shows_the_script_of_the_selected_call_and_saves_it(
    page: Page, server: Server, dumps: Path, tmp_path: Path
) -> None:
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.softmax.1.forward")
    expect(page.get_by_test_id("evidence").get_by_test_id("why")).to_be_visible()
    page.keyboard.press("r")
    dialog = page.get_by_test_id("reproduce-dialog")
    text = dialog.get_by_test_id("script-text")
    expect(text).to_contain_text("Functional.softmax.1 alone, from target_fault")
    with page.expect_download() as started:
        dialog.get_by_test_id("save-script").click()
    started.value.save_as(tmp_path / "call.py")
    assert started.value.suggested_filename == "Functional.softmax.1.py"
    assert "CALL = {" in (tmp_path / "call.py").read_text()
    dialog.get_by_text("golden", exact=True).click()
    expect(text).to_contain_text("Functional.softmax.1 alone, from golden")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_the_archive_for_its_owner_is_told_with_its_size_and_downloaded(
    page: Page, server: Server, dumps: Path, tmp_path: Path
) -> None:
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.softmax.1.forward")
    expect(page.get_by_test_id("evidence").get_by_test_id("why")).to_be_visible()
    page.keyboard.press("r")
    archive = page.get_by_test_id("reproduce-dialog").get_by_test_id("handover")
    expect(archive).to_contain_text("unpacked; runs where it is unpacked")
    archive.get_by_text("Contents", exact=True).click()
    parts = archive.get_by_test_id("handover-parts")
    expect(parts.get_by_text("plots/error-order.svg", exact=True)).to_be_visible()
    with page.expect_download() as started:
        archive.get_by_test_id("save-archive").click()
    assert started.value.suggested_filename == "Functional.softmax.1.zip"
    started.value.save_as(tmp_path / "finding.zip")
    with zipfile.ZipFile(tmp_path / "finding.zip") as packed:
        names = packed.namelist()
    assert sorted(names) == sorted(parts.locator("li .mono").all_inner_texts())


def test_an_archive_of_statistics_says_that_its_numbers_are_made_up(page: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "stat_golden", dumps / "stat_golden")
    show(page, f"{address}?s=0&r=0&n=Functional.gelu.0.forward&do=reproduce")
    archive = page.get_by_test_id("reproduce-dialog").get_by_test_id("handover")
    expect(archive).to_contain_text("It contains no tensors: the script makes up numbers")


def test_a_module_that_cannot_be_run_alone_says_why(page: Page, server: Server, dumps: Path) -> None:
    page.goto(
        known(server, dumps / "target_fault", dumps / "golden") + "?s=0&r=0&n=Module.layers.1.attn.Attn.forward.0"
    )
    expect(page.get_by_test_id("selected-name")).to_contain_text("Attn")
    expect(page.get_by_test_id("evidence").get_by_test_id("why")).to_be_visible()
    page.get_by_test_id("evidence").get_by_test_id("reproduce").click()
    dialog = page.get_by_test_id("reproduce-dialog")
    expect(dialog).to_contain_text("how this Attn was built")
    expect(dialog).to_contain_text("calls inside it: Torch.matmul.2")


def test_in_chinese_the_reason_is_chinese(chinese: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "target_fault", dumps / "golden")
    show(chinese, f"{address}?s=0&r=0&n=Module.layers.1.attn.Attn.forward.0&do=reproduce")
    dialog = chinese.get_by_test_id("reproduce-dialog")
    expect(dialog).to_contain_text("此调用无法单独运行")
    expect(dialog).to_contain_text("dump 没有记录 Attn 的构造参数")
