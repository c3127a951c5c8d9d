"""Two checkpoints compared in the browser: from the start page to the element that differs."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ui.conftest import Server
from ui.test_access import AT_REST, grave

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "checkpoints.tar.xz"
WORST = "decoder.layers.1.mlp.linear_fc2.weight"


@pytest.fixture(scope="module")
def saved(generated: Path) -> Path:
    folder = generated / "checkpoints"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.expects("/api/checkpoint-diffs")
def test_the_changed_tensor_is_found_from_the_start_page(
    page: Page, server: Server, saved: Path, page_in: Callable[[str], Page], pytestconfig: pytest.Config
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(server.url)
    page.get_by_test_id("checkpoint-target").fill(str(saved / "megatron" / "planted"))
    expect(page.get_by_test_id("compare-checkpoints")).to_be_disabled()
    page.get_by_test_id("checkpoint-golden").fill(str(saved / "nothing"))
    page.get_by_test_id("compare-checkpoints").click()
    expect(page.get_by_test_id("checkpoint-diffs").get_by_test_id("failure")).to_be_visible()
    page.get_by_test_id("checkpoint-golden").fill(str(saved / "safetensors" / "healthy" / "model.safetensors"))
    page.get_by_test_id("compare-checkpoints").click()

    expect(page.get_by_test_id("checkpoint-summary")).to_contain_text(f"1 of 15 tensors differs: {WORST}")
    rows = page.get_by_test_id("tensors").locator("tbody tr")
    expect(rows).to_have_count(15)
    expect(rows.first).to_contain_text("differs")

    page.get_by_role("button", name=re.compile("^other form 3")).click()
    expect(rows).to_have_count(3)
    page.get_by_role("button", name=re.compile("^differs 1")).click()
    page.get_by_role("searchbox").fill("down_proj")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^other form 0"))).to_be_visible()
    rows.first.get_by_role("button").click()
    detail = page.get_by_test_id("tensor-detail")
    expect(detail).to_contain_text("[5, 7]")
    expect(detail).to_contain_text("≥ 1e-1")
    page.get_by_role("columnheader", name="Largest").get_by_role("button").click()
    expect(page.get_by_role("columnheader", name="Largest")).to_have_attribute("aria-sort", "descending")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        page.wait_for_function(AT_REST)
        assert grave(page, pytestconfig) == []

    other = page_in("zh-CN")  # the address shows a colleague the same, in the colleague's language
    other.goto(page.url)
    expect(other.get_by_test_id("tensor-detail")).to_contain_text("[5, 7]")
    expect(other.get_by_test_id("tensors").locator("tbody tr")).to_have_count(1)
    expect(other.get_by_test_id("checkpoint-summary")).to_contain_text(f"15 个张量中有 1 个不同：{WORST}")
    other.get_by_role("searchbox").fill("nothing like this")
    expect(other.get_by_test_id("tensors")).to_contain_text("没有符合搜索和状态的张量")

    page.goto(server.url)
    row = page.get_by_test_id("checkpoint-diffs").get_by_role("row").first
    expect(row).to_contain_text("1 of 15 tensors differs")
    row.get_by_role("button").click()
    expect(page.get_by_test_id("checkpoint-diffs").get_by_role("row")).to_have_count(0)


def test_what_is_no_checkpoint_says_so(page: Page, server: Server, saved: Path) -> None:
    page.goto(server.url)
    page.get_by_test_id("checkpoint-target").fill(str(saved / "facts.json"))
    page.get_by_test_id("checkpoint-golden").fill(str(saved / "safetensors" / "healthy" / "model.safetensors"))
    page.get_by_test_id("compare-checkpoints").click()
    expect(page.get_by_test_id("ended")).to_contain_text("facts.json")
