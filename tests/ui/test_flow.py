"""The one-hop view of data flow, and the keys that walk it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.conftest import Server, new_page
from ui.driving import known, show
from ui.expecting import expect, noticing

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def choose(page: Page, address: str, node: str) -> None:
    show(page, f"{address}?s=0&r=0&n={node}")
    expect(page.get_by_test_id("flow")).to_be_visible()


@pytest.mark.parametrize("start", ["Functional.cross_entropy.0.forward", "Functional.linear.2.backward"])
def test_the_key_p_leads_from_a_red_row_back_to_the_origin(page: Page, address: str, start: str) -> None:
    choose(page, address, start)
    name = page.get_by_test_id("selected-name")
    expect(name).to_contain_text(start)
    for _ in range(40):
        here = (
            name.text_content() or ""
        )  # a long name's inner text has a line break, which the text that is waited for has not
        if CAUSE in here:
            break
        page.locator("body").press("p")
        expect(name).not_to_have_text(here)
    expect(name).to_contain_text(CAUSE)
    expect(page.get_by_test_id("flow-source")).to_contain_text("the difference begins here")
    with noticing(page, "the difference begins here"):
        page.locator("body").press("p")
    expect(name).to_contain_text(CAUSE)
    page.go_back()
    expect(name).not_to_contain_text(CAUSE)


def test_the_key_capital_p_goes_on_to_the_first_call_that_received_it_wrong(page: Page, address: str) -> None:
    choose(page, address, "Tensor.__add__.2.forward")
    page.locator("body").press("P")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Tensor.__add__.3.forward")


def test_producers_and_consumers_are_links_with_class_and_error(page: Page, address: str) -> None:
    choose(page, address, "Torch.matmul.3.forward")
    producers, consumers = page.get_by_test_id("flow-producers"), page.get_by_test_id("flow-consumers")
    made = producers.get_by_role("link")
    expect(made).to_have_count(1)
    expect(made).to_have_attribute("data-node", "Functional.dropout.1.forward")
    expect(made).to_contain_text("propagated")
    expect(made).to_contain_text("0.32%")
    expect(producers).to_contain_text("no dumped call made this input")
    expect(consumers.get_by_role("link").first).to_have_attribute("data-node", "Functional.linear.5.forward")
    consumers.get_by_role("link").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.linear.5.forward")
    expect(page).to_have_url(re.compile("n=Functional\\.linear\\.5\\.forward"))


def test_a_flow_that_fails_says_so_and_can_be_tried_again(context: BrowserContext, address: str) -> None:
    page = new_page(context)  # the 409 is logged by the browser, so not the strict page
    page.set_viewport_size({"width": 1280, "height": 800})
    body = '{"error":"conflict","detail":"stored by an older version","hint":"judge it again","status":409}'
    page.route("**/flow?*", lambda route: route.fulfill(status=409, content_type="application/json", body=body))
    show(page, f"{address}?s=0&r=0&n={CAUSE}")
    failure = page.locator("#section-flow").get_by_test_id("failure")
    expect(failure).to_contain_text("judge it again")
    expect(page.get_by_test_id("stack-target")).to_be_visible()
    with noticing(page, "stored by an older version"):
        page.locator("body").press("p")
    page.unroute("**/flow?*")
    failure.get_by_role("button").click()
    expect(page.get_by_test_id("flow")).to_be_visible()


def test_the_path_of_an_origin_opens_as_a_list_to_walk(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_fault_gelu_arg", dumps / "golden"))
    page.get_by_test_id("origin-explains").click()
    steps = page.get_by_test_id("origin-path").get_by_role("button")
    expect(steps.first).to_have_text("Functional.gelu.1.forward")
    last = steps.last.inner_text()
    steps.last.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text(last)


def test_the_view_speaks_chinese_and_fits_a_phone(chinese: Page, address: str) -> None:
    chinese.set_viewport_size({"width": 390, "height": 844})
    show(chinese, f"{address}?s=0&r=0&n=Functional.softmax.1.backward")
    chinese.get_by_text("证据", exact=True).click()
    expect(chinese.get_by_test_id("flow-source")).to_contain_text("不一致的输入来自")
    expect(chinese.locator("#section-flow")).to_contain_text("输出去向")
    assert chinese.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    left, right = (chinese.get_by_test_id(f"flow-{side}").bounding_box() for side in ("producers", "consumers"))
    assert left
    assert right
    assert right["y"] > left["y"]
