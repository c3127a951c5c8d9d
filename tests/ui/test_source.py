"""The source around a call: runs that were recorded with their programs, equal and different; read from a root; absent."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.source_run import model_text
from playwright.sync_api import Locator, Page

from ui.conftest import Server
from ui.driving import finished, known, ready, show
from ui.expecting import expect

CAUSE = "Functional.gelu.1.forward"
TANH, PLAIN = 'hidden = F.gelu(hidden, approximate="tanh" if self.number else "none")', "hidden = F.gelu(hidden)"


@pytest.fixture(scope="module")
def differing(server: Server, sourced: Path) -> str:
    return known(server, sourced / "tanh" / "dump", sourced / "plain" / "dump")


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory, sourced: Path) -> Iterator[tuple[Server, Path]]:
    """A server over dumps without recorded source, and the root in which it looks for it."""
    folder = tmp_path_factory.mktemp("reading")
    for name in ("plain", "again"):
        shutil.copytree(sourced / name / "dump", folder / name, ignore=shutil.ignore_patterns("source.jsonl"))
    root = folder / "mounted"
    root.mkdir()
    running = Server(folder / "data", folder, DUMPSCOPE_SOURCE_ROOTS=f'["{root}"]')
    yield running, root
    running.stop()


def source(page: Page) -> Locator:
    return page.get_by_test_id("source")


def texts(page: Page, side: str) -> list[str]:
    """The lines of a side, numbers and code."""
    cells = source(page).locator(f"td[data-side={side}]:not([data-empty])").all()
    return [re.sub(r"\s+", " ", cell.inner_text().strip().removeprefix("Line").strip()) for cell in cells]


def test_lines_that_differ_stand_in_two_columns_and_the_calls_own_is_marked(page: Page, differing: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    show(page, differing)
    call = source(page).locator("[data-at]")
    expect(call).to_be_in_viewport()
    expect(call.locator("td").nth(0)).to_contain_text(TANH)
    expect(call.locator("td").nth(1)).to_contain_text(PLAIN)
    expect(call).to_contain_text("the line of the call, differs")
    expect(source(page)).to_contain_text("3 lines differ")
    for side in ("target", "golden"):
        expect(page.get_by_test_id(f"stack-{side}")).to_be_in_viewport()
        expect(page.get_by_test_id(f"stack-{side}")).to_contain_text(
            f"feed_forward.py:{23 if side == 'target' else 22}"
        )
    expect(page.get_by_test_id("io").locator("tbody tr").first).to_be_in_viewport(ratio=0.95)
    page.get_by_test_id("source-all").click()
    lines = model_text(tanh=True).split("\n"), model_text(tanh=False).split("\n")
    for side, first, last, held in (("target", 14, 31, lines[0]), ("golden", 14, 30, lines[1])):
        shown = texts(page, side)
        assert len(shown) == last - first + 1
        for number, text in zip(range(first, last + 1), shown, strict=True):
            assert text.startswith(str(number))
            assert text.endswith(re.sub(r"\s+", " ", held[number - 1].strip()))
    kinds = [row.get_attribute("data-kind") for row in source(page).locator("tbody tr").all()]
    assert [kinds.index("changed"), kinds.index("target"), kinds.count("changed")] == [6, 7, 2]


def test_equal_lines_are_one_column_with_eight_lines_around(page: Page, server: Server, sourced: Path) -> None:
    show(page, f"{known(server, sourced / 'again' / 'dump', sourced / 'plain' / 'dump')}?n={CAUSE}&s=0&r=0")
    expect(source(page)).to_contain_text("the same on both sides")
    expect(source(page).locator("tbody tr").first.locator("td")).to_have_count(1)
    expect(source(page).locator("tbody tr")).to_have_count(17)
    for text in ("22", "the line of the call", PLAIN):
        expect(source(page).locator("[data-at]")).to_contain_text(text)


def test_another_call_brings_its_own_lines(page: Page, differing: str) -> None:
    show(page, f"{differing}?n={CAUSE}&s=0&r=0")
    expect(source(page).locator("[data-at]")).to_contain_text(PLAIN)
    page.keyboard.press("j")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.linear.3.forward")
    expect(source(page).locator("[data-at]")).to_contain_text("hidden = self.narrow(hidden)")
    expect(source(page)).not_to_have_attribute("data-stale", "true")
    expect(source(page).locator("[data-at]")).to_be_in_viewport()


def test_the_keyboard_scrolls_and_unfolds_it(page: Page, differing: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    show(page, differing)
    region = page.get_by_role("region", name="Source around the line of the call")
    region.focus()
    before = region.evaluate("box => box.scrollTop")
    region.press("ArrowUp")
    page.wait_for_function(f"() => document.activeElement.scrollTop < {before}")
    every = page.get_by_test_id("source-all")
    expect(every).to_have_attribute("aria-expanded", "false")
    every.press("Enter")
    expect(every).to_have_attribute("aria-expanded", "true")
    assert region.evaluate("box => box.scrollHeight - box.clientHeight") <= 1


def test_on_a_phone_what_differs_stands_below_each_other(page: Page, differing: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, differing)
    page.get_by_text("Evidence", exact=True).click()
    call = source(page).locator("[data-at]")
    expect(call).to_be_visible()
    target, golden = (call.locator("td").nth(place).bounding_box() for place in (0, 1))
    assert target is not None
    assert golden is not None
    assert golden["y"] >= target["y"] + target["height"] - 1
    assert abs(golden["x"] - target["x"]) < 1
    box = source(page).locator("section").bounding_box()
    assert box is not None
    assert box["y"] < target["y"] < box["y"] + box["height"], "the box shows the line of the call"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_of_one_dump_shows_the_lines_of_its_call(page: Page, server: Server, sourced: Path) -> None:
    show(page, f"{ready(server, sourced / 'tanh' / 'dump')}?n={CAUSE}")
    expect(source(page).locator("[data-at]")).to_contain_text(TANH)
    expect(source(page).locator("tbody tr")).to_have_count(17)


def test_the_ticket_holds_the_line_with_two_around_it(page: Page, differing: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(page, differing)
    expect(source(page)).to_be_visible()
    page.get_by_test_id("copy-ticket").get_by_role("button").click()
    text = str(page.evaluate("navigator.clipboard.readText()"))
    block = text.split("```diff\n")[1].split("\n```", maxsplit=1)[0]
    assert block.split("\n") == [
        "+hidden = hidden.contiguous()",
        " hidden = self.wide(hidden)",
        f"-{PLAIN}",
        f"+{TANH}",
        " hidden = self.narrow(hidden)",
        " return x + hidden",
    ]


def test_dumps_without_source_say_how_to_get_it(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    none = page.get_by_test_id("source-none")
    expect(none).to_have_text("▸ no source")
    none.press("Enter")
    expect(page.get_by_test_id("source-why")).to_contain_text("dumpscope_capture keeps them beside new dumps")
    expect(page.get_by_test_id("source-why")).to_contain_text("--source-root")
    expect(page.get_by_test_id("source-why").get_by_role("paragraph")).to_have_count(1)


def test_text_below_a_source_root_is_read_now_and_says_what_is_not_as_it_was(
    page: Page, reading: tuple[Server, Path]
) -> None:
    server, root = reading
    file = root / "code" / "feed_forward.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text("# moved down\n" + model_text(tanh=False), encoding="utf-8")
    address = finished(server, root.parent / "again", root.parent / "plain")
    show(page, f"{address}?n={CAUSE}&s=0&r=0")
    note = page.get_by_test_id("source-note")
    expect(note).to_have_count(1)
    expect(note).to_contain_text(f"Read now from {file}: it may have changed since the run.")
    expect(note).to_contain_text(f"Line 22 no longer contains “{PLAIN}”; line 23 does.")
    expect(source(page).locator("[data-at]")).to_contain_text(PLAIN)
    expect(source(page).locator("[data-at]")).to_contain_text("23")
    file.write_text(model_text(tanh=False), encoding="utf-8")
    page.reload()
    expect(note).not_to_contain_text("no longer")
    expect(source(page).locator("[data-at]")).to_contain_text("22")


@pytest.mark.expects("/source")
def test_a_reply_that_fails_is_told_and_asked_for_again(page: Page, differing: str) -> None:
    failing = [True]

    def answer(route):  # type: ignore[no-untyped-def]  # of the browser
        if failing[0]:
            route.fulfill(status=500, json={"error": "internal", "detail": "a test", "hint": None})
        else:
            route.continue_()

    page.route(re.compile(r"/nodes/.*/source"), answer)
    page.goto(differing)
    failure = page.locator("#section-stack").get_by_test_id("failure")
    expect(failure).to_contain_text("The source could not be read")
    expect(page.get_by_test_id("stack-target")).to_be_visible()
    failing[0] = False
    failure.get_by_role("button").click()
    expect(source(page).locator("[data-at]")).to_contain_text(PLAIN)
