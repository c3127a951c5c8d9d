"""Everybody who may, gets in: logins, links for colleagues, assistive technology."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.answering import Asked, answering
from ui.conftest import PLAIN, Server, new_page
from ui.driving import go_on, known, ready
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
    "map": ("?tab=map", ".main-svg"),
    "values": ("?tab=values", "[data-testid=values-grid]"),
    "apis": ("?tab=apis", ".main-svg"),
    "compare": ("?do=compare", "[data-testid=compare-with] input[type=radio]"),
    "help": ("", ".main-svg"),
}
"""States of the page of one dump that went wrong: what follows its address, and what is there then."""


def test_axe_finds_nothing_serious_on_one_dump_alone(
    page: Page, server: Server, dumps: Path, pytestconfig: pytest.Config
) -> None:
    ready(server, dumps / "golden")  # it can be compared with that one
    address = ready(server, dumps / "target_nan")
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    for screen, (more, there) in ALONE.items():
        go_on(page, address + more)
        expect(page.locator(there).first).to_be_visible()
        how, told = page.get_by_test_id("alone-how"), page.get_by_test_id("unchecked-dump")
        if screen == "alone":
            how.click()
            expect(told).to_be_visible()
        elif screen == "help":
            expect(page.get_by_test_id("compare-with")).to_have_count(0)
            page.get_by_test_id("help").click()
            expect(page.get_by_test_id("marks")).to_be_visible()
        hold_to_axe(page, pytestconfig, screen)
        if screen == "alone":
            how.click()
            expect(told).to_have_count(0)


def hold_to_axe(page: Page, pytestconfig: pytest.Config, screen: str) -> None:
    """Axe finds nothing serious on what the page shows, in light nor in dark colours."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        page.wait_for_function(AT_REST)
        assert grave(page, pytestconfig) == [], f"{screen}, {scheme}"


def test_axe_finds_nothing_serious_on_the_start_page(
    page: Page, server: Server, address: str, pytestconfig: pytest.Config
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(address.split("/comparisons/", maxsplit=1)[0])
    expect(page.get_by_role("row").nth(3)).to_be_visible()
    page.get_by_role("button", name="Options").click()
    hold_to_axe(page, pytestconfig, "home")


def test_axe_finds_nothing_serious_on_a_comparison(page: Page, address: str, pytestconfig: pytest.Config) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    expect(page.locator(".main-svg").first).to_be_visible()
    expect(page.get_by_test_id("flow")).to_be_visible()
    hold_to_axe(page, pytestconfig, "triage")
    go_on(page, f"{address}?tab=map")
    expect(page.locator("[data-drawn^='map/']")).to_be_visible()
    page.wait_for_load_state("networkidle")
    hold_to_axe(page, pytestconfig, "map")
    go_on(page, f"{address}?tab=values")
    expect(page.get_by_test_id("values-grid")).to_be_visible()
    page.wait_for_load_state("networkidle")
    hold_to_axe(page, pytestconfig, "peek")
    go_on(page, f"{address}?tab=hist&stage=plot")
    expect(page.get_by_test_id("stage").locator(".main-svg").first).to_be_visible()
    hold_to_axe(page, pytestconfig, "stage")


def test_axe_finds_nothing_serious_in_dialogs(page: Page, address: str, pytestconfig: pytest.Config) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    for dialog in ("match", "matches", "trends", "ranks"):
        go_on(page, f"{address}?do={dialog}")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.wait_for_load_state("networkidle")
        hold_to_axe(page, pytestconfig, dialog)
        go_on(page, address)
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_axe_finds_nothing_serious_among_suspects(
    page: Page, server: Server, dumps: Path, pytestconfig: pytest.Config
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    weight = known(server, dumps / "target_fault_bwd", dumps / "target_fault_weight")
    page.goto(f"{weight}?sus=1&s=0&r=0&n=Functional.layer_norm.3.backward")
    expect(page.get_by_test_id("suspect")).to_have_count(3)
    expect(page.get_by_test_id("tree").locator("[data-reached]").first).to_be_visible()
    hold_to_axe(page, pytestconfig, "suspects")


def test_axe_finds_nothing_serious_on_a_dump_and_its_trends(
    page: Page, address: str, pytestconfig: pytest.Config
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    page.get_by_role("heading", level=1).get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/dumps/"))
    expect(page.get_by_test_id("leaves")).to_be_visible()
    expect(page.get_by_test_id("node-trend")).to_be_visible()
    expect(page.locator(".main-svg").first).to_be_visible()
    hold_to_axe(page, pytestconfig, "dump")
    page.get_by_test_id("open-trends").click()
    expect(page.get_by_test_id("trends").get_by_role("table")).to_be_visible()
    hold_to_axe(page, pytestconfig, "values")


@pytest.mark.parametrize("screen", ["source", "source equal", "no source", "source alone"])
def test_axe_finds_nothing_serious_around_a_source(
    page: Page, server: Server, address: str, pytestconfig: pytest.Config, screen: str, request: pytest.FixtureRequest
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    show_source(page, server, address, request, screen)
    hold_to_axe(page, pytestconfig, screen)


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


OF_COLOUR = ("color-contrast", "link-in-text-block")
"""Rules of axe that look at colours; no other one does."""

EXAMINED = """async ofColour => {
    const heavy = one => one === "serious" || one === "critical";
    const { rules, data } = axe._audit;
    const grave = rules.filter(rule => rule.enabled !== false && !rule.tags.some(tag => /^(experimental|deprecated)$/.test(tag)))
        .filter(rule => heavy(rule.impact) || [...rule.any, ...rule.all, ...rule.none]
            .some(check => heavy(data.checks[check.id ?? check]?.impact)))
        .map(rule => rule.id);
    const all = `${innerWidth} ${innerHeight} ${document.title} ${document.documentElement.lang} ${document.body.outerHTML}`;
    const shown = all.replace(/ (style|class|fill|stroke|clip-path|stop-color)="[^"]*"/g, "");
    const known = window.examined === shown;
    window.examined = shown;
    const options = { runOnly: known ? ofColour : grave, preload: false, resultTypes: ["violations"] };
    return [grave.length, (await axe.run(document, options)).violations];
}"""
"""What axe finds by its rules that may find something serious or critical. Where the elements are the very same as the last time,
only their colours can be others: there the rules of colour are enough, which takes two thirds of the time."""


def grave(page: Page, pytestconfig: pytest.Config) -> list[tuple[str, list[tuple[list[str], str]]]]:
    """What axe finds serious or critical: the rule, and of some elements their selectors and what is wrong."""
    if page.evaluate("typeof axe") == "undefined":
        script = pytestconfig.rootpath / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
        page.evaluate(script.read_text(encoding="utf-8"))
    rules, found = page.evaluate(EXAMINED, OF_COLOUR)
    assert rules > 50
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


@pytest.mark.parametrize("screen", UNANSWERED)
def test_axe_finds_nothing_serious_while_lists_load_nor_where_they_failed(
    context: BrowserContext, server: Server, address: str, dumps: Path, pytestconfig: pytest.Config, screen: str
) -> None:
    page = new_page(context)  # failed requests are logged by the browser, so not the strict page
    held: list[Asked] = []
    failing: list[bool] = []

    def hold(asked: Asked) -> None:
        held.append(asked)
        if failing:
            fail(asked)

    def fail(asked: Asked) -> None:
        asked.fulfill({"error": "internal", "detail": "a test", "hint": None}, status=500)

    path, pattern = UNANSWERED[screen]
    answering(page, pattern, hold)
    page.goto(server.url if path == "" else path.format(address=address, dump=ready(server, dumps / "golden")))
    if screen == "palette":
        expect(page.get_by_test_id("selected-name")).not_to_be_empty()
        page.keyboard.press("Control+k")
        page.get_by_test_id("palette").fill("gelu")
    expect(page.get_by_text("Loading…").first).to_be_visible()
    while not held:
        page.wait_for_timeout(20)
    assert grave(page, pytestconfig) == []
    failing.append(True)
    for asked in list(held):
        fail(asked)
    if screen == "palette":
        expect(page.get_by_text("Nothing has this name").first).to_be_visible()
    else:
        expect(page.get_by_test_id("failure").first).to_be_visible()
    assert grave(page, pytestconfig) == []
