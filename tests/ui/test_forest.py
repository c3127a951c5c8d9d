"""A module of five thousand children and a chain of three thousand: the tree shows them, and every key is answered at once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Route

from ui.conftest import Server
from ui.driving import finished
from ui.expecting import expect
from ui.sizes import END_OF_CHAIN, WIDE, write_forest
from ui.watching import LATENCY, MOST_ROWS, Watched, allowed, latency, rows

WIDE_CHILDREN: Final = 5_000
CHAIN: Final = 3_000
SELECTED: Final = "document.querySelector(`[data-testid=tree] [aria-selected=true][data-name='${argument}']`)"
"""A line of the tree that is the selected one."""


@pytest.fixture(scope="module")
def forest(server: Server, generated: Path) -> str:
    """A comparison of a module of WIDE_CHILDREN modules and a chain of CHAIN modules."""
    sides = [
        write_forest(generated / f"forest_{side}", wide=WIDE_CHILDREN, deep=CHAIN, wrong=side == "target")
        for side in ("target", "golden")
    ]
    return finished(server, *sides)


def item(tree: Locator, name: str) -> Locator:
    return tree.locator(f"[role=treeitem][data-name='{name}']")


def test_a_module_of_five_thousand_children_is_opened_walked_and_searched(watched: Watched, forest: str) -> None:
    page = watched.page
    page.goto(f"{forest}?n={WIDE}")
    tree = page.get_by_test_id("tree")
    expect(item(tree, WIDE)).to_have_attribute("data-active", "true")
    child = "Module.wide.{}.Linear.forward.0".format
    tree.press("ArrowRight")
    expect(item(tree, child(0))).to_have_attribute("aria-posinset", "1")
    expect(item(tree, child(0))).to_have_attribute("aria-setsize", str(WIDE_CHILDREN))
    active = tree.locator("[data-active][data-name]")
    place = 0
    while place < 600:  # past what is read at once
        before = active.get_attribute("data-name") or ""
        tree.press("PageDown")
        expect(active).not_to_have_attribute("data-name", before)
        expect(active).to_be_in_viewport()
        expect(tree.get_by_text("more…")).to_have_count(0)
        last, place = place, int(active.get_attribute("aria-posinset") or 0)
        assert last < place <= last + 100
    assert rows(page) <= MOST_ROWS

    # The search finds a child far from all that is here, and the tree shows it among its neighbours.
    far = child(WIDE_CHILDREN - 40)
    search = page.get_by_test_id("tree-search")
    search.fill(f"wide.{WIDE_CHILDREN - 40}.")
    page.get_by_test_id("search-results").get_by_role("button").first.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text(far)
    search.fill("")
    expect(item(tree, far)).to_be_in_viewport()
    expect(item(tree, far)).to_have_attribute("aria-posinset", str(WIDE_CHILDREN - 39))
    expect(item(tree, child(WIDE_CHILDREN - 41))).to_be_in_viewport()
    near = child(WIDE_CHILDREN - 38)
    assert latency(page, lambda: item(tree, near).click(), SELECTED, near) < allowed(page, LATENCY)
    assert latency(page, lambda: page.keyboard.press("u"), SELECTED, WIDE) < allowed(page, LATENCY)
    expect(item(tree, WIDE)).to_be_in_viewport()


def test_a_chain_of_three_thousand_modules_is_shown_to_its_end(watched: Watched, forest: str) -> None:
    page = watched.page
    page.goto(f"{forest}?n={END_OF_CHAIN}")
    tree = page.get_by_test_id("tree")
    end = item(tree, END_OF_CHAIN)
    expect(end).to_be_in_viewport()
    expect(end).to_have_attribute("aria-level", str(CHAIN + 1))
    level = "Module.deep{}.Block.forward.0".format
    assert tree.evaluate("box => box.scrollWidth <= box.clientWidth")  # as deep as it is, the names are in the panel
    parents = page.get_by_role("navigation", name="Parents").get_by_role("button")
    for up in (CHAIN - 1, CHAIN - 2, CHAIN - 3):
        nearest = level(up)
        expect(parents.and_(page.get_by_title(nearest, exact=True))).to_be_attached()
        assert latency(page, lambda: page.keyboard.press("u"), SELECTED, nearest) < allowed(page, LATENCY)
    assert parents.count() < 60  # of three thousand
    tree.press("Home")
    expect(item(tree, WIDE)).to_be_in_viewport()
    tree.press("End")
    expect(end).to_be_in_viewport()
    tree.press("Home")
    expect(item(tree, level(0))).to_be_in_viewport()
    closed = "document.querySelector(`[data-testid=tree] [aria-expanded=false][data-name='${argument}']`)"
    toggle = item(tree, level(0)).locator("[data-toggle]")
    assert latency(page, toggle.click, closed, level(0)) < allowed(page, LATENCY)
    toggle.click()
    expect(item(tree, level(1))).to_be_visible()


def test_the_tree_stays_where_the_reader_went_before_the_selected_call_was_read(watched: Watched, forest: str) -> None:
    page = watched.page
    page.goto(f"{forest}?n={END_OF_CHAIN}")
    tree = page.get_by_test_id("tree")
    expect(item(tree, END_OF_CHAIN)).to_be_in_viewport()
    nearest = f"Module.deep{CHAIN - 1}.Block.forward.0"
    held: list[Route] = []
    page.route(f"**/nodes/{nearest}?*", lambda route: held.append(route))  # noqa: PLW0108 - Playwright notes the handler in it
    page.keyboard.press("u")
    expect(item(tree, nearest)).to_have_attribute("aria-selected", "true")
    tree.press("Home")
    expect(item(tree, WIDE)).to_be_in_viewport()
    while not held:
        page.wait_for_timeout(20)
    with page.expect_response(lambda reply: nearest in reply.url and "reveal=" in reply.url):
        held.pop().continue_()
    page.wait_for_timeout(300)
    expect(item(tree, WIDE)).to_be_in_viewport()
