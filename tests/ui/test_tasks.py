"""What five people come to the screen for, from a result on the screen to the answer, with the clicks and keys that it takes.

The seconds of each are printed (`pytest -s`) and not held to anything: what else runs on the machine is in them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import acts, finished, known, show_counting
from ui.expecting import expect, noticing
from ui.made import late, many_ranks

CAUSE: Final = "Functional.softmax.1.forward"
RANKS, ODD = 64, 37


@pytest.fixture
def person(page: Page) -> Page:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1280, "height": 800})
    return page


@contextmanager
def takes(page: Page, address: str, *, clicks: int, keys: int) -> Iterator[None]:
    """The block, from the opening of the address on, with so many clicks and keys."""
    begun = time.monotonic()
    show_counting(page, address)
    expect(page.get_by_test_id("banner")).to_be_visible()
    yield
    seconds = time.monotonic() - begun
    made = acts(page)
    print(f"\n{made['clicks']} clicks, {made['keys']} keys, {seconds:.1f} s")
    assert made == {"clicks": clicks, "keys": keys}


def selected(page: Page, name: str) -> None:
    expect(page.get_by_test_id("selected-name")).to_contain_text(name)
    expect(page.get_by_test_id("why")).to_be_visible()


def test_an_engineer_finds_the_first_cause_its_line_and_its_numbers(person: Page, server: Server, dumps: Path) -> None:
    with takes(person, known(server, dumps / "target_fault", dumps / "golden"), clicks=0, keys=0):
        expect(person.get_by_test_id("origin")).to_contain_text(CAUSE)
        expect(person.get_by_test_id("origin-place")).to_contain_text("models.py:14")
        expect(person.get_by_test_id("why")).to_contain_text("4 of 144 elements differ")
        expect(person.get_by_test_id("stack-target").get_by_role("listitem").first).to_contain_text("F.softmax(a")
        expect(person.get_by_test_id("io")).to_contain_text("3.21533")
        expect(person.locator("[data-plot][data-drawn]")).to_be_visible()


def test_an_engineer_finds_the_second_cause(person: Page, server: Server, dumps: Path, generated: Path) -> None:
    target = late(dumps / "stat_golden", generated / "tasks" / "late", "Functional.linear.4.forward")
    with takes(person, finished(server, target, dumps / "stat_golden"), clicks=0, keys=1):
        selected(person, "Functional.linear.4.forward")
        first = person.get_by_test_id("reason").inner_text()
        person.keyboard.press("n")
        expect(person.get_by_test_id("banner").get_by_role("heading")).to_have_text("Origin 2 of 2")
        expect(person.get_by_test_id("reason")).not_to_have_text(first)


def test_somebody_who_runs_a_cluster_finds_the_odd_rank_of_64(
    person: Page, server: Server, dumps: Path, generated: Path
) -> None:
    usual, folder = dumps / "stat_golden", generated / "tasks" / "ranks"
    target = many_ranks(usual, dumps / "stat_fault", folder / "target", RANKS, ODD)
    golden = many_ranks(usual, usual, folder / "golden", RANKS, ODD)
    with takes(person, f"{finished(server, target, golden)}?s=0&r=0&n=Functional.gelu.0.forward", clicks=1, keys=0):
        selected(person, "Functional.gelu.0.forward")
        stray = person.get_by_test_id("stray")
        expect(stray).to_have_text(f"Rank {ODD} strays")
        stray.click()
        expect(person).to_have_url(re.compile(rf"[?&]r={ODD}\b"))
        selected(person, CAUSE)


def test_somebody_who_trains_finds_the_step_in_which_it_began(person: Page, server: Server, dumps: Path) -> None:
    later = f"{known(server, dumps / 'target_fault', dumps / 'golden')}?s=1&r=0&n={CAUSE}"
    with takes(person, later, clicks=1, keys=0):
        selected(person, CAUSE)
        person.get_by_role("button", name="same fault as in step 0").click()
        expect(person).to_have_url(re.compile(r"[?&]s=0\b"))
        expect(person.get_by_test_id("why")).to_contain_text("Both inputs are equal.")


def test_the_fault_is_handed_over_to_the_owner_of_the_operator(person: Page, server: Server, dumps: Path) -> None:
    with takes(person, known(server, dumps / "target_fault", dumps / "golden"), clicks=1, keys=0):
        selected(person, CAUSE)
        person.get_by_test_id("copy-ticket").get_by_role("button").click()
        person.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('## '))")
    ticket = str(person.evaluate("navigator.clipboard.readText()"))
    for part in ("softmax.1.forward: origin, No", "4 of 144 elements differ", "models.py:14", "output.0", person.url):
        assert part in ticket


def test_a_fault_is_triaged_without_a_mouse(person: Page, server: Server, dumps: Path) -> None:
    """From the first cause along what inherits it, back over its producers, to another plot, the later step and a link."""
    keys = ["J", "J", "p", "p", "2", "}", "{", "c"]
    with takes(person, known(server, dumps / "target_fault", dumps / "golden"), clicks=0, keys=len(keys)):
        selected(person, CAUSE)
        steps = iter(keys)
        for name in ("Functional.dropout.1.forward", "attn.drop.Dropout.forward.0", CAUSE):
            person.keyboard.press(next(steps))
            selected(person, name)
        with noticing(person, "the difference begins here"):
            person.keyboard.press(next(steps))
        person.keyboard.press(next(steps))
        expect(person.get_by_test_id("plot-pair")).to_have_attribute("aria-selected", "true")
        person.keyboard.press(next(steps))
        expect(person).to_have_url(re.compile(r"[?&]s=1\b"))
        expect(person.get_by_test_id("repeats")).to_be_visible()
        person.keyboard.press(next(steps))
        expect(person).to_have_url(re.compile(r"[?&]s=0\b"))
        selected(person, CAUSE)
        with noticing(person, "Copied", whole=True):
            person.keyboard.press(next(steps))
        assert person.evaluate("navigator.clipboard.readText()") == person.url
