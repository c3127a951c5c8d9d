"""The page of one dump: who made an argument, as a link and by key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import ready, show
from ui.expecting import expect, noticing


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, own_dumps: Path) -> Iterator[str]:
    """Page of a dump of our own capture."""
    running = Server(tmp_path_factory.mktemp("own-server") / "data", own_dumps)
    yield ready(running, own_dumps / "good")
    running.stop()


def test_an_argument_links_to_the_call_that_made_it(page: Page, own: str) -> None:
    show(page, f"{own}?n=Tensor.__mul__.0.forward")
    links = page.get_by_test_id("leaves").get_by_role("link")
    expect(links).to_have_count(2)
    expect(links.first).to_have_text("← Torch.tanh.0")
    expect(links.last).to_have_attribute("title", "Made as Torch.sigmoid.1.forward.output.0, according to the dump")
    links.last.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text("Torch.sigmoid.1.forward")


def test_the_key_p_walks_back_to_where_the_data_came_from(page: Page, own: str) -> None:
    show(page, f"{own}?n=Torch.tanh.0.forward")
    name = page.get_by_test_id("selected-name")
    for call in ("Torch.tanh.0.forward", "Tensor.mul_.0.forward", "Torch.sin.0.forward", "Torch.exp.0.forward"):
        expect(name).to_contain_text(call)
        expect(page.get_by_test_id("leaves")).to_be_visible()
        expect(page.get_by_test_id("node")).to_have_attribute("data-node", call)
        if call != "Torch.exp.0.forward":
            page.locator("body").press("p")
    with noticing(page, "It is not known which dumped call"):
        page.locator("body").press("p")
    expect(name).to_contain_text("Torch.exp.0.forward")
    page.go_back()
    expect(name).to_contain_text("Torch.sin.0.forward")


def test_a_guess_from_equal_values_looks_like_one(page: Page, server: Server, dumps: Path) -> None:
    show(page, f"{ready(server, dumps / 'stat_golden')}?n=Functional.dropout.1.forward")
    link = page.get_by_test_id("leaves").get_by_role("link")
    expect(link).to_have_text("≈ Functional.softmax.1")
    expect(link).to_have_attribute(
        "title", "Probably made as Functional.softmax.1.forward.output.0: it holds the same values"
    )


def test_the_link_speaks_chinese(chinese: Page, own: str) -> None:
    chinese.set_viewport_size({"width": 390, "height": 844})
    show(chinese, f"{own}?n=Torch.sin.0.forward")
    link = chinese.get_by_test_id("leaves").get_by_role("link")
    expect(link).to_have_attribute("title", "由 Torch.exp.0.forward.output.0 产生（dump 中有记录）")
    assert chinese.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
