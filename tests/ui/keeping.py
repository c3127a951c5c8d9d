"""One page of a browser serves test after test, as long as no test leaves anything in it.

A page that goes on to another address has the scripts and styles of the last one in memory. A new page reads all of them from
the profile's disk, which is a third of what it takes to open the screen. Size, media, scripts, routes, listeners and sessions of
the developer tools are set back after a test. Where a test failed, or did something that cannot be taken back (LASTING), the
page is closed.

A test that opens its screen by `driving.show` and sets none of these leaves the page loaded, without a screen, for the next such
test: its screen is made anew, as for a reader who comes to it by a link, for a third of what loading the page costs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page

from ui.watching import LARGEST_REPLY

LASTING: Final = (
    "add_locator_handler", "expose_binding", "expose_function", "once", "route_from_har", "route_web_socket",
    "set_default_navigation_timeout", "set_default_timeout", "set_extra_http_headers",
)  # fmt: skip
"""What a test can do to a page that outlives the document and its test."""

REPLIES: Final = """
    const told = (replies) => {
        for (const { name, contentType, encodedBodySize: size } of replies) {
            if (size > %d && contentType === "application/json") console.error(`${name}: ${size} bytes`);
        }
    };
    const watch = new PerformanceObserver((seen) => told(seen.getEntries()));
    watch.observe({ type: "resource", buffered: true });
    window.tellReplies = () => told(watch.takeRecords());
"""
"""The page itself makes errors of replies above the promised size. Told of all, Playwright takes 35 ms more for a screen."""

BLANK: Final = "about:blank"
NO_SCREEN: Final = "/nothing"
"""Path of a server at which the page shows that nothing is there."""
LEAVE: Final = """path => {
    if (localStorage.length || sessionStorage.length) return false;  // the page remembers what the next test does not expect
    history.pushState(null, "", path);
    dispatchEvent(new PopStateEvent("popstate"));
    return new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => {
        document.activeElement?.blur();
        resolve(document.querySelectorAll("main").length === 1 && !document.querySelector("main [data-testid], [role=dialog]"));
    })));
}"""
"""Goes to an address without a screen; whether nothing of one is left."""
MEDIA: Final[dict[str, Any]] = {
    "media": "null",
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "forced_colors": "none",
    "contrast": "no-preference",
}
"""What Playwright tells a new page."""


@dataclass(eq=False, slots=True)
class Held:
    """errors: script errors, console errors and replies above the promised size since the page was handed out;
    undo: takes back what this test did to the page; changed: and what it may have done to the document
    shows: this test needs no new document, nor does the next one of its kind"""

    page: Page
    size: Any
    errors: list[str] = field(default_factory=list)
    undo: list[Callable[[], object]] = field(default_factory=list)
    lasting: bool = False
    media: bool = False
    changed: bool = False
    shows: bool = False


_HELD: dict[Page, Held] = {}
_SPARE: dict[BrowserContext, Held] = {}
"""The page that no test has now."""


def hand_out(profile: BrowserContext, make: Callable[[], Page]) -> Page:
    """The page that the test before left as it was, else what `make` opens."""
    held = _SPARE.pop(profile, None)
    if held is None:
        fresh = make()
        held = _watched(Held(fresh, fresh.viewport_size))
    held.errors.clear()
    held.shows = held.changed = False
    _HELD[held.page] = held
    return held.page


def errors_of(page: Page) -> list[str]:
    """What went wrong in a page since it was handed out, a list that grows; `tell_replies` adds what the page has yet to tell."""
    return _HELD[page].errors


def is_loaded(page: Page, top: str) -> bool:
    """Whether the page shows no screen, and has the scripts of the server at this address: as the test before left it, or where
    this one has been. From now on it may be left so to the next test."""
    held = _HELD.get(page)
    if held is None or held.changed or held.media:
        return False
    been, held.shows = held.shows, True
    if been and page.url.startswith(f"{top}/"):
        page.evaluate(LEAVE, NO_SCREEN)
    return page.url == f"{top}{NO_SCREEN}"


def tell_replies(page: Page) -> None:
    with suppress(Error):  # it is closed, or on its way to another address
        page.evaluate("() => window.tellReplies?.()")


def take_back(profile: BrowserContext, *, failed: bool) -> None:
    """Close the profile's pages but for its first and one that the next test can have."""
    spare = _SPARE.get(profile)
    for page in profile.pages[1:]:
        if spare is not None and page is spare.page:
            continue
        held = _HELD.pop(page, None)
        if held is not None and profile not in _SPARE and not held.lasting and not failed and _emptied(held):
            _SPARE[profile] = held
        else:
            page.close()


def note_sessions(profile: BrowserContext) -> None:
    """From now on a session of the developer tools with a page of the profile ends with the test that began it, and with it all
    that it set."""
    begin = profile.new_cdp_session

    def begun(page: Any) -> Any:
        session = begin(page)
        if page in _HELD:
            _HELD[page].changed = True
            _HELD[page].undo.append(session.detach)
        return session

    profile.new_cdp_session = begun  # type: ignore[method-assign]


def _emptied(held: Held) -> bool:
    page = held.page
    stays = held.shows and not held.changed and not held.media
    try:
        if not (stays and page.evaluate(LEAVE, NO_SCREEN)):
            page.goto(BLANK, timeout=10_000)
        while held.undo:
            held.undo.pop()()
        if page.viewport_size != held.size:
            page.set_viewport_size(held.size)
        if held.media:
            page.emulate_media(**MEDIA)
            held.media = False
        page.mouse.move(-1, -1)  # else it lies on what the next document has there
    except Error:
        return False
    return True


def _watched(held: Held) -> Held:
    page, errors = held.page, held.errors
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(said(message)) if message.type == "error" else None)
    page.add_init_script(f"{{{REPLIES % LARGEST_REPLY}}}")

    def noting(act: Callable[..., Any], what: str) -> Callable[..., Any]:
        def noted(*given: Any, **named: Any) -> Any:
            setattr(held, what, True)
            return act(*given, **named)

        return noted

    for name in LASTING:
        setattr(page, name, noting(getattr(page, name), "lasting"))
    _undoing(held)
    page.emulate_media = noting(page.emulate_media, "media")  # type: ignore[method-assign]
    return held


def _undoing(held: Held) -> None:
    """From now on it is known how scripts, routes and listeners of the page are taken back."""
    page, undo = held.page, held.undo
    script, route, listen = page.add_init_script, page.route, page.on

    def with_script(*given: Any, **named: Any) -> Any:
        added = script(*given, **named)
        held.changed = True
        undo.append(added.close)
        return added

    def with_route(*given: Any, **named: Any) -> Any:
        held.changed = True
        undo.append(lambda: page.unroute_all(behavior="ignoreErrors"))
        return route(*given, **named)

    def with_listener(event: Any, heard: Any) -> None:
        listen(event, heard)
        undo.append(lambda: page.remove_listener(event, heard))

    page.add_init_script, page.route, page.on = with_script, with_route, with_listener  # type: ignore[method-assign]


def said(message: ConsoleMessage) -> str:
    return f"{message.text} {message.location.get('url', '')}"
