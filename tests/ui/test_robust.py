"""Odd names and numbers, a server that goes away, a connection that is lost."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from ui.conftest import Server, new_page
from ui.driving import choose, finished, known, show, start
from ui.expecting import expect
from ui.made import renamed, special

CALL = "Functional.gelu.0.forward"
NAMES = {
    "Functional.gelu.0.forward": 'Functional.<img src=x onerror="window.hit=1">.0.forward',
    "Functional.gelu.1.forward": "Functional.\"a'b`c\\d&amp;.0.forward",
    "Functional.softmax.0.forward": "Functional.50%25#?&+ c=1/2.0.forward",
    "Functional.softmax.1.forward": "Functional.注意力_层.0.forward",
    "Functional.embedding.0.forward": f"Functional.{'n' * 300}.0.forward",
}


@pytest.fixture(scope="module")
def odd(server: Server, dumps: Path, generated: Path) -> str:
    sides = [
        renamed(dumps / name, generated / "odd <b>&'\" #?%+ 名" / name, NAMES) for name in ("target_fault", "golden")
    ]
    return finished(server, *sides)


@pytest.mark.parametrize("name", NAMES.values(), ids=["markup", "quotes", "address", "chinese", "long"])
def test_a_call_of_any_name_is_shown_linked_and_found_again(page: Page, odd: str, name: str) -> None:
    show(page, f"{odd}?s=0&r=0&n={quote(name, safe='')}")
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)
    expect(page.get_by_test_id("why")).to_be_visible()
    expect(page.get_by_test_id("calls").get_by_text(name, exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)
    expect(page.get_by_test_id("calls").get_by_text(name, exact=True)).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_test_id("selected-name")).not_to_contain_text(name)
    choose(page, name)
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_origin_of_an_odd_name_stands_in_the_banner_and_its_folder_in_the_title(page: Page, odd: str) -> None:
    show(page, odd)
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.注意力_层.0.forward")
    page.get_by_role("link", name="target_fault", exact=True).first.click()
    expect(page.get_by_test_id("facts")).to_contain_text("odd <b>&'\" #?%+ 名")


def test_nan_infinities_absent_and_large_integers_stand_apart(
    page: Page, server: Server, dumps: Path, generated: Path
) -> None:
    target = special(dumps / "stat_fault", generated / "special", CALL)
    show(page, f"{finished(server, target, dumps / 'stat_golden')}?s=0&r=0&n={CALL}")
    table = page.get_by_test_id("io")
    output = table.locator("tbody").filter(has_text="output")
    expect(output).to_contain_text("+inf")
    cells = [text.strip() for text in output.get_by_role("row").first.get_by_role("cell").all_inner_texts()]
    assert cells[-4:] == ["+inf", "-inf", "—", "NaN"]
    expect(table).to_contain_text("9007199254740993")


def test_a_view_goes_on_after_the_server_was_away(context: BrowserContext, server: Server, dumps: Path) -> None:
    page = new_page(context)  # refused connections are logged by the browser, so not the strict page
    page.goto(known(server, dumps / "target_fault", dumps / "golden"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.softmax.1.forward")
    expect(page.get_by_test_id("calls").get_by_text("Torch.matmul.3.forward", exact=True)).to_be_visible()
    server.stop()
    try:
        choose(page, "Torch.matmul.3.forward")
        expect(page).to_have_url(re.compile(r"matmul\.3"))
        expect(page.get_by_test_id("banner")).to_contain_text("Functional.softmax.1.forward")
        expect(page.get_by_test_id("evidence").get_by_test_id("failure")).to_contain_text("does not answer")
    finally:
        server.start()
    expect(page.get_by_test_id("evidence").get_by_test_id("selected-name")).to_contain_text("Torch.matmul.3.forward")
    expect(page.get_by_test_id("stack-target")).to_be_visible()


def test_the_tree_opens_to_what_was_selected_while_the_server_was_away(
    context: BrowserContext, server: Server, dumps: Path
) -> None:
    page = new_page(context)
    name = "Functional.linear.6.forward"  # in a module that is closed at first
    page.goto(known(server, dumps / "target_fault", dumps / "golden"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.softmax.1.forward")
    tree = page.get_by_test_id("tree")
    expect(tree.locator("[aria-selected=true]")).to_have_attribute("data-name", "Functional.softmax.1.forward")
    expect(tree.locator(f"[data-name='{name}']")).to_have_count(0)
    server.stop()
    try:
        page.get_by_test_id("calls").locator(f"[data-name='{name}']").click()
        expect(page).to_have_url(re.compile(r"linear\.6"))
        expect(page.get_by_test_id("evidence").get_by_test_id("failure")).to_contain_text("does not answer")
    finally:
        server.start()
    expect(tree.locator("[aria-selected=true]")).to_have_attribute("data-name", name)


def test_a_lost_connection_to_a_job_is_taken_up_again(context: BrowserContext, server: Server, dumps: Path) -> None:
    page = new_page(context)
    lost: list[str] = []

    def cut(route: Route) -> None:
        lost.append(route.request.url)
        route.abort("connectionreset")

    page.goto(f"{server.url}/comparisons/{start(server, dumps / 'target_fault', dumps / 'golden')}")
    page.route(re.compile("/api/"), cut)
    page.reload()
    expect(page.get_by_test_id("failure").first).to_contain_text("does not answer")
    page.unroute(re.compile("/api/"))
    expect(page.get_by_test_id("banner")).to_contain_text("Functional.softmax.1.forward")
    assert lost
