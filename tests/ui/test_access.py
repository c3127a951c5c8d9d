"""Everybody who may, gets in: logins, links for colleagues, assistive technology."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from ui.conftest import PATIENCE, PLAIN, Server, new_page
from ui.driving import known, ready
from ui.expecting import expect, noticing

TOKEN = "open-sesame"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("guarded") / "data", dumps, DUMPSCOPE_TOKEN=TOKEN)
    yield running
    running.stop()


def test_a_page_without_the_token_says_how_to_log_in(context: BrowserContext, guarded: Server) -> None:
    page = new_page(context)  # the 401 is logged by the browser, so not the strict page
    reply = page.goto(guarded.url)
    assert reply is not None
    assert reply.status == 401
    expect(page.get_by_label("Token")).to_be_visible()
    expect(page.locator("body")).to_contain_text("DUMPSCOPE_TOKEN")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button").click()
    expect(page.get_by_test_id("server-path")).to_be_visible()
    assert TOKEN not in page.url


def test_a_link_with_the_token_logs_in_once_and_for_all(page: Page, guarded: Server) -> None:
    page.goto(f"{guarded.url}/?token={TOKEN}")
    expect(page.get_by_test_id("server-path")).to_be_visible()
    assert TOKEN not in page.url
    page.goto(guarded.url)
    expect(page.get_by_test_id("server-path")).to_be_visible()


@pytest.mark.expects(
    "http%3A%2F%2Fplain.test"
)  # the field that the link is pasted into may look for it before the page is left
def test_the_copied_link_works_on_plain_http(page: Page, server: Server, address: str) -> None:
    page.goto(address.replace("127.0.0.1", PLAIN) + "?s=0&r=0&n=Functional.gelu.1.forward&tab=order&f=class:propagated")
    name = page.get_by_test_id("selected-name")
    expect(name).to_contain_text("Functional.gelu.1.forward")
    assert page.evaluate("window.isSecureContext") is False
    with noticing(page, "Copied", whole=True):
        page.locator("body").press("c")
    field = page.get_by_test_id("tree-search")
    field.click()
    page.keyboard.press("Control+V")
    link = field.input_value()
    assert link == page.url
    page.goto("about:blank")
    page.goto(link)
    expect(name).to_contain_text("Functional.gelu.1.forward")
    expect(page.get_by_test_id("plot-order")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("chips")).to_contain_text("propagated")


ALONE = {
    "alone": ("", ".main-svg"),
    "alone map": ("?tab=map", ".main-svg"),
    "alone values": ("?tab=values", "[data-testid=values-grid]"),
    "alone apis": ("?tab=apis", ".main-svg"),
    "alone compare": ("?do=compare", "[data-testid=compare-with] input[type=radio]"),
    "alone help": ("", ".main-svg"),
}
"""States of the page of one dump that went wrong: what follows its address, and what is there then."""


@pytest.mark.parametrize("screen", ALONE)
def test_axe_finds_nothing_serious_on_one_dump_alone(
    page: Page, server: Server, dumps: Path, pytestconfig: pytest.Config, screen: str
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    more, there = ALONE[screen]
    page.goto(ready(server, dumps / "target_nan") + more)
    expect(page.locator(there).first).to_be_visible()
    if screen == "alone":
        page.get_by_test_id("alone-how").click()
        expect(page.get_by_test_id("unchecked-dump")).to_be_visible()
    if screen == "alone help":
        page.get_by_test_id("help").click()
        expect(page.get_by_test_id("marks")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        page.wait_for_function(AT_REST)
        assert grave(page, pytestconfig) == []


SCREENS = (
    "home", "triage", "dump", "values", "match", "matches", "trends", "ranks", "map", "peek", "suspects", "path", "stage",
    "source", "source equal", "no source", "source alone",
)  # fmt: skip


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious(
    page: Page,
    server: Server,
    address: str,
    dumps: Path,
    pytestconfig: pytest.Config,
    screen: str,
    request: pytest.FixtureRequest,
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    if "source" in screen:
        show_source(page, server, address, request, screen)
    elif screen == "home":
        page.goto(server.url)
        expect(page.get_by_role("row").nth(3)).to_be_visible()
        page.get_by_role("button", name="Options").click()
    elif screen in ("match", "matches", "trends", "ranks"):
        page.goto(f"{address}?do={screen}")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.wait_for_load_state("networkidle")
    elif screen == "suspects":
        weight = known(server, dumps / "target_fault_bwd", dumps / "target_fault_weight")
        page.goto(f"{weight}?sus=1&s=0&r=0&n=Functional.layer_norm.3.backward")
        expect(page.get_by_test_id("suspect")).to_have_count(3)
        expect(page.get_by_test_id("tree").locator("[data-reached]").first).to_be_visible()
    elif screen == "path":
        page.goto(f"{address}?stage=path&hops=3")
        expect(page.locator("[data-middle]")).to_be_visible()
        page.wait_for_load_state("networkidle")
    elif screen == "stage":
        page.goto(f"{address}?tab=hist&stage=plot")
        expect(page.get_by_test_id("stage").locator(".main-svg").first).to_be_visible()
    elif screen in ("map", "peek"):
        page.goto(f"{address}?tab={'values' if screen == 'peek' else screen}")
        shown = page.get_by_test_id("values-grid") if screen == "peek" else page.locator(".main-svg").first
        expect(shown).to_be_visible()
        page.wait_for_load_state("networkidle")
    else:
        page.goto(address)
        expect(page.locator(".main-svg").first).to_be_visible()
        expect(page.get_by_test_id("flow")).to_be_visible()
    if screen in ("dump", "values"):
        page.get_by_role("heading", level=1).get_by_role("link").first.click()
        expect(page).to_have_url(re.compile("/dumps/"))
        expect(page.get_by_test_id("leaves")).to_be_visible()
        expect(page.get_by_test_id("node-trend")).to_be_visible()
    if screen == "values":
        page.get_by_test_id("open-trends").click()
        expect(page.get_by_test_id("trends").get_by_role("table")).to_be_visible()
    page.wait_for_function(AT_REST)
    assert grave(page, pytestconfig) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    page.wait_for_function(AT_REST)
    assert grave(page, pytestconfig) == []


def show_source(page: Page, server: Server, address: str, request: pytest.FixtureRequest, screen: str) -> None:
    """A state of the source around a call."""
    if screen == "no source":
        page.goto(address)
        page.get_by_test_id("source-none").click()
        expect(page.get_by_test_id("source-why")).to_contain_text("--source-root")
        return
    sourced: Path = request.getfixturevalue("sourced")
    if screen == "source alone":
        page.goto(f"{ready(server, sourced / 'tanh' / 'dump')}?n=Functional.gelu.1.forward")
    else:
        target = sourced / ("tanh" if screen == "source" else "again") / "dump"
        page.goto(known(server, target, sourced / "plain" / "dump"))
    page.get_by_test_id("source-all").click()
    expect(page.get_by_test_id("source").locator("[data-at]")).to_be_visible()
    page.wait_for_load_state("networkidle")


AT_REST = """() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(
    document.getAnimations().every((one) => one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity)
))))"""
"""No colour is on its way to another one; what turns for ever may."""


def grave(page: Page, pytestconfig: pytest.Config) -> list[tuple[str, list[tuple[list[str], str]]]]:
    """What axe finds serious or critical: the rule, and of some elements their selectors and what is wrong."""
    if page.evaluate("typeof axe") == "undefined":
        script = pytestconfig.rootpath / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
        page.evaluate(script.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        (rule["id"], [(node["target"], node["failureSummary"]) for node in rule["nodes"][:3]])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


COMPARISON = r"/api/comparisons/\w+"
UNANSWERED = {
    "home": ("", r"/api/(comparisons|dumps)\?"),
    "comparison": ("{address}", COMPARISON + "$"),
    "triage": ("{address}", COMPARISON + r"/(nodes|tree|pairs|strip|preview|trends)|/api/figures"),
    "match": ("{address}?do=match", COMPARISON + r"/(nodes(?!/)|preview)"),
    "matches": ("{address}?do=matches", COMPARISON + r"/match"),
    "trends": ("{address}?do=trends", COMPARISON + "/trends"),
    "ranks": ("{address}?do=ranks", COMPARISON + "/rank-map"),
    "peek": ("{address}?tab=values", COMPARISON + r"/pairs/\w+/values"),
    "palette": ("{address}", COMPARISON + r"/nodes\?.*gelu"),
    "source": ("{address}", COMPARISON + r"/nodes/.*/source"),
    "dump": ("{dump}", r"/api/dumps/\w+/"),
    "dump figure": ("{dump}?tab=map", r"/api/dumps/\w+/figures"),
    "dump values": ("{dump}?tab=values", r"/api/dumps/\w+/items"),
    "dump compare": ("{dump}?do=compare", r"/api/dumps\?"),
    "dump itself": ("{dump}", r"/api/dumps/\w+$"),
}
"""Screens, each with the requests that get no answer."""


@pytest.mark.parametrize("failing", [False, True], ids=["loading", "failed"])
@pytest.mark.parametrize("screen", UNANSWERED)
def test_axe_finds_nothing_serious_while_lists_load_or_where_they_failed(
    context: BrowserContext,
    server: Server,
    address: str,
    dumps: Path,
    pytestconfig: pytest.Config,
    screen: str,
    failing: bool,
) -> None:
    page = new_page(context)  # failed requests are logged by the browser, so not the strict page
    held: list[str] = []

    def hold(route: Route) -> None:
        held.append(route.request.url)
        if failing:
            route.fulfill(status=500, json={"error": "internal", "detail": "a test", "hint": None})

    path, pattern = UNANSWERED[screen]
    page.route(re.compile(pattern), hold)
    place = server.url if path == "" else path.format(address=address, dump=ready(server, dumps / "golden"))
    if screen == "palette":
        page.goto(place)
        expect(page.get_by_test_id("selected-name")).not_to_be_empty()
        page.keyboard.press("Control+k")
    with page.expect_request(re.compile(pattern), timeout=PATIENCE):
        if screen == "palette":
            page.get_by_test_id("palette").fill("gelu")
        else:
            page.goto(place)
    if failing and screen != "palette":
        expect(page.get_by_test_id("failure").first).to_be_visible()
    else:
        expect(page.get_by_text("Loading…").first).to_be_visible()
    assert held
    assert grave(page, pytestconfig) == []
