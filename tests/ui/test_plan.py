"""The plan by which ranks are joined, edited in the browser."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from dumpscope.parallel.plan import parse_plan
from ui.conftest import Server, new_page
from ui.driving import ask, finished, pick, register, show
from ui.expecting import expect

ARCHIVE = Path(__file__).parents[1] / "data" / "parallel.tar.xz"
UP = "Module.layers.2.mlp.up.ColumnParallelLinear.forward.0.parameters.weight"


@pytest.fixture(scope="module")
def splits(generated: Path) -> Path:
    """Folder of dumps of one model under different splits."""
    wanted = ("tp2_fault", "tp2pp2", "whole", "dp2", "dp4_same")
    with tarfile.open(ARCHIVE) as tar:
        members = [member for member in tar.getmembers() if member.name.split("/")[0] in wanted]
        tar.extractall(generated / "splits", members=members)  # our own archive
    return generated / "splits"


def open_plan(page: Page, server: Server, target: Path, golden: Path) -> None:
    """The plan of two dumps on the start page, before they are compared."""
    page.goto(server.url)
    for folder, side in ((target, "target"), (golden, "golden")):
        register(page, folder)
        pick(page, folder, side)
    page.get_by_role("button", name="Options").click()
    page.get_by_test_id("plan-open").click()
    expect(page.get_by_test_id("plan-editor")).to_have_attribute("aria-busy", "false")


def options_of(page: Page, server: Server) -> str:
    comparison = re.search("comparisons/([^?]+)", page.url)[1]  # type: ignore[index]
    text = ask(server, "GET", f"/comparisons/{comparison}")["options"]["parallel"]
    assert isinstance(text, str)
    return text


def test_a_dimension_chosen_in_the_dry_run_travels_with_the_comparison(
    page: Page, server: Server, splits: Path, tmp_path: Path
) -> None:
    address = finished(server, splits / "tp2_fault", splits / "whole")
    show(page, address)
    page.get_by_test_id("plan").click()
    page.get_by_test_id("plan-edit").click()
    expect(page).to_have_url(re.compile("do=plan"))
    page.get_by_test_id("plan-search").fill("layers.2.mlp.up")
    page.get_by_test_id("plan-try").click()
    row = page.get_by_test_id("plan-tensor").filter(has_text="parameters.weight").first
    expect(row).to_contain_text("[32, 16] × 2")
    expect(row).to_contain_text("[64, 16]")
    row.get_by_test_id("plan-way").select_option("skip")
    dimension = page.get_by_test_id("plan-dimension")
    expect(dimension).to_contain_text(UP)
    with page.expect_download() as download:
        page.get_by_test_id("plan-download").click()  # it is disabled while the plan is looked at
    file = tmp_path / "plan.yaml"
    download.value.save_as(file)
    assert parse_plan(file.read_text(encoding="utf-8")).dimensions == {UP: "skip"}
    page.get_by_test_id("plan-compare").click()
    expect(page).not_to_have_url(re.compile(re.escape(address)))
    expect(page.get_by_test_id("banner")).to_be_visible()
    assert parse_plan(options_of(page, server)).dimensions == {UP: "skip"}
    page.get_by_test_id("plan").click()
    expect(page.get_by_test_id("plan-panel")).to_contain_text("not joined")


def test_sizes_and_roles_are_laid_out_before_anything_is_compared(page: Page, server: Server, splits: Path) -> None:
    open_plan(page, server, splits / "tp2pp2", splits / "whole")
    roles = page.get_by_test_id("role-target")
    expect(roles).to_have_count(4)
    page.get_by_test_id("plan-target-tp").fill("4")
    page.get_by_test_id("plan-lay-out").click()
    expect(page.get_by_label("target TP 3")).to_have_value("3")
    page.get_by_label("target TP 3").select_option("1")
    page.get_by_label("target TP 2").select_option("0")  # does not wait for the server's look at the first one
    for place, rank in ((1, "3"), (3, "1"), (0, "2"), (2, "0")):
        expect(page.get_by_label(f"target TP {place}")).to_have_value(rank)
    expect(page.get_by_test_id("plan-use")).to_be_enabled()
    expect(page.get_by_label("target TP 2")).to_have_value("0")
    page.get_by_test_id("plan-target-tp").fill("2")
    page.get_by_test_id("plan-target-pp").fill("2")
    page.get_by_test_id("plan-lay-out").click()
    expect(page.get_by_label("target PP 1 · TP 0")).to_have_value("2")
    expect(page.get_by_test_id("offsets-target")).to_have_value("0, 2")
    page.get_by_test_id("plan-try").click()
    expect(page.get_by_test_id("plan-tried")).to_contain_text("0+1 → 2+3")
    page.get_by_test_id("plan-use").click()
    expect(page.get_by_test_id("plan-chosen")).to_be_visible()
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("banner")).to_be_visible()
    (unit,) = parse_plan(options_of(page, server)).units
    assert (unit.target.ranks, unit.target.offsets) == ((((0, 1), (2, 3)),), (0, 2))
    expect(page.get_by_test_id("banner")).to_contain_text("No origin")


def test_a_plan_that_cannot_be_is_told_with_its_place_and_its_remedy(
    context: BrowserContext, server: Server, splits: Path
) -> None:
    page = new_page(context)  # the 400 is logged by the browser, so not the strict page
    open_plan(page, server, splits / "tp2pp2", splits / "whole")
    page.get_by_test_id("plan-target-tp").fill("3")
    page.get_by_test_id("plan-lay-out").click()
    failure = page.get_by_test_id("plan-editor").get_by_test_id("failure")
    expect(failure).to_contain_text("target: 4 ranks cannot be cut into tp 3 times pp 1")
    expect(failure).to_contain_text("their product must divide 4")
    expect(page.get_by_test_id("role-target")).to_have_count(4)  # the last good plan stands
    page.get_by_text("Plan as yaml").click()
    page.get_by_test_id("plan-text").fill("units:\n- target: {ranks: [[[0, 9]]]}\n  golden: {ranks: 0}\n")
    page.get_by_test_id("plan-check").click()
    expect(failure).to_contain_text("unit 0: the target has no rank 9 (it has 0, 1, 2, 3)")
    page.get_by_test_id("plan-text").fill("units:\n- target: {ranks: [[[0, 1]]]}\n  golden: {ranks: 0}\n")
    page.get_by_test_id("plan-check").click()
    expect(failure).to_have_count(0)
    expect(page.get_by_test_id("problems")).to_contain_text("Rank 2 of the target is in no unit")


def test_ranks_that_were_compared_one_by_one_can_be_joined_afterwards(page: Page, server: Server, splits: Path) -> None:
    show(page, finished(server, splits / "dp2", splits / "dp2"))
    page.get_by_test_id("plan-join").click()
    expect(page.get_by_test_id("plan-editor")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_test_id("role-target")).to_have_count(2)
