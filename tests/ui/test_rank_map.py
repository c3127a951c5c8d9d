"""Of many ranks the odd one is named, and the map of ranks shows where it differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from ui.conftest import Server
from ui.driving import finished, show
from ui.expecting import expect
from ui.made import many_ranks

RANKS, ODD = 12, 9
CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path, generated: Path) -> str:
    usual, folder = dumps / "stat_golden", generated / "many_ranks"
    target = many_ranks(usual, dumps / "stat_fault", folder / "target", RANKS, ODD)
    return finished(server, target, many_ranks(usual, usual, folder / "golden", RANKS, ODD))


def test_one_click_leads_to_the_odd_rank(page: Page, address: str) -> None:
    show(page, f"{address}?s=0&r=0&n=Functional.gelu.0.forward")
    expect(page.get_by_test_id("selected-name")).to_contain_text("gelu.0")
    stray = page.get_by_test_id("stray")
    expect(stray).to_have_text(f"Rank {ODD} strays")
    expect(stray).to_have_attribute(
        "title", re.compile(rf"^\d+ of its calls are No, where 0 are usual on the {RANKS - 1} other ranks of step 0")
    )
    stray.click()
    expect(page).to_have_url(re.compile(rf"[?&]r={ODD}\b"))
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)


def test_the_map_tells_the_odd_column_in_words_and_a_cell_leads_there(page: Page, address: str) -> None:
    show(page, address)
    page.get_by_test_id("open-rank-map").click()
    ranks = page.get_by_test_id("trends")
    expect(ranks.get_by_test_id("stray")).to_contain_text(f"Rank {ODD} strays: ")
    expect(ranks.get_by_test_id("stray")).to_contain_text(f"first at {CAUSE}")
    expect(ranks.locator("th[data-odd]")).to_have_text(str(ODD))
    ranks.get_by_placeholder("Search modules").fill("layers.1.attn.Attn.forward")
    expect(ranks.locator("tbody tr")).to_have_count(1)
    expect(ranks.get_by_role("button", name=re.compile(r"layers\.1\.attn.*: No"))).to_have_count(1)
    expect(ranks.get_by_role("button", name=re.compile(r"layers\.1\.attn.*: Yes"))).to_have_count(RANKS - 1)
    ranks.get_by_role("button", name=re.compile(rf"layers\.1\.attn.*rank {ODD}: No")).click()
    expect(ranks).to_be_hidden()
    expect(page).to_have_url(re.compile(rf"[?&]s=0&r={ODD}&n=Module\.layers\.1\.attn"))


def test_of_a_thousand_ranks_only_those_in_view_are_drawn(page: Page, address: str) -> None:
    def thousand(route: Route) -> None:
        rows = [
            {
                "name": f"Module.m{row}.M.forward.0",
                "kind": "module",
                "verdicts": "y" * 1000,
                "scores": [0.5] * 1000,
                "no": 0,
            }
            for row in range(16)
        ]
        route.fulfill(json={"step": 0, "ranks": list(range(1000)), "items": rows, "next": None, "total": 16})

    page.route("**/rank-map?*", thousand)
    show(page, f"{address}?do=ranks")
    ranks = page.get_by_test_id("trends")
    expect(ranks.get_by_role("columnheader", name="9", exact=True)).to_be_visible()
    assert ranks.get_by_role("button").count() < 1200
    expect(ranks.get_by_role("columnheader", name="999", exact=True)).to_have_count(0)
    ranks.locator("section").evaluate("(box) => { box.scrollLeft = box.scrollWidth; }")
    expect(ranks.get_by_role("columnheader", name="999", exact=True)).to_be_in_viewport()
    expect(ranks.get_by_role("button", name=re.compile("m0.*rank 999: Yes"))).to_be_visible()
