"""The list of suspects below the banner: what it shows, how it is walked, and what each suspect's difference reaches."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from ui.answering import answering
from ui.conftest import Server
from ui.driving import choose, go_on, known, show
from ui.expecting import expect, noticing

WEIGHT = "Functional.linear.6.forward"
SECOND = "Functional.layer_norm.3.backward"
STEEP = "Functional.gelu.1.backward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    """Two faults: a weight, and a backward call behind it."""
    return known(server, dumps / "target_fault_bwd", dumps / "target_fault_weight")


def rows(page: Page) -> Locator:
    return page.get_by_test_id("suspect")


def selected(page: Page, name: str) -> None:
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)


def test_one_origin_folds_the_list_to_a_line_that_opens_it(page: Page, address: str) -> None:
    show(page, address)
    fold = page.get_by_test_id("suspects-fold")
    expect(fold).to_contain_text("Suspects: 1 origin, 1 amplifier, 1 steep rise")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(rows(page)).to_have_count(0)
    fold.click()
    expect(rows(page)).to_have_count(3)
    expect(page).to_have_url(re.compile(r"[?&]sus=1(&|$)"))
    page.reload()
    expect(rows(page)).to_have_count(3)
    fold.press("Enter")
    expect(rows(page)).to_have_count(0)
    expect(page).to_have_url(re.compile(r"[?&]sus=0(&|$)"))

    # The next one was read before its key, so it shows although no call is answered any more.
    page.wait_for_function(
        f"() => performance.getEntriesByType('resource').some((one) => one.name.includes('/nodes/{SECOND}?'))"
    )
    answering(page, r"/nodes", lambda _asked: None)
    page.keyboard.press("n")
    expect(page.get_by_test_id("why")).to_contain_text("51")
    expect(page.get_by_test_id("evidence")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_test_id("calls").locator("[aria-selected=true]")).to_have_attribute("data-name", SECOND)


def test_a_row_says_who_where_how_much_and_why_and_is_selected_by_click_and_key(page: Page, address: str) -> None:
    show(page, f"{address}?sus=1")
    row = rows(page).nth(1)
    expect(row).to_contain_text(re.compile(r"^2.*amplifier"))
    for text in (SECOND, "layers.1.ln2.LayerNorm", "models.py:28", "1.9%", "51%", "×26.2", "26.2 times larger"):
        expect(row).to_contain_text(text)
    listed = page.get_by_test_id("calls").locator(f"[data-name='{SECOND}']")
    row.click()
    selected(page, SECOND)
    expect(row).to_have_attribute("aria-current", "true")
    for text in ("1.9%", "51%"):  # the same figures as the list of calls
        expect(listed).to_contain_text(text)

    # The keyboard goes through the rows, and Enter selects.
    rows(page).first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(2)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    selected(page, STEEP)


def test_n_walks_the_list_from_the_origin_on_and_says_which_of_how_many(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("suspects-fold")).to_be_visible()
    selected(page, WEIGHT)
    for number, name in ((2, SECOND), (3, STEEP), (1, WEIGHT)):
        with noticing(page, f"Suspect {number} of 3"):
            page.keyboard.press("n")
        selected(page, name)
    page.keyboard.press("N")
    selected(page, STEEP)
    page.keyboard.press("N")
    selected(page, SECOND)

    # It goes on from the origin of the banner when another call is selected.
    go_on(page, f"{address}?s=0&r=0&n=Functional.linear.0.forward")
    selected(page, "Functional.linear.0.forward")
    expect(page.get_by_test_id("suspects-fold")).to_be_visible()
    page.keyboard.press("n")
    selected(page, SECOND)


def test_a_single_suspect_has_no_next_one(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_extra_op", dumps / "golden"))
    selected(page, WEIGHT)
    expect(page.get_by_test_id("suspects")).to_have_count(0)  # the banner says all of it
    with noticing(page, "no other suspect"):
        page.keyboard.press("n")


def test_the_strip_carries_the_numbers_and_a_click_selects(page: Page, address: str) -> None:
    show(page, address)
    marks = page.get_by_test_id("strip-mark")
    expect(marks).to_have_text(["1", "2", "3"])
    places = [mark.bounding_box() or {} for mark in marks.all()]
    assert places[0]["x"] < places[2]["x"] < places[1]["x"]  # in call order
    marks.nth(1).click()
    selected(page, SECOND)
    expect(marks.nth(1)).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("button", name=f"Suspect 3, steep rise: {STEEP}")).to_be_visible()


def test_what_inherits_a_suspect_is_tinted_on_strip_and_tree(page: Page, address: str) -> None:
    show(page, f"{address}?sus=1")
    slider, tree = page.get_by_test_id("strip").get_by_role("slider"), page.get_by_test_id("tree")
    expect(slider).to_have_attribute("data-tinted", "114")  # as many as the banner says it explains
    expect(page.get_by_test_id("strip")).to_contain_text(f"114 calls inherit the difference of {WEIGHT}")
    expect(tree.locator("[data-name^='Module.layers.1.mlp.Mlp.forward']").first).to_have_attribute(
        "data-reached", "true"
    )
    expect(tree.locator("[data-name^='Module.layers.0.Block.forward']").first).not_to_have_attribute(
        "data-reached", "true"
    )
    name = re.compile(f"inherits the difference of {re.escape(WEIGHT)}")
    expect(tree.get_by_role("treeitem", name=name).first).to_be_visible()
    rows(page).nth(1).hover()
    expect(slider).not_to_have_attribute("data-tinted", "114")
    expect(page.get_by_test_id("strip")).to_contain_text(f"calls inherit the difference of {SECOND}")
    page.mouse.move(700, 600)
    expect(slider).to_have_attribute("data-tinted", "114")
    choose(page, "Torch.matmul.3.forward")
    selected(page, "Torch.matmul.3.forward")
    expect(slider).not_to_have_attribute("data-tinted", re.compile(r".*"))
    expect(tree.locator("[data-reached]")).to_have_count(0)


def test_two_runs_that_agree_have_no_list(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "golden", dumps / "golden"))
    expect(page.get_by_test_id("no-origin")).to_be_visible()
    expect(page.get_by_test_id("calls").locator("[data-name]").first).to_be_visible()
    expect(page.get_by_test_id("suspects")).to_have_count(0)
    expect(page.get_by_test_id("strip-mark")).to_have_count(0)


def test_behind_a_nan_it_is_said_that_nothing_can_be_judged(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_fault_bwd", dumps / "target_nan"))
    expect(page.get_by_test_id("suspects-fold")).to_contain_text("1 origin")
    blind = page.get_by_test_id("suspects-blind")
    expect(blind).to_contain_text("what lies behind the NaN or infinity cannot be judged")
    expect(blind).to_have_attribute(
        "title", re.compile(r"^Behind Functional\.gelu\.0\.forward, \d+ calls received NaN")
    )


def test_a_suspect_of_another_rank_names_its_place_and_leads_there(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden") + "?s=0&r=0&sus=1")
    first = rows(page).first
    expect(first).to_contain_text("step 0 · rank 1")
    first.click()
    expect(page).to_have_url(re.compile(r"[?&]r=1(&|$)"))
    selected(page, "Tensor.__add__.0.forward")
    expect(first).not_to_contain_text("rank 1")


@pytest.mark.parametrize(
    ("language", "texts"),
    [("en-US", ("Suspects", "amplifier", "times larger")), ("zh-CN", ("可疑节点", "放大节点", "放大到 26.2 倍"))],
)
def test_both_languages_have_it(
    page_in: Callable[[str], Page], address: str, language: str, texts: tuple[str, ...]
) -> None:
    page = page_in(language)
    show(page, f"{address}?sus=1")
    expect(rows(page)).to_have_count(3)
    for text in texts:
        expect(page.get_by_test_id("suspects")).to_contain_text(text)


def test_on_a_narrow_screen_rows_wrap_and_nothing_is_wider_than_it(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 720, "height": 844})
    show(page, f"{address}?sus=1")
    row = rows(page).nth(1)
    for width in (720, 390):
        page.set_viewport_size({"width": width, "height": 844})
        expect(row).to_contain_text("It made the error 26.2 times larger.")
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        box = row.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_selected_call_is_explained_in_one_paragraph_without_a_click(
    page: Page, server: Server, dumps: Path
) -> None:
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    why = page.get_by_test_id("why")
    for text in (
        "Both inputs are equal.",
        "4 of 144 elements differ",
        "Largest at [0, 0, 3, 1]: 0.362365 against 0.35526.",
        "124 later calls inherit it, Functional.dropout.1.forward first.",
        "Ruled out, being the same: other arguments, dtypes and shapes.",
    ):
        expect(why).to_contain_text(text)


def test_the_explanation_is_copied_as_the_text_of_a_ticket(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(page, f"{address}?s=0&r=0&n={SECOND}")
    expect(page.get_by_test_id("why")).to_contain_text("Its input differs by 194 times the floor.")
    page.get_by_test_id("copy-ticket").get_by_role("button").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('## '))")
    text = str(page.evaluate("navigator.clipboard.readText()"))
    for part in (
        "## Functional.layer\\_norm.3.backward: amplifier, No",
        "Its input differs by 194 times the floor. output 0: 96 of 96 elements differ",
        "* target: `target_fault_bwd`",
        "models.py:28 in forward: return x + s.mlp(s.ln2(x))",
        "| output.0 float32 [2,6,8] | target | 0.00775014 |",
        "![Histogram](<Functional.layer_norm.3.backward Histogram.png>)",
        f"[Open in dumpscope](<{page.url}>)",
    ):
        assert part in text, text


def test_chinese_readers_get_the_explanation_and_the_ticket_in_chinese(
    page_in: Callable[[str], Page], address: str
) -> None:
    page = page_in("zh-CN")
    show(page, f"{address}?s=0&r=0&n={SECOND}")
    why = page.get_by_test_id("why")
    expect(why).to_contain_text("其输入不同，差异为容差的 194 倍。")
    expect(why).to_contain_text("之后有 79 次调用继承了该差异，首个为 Tensor.__add__.3.backward。")
