"""Plots and single values as a person meets them: every one is drawn, says itself in words, and can be taken along."""

from __future__ import annotations

import csv
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import ml_dtypes
import numpy as np
import pytest
from playwright.sync_api import Download, Page
from plots.tensor_dumps import node_of, write_dump

from ui.conftest import Server
from ui.driving import choose, finished, known, show
from ui.expecting import expect

TABS = ("hist", "pair", "api", "map", "order", "apis", "error", "values", "runs")
FIGURES = tuple(tab for tab in TABS if tab != "values")
OF_TENSOR = ("hist", "pair", "map", "error", "values")
CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def address(server: Server, dumps: Path) -> str:
    return known(server, dumps / "target_fault", dumps / "golden")


@pytest.fixture(scope="module")
def made(server: Server, generated: Path) -> str:
    """A comparison of tensors made up: rows 1 and 5 differ, integers past 2^53, NaN, bfloat16, five million points."""
    pytest.importorskip("torch")
    random = np.random.default_rng(0)
    golden = {
        "rows": random.normal(size=(8, 64)).astype(np.float32),
        "channels": random.normal(size=(2, 6, 5, 4)).astype(np.float32),
        "whole": np.arange(2**53, 2**53 + 40, dtype=np.int64),
        "half": np.ones((3, 4), dtype=ml_dtypes.bfloat16),
        "big": random.normal(size=(5, 1000, 1000)).astype(np.float32),
    }
    target = {name: array.copy() for name, array in golden.items()}
    target["rows"][[1, 5]] *= 1.25
    target["channels"][:, 3] += 1
    target["whole"][7] += 1
    target["half"][2, 1] = np.nan
    target["big"][4, 3, 2], target["big"][1, 2, 3] = np.float32(999.5), np.nan
    folder = generated / "plots"
    return finished(server, write_dump(folder / "target", target), write_dump(folder / "golden", golden))


def at(address: str, name: str, tab: str, more: str = "") -> str:
    return f"{address}?s=0&r=0&n={node_of(name)}&tab={tab}{more}"


DRAWN = """tab => {
    const [plot, ...more] = document.querySelectorAll("[data-plot]");
    if (!plot || more.length || !plot.dataset.drawn?.startsWith(`${tab}/`)) return false;
    const box = plot.querySelector(".main-svg")?.getBoundingClientRect();
    const marks = plot.querySelector(".trace path, .hm image, .point, .trace .js-line");
    return !!marks && !!box && box.height > 100 && box.width > 200 && plot.checkVisibility();
}"""
"""Looks at everything at one moment: the plot may be drawn anew between two questions."""


LABELLED = """() => {
    const words = document.querySelector("[data-testid=figure] figcaption")?.innerText.trim();
    return !!words && !!document.querySelector("[data-plot]")?.getAttribute("aria-label")?.includes(words);
}"""
"""The words below the plot are in its label. Looks at both at one moment."""


def drawn(page: Page, tab: str) -> None:
    """The plot of this tab stands there with its traces: nothing of the one before, and not blank."""
    page.wait_for_function(DRAWN, arg=tab)


def turn_to(page: Page, tab: str, *, large: bool = False) -> None:
    """Goes on to this plot."""
    page.keyboard.press(f"{'Shift+' if large else ''}Digit{TABS.index(tab) + 1}")
    expect(page.get_by_test_id(f"plot-{tab}")).to_have_attribute("aria-selected", "true")


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_keys_open_every_plot_each_with_words_and_a_label(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    for number, tab in enumerate(TABS, 1):
        page.keyboard.press(str(number))
        expect(page.get_by_test_id(f"plot-{tab}")).to_have_attribute("aria-selected", "true")
        expect(page).to_have_url(re.compile(rf"[?&]tab={tab}(&|$)"))
        if tab == "values":
            expect(page.get_by_test_id("value-words")).to_contain_text("difference 0.0071")
            continue
        drawn(page, tab)
        page.wait_for_function(LABELLED)


@pytest.mark.parametrize("width", [1280, 1440])
def test_no_tool_of_a_plot_is_pushed_out_of_its_panel(page: Page, made: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    show(page, at(made, "channels", "map"))
    for tab in ("map", "values"):
        turn_to(page, tab)
        expect(page.get_by_test_id("plot-save")).to_be_enabled()
        for tool in ("plot-save", "plot-large"):
            expect(page.get_by_test_id(tool)).to_be_in_viewport(ratio=1)


def test_thirty_plots_opened_and_closed_leave_none_blank(page: Page, address: str) -> None:
    show(page, f"{address}?tab=hist")
    drawn(page, "hist")
    for turn in range(30):
        tab = FIGURES[(turn * 3 + turn // 8) % len(FIGURES)]
        page.keyboard.press(str(TABS.index(tab) + 1))
        if turn % 4 == 3:
            page.keyboard.press("j")
        expect(page.get_by_test_id(f"plot-{tab}")).to_have_attribute("aria-selected", "true")
        if page.get_by_test_id("figure").locator("p").count():  # the next call may hold no tensors
            page.keyboard.press("k")
        drawn(page, tab)
    page.keyboard.press("1")
    drawn(page, "hist")


def test_the_scale_is_switched_and_stands_in_the_address(page: Page, address: str) -> None:
    show(page, f"{address}?tab={FIGURES[0]}")
    log = page.get_by_test_id("plot-log")
    for tab, following in zip(FIGURES, (*FIGURES[1:], FIGURES[0]), strict=True):
        drawn(page, tab)
        settings(page)
        before = log.is_checked()
        log.click()
        expect(page).to_have_url(re.compile(rf"[?&]log={int(not before)}"))
        expect(page.locator(f"[data-drawn^='{tab}/'][data-drawn$='/{str(not before).lower()}']")).to_be_visible()
        drawn(page, tab)
        page.reload()
        drawn(page, tab)
        settings(page)
        assert log.is_checked() != before
        page.keyboard.press(str(TABS.index(following) + 1))
        expect(page).not_to_have_url(re.compile("log="))


def settings(page: Page) -> None:
    """Opens what chooses the tensor, its dimensions and the scale; it may be open since the plot before."""
    box = page.get_by_role("dialog", name="Tensor and scale")
    if not box.is_visible():
        page.get_by_test_id("plot-settings").click()
    expect(box).to_be_visible()


def saved(page: Page, kind: str) -> Download:
    page.get_by_test_id("plot-save").click()
    with page.expect_download() as download:
        page.get_by_test_id(f"plot-{kind}").click()
    return download.value


def test_each_plot_is_saved_as_picture_and_as_numbers(page: Page, address: str) -> None:
    show(page, f"{address}?tab={FIGURES[0]}")
    for tab in FIGURES:
        turn_to(page, tab)
        drawn(page, tab)
        picture = saved(page, "png")
        assert picture.suggested_filename.endswith(".png")
        data = Path(picture.path()).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(data) > 5_000, tab
        numbers = saved(page, "csv")
        assert numbers.suggested_filename.endswith(".csv")
        rows = list(csv.reader(Path(numbers.path()).read_text(encoding="utf-8").splitlines()))
        assert len(rows) > 1, tab
        assert {len(row) for row in rows} == {len(rows[0])}, tab


def test_only_rows_1_and_5_differ_is_seen_at_once(page: Page, made: str) -> None:
    show(page, at(made, "rows", "map"))
    drawn(page, "map")
    expect(page.get_by_test_id("figure")).to_contain_text("Only rows 1, 5 of 8 differ (dim 0).")


def test_dimensions_of_the_map_are_chosen_and_stand_in_the_address(page: Page, made: str) -> None:
    show(page, at(made, "channels", "map"))
    drawn(page, "map")
    expect(page.get_by_test_id("figure")).to_contain_text("Only indices 3 of 6 differ (dim 1).")
    settings(page)
    expect(page.get_by_test_id("axis-down")).to_have_value("dim 1 · 6")
    page.get_by_test_id("axis-across").click()
    page.get_by_role("option", name="dim 0 · 2").click()
    expect(page).to_have_url(re.compile(r"ax=1%2C0"))
    page.get_by_test_id("plot-reduce").click()
    page.get_by_role("option", name="rms").click()
    expect(page).to_have_url(re.compile(r"red=rms"))
    expect(page.locator("[data-plot]")).to_contain_text("rms difference")
    page.reload()
    drawn(page, "map")
    settings(page)
    expect(page.get_by_test_id("axis-across")).to_have_value("dim 0 · 2")
    expect(page.locator("[data-plot]")).to_contain_text("dim 0")


def test_a_click_in_the_map_shows_the_values_that_differ_most_there(page: Page, made: str) -> None:
    show(page, at(made, "rows", "map"))
    drawn(page, "map")
    plane = page.locator("[data-plot] .nsewdrag")
    box = plane.bounding_box()
    assert box is not None
    plane.click(position={"x": box["width"] * 0.5, "y": box["height"] * 5.5 / 8})
    words = page.get_by_test_id("value-words")
    expect(words).to_contain_text("[5, ")
    expect(words).to_contain_text("difference")
    expect(page).to_have_url(re.compile(r"tab=values.*at=5%2C"))
    page.go_back()
    drawn(page, "map")


def test_five_million_points_are_drawn_with_their_ends_and_their_nan(page: Page, made: str) -> None:
    for tab, words in (
        ("hist", "999.5"),
        ("pair", "so not drawn here: 1."),
        ("map", "different kinds of them: 1."),
    ):
        show(page, at(made, "big", tab))
        drawn(page, tab)
        expect(page.get_by_test_id("figure")).to_contain_text(words)
    page.keyboard.press("1")
    expect(page.get_by_test_id("figure")).to_contain_text("1 nan")


def test_values_are_walked_through_by_keyboard(page: Page, made: str) -> None:
    show(page, at(made, "rows", "values"))
    words = page.get_by_test_id("value-words")
    expect(words).to_contain_text("difference")
    page.get_by_test_id("value-index").fill("5, 0")
    page.get_by_test_id("value-index").press("Enter")
    expect(words).to_contain_text("[5, 0]: target")
    page.get_by_test_id("values").get_by_role("grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(words).to_contain_text("[6, 1]: both")
    expect(page).to_have_url(re.compile(r"at=6%2C1"))
    page.keyboard.press("End")
    expect(words).to_contain_text("[6, 63]: both")
    expect(page.get_by_test_id("values").get_by_role("gridcell", selected=True)).to_be_in_viewport()
    page.keyboard.press("Control+Home")
    expect(words).to_contain_text("[0, 63]: both")
    page.reload()
    expect(words).to_contain_text("[0, 63]: both")
    page.get_by_test_id("value-index").fill("8, 0")
    page.get_by_test_id("value-index").press("Enter")
    expect(page.get_by_test_id("value-index")).to_have_attribute("aria-invalid", "true")
    expect(words).to_contain_text("[0, 63]: both")


def test_integers_past_2_to_53_are_exact_and_nan_stands_apart(page: Page, made: str) -> None:
    show(page, at(made, "whole", "values"))
    words = page.get_by_test_id("value-words")
    expect(words).to_contain_text(f"[7]: target {2**53 + 8}, golden {2**53 + 7}, difference 1.")
    rows = list(csv.reader(Path(saved(page, "csv").path()).read_text(encoding="utf-8").splitlines()))
    assert ["7", str(2**53 + 8), str(2**53 + 7), "1"] in rows
    show(page, at(made, "half", "values"))
    expect(words).to_contain_text("[2, 1]: target NaN, golden 1.0, difference NaN. bfloat16 [3, 4]")
    expect(page.get_by_test_id("value-lost")).to_have_attribute("aria-pressed", "true")


def test_another_call_forgets_the_element_of_the_one_before(page: Page, made: str) -> None:
    show(page, at(made, "rows", "values", "&at=3,3"))
    expect(page.get_by_test_id("value-words")).to_contain_text("[3, 3]: both")
    choose(page, node_of("whole"))
    expect(page.get_by_test_id("value-words")).to_contain_text("[7]: target")
    assert "at" not in asked(page)


def test_without_tensors_each_plot_of_one_says_which_setting_brings_it(page: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "stat_fault", dumps / "stat_golden")
    show(page, address)
    drawn(page, "order")
    for tab in OF_TENSOR:
        page.get_by_test_id(f"plot-{tab}").click()
        place = page.get_by_test_id("values" if tab == "values" else "figure")
        expect(place).to_contain_text(f'"task": "tensor" and "list": ["{CAUSE}"]')
        expect(page.get_by_test_id("plot-save")).to_be_disabled()
    for tab in ("api", "apis", "runs"):
        page.get_by_test_id(f"plot-{tab}").click()
        drawn(page, tab)


def test_shift_and_a_digit_open_that_plot_large_and_escape_closes_it(page: Page, address: str) -> None:
    show(page, address)
    drawn(page, "hist")
    small = page.locator(".main-svg").first.bounding_box()
    assert small is not None
    page.keyboard.press("Shift+Digit4")
    drawn(page, "map")
    expect(page).to_have_url(re.compile(r"tab=map.*stage=plot"))
    stage = page.get_by_test_id("stage")
    large = stage.locator(".main-svg").first.bounding_box()
    assert large is not None
    assert large["width"] > 1.4 * small["width"]
    assert large["height"] > 2 * small["height"]
    expect(page.get_by_test_id("calls")).not_to_be_visible()
    expect(page.get_by_test_id("stack-target")).to_be_visible()
    page.keyboard.press("Shift+Digit1")
    drawn(page, "hist")
    page.reload()
    drawn(page, "hist")
    expect(stage.locator("[data-plot]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(stage).to_have_count(0)
    expect(page).not_to_have_url(re.compile("stage="))
    expect(page.get_by_test_id("calls")).to_be_visible()
    drawn(page, "hist")


def test_on_the_stage_call_and_pair_stand_in_the_picture_and_in_the_saved_one(page: Page, address: str) -> None:
    show(page, f"{address}?tab=hist&stage=plot")
    drawn(page, "hist")
    title = page.locator("[data-plot] .gtitle")
    expect(title).to_contain_text(f"{CAUSE} · output.0 · step 0 · rank 0")
    expect(title).to_contain_text("target_fault ⇄ golden")
    frame, words = page.locator("[data-plot]").bounding_box(), title.bounding_box()
    assert frame is not None
    assert words is not None
    assert words["y"] >= frame["y"], "no line of it is cut"
    for place in ("", "&stage=plot"):
        show(page, f"{address}?tab=hist{place}")
        drawn(page, "hist")
        picture = saved(page, "svg")
        assert picture.suggested_filename.endswith(".svg")
        text = Path(picture.path()).read_text(encoding="utf-8")
        assert "<svg" in text
        assert f"{CAUSE} · output.0" in text
        assert "target_fault ⇄ golden" in text
        assert Path(saved(page, "png").path()).read_bytes()[:4] == b"\x89PNG"


def test_both_sides_lie_over_each_other_and_become_shares_on_request(page: Page, address: str) -> None:
    show(page, f"{address}?tab=hist&stage=plot")
    drawn(page, "hist")
    filled = page.locator("[data-plot] .xy .scatterlayer .js-fill")
    expect(filled).to_have_count(2)
    opacity = "fill => parseFloat(getComputedStyle(fill).fillOpacity)"
    assert all(0 < one.evaluate(opacity) < 0.5 for one in filled.all()), "what lies below is seen"
    page.get_by_test_id("plot-ecdf").click()
    expect(page).to_have_url(re.compile("ecdf=1"))
    expect(page.locator("[data-plot]")).to_contain_text("share up to the value")
    page.get_by_test_id("plot-log").click()
    expect(page).to_have_url(re.compile("log=1"))
    page.reload()
    expect(page.get_by_test_id("plot-ecdf")).to_be_checked()
    expect(page.locator("[data-plot]")).to_contain_text("share up to the value")


@pytest.mark.parametrize("place", ["", "&stage=plot"])
def test_the_tools_of_each_plot_have_one_row_and_its_words_are_whole(page: Page, made: str, place: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    show(page, at(made, "channels", TABS[0], place))
    panel = page.locator("[data-name=stage]" if place else "[data-name=evidence]")
    for tab in TABS:
        turn_to(page, tab, large=place != "")
        tools = [page.get_by_test_id(name) for name in ("plot-save", "plot-large", f"plot-{tab}")]
        expect(tools[0]).to_be_enabled()
        if tab != "values":
            drawn(page, tab)
        boxes = [box for box in (tool.bounding_box() for tool in tools) if box]
        middles = [box["y"] + box["height"] / 2 for box in boxes]
        assert len(boxes) == len(tools), tab
        assert max(middles) - min(middles) < 6, tab
        around = panel.bounding_box()
        assert around is not None
        assert all(box["x"] + box["width"] <= around["x"] + around["width"] for box in boxes), tab
        if tab == "values":
            continue
        words = page.locator("[data-testid=figure] figcaption")
        expect(words).to_be_in_viewport(ratio=1)
        assert words.evaluate("text => text.scrollHeight <= text.clientHeight + 1"), tab


def test_plots_without_room_for_a_tab_are_in_a_menu(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    show(page, f"{address}?tab=hist")
    drawn(page, "hist")
    expect(page.get_by_test_id("plot-runs")).to_have_count(0)
    page.get_by_test_id("plot-more").click()
    page.get_by_role("menuitem", name="Steps").click()
    drawn(page, "runs")
    expect(page.get_by_test_id("plot-runs")).to_have_attribute("aria-selected", "true")


def test_the_bar_above_the_plot_is_dragged_moved_by_keys_and_remembered(page: Page, address: str) -> None:
    show(page, address)
    drawn(page, "hist")
    bar = page.get_by_role("separator", name="Height of the plot")
    before = page.locator("#section-plots").bounding_box()
    grip = bar.bounding_box()
    assert before is not None
    assert grip is not None
    page.mouse.move(grip["x"] + 50, grip["y"] + 3)
    page.mouse.down()
    page.mouse.move(grip["x"] + 50, grip["y"] - 97, steps=4)
    page.mouse.up()
    height = "wanted => Math.abs(document.querySelector('#section-plots').getBoundingClientRect().height - wanted) < 2"
    page.wait_for_function(height, arg=before["height"] + 100)
    bar.focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_function(height, arg=before["height"] + 124)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.reload()
    drawn(page, "hist")
    page.wait_for_function(height, arg=before["height"] + 76)


@pytest.mark.parametrize("height", [800, 1400])
def test_of_a_long_list_of_apis_the_current_one_is_in_view(page: Page, address: str, height: int) -> None:
    page.set_viewport_size({"width": 1280, "height": height})
    show(page, f"{address}?tab=apis")
    drawn(page, "apis")
    labels = page.locator("[data-plot] .yaxislayer-above text, [data-plot] .ytick text")
    expect(labels.filter(has_text="Functional.softmax forward").first).to_be_visible()
    boxes = [box for label in labels.all() if label.is_visible() and (box := label.bounding_box())]
    tops = sorted(round(box["y"]) for box in boxes)
    assert len(tops) > 4
    assert min(after - before for before, after in pairwise(tops)) >= 10
