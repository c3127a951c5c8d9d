"""Clicks and keys that each goal of the triage screen takes, counted in the browser and held to the table in docs/ui.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import acts, finished, known, show_counting
from ui.expecting import expect, noticing
from ui.made import late, many_ranks

ROOT: Final = Path(__file__).resolve().parents[2]
CAUSE: Final = "Functional.softmax.1.forward"
PATIENT: Final = 120_000


def counts() -> dict[str, int]:
    """Goal -> clicks and keys, of the table's rows that begin with a number."""
    text = (ROOT / "docs" / "ui.md").read_text(encoding="utf-8")
    table = text.split("## Clicks beside msprobe's graph view")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (\d+)\b[^|]*\|", table, re.MULTILINE)
    return {goal: int(count) for goal, count in rows}


@pytest.fixture
def counted(page: Page) -> Page:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1280, "height": 800})
    return page


def selected(page: Page, name: str) -> None:
    expect(page.get_by_test_id("selected-name")).to_contain_text(name, timeout=PATIENT)
    expect(page.get_by_test_id("why")).to_be_visible(timeout=PATIENT)


def names_the_cause(page: Page) -> None:
    expect(page.get_by_test_id("origin")).to_contain_text(CAUSE)


def says_why(page: Page) -> None:
    expect(page.get_by_test_id("reason")).to_contain_text("inputs are equal")


def explains_it(page: Page) -> None:
    why = page.get_by_test_id("why")
    for part in (
        "Both inputs are equal.",
        "4 of 144 elements differ",
        "124 later calls inherit it",
        "Ruled out, being the same",
    ):
        expect(why).to_contain_text(part)


def to_the_odd_rank(page: Page) -> None:
    selected(page, "Functional.gelu.0.forward")
    page.get_by_test_id("stray").click()
    expect(page).to_have_url(re.compile(r"[?&]r=2(&|$)"))
    selected(page, CAUSE)


def to_the_first_step(page: Page) -> None:
    selected(page, CAUSE)
    page.get_by_test_id("repeats").click()
    expect(page).to_have_url(re.compile(r"[?&]s=0(&|$)"))
    expect(page.get_by_test_id("evidence")).to_contain_text("origin")


def shows_the_stack(page: Page) -> None:
    expect(page.get_by_test_id("stack-target").get_by_role("listitem").first).to_contain_text("F.softmax(a, dim=-1)")


def shows_the_source(page: Page) -> None:
    source = page.get_by_test_id("source")
    expect(source.locator("[data-at]")).to_be_in_viewport(timeout=PATIENT)
    expect(source.locator("[data-at]")).to_contain_text('F.gelu(hidden, approximate="tanh"')


def shows_a_plot(page: Page) -> None:
    expect(page.locator("[data-plot][data-drawn]")).to_be_visible(timeout=PATIENT)


def next_origin(page: Page) -> None:
    selected(page, "Functional.linear.4.forward")
    page.keyboard.press("n")
    expect(page.get_by_test_id("banner").get_by_role("heading")).to_have_text("Origin 2 of 2")


def next_amplifier(page: Page) -> None:
    selected(page, "Functional.linear.6.forward")
    with noticing(page, "Suspect 2 of 3, amplifier: error 1.9% in, 51% out."):
        page.keyboard.press("n")
    selected(page, "Functional.layer_norm.3.backward")


def to_the_producer(page: Page) -> None:
    selected(page, "Functional.dropout.1.forward")
    page.keyboard.press("p")
    selected(page, CAUSE)


def to_another_step(page: Page) -> None:
    selected(page, CAUSE)
    page.keyboard.press("}")
    expect(page).to_have_url(re.compile(r"[?&]s=1(&|$)"))
    selected(page, CAUSE)


def to_a_name(page: Page) -> None:
    selected(page, CAUSE)
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette").fill("cross_entropy")
    expect(page.get_by_role("option").first).to_contain_text("Functional.cross_entropy.0.forward", timeout=PATIENT)
    page.keyboard.press("Enter")
    selected(page, "Functional.cross_entropy.0.forward")


def match_by_hand(page: Page) -> None:
    selected(page, "Functional.gelu.1.forward")
    page.keyboard.press("m")
    page.get_by_test_id("partner-search").fill("gelu.0")
    expect(page.get_by_test_id("partners").get_by_role("option")).to_have_count(1)
    expect(page.get_by_test_id("preview")).to_contain_text("records would be compared")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("match-waits")).to_be_visible(timeout=PATIENT)
    page.get_by_test_id("apply").click()
    expect(page.get_by_test_id("evidence").get_by_test_id("match").first).to_contain_text("mapped", timeout=PATIENT)


def say_known(page: Page) -> None:
    selected(page, CAUSE)
    page.keyboard.press("v")
    page.get_by_test_id("note-form").get_by_text("known", exact=True).click()
    page.get_by_test_id("save-note").click()
    expect(page.get_by_test_id("banner").get_by_test_id("note-chip")).to_have_text("known")


def copy_the_link(page: Page) -> None:
    selected(page, CAUSE)
    with noticing(page, "Copied", whole=True):
        page.keyboard.press("c")
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert CAUSE in copied
    colleague = page.context.new_page()
    colleague.goto(copied)
    selected(colleague, CAUSE)
    colleague.close()


FAULT: Final = ("target_fault", "golden")
GOALS: Final[dict[str, tuple[tuple[str, str], str, Callable[[Page], None]]]] = {
    "the first wrong operator": (FAULT, "", names_the_cause),
    "why it is wrong, in words": (FAULT, "", says_why),
    "what it reads, what differs, who inherits it, what is ruled out": (FAULT, "", explains_it),
    "its call stack, user's line first": (FAULT, "", shows_the_stack),
    "the source around it, of both sides": (("sourced/tanh/dump", "sourced/plain/dump"), "", shows_the_source),
    "a plot of the pair": (FAULT, "", shows_a_plot),
    "the next independent cause": (("late", "stat_golden"), "", next_origin),
    "the strongest amplifier, where no other cause is named": (
        ("target_fault_bwd", "target_fault_weight"),
        "",
        next_amplifier,
    ),
    "where the worst input came from": (FAULT, "?s=0&r=0&n=Functional.dropout.1.forward", to_the_producer),
    "the same call on another rank or step": (FAULT, f"?s=0&r=0&n={CAUSE}", to_another_step),
    "the odd one of many ranks": (("many", "many"), "?s=0&r=0&n=Functional.gelu.0.forward", to_the_odd_rank),
    "the step in which a fault that repeats was first": (FAULT, f"?s=1&r=0&n={CAUSE}", to_the_first_step),
    "a call by its name": (FAULT, "", to_a_name),
    "match two calls by hand": (("target_extra_op", "golden"), "?n=Functional.gelu.1.forward", match_by_hand),
    "say that it is known": (("stat_fault", "stat_golden"), "", say_known),
    "hand the view to a colleague": (FAULT, "", copy_the_link),
}


AT_ONCE: Final = tuple(
    goal for goal, (sides, query, _) in GOALS.items() if (sides, query) == (FAULT, "") and not counts()[goal]
)
"""What is there without a click or key, all in one page."""
CHANGING: Final = ("match two calls by hand", "say that it is known")
"""Goals that change the comparison, which no other test may have then."""


def test_the_table_names_every_goal_that_is_counted_and_no_other() -> None:
    assert counts().keys() == GOALS.keys()


def test_what_is_there_at_once_takes_no_click_and_no_key(counted: Page, server: Server, dumps: Path) -> None:
    assert len(AT_ONCE) == 5
    target, golden = FAULT
    show_counting(counted, known(server, dumps / target, dumps / golden))
    for goal in AT_ONCE:
        _, _, reach = GOALS[goal]
        reach(counted)
        assert sum(acts(counted).values()) == 0, goal


@pytest.mark.parametrize("goal", [goal for goal in GOALS if goal not in AT_ONCE])
def test_a_goal_takes_as_many_clicks_and_keys_as_the_table_says(
    counted: Page,
    server: Server,
    dumps: Path,
    generated: Path,
    goal: str,
    request: pytest.FixtureRequest,
) -> None:
    (target, golden), query, reach = GOALS[goal]
    if target.startswith("sourced"):
        dumps = request.getfixturevalue("sourced").parent
    folder = dumps / target
    if target == "late":
        folder = generated / "clicks" / "late"
        if not folder.exists():
            late(dumps / "stat_golden", folder, "Functional.linear.4.forward")
    other = dumps / golden
    if target == "many":
        ranks, usual = generated / "clicks" / "ranks", dumps / "stat_golden"
        folder = many_ranks(usual, dumps / "stat_fault", ranks / "target", 4, 2)
        other = many_ranks(usual, usual, ranks / "golden", 4, 2)
    compared = finished if goal in CHANGING else known
    show_counting(counted, compared(server, folder, other) + query)
    expect(counted.get_by_test_id("banner")).to_be_visible(timeout=PATIENT)
    reach(counted)
    assert sum(acts(counted).values()) == counts()[goal]
