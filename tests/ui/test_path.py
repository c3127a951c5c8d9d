"""The path view: a few steps of data flow around the selected call, by mouse, by keyboard, in the address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server, new_page
from ui.driving import known, show
from ui.expecting import expect
from ui.test_access import hold_to_axe

CAUSE = "Functional.softmax.1.forward"
BELOW = "Torch.matmul.3.forward"
NEXT = "Functional.linear.5.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def opened(page: Page, address: str, node: str, more: str = "") -> None:
    show(page, f"{address}?s=0&r=0&n={node}&stage=path{more}")
    settled(page, node)


def settled(page: Page, node: str) -> None:
    """The path is drawn around this call."""
    expect(page.locator(f"[data-node='{node}'][data-middle]")).to_be_visible()
    expect(page.get_by_test_id("path")).to_have_attribute("aria-busy", "false")


def nodes(page: Page) -> list[str]:
    return [str(box.get_attribute("data-node")) for box in page.get_by_test_id("path").locator("[data-node]").all()]


def test_the_key_w_shows_the_calls_around_the_origin_in_place_of_tree_and_list(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.locator("body").press("w")
    settled(page, CAUSE)
    expect(page).to_have_url(re.compile("stage=path"))
    assert nodes(page) == [
        "Tensor.__mul__.1.forward", "Tensor.masked_fill.1.forward", CAUSE, "Functional.dropout.1.forward", BELOW,
    ]  # fmt: skip
    expect(page.get_by_test_id("calls")).not_to_be_visible()
    expect(page.get_by_test_id("stack-target")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stage")).to_have_count(0)
    expect(page.get_by_test_id("calls")).to_be_visible()
    expect(page).not_to_have_url(re.compile("stage="))


def test_lines_have_the_error_and_the_name_and_the_way_to_the_loss_is_thick(page: Page, address: str) -> None:
    opened(page, address, BELOW)
    expect(page.get_by_test_id("path-way")).to_contain_text("from softmax.1 to cross_entropy.0 in 8 steps")
    expect(page.get_by_test_id("path-way")).to_contain_text("number 3 of 9")
    labels = page.get_by_test_id("path-label")
    expect(labels.filter(has_text="0.34%")).to_contain_text("input 0")
    expect(labels.filter(has_text="=")).to_contain_text("input 1")
    way = page.get_by_test_id("path").locator("path[data-way]").first
    width = "line => parseFloat(getComputedStyle(line).strokeWidth)"
    equal = page.get_by_test_id("path").locator("path[data-equal]").first
    assert way.evaluate(width) > 2 * equal.evaluate(width)
    expect(page.get_by_test_id("path-end")).to_have_text("not dumped")
    boxes = page.get_by_test_id("path").locator("[data-node]")
    places = [box["x"] for box in (one.bounding_box() for one in boxes.all()) if box]
    assert places == sorted(places), "producers on the left, consumers on the right"


def test_arrows_follow_the_lines_enter_selects_and_home_goes_to_the_origin(page: Page, address: str) -> None:
    opened(page, address, BELOW)
    focused = page.locator("*:focus")
    expect(focused).to_have_attribute("data-node", BELOW)
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("data-node", NEXT)  # the way goes on there
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_attribute("data-node", "Torch.matmul.3.backward")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_test_id("path-words")).to_contain_text("Input 0 came from matmul.3: error 0.34%.")
    page.keyboard.press("Enter")
    settled(page, NEXT)
    expect(page.get_by_test_id("selected-name")).to_contain_text(NEXT)
    expect(focused).to_have_attribute("data-node", NEXT)
    page.keyboard.press("Home")
    settled(page, CAUSE)
    expect(focused).to_have_attribute("data-node", CAUSE)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("data-node", "Tensor.__mul__.1.forward")
    page.keyboard.press("j")
    settled(page, "Functional.dropout.1.forward")


def test_a_click_moves_the_middle_and_the_address_keeps_it(page: Page, address: str) -> None:
    opened(page, address, CAUSE)
    page.get_by_test_id("path").locator(f"[data-node='{BELOW}']").click()
    settled(page, BELOW)
    expect(page).to_have_url(re.compile(r"n=Torch\.matmul\.3\.forward.*stage=path"))
    page.get_by_test_id("path-hops").get_by_text("3").click()
    expect(page).to_have_url(re.compile("hops=3"))
    expect(page.get_by_test_id("path").locator("[data-node='Tensor.masked_fill.1.forward']")).to_be_visible()
    page.reload()
    settled(page, BELOW)
    expect(page.get_by_test_id("path").locator("[data-node='Tensor.masked_fill.1.forward']")).to_be_attached()
    page.go_back()
    settled(page, CAUSE)
    page.get_by_test_id("stage-close").click()
    expect(page.get_by_test_id("calls")).to_be_visible()


def test_what_finds_no_room_opens_as_a_list(page: Page, address: str) -> None:
    def fewer(route):  # type: ignore[no-untyped-def]
        reply = route.fetch()
        body = reply.json() | {"more": [{"hop": 1, "count": 12, "query": f"reads:{CAUSE}"}]}
        route.fulfill(response=reply, json=body)

    page.route("**/path?*", fewer)
    opened(page, address, CAUSE)
    more = page.get_by_test_id("path-more")
    expect(more).to_have_text("12 more")
    page.locator("*:focus").press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stage")).to_have_count(0)
    expect(page.get_by_test_id("calls").get_by_text("Functional.dropout.1.forward", exact=True)).to_be_visible()
    expect(page.get_by_test_id("total")).to_have_text("2 calls match")


@pytest.mark.parametrize(("target", "golden"), [("stat_fault", "stat_golden"), ("md5_fault", "md5_golden")])
def test_statistics_and_hashes_have_a_path_too(
    page: Page, server: Server, dumps: Path, target: str, golden: str
) -> None:
    opened(page, known(server, dumps / target, dumps / golden), CAUSE)
    assert BELOW in nodes(page)
    expect(page.locator("path[data-way]").first).to_be_attached()


def test_runs_that_agree_say_that_there_is_no_way(page: Page, server: Server, dumps: Path) -> None:
    opened(page, known(server, dumps / "golden", dumps / "golden"), CAUSE)
    expect(page.get_by_test_id("path-way")).to_contain_text("No origin")
    expect(page.get_by_test_id("path").locator("path:not([data-equal])")).to_have_count(0)


def test_a_result_without_data_flow_says_so_and_can_be_tried_again(context: BrowserContext, address: str) -> None:
    page = new_page(context)  # the 409 is logged by the browser, so not the strict page
    body = '{"error":"conflict","detail":"stored by an older version","hint":"judge it again","status":409}'
    page.route("**/path?*", lambda route: route.fulfill(status=409, content_type="application/json", body=body))
    show(page, f"{address}?s=0&r=0&n={CAUSE}&stage=path")
    failure = page.get_by_test_id("stage").get_by_test_id("failure")
    expect(failure).to_contain_text("judge it again")
    page.unroute("**/path?*")
    failure.get_by_role("button").click()
    settled(page, CAUSE)


def test_the_search_key_goes_to_the_list_behind_the_path(page: Page, address: str) -> None:
    opened(page, address, CAUSE)
    page.keyboard.press("/")
    expect(page.get_by_test_id("search").locator("visible=true")).to_be_focused()


def test_a_screen_reader_gets_the_same_as_lists(page: Page, address: str) -> None:
    opened(page, address, BELOW)
    path = page.get_by_test_id("path")
    expect(path.get_by_role("list", name="2 steps before").get_by_role("button")).to_have_accessible_name(
        re.compile("origin.*softmax.1")
    )
    expect(path.get_by_role("list", name="1 step after").get_by_role("button").first).to_have_accessible_description(
        re.compile(r"On the way of the difference\. Input 0 came from matmul\.3: error 0\.34%\.")
    )


def test_the_view_speaks_chinese_and_fits_a_phone(chinese: Page, address: str) -> None:
    chinese.set_viewport_size({"width": 390, "height": 844})
    opened(chinese, address, CAUSE)
    expect(chinese.get_by_test_id("path-way")).to_contain_text("差异经 8 步从 softmax.1 传到 cross_entropy.0")
    assert len(nodes(chinese)) == 3, "one step on each side has room"
    assert chinese.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    middle = chinese.locator(f"[data-node='{CAUSE}'][data-middle]")
    middle.scroll_into_view_if_needed()
    expect(middle).to_be_in_viewport(ratio=1)


def test_axe_finds_nothing_serious(page: Page, address: str, pytestconfig: pytest.Config) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    opened(page, address, BELOW, "&hops=3")
    hold_to_axe(page, pytestconfig, "path")
