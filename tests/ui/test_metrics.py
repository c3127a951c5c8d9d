"""The numbers of a pair carry the labels and units that the server has for them, those of other packages too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from extending.conftest import install_example
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import finished
from ui.expecting import expect


@pytest.fixture
def extended_server(tmp_path: Path, dumps: Path) -> Iterator[Server]:
    running = Server(tmp_path / "data", dumps, PYTHONPATH=install_example(tmp_path / "extension"))
    yield running
    running.stop()


def test_a_metric_of_another_package_is_shown_by_its_label(page: Page, extended_server: Server, dumps: Path) -> None:
    page.goto(finished(extended_server, dumps / "target_fault", dumps / "golden"))
    items = page.get_by_test_id("io")
    items.locator("[aria-expanded]").first.click()
    shown = items.locator("dl > div")
    expect(shown.filter(has_text="PSNR")).to_have_text(re.compile(r"^PSNR[0-9.]+ dB$"))
    expect(shown.filter(has_text="Relative L2")).to_have_count(1)
