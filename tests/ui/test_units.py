"""Steps and ranks are walked through without losing the place."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server, new_page
from ui.driving import choose, known, show
from ui.expecting import expect
from ui.made import in_micro_steps


def test_the_selection_is_kept_from_rank_to_rank(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"))
    name = page.get_by_test_id("selected-name")
    expect(name).to_contain_text("Tensor.__add__.0.forward")
    choose(page, "Functional.layer_norm.0.forward")
    expect(page).to_have_url(re.compile(r"[?&]r=1\b"))
    page.locator("body").press("[")
    expect(page).to_have_url(re.compile(r"[?&]r=0\b"))
    expect(name).to_contain_text("Functional.layer_norm.0.forward")
    expect(page.get_by_test_id("calls").get_by_role("row", selected=True)).to_contain_text(
        "Functional.layer_norm.0.forward"
    )
    page.locator("body").press("]")
    expect(page).to_have_url(re.compile(r"[?&]r=1\b"))
    expect(name).to_contain_text("Functional.layer_norm.0.forward")
    expect(page.get_by_test_id("banner")).to_contain_text("Tensor.__add__.0.forward")


def test_two_people_look_at_one_result_and_neither_moves_the_other(
    page: Page, context: BrowserContext, server: Server, dumps: Path
) -> None:
    address = known(server, dumps / "target_fault", dumps / "golden")
    other = new_page(context)
    show(page, f"{address}?f=class:origin")
    other.goto(f"{address}?q=layer_norm")
    for person, shown in ((page, "1 call"), (other, "10 calls")):
        expect(person.get_by_test_id("total")).to_contain_text(shown)
    page.locator("body").press("5")
    other.get_by_test_id("calls").get_by_text("Functional.layer_norm.2.forward", exact=True).click()
    other.locator("body").press("}")
    expect(other).to_have_url(re.compile(r"[?&]s=1\b.*q=layer_norm"))
    page.reload()
    expect(page.get_by_test_id("total")).to_contain_text("1 call")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.softmax.1.forward")
    expect(page).to_have_url(re.compile(r"[?&]s=0\b.*tab=order"))
    expect(other.get_by_test_id("selected-name")).to_contain_text("Functional.layer_norm.2.forward")
    expect(other.get_by_test_id("calls").get_by_role("row", selected=True)).to_contain_text("layer_norm.2.forward")


def test_the_selection_is_kept_from_step_to_step(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    name = page.get_by_test_id("selected-name")
    expect(name).to_contain_text("Functional.softmax.1.forward")
    page.locator("body").press("}")
    expect(page).to_have_url(re.compile(r"[?&]s=1\b"))
    expect(name).to_contain_text("Functional.softmax.1.forward")
    expect(page.get_by_test_id("calls").get_by_text("Functional.softmax.1.forward", exact=True)).to_be_in_viewport()
    page.locator("body").press("{")
    expect(page).to_have_url(re.compile(r"[?&]s=0\b"))
    expect(name).to_contain_text("Functional.softmax.1.forward")


def test_a_later_step_says_that_its_fault_is_the_same_as_in_the_first_one(
    page: Page, server: Server, dumps: Path
) -> None:
    cause = "Functional.softmax.1.forward"
    show(page, f"{known(server, dumps / 'target_fault', dumps / 'golden')}?s=1&r=0&n={cause}")
    expect(page.get_by_test_id("reason")).to_contain_text("The same is seen in step 1.")
    why = page.get_by_test_id("evidence")
    expect(why.get_by_test_id("why")).to_contain_text("The same fault as in step 0, where it is seen first.")
    expect(page.get_by_test_id("selected-name").locator("..").locator("[data-cls=repeats]")).to_be_visible()
    row = page.get_by_test_id("calls").get_by_role("row", selected=True)
    expect(row.locator("[data-cls=repeats]")).to_contain_text("repeats")
    leaf = page.get_by_test_id("tree").get_by_role("treeitem", selected=True)
    expect(leaf.locator("[data-cls=repeats]")).to_be_visible()
    page.get_by_test_id("step").click()
    expect(page.get_by_role("option")).to_have_text(["0 ✖", "1 ↻"])
    page.keyboard.press("Escape")
    page.get_by_text("2 steps × 1 rank").click()
    cells = page.get_by_test_id("units").get_by_role("button")
    expect(cells).to_have_text(["✖", "↻"])
    expect(cells.last).to_have_attribute("title", re.compile("A fault of an earlier step again$"))
    page.keyboard.press("Escape")
    link = why.get_by_test_id("repeats")
    expect(link).to_have_text("same fault as in step 0 (first there)")
    link.click()
    expect(page).to_have_url(re.compile(r"[?&]s=0&r=0&n=Functional\.softmax\.1\.forward"))
    expect(why.get_by_test_id("repeats")).to_have_count(0)
    expect(page.get_by_test_id("calls").get_by_role("row", selected=True)).to_contain_text("origin")


def test_an_address_with_a_rank_that_is_not_there_opens_one_that_is(page: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden")
    show(page, f"{address}?s=7&r=9&n=Functional.gelu.0.forward")
    expect(page).to_have_url(re.compile(r"[?&]s=0&r=0\b"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.gelu.0.forward")
    expect(page.get_by_test_id("calls").get_by_text("Functional.gelu.0.forward", exact=True)).to_be_visible()


def test_the_list_is_limited_to_a_micro_step(page: Page, server: Server, generated: Path, dumps: Path) -> None:
    sides = [in_micro_steps(dumps / side, generated / "micro_steps" / side) for side in ("stat_fault", "stat_golden")]
    show(page, known(server, sides[0], sides[1]))
    page.get_by_test_id("filter").click()
    entry = page.get_by_test_id("filter-micro-1")
    count = int(re.sub(r"\D", "", entry.inner_text().removeprefix("Micro-step 1")))
    entry.click()
    expect(page).to_have_url(re.compile(r"q=micro(:|%3A)1"))
    expect(page.get_by_test_id("total")).to_contain_text(f"{count} calls")
    entry.click()
    expect(page.get_by_test_id("total")).to_contain_text("163")
