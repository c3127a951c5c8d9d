"""`expect` of Playwright, with a wait before each look.

Each look of an assertion that does not yet find what it expects describes the page for the message of a failure. On ours
that took a tenth of all their time. A wait for the element describes nothing; Playwright itself looks at it then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, overload

from playwright.sync_api import (
    Error,
    Locator,
    LocatorAssertions,
    Page,
    PageAssertions,
    TimeoutError as Timeout,
    expect as look,
)

PATIENCE = 120_000
"""Milliseconds that a page may take to show what a test expects. A wait ends when what it waits for is there, so a long one costs
time only where a test fails; a machine may be several times slower than its authors', and others may use it."""

OF_TEXT: Final = frozenset({"to_contain_text", "to_have_text"})
OF_ELEMENT: Final = frozenset(
    {
        "to_be_attached", "to_be_disabled", "to_be_enabled", "to_be_focused", "to_be_in_viewport", "to_be_visible",
        "to_have_attribute", "to_have_value",
    }
)  # fmt: skip
"""What is never true without an element. What may be true of none is looked at as it is."""


@overload
def expect(actual: Page) -> PageAssertions: ...


@overload
def expect(actual: Locator) -> LocatorAssertions: ...


def expect(actual: Page | Locator) -> Any:
    return look(actual) if isinstance(actual, Page) else Patient(actual)


class Patient:
    """Assertions about a locator's element, as Playwright makes them."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator

    def __getattr__(self, name: str) -> Any:
        assertion = getattr(look(self._locator), name)
        if name in OF_TEXT or name in OF_ELEMENT:
            return lambda *expected, **options: self._waited(name, assertion, *expected, **options)
        return assertion

    def _waited(self, name: str, assertion: Any, *expected: Any, **options: Any) -> None:
        wanted = self._locator
        if name in OF_TEXT and isinstance(expected[0], str) and options.keys() <= {"timeout"}:
            wanted = wanted.filter(has_text=expected[0])  # never more than that: the assertion is the stricter one
        elif name in OF_TEXT and isinstance(expected[0], list):
            return assertion(*expected, **options)
        state: Any = "visible" if name == "to_be_visible" else "attached"
        try:
            wanted.first.wait_for(state=state, timeout=options.get("timeout", PATIENCE))
        except Timeout:
            options["timeout"] = 1  # it fails: here is its description
        except Error:
            pass  # the page went away, say: Playwright's own words for it
        return assertion(*expected, **options)


@contextmanager
def noticing(page: Page, words: str, *, whole: bool = False) -> Iterator[None]:
    """Within the block a notice comes up that holds these words, or is them as a `whole`.

    Notices stay for 2.5 seconds, which a look from outside may miss on a busy machine; so the page records those that come.
    """
    page.get_by_test_id("notice").evaluate(
        """(box) => {
            window.notices = [];
            const keep = () => { if (box.textContent) window.notices.push(box.textContent); };
            new MutationObserver(keep).observe(box, { childList: true, characterData: true, subtree: true });
        }"""
    )
    yield
    found = "([words, whole]) => window.notices.some((one) => (whole ? one === words : one.includes(words)))"
    page.wait_for_function(found, arg=[words, whole], timeout=PATIENCE)
