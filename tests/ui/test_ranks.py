"""All ranks of a communication in one table, and the way back across ranks."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import finished, show
from ui.expecting import expect

ARCHIVE = Path(__file__).parents[1] / "data" / "ranks.tar.xz"


@pytest.fixture(scope="module")
def runs(generated: Path) -> Path:
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(generated / "ranks")
    return generated / "ranks"


@pytest.fixture(scope="module")
def address(server: Server, runs: Path) -> str:
    """Rank 1's relu makes a NaN, which the first all_reduce spreads."""
    return finished(server, runs / "relu", runs / "golden")


def test_a_communication_shows_what_every_rank_gave_and_took(page: Page, address: str) -> None:
    show(page, f"{address}?s=0&r=0&n=Distributed.all_reduce.0.forward")
    table = page.get_by_test_id("ranks-table")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(table.locator("caption")).to_contain_text("all_reduce of ranks 0, 1, 2, 3")
    for rank, verdicts in enumerate((["yes", "no"], ["no", "no"], ["yes", "no"], ["yes", "no"])):
        marks = rows.nth(rank).locator("[data-verdict]")
        assert [marks.nth(place).get_attribute("data-verdict") for place in range(2)] == verdicts
    rows.nth(1).get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"[?&]r=1"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("all_reduce")


def test_a_side_that_is_not_read_is_said_to_be_none(page: Page, address: str) -> None:
    show(page, f"{address}?s=0&r=0&n=Distributed.broadcast.0.forward")
    rows = page.get_by_test_id("ranks-table").locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("reads nothing here")
    expect(rows.nth(2)).to_contain_text("writes nothing here")


def test_the_key_p_leads_to_the_rank_that_sent_it_and_on_to_its_cause(page: Page, address: str) -> None:
    show(page, f"{address}?s=0&r=0&n=Distributed.all_reduce.0.forward")
    expect(page.get_by_test_id("flow-source")).to_contain_text("was sent by rank 1")
    page.locator("body").press("p")
    expect(page).to_have_url(re.compile(r"[?&]r=1"))
    page.locator("body").press("p")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.relu.0.forward")


def test_the_banner_names_the_ranks_that_the_origin_reached_in_both_languages(page: Page, address: str) -> None:
    show(page, f"{address}?s=0&r=0")
    expect(page.get_by_test_id("origin")).to_contain_text("relu.0.forward")
    expect(page.get_by_test_id("reason")).to_contain_text("rank 0 through Distributed.all_reduce.0.forward")


def test_an_origin_of_every_replica_stands_there_once_with_all_ranks(
    page: Page, server: Server, runs: Path, generated: Path
) -> None:
    folder = generated / "everywhere"
    shutil.copytree(runs / "relu", folder)
    for rank in range(4):
        file = folder / "step0" / f"rank{rank}" / "dump.json"
        dump = json.loads(file.read_text())
        for output in dump["data"]["Functional.relu.0.forward"]["output"]:
            output.update(Max="nan", Min="nan", Mean="nan", Norm="nan")
        file.write_text(json.dumps(dump))
    show(page, finished(server, folder, runs / "golden"))
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.relu.0.forward")
    expect(page.get_by_test_id("origin-unit")).to_have_text("step 0 · rank 0–3")
    expect(page.get_by_test_id("reason")).to_contain_text("The same is seen on ranks 0-3.")
