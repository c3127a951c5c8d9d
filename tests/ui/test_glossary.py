"""Words that need explaining explain themselves: on hover, on focus, to screen readers, and in the help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from dumpscope.texts import catalogue, template
from ui.conftest import Server
from ui.driving import known, show
from ui.expecting import expect

GLOSSARY = catalogue("en")["ui"]["glossary"]
CLASSES = catalogue("en")["ui"]["classHelp"]


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def starting(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text[:60]))


WORDS = (
    ("calls", "reached", GLOSSARY["reached"]),
    ("calls", "floor", GLOSSARY["floor"]),
    ("evidence", "reached", GLOSSARY["reached"]),
    ("evidence", "rule", template("rule.T-2")),
    ("evidence", "alone", GLOSSARY["alone"]),
    ("banner", "confidence", GLOSSARY["confidence"]),
)
"""Where a word is, the word, and what it says of itself."""


def test_words_explain_themselves_on_hover_and_on_focus_and_to_screen_readers(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("why")).to_be_visible()
    shown = page.get_by_role("tooltip")
    for place, word, says in WORDS:
        term = page.get_by_test_id(place).locator(f"[data-term={word}]").first
        expect(term).to_have_accessible_description(starting(says))
        term.hover()
        expect(shown).to_contain_text(says[:60])
        box = shown.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 1440
        shown.hover()  # the pointer may go there to read or copy it
        expect(shown).to_contain_text(says[:60])
        page.mouse.move(0, 0)
        expect(shown).to_have_count(0)
        page.keyboard.press("Shift")  # the keyboard is used from now on
        term.focus()
        expect(shown).to_contain_text(says[:60])
        page.keyboard.press("Escape")
        expect(shown).to_have_count(0)


def test_the_chips_of_classes_explain_their_class(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("why")).to_be_visible()
    for cls in ("contains", "benign", "origin"):
        chip = page.get_by_test_id(f"count-{cls}")
        expect(chip).to_have_accessible_description(re.compile(re.escape(CLASSES[cls])))
        chip.hover()
        expect(page.get_by_role("tooltip")).to_contain_text(CLASSES[cls])
    page.mouse.move(0, 0)


def test_the_help_has_the_same_words(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("banner")).to_be_visible()
    page.keyboard.press("?")
    words = page.get_by_test_id("glossary")
    for word in GLOSSARY["names"]:
        expect(words).to_contain_text(GLOSSARY["names"][word])
        expect(words).to_contain_text(GLOSSARY[word])
