"""Old dumps in a real browser: the cause has its old name, and everything about it is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from readers.ptdbg_dumps import convert_dump

from ui.conftest import Server
from ui.driving import compare
from ui.expecting import expect

CAUSE = "Functional_softmax_1_forward"


@pytest.fixture(scope="module")
def made(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ptdbg")
    for name, form in (("target_fault", "2.3"), ("golden", "6.0")):
        convert_dump(dumps / name, folder / name, form=form)
    return folder


@pytest.fixture(scope="module")
def old(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("ptdbg-server") / "data", made)
    yield running
    running.stop()


def test_the_true_cause_of_two_generations_is_named_and_can_be_walked(page: Page, old: Server, made: Path) -> None:
    compare(page, old, made / "target_fault", made / "golden")
    expect(page.get_by_test_id("origin")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("origin-kind")).to_contain_text("computation")
    expect(page.get_by_test_id("origin-place")).to_have_text("models.py:14")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("stack-target")).to_contain_text("F.softmax(a, dim=-1)")
    expect(page.locator(".main-svg").first).to_be_visible()
    expect(page.get_by_test_id("filter-api")).to_contain_text("Functional.softmax")
    page.get_by_role("button", name="↔ 1.backward", exact=True).click()
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional_softmax_1_backward")
