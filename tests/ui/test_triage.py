"""From two dumps to the named cause in a real browser."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page

from ui.conftest import PATIENCE, Server, new_page
from ui.driving import choose, compare, known, show
from ui.expecting import expect

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


def test_the_true_cause_is_named_with_stack_and_plot_without_a_click(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_test_id("origin")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("origin-kind")).to_contain_text("computation")
    expect(page.get_by_test_id("reason")).to_contain_text("inputs are equal")
    expect(page.get_by_test_id("origin-place")).to_have_text("models.py:14")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("stack-target")).to_contain_text("F.softmax(a, dim=-1)")
    expect(page.locator(".js-plotly-plot, .main-svg").first).to_be_visible()
    expect(page.get_by_test_id("tree").get_by_text("Functional.softmax.1", exact=False).first).to_be_visible()
    expect(page.get_by_test_id("calls").get_by_text(CAUSE, exact=True)).to_be_visible()


def test_two_dumps_are_registered_picked_and_compared_on_the_page(page: Page, server: Server, dumps: Path) -> None:
    compare(page, server, dumps / "target_nan", dumps / "golden")
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.gelu.0.forward")


def test_name_reason_stack_and_plot_are_in_view_at_1280x800_in_light_and_dark(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    show(page, address)
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", theme)
        expect(page.locator(".main-svg").first).to_be_visible()
        for part in ("origin", "reason", "selected-name", "why", "stack-target", "stack-golden", "figure"):
            expect(page.get_by_test_id(part)).to_be_in_viewport(ratio=1)
        assert page.get_by_test_id("why").evaluate("text => text.scrollHeight <= text.clientHeight")  # all of it
        for row in (0, 1):  # the numbers of both sides
            expect(page.get_by_test_id("io").locator("tbody tr").nth(row)).to_be_in_viewport(ratio=0.95)
        assert page.locator(".main-svg").first.bounding_box()["height"] > 120  # type: ignore[index]


def test_the_narrowest_window_with_three_panels_shows_all_of_them(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 985, "height": 700})
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_be_visible()
    ends = page.locator("main section.panel").evaluate_all(
        "panels => panels.map(one => one.getBoundingClientRect().right)"
    )
    assert max(ends) <= 985


def test_a_click_in_the_list_selects_everywhere_and_stands_in_the_address(page: Page, address: str) -> None:
    show(page, address)
    other = "Torch.matmul.3.forward"
    choose(page, other)
    expect(page.get_by_test_id("selected-name")).to_contain_text(other)
    expect(page).to_have_url(re.compile(r"[?&]n=Torch\.matmul\.3\.forward"))
    page.reload()
    expect(page.get_by_test_id("selected-name")).to_contain_text(other)


def test_the_tree_has_words_for_its_numbers_and_marks_and_a_click_selects(page: Page, address: str) -> None:
    show(page, address)
    tree = page.get_by_test_id("tree")
    # Its numbers have words for those who hear them.
    heir = r" inherits the difference of Functional\.softmax\.1\.forward$"
    expect(tree.get_by_role("treeitem", name=re.compile(r"\(Block\) ✖1 origin 18 No" + heir))).to_be_visible()
    expect(
        tree.get_by_role("treeitem", name=re.compile(r"ln_f \(LayerNorm\) bwd 2 No !1 Warning" + heir))
    ).to_be_visible()
    # Backward entries are marked.
    twins = tree.get_by_role("treeitem").filter(has_text="head (Linear)")
    expect(twins).to_have_count(2)
    expect(twins.nth(0)).not_to_contain_text("bwd")
    expect(twins.nth(1)).to_contain_text("bwd")
    # A click selects the node.
    tree.get_by_text("Tensor.masked_fill.1", exact=False).first.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text("Tensor.masked_fill.1.forward")


def test_every_plot_draws_has_words_and_fills_the_place_it_is_given(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    for tab in ("api", "order", "hist", "error"):
        page.get_by_test_id(f"plot-{tab}").click()
        plot = page.locator(f"[data-drawn^='{tab}/'] .main-svg").first
        expect(plot).to_be_visible()
        assert plot.bounding_box()["height"] > 100  # type: ignore[index]
    # Large, it fills the place that it is given.
    plot = page.locator(".main-svg").first
    expect(plot).to_be_visible()
    small = plot.bounding_box()
    page.get_by_test_id("plot-large").click()
    expect(page.get_by_test_id("plot-large")).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(
        "height => document.querySelector('.main-svg').getBoundingClientRect().height > 1.5 * height",
        arg=small["height"],  # type: ignore[index]
        timeout=PATIENCE,
    )


def test_a_pasted_address_shows_the_same_screen_after_a_restart(page: Page, server: Server, address: str) -> None:
    page.goto(f"{address}?s=0&r=0&n=Functional.gelu.1.forward&tab=order")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.gelu.1.forward")
    shared = page.url
    page.goto("about:blank")  # requests under way would be cut off and logged as errors
    server.restart()
    page.goto(shared)
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.gelu.1.forward")
    expect(page.get_by_test_id("banner")).to_contain_text(CAUSE)


def test_another_policy_judges_again_and_keeps_the_origin(page: Page, server: Server, dumps: Path) -> None:
    compare(page, server, dumps / "target_fault_bwd", dumps / "target_renamed")
    expect(page.get_by_test_id("banner")).to_contain_text("Functional.layer_norm.3.backward")
    policy = page.get_by_test_id("policy")
    policy.click()
    page.get_by_role("option", name="ptdbg").click()
    expect(page.get_by_test_id("banner")).to_contain_text("Functional.layer_norm.3.backward")
    page.reload()
    expect(page.get_by_test_id("policy")).to_have_value("ptdbg")


def test_keys_walk_the_calls_but_not_while_a_field_has_the_focus(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.get_by_test_id("search").first.click()
    page.keyboard.type("jjj")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.get_by_test_id("search").first.fill("")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    # Without it they walk the calls.
    expect(page.get_by_test_id("calls").get_by_text("Functional.dropout.1.forward", exact=True)).to_be_visible()
    page.locator("body").press("j")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.dropout.1.forward")
    page.locator("body").press("k")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.locator("body").press("?")
    expect(page.get_by_test_id("help")).to_be_visible()


BEFORE_A_FRAME = """([key, shown]) => new Promise((resolve) => {
    const test = new Function(`return ${shown}`);
    const before = test();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code: key, bubbles: true, cancelable: true }));
    requestAnimationFrame(() => resolve(test() !== before));
})"""
"""Whether the frame after a key shows something else at a place: what a key waits for (a reply, a timer) comes later."""


SELECTED = "document.querySelector('[data-testid=calls] [aria-selected=true]').dataset.name"
NAMED = "document.querySelector('[data-testid=selected-name]').textContent"
TAB = "document.querySelector('[role=tab][aria-selected=true]').textContent"


def test_the_first_frame_after_a_key_shows_what_it_selects(page: Page, address: str) -> None:
    show(page, address)
    expect(page.locator("[data-plot][data-drawn]")).to_be_visible()
    for key, shown in (("j", SELECTED), ("j", NAMED), ("5", TAB), ("k", SELECTED), ("3", TAB)):
        assert page.evaluate(BEFORE_A_FRAME, [key, shown]), key


def test_a_key_has_the_style_of_few_elements_found_again(page: Page, context: BrowserContext, address: str) -> None:
    page.goto(address)
    expect(page.locator("[data-plot][data-drawn]")).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.route("**/nodes/*", lambda route: None)  # what follows the key never comes
    elements = page.evaluate("document.getElementsByTagName('*').length")
    session = context.new_cdp_session(page)
    found: list[int] = []
    ended: list[object] = []
    session.on(
        "Tracing.dataCollected",
        lambda told: found.extend(
            one["args"]["elementCount"] for one in told["value"] if one["name"] == "UpdateLayoutTree"
        ),
    )
    session.on("Tracing.tracingComplete", lambda _told: ended.append(True))
    session.send(
        "Tracing.start", {"traceConfig": {"includedCategories": ["devtools.timeline"]}, "transferMode": "ReportEvents"}
    )
    page.keyboard.press("j")
    expect(page.get_by_test_id("selected-name")).to_contain_text("dropout")
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    assert found
    assert elements > 800
    assert sum(found) < elements / 8, f"{found} of {elements}"
    page.unroute_all(behavior="ignoreErrors")


def test_keys_act_as_soon_as_a_dialog_is_closed(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text("softmax")
    for key, dialog in (("t", "policy"), ("M", "matches"), ("a", "assist")):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(f"do={dialog}"))
        page.keyboard.press("Escape")  # the next key follows at once
    page.keyboard.press("v")
    expect(page.get_by_test_id("note-form")).to_be_visible()


def test_keys_open_and_close_the_tree_go_back_to_the_origin_and_export(page: Page, address: str) -> None:
    show(page, address)
    tree = page.get_by_test_id("tree")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("stack-target")).to_be_visible()
    expect(tree.get_by_role("treeitem", selected=True)).to_have_count(1)
    opened = tree.get_by_role("treeitem", expanded=True)
    count = opened.count()
    page.keyboard.press("u")
    expect(tree.get_by_role("treeitem", selected=True, expanded=True)).to_have_count(1)
    page.keyboard.press("h")
    expect(opened).to_have_count(count - 1)
    page.keyboard.press("l")
    expect(opened).to_have_count(count)
    page.keyboard.press("g")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.keyboard.press("e")
    expect(page.get_by_test_id("export-html")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("export-html")).to_have_count(0)


def test_agreement_is_said_with_its_coverage(page: Page, server: Server, dumps: Path) -> None:
    compare(page, server, dumps / "stat_golden", dumps / "md5_golden")
    expect(page.get_by_test_id("no-origin")).to_be_visible()


def test_a_call_without_partner_shows_the_evidence_of_its_origin(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Tensor.__add__.0.forward")
    expect(page.get_by_test_id("why")).to_contain_text("exists only in the target")
    expect(page.get_by_test_id("figure").locator(".main-svg").first).to_be_visible()


def test_an_unknown_comparison_shows_an_error_and_a_way_back(context: BrowserContext, server: Server) -> None:
    page = new_page(context)  # the 404 is logged by the browser, so not the strict page
    page.goto(f"{server.url}/comparisons/nothing")
    expect(page.get_by_test_id("failure")).to_be_visible()


def test_a_wrong_path_is_refused_with_a_hint(context: BrowserContext, server: Server) -> None:
    page = new_page(context)
    page.goto(server.url)
    page.get_by_test_id("server-path").fill("/etc")
    page.get_by_test_id("register").click()
    expect(page.get_by_test_id("failure").or_(page.get_by_test_id("notice")).first).to_contain_text("root")


def test_an_uploaded_archive_opens(page: Page, server: Server, dumps: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "sent"), "zip", dumps / "stat_nan")
    page.goto(server.url)
    page.get_by_test_id("file-input").set_input_files(archive)
    listed = page.get_by_test_id("dumps").get_by_role("link", name="sent.zip", exact=True)
    expect(listed).to_be_visible()
    listed.click()
    expect(page).to_have_url(re.compile("/dumps/"))


def test_opening_a_comparison_asks_for_nothing_twice(page: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "target_fault", dumps / "golden")
    asked: Counter[str] = Counter()
    # How the server is, is asked again as long as it does not answer.
    page.on("request", lambda one: asked.update(re.findall(r"^.*/api/(?!health$).*", one.url)))
    page.goto(address)
    expect(page.get_by_test_id("origin")).to_contain_text("softmax")
    expect(page.locator(".main-svg").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert len(asked) > 10
    assert {url: times for url, times in asked.items() if times > 1} == {}
    assert not any("/api/jobs/" in url for url in asked), "a job that is over was asked for"
