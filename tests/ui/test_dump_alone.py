"""One dump alone: it opens where it went wrong, has plots and values, and leads to a comparison."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, Route
from plots.tensor_dumps import node_of, write_dump

from ui.conftest import Server
from ui.driving import ask, ready, show
from ui.expecting import expect, noticing

CAUSE = "Functional.gelu.0.forward"
TABS = ("hist", "map", "values", "order", "apis")
FIGURES = tuple(tab for tab in TABS if tab != "values")

DRAWN = """tab => {
    const [plot, ...more] = document.querySelectorAll("[data-plot]");
    if (!plot || more.length || !plot.dataset.drawn?.startsWith(`${tab}/`)) return false;
    const box = plot.querySelector(".main-svg")?.getBoundingClientRect();
    const marks = plot.querySelector(".trace path, .hm image, .point, .trace .js-line");
    return !!marks && !!box && box.height > 100 && box.width > 200 && plot.checkVisibility();
}"""


@pytest.fixture(scope="module")
def broken(server: Server, dumps: Path) -> str:
    return ready(server, dumps / "target_nan")


@pytest.fixture(scope="module")
def sound(server: Server, dumps: Path) -> str:
    return ready(server, dumps / "golden")


@pytest.fixture(scope="module")
def recorded(server: Server, dumps: Path) -> str:
    return ready(server, dumps / "stat_nan")


def test_it_opens_at_the_first_nan_says_why_and_lists_how_large_outputs_are(page: Page, broken: str) -> None:
    show(page, broken)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("opened-at")).to_have_text(
        "Opened here: the first NaN or infinity that no argument asked for."
    )
    expect(page.get_by_test_id("nodes").locator(f"[data-name='{CAUSE}']")).to_have_attribute("aria-selected", "true")
    assert "n=" not in page.url
    # The list says how large the outputs are.
    rows = page.get_by_test_id("nodes")
    row = rows.locator("[data-name='Functional.linear.2.forward']")
    expect(row).to_contain_text("float32 [2,6,16]")
    expect(row).to_contain_text("8.682")
    expect(row).to_contain_text("1.736")
    lost = rows.locator(f"[data-name='{CAUSE}'] [data-lost]")
    expect(lost.first).to_contain_text("+inf")
    page.keyboard.press("k")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Module.layers.0.mlp.fc1.Linear.forward.0")
    expect(page.get_by_test_id("opened-at")).to_have_count(0)
    # The help lists the keys and marks of this page only.
    page.get_by_test_id("help").click()
    dialog = page.get_by_role("dialog")
    for mark in (
        "born here", "came in", "propagated", "contains", "absorbed", "intended", "saturated", "growth", "fails alone",
    ):  # fmt: skip
        expect(dialog.get_by_test_id("marks").get_by_text(mark, exact=False).first).to_be_visible()
    expect(dialog).not_to_contain_text("amplifier")
    expect(dialog).not_to_contain_text("match with another call")
    expect(dialog.get_by_test_id("search-terms")).to_have_count(0)
    expect(dialog.get_by_test_id("keys")).to_contain_text("the first of them")
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    page.keyboard.press("g")
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    with noticing(page, "There is no further one in this step and rank.", whole=True):
        page.keyboard.press("n")
    # An address with a call opens there.
    show(page, f"{broken}?n=Functional.linear.2.forward")
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.linear.2.forward")
    expect(page.get_by_test_id("opened-at")).to_have_count(0)


def test_without_one_it_opens_at_the_first_call_and_says_so(page: Page, sound: str) -> None:
    show(page, sound)
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.embedding.0.forward")
    expect(page.get_by_test_id("opened-at")).to_contain_text("Opened at the first call: no NaN")
    expect(page.get_by_test_id("first-overflow")).to_have_count(0)


def recorded_call(sizes: tuple[float, float]) -> dict[str, object]:
    """A call as a dump of statistics has it, with the norms of its input and output."""
    leaves = [
        {
            "type": "torch.Tensor",
            "dtype": "torch.float32",
            "shape": [4],
            "Max": size,
            "Min": 0.0,
            "Mean": 0.1,
            "Norm": size,
        }
        for size in sizes
    ]
    return {"input_args": [leaves[0]], "input_kwargs": {}, "output": [leaves[1]]}


def test_without_nan_it_opens_where_a_number_grew_a_hundredfold(page: Page, server: Server, generated: Path) -> None:
    folder = generated / "alone" / "growing" / "step0" / "rank0"
    folder.mkdir(parents=True)
    sizes = {"add": (1.0, 2.0), "mul": (2.0, 9000.0), "sub": (9000.0, 9001.0)}
    data = {f"Torch.{name}.0.forward": recorded_call(one) for name, one in sizes.items()}
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(head))
    for name in ("construct", "stack"):
        (folder / f"{name}.json").write_text("{}")
    show(page, ready(server, folder.parents[1]))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Torch.mul.0.forward")
    expect(page.get_by_test_id("opened-at")).to_have_text("Opened here: the norm grew a hundredfold in this call.")
    expect(page.get_by_test_id("finding")).to_contain_text("growth")


def test_every_plot_is_drawn_by_its_key_and_stands_in_the_address(page: Page, broken: str) -> None:
    show(page, broken)
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.wait_for_function(DRAWN, arg="hist")
    caption = page.get_by_test_id("figure").locator("figcaption")
    expect(caption).to_contain_text("192 elements, finite values from -0.1699 to 1.481. Zeros: 0.")
    expect(caption).to_contain_text("Not drawn: 0 NaN, 1 inf, 0 -inf.")
    for key, tab in enumerate(TABS, 1):
        page.keyboard.press(str(key))
        expect(page.get_by_test_id(f"plot-{tab}")).to_have_attribute("aria-selected", "true")
        if tab in FIGURES:
            page.wait_for_function(DRAWN, arg=tab)
        else:
            expect(page.get_by_test_id("values-grid")).to_be_visible()
    expect(page).to_have_url(re.compile("tab=apis"))
    page.reload()
    page.wait_for_function(DRAWN, arg="apis")


def test_values_open_at_the_infinity_and_lead_to_the_largest(page: Page, broken: str) -> None:
    show(page, f"{broken}?tab=values")
    words = page.get_by_test_id("value-words")
    expect(words).to_contain_text("[1, 2, 5]: +inf. float32 [2, 6, 16]")
    expect(page.get_by_test_id("values-grid").locator("[aria-selected=true]")).to_have_text("+inf")
    page.get_by_test_id("value-largest").click()
    expect(words).to_contain_text("1.48")
    page.get_by_test_id("values-grid").get_by_role("grid").press("Control+Home")
    expect(words).to_contain_text("[0, 0, ")
    page.get_by_test_id("plot-save").click()
    with page.expect_download() as caught:
        page.get_by_test_id("plot-csv").click()
    rows = list(csv.reader(Path(caught.value.path()).read_text().splitlines()))
    assert rows[0] == ["index", "value"]
    assert len(rows) > 6


def test_a_point_of_the_run_selects_its_call(page: Page, broken: str) -> None:
    show(page, f"{broken}?tab=order&n=Functional.linear.0.forward")
    page.wait_for_function(DRAWN, arg="order")
    expect(page.get_by_test_id("figure").locator("figcaption")).to_contain_text(
        f"The first that nobody asked for is at {CAUSE}"
    )
    page.locator("[data-plot]").evaluate(
        """plot => {
            const star = plot.data.find(trace => trace.name === "first not asked for");
            plot.emit("plotly_click", { points: [{ customdata: star.customdata[0], data: star }] });
        }"""
    )
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    page.get_by_test_id("plot-settings").click()
    page.get_by_test_id("plot-measure").click()
    page.get_by_role("option", name="Max |x|", exact=True).click()
    expect(page.get_by_test_id("figure").locator("figcaption")).to_contain_text("Largest magnitude of the first output")
    expect(page).to_have_url(re.compile("m=max"))


def test_statistics_alone_show_their_range_and_the_setting_that_dumps_tensors(page: Page, recorded: str) -> None:
    show(page, f"{recorded}?n=Functional.linear.0.forward")
    page.wait_for_function(DRAWN, arg="order")  # more is told by the run than by a range
    page.keyboard.press("1")
    page.wait_for_function(DRAWN, arg="hist")
    caption = page.get_by_test_id("figure").locator("figcaption")
    expect(caption).to_contain_text("By the recorded statistics, 288 elements from -1.371 to 1.875.")
    expect(caption).to_contain_text('"list": ["Functional.linear.0.forward"]')
    page.get_by_test_id("plot-settings").click()
    expect(page.get_by_role("dialog", name="Tensor and scale")).to_be_visible()
    expect(page.get_by_test_id("plot-log")).to_have_count(0)
    page.keyboard.press("2")
    expect(page.get_by_test_id("figure")).to_contain_text("The tensor was not dumped.")
    page.keyboard.press("3")
    expect(page.get_by_test_id("values")).to_contain_text('"task": "tensor"')


def test_a_cell_of_the_map_leads_to_its_largest_value(page: Page, server: Server, generated: Path) -> None:
    tensor = np.zeros((8, 64), dtype=np.float32)
    tensor[[1, 5]] = 1
    tensor[5, 40] = -9.5
    dump = ready(server, write_dump(generated / "alone" / "rows", {"rows": tensor}))
    show(page, f"{dump}?n={node_of('rows')}&tab=map")
    page.wait_for_function(DRAWN, arg="map")
    expect(page.get_by_test_id("figure")).to_contain_text("Only rows 1, 5 of 8 hold anything but zero (dim 0).")
    page.locator("[data-plot]").evaluate(
        "plot => plot.emit('plotly_click', { points: [{ pointNumber: [5, 40], data: plot.data[0] }] })"
    )
    expect(page.get_by_test_id("value-words")).to_contain_text("[5, 40]: -9.5.")


def test_a_comparison_starts_from_here(page: Page, server: Server, broken: str, sound: str) -> None:
    golden = sound.rsplit("/", 1)[1]
    show(page, broken)
    page.get_by_test_id("open-compare").click()
    expect(page.get_by_test_id("start-compare")).to_be_disabled()
    picker = page.get_by_test_id("compare-with")
    picker.get_by_role("searchbox").fill("golden")
    picker.locator(f"[data-dump='{golden}']").check()
    expect(page.get_by_test_id("compare-sides")).to_have_text("target_nan (target) against golden (golden)")
    page.get_by_test_id("compare-role").get_by_text("the golden").click()
    expect(page.get_by_test_id("compare-sides")).to_have_text("golden (target) against target_nan (golden)")
    page.get_by_test_id("compare-role").get_by_text("the target").click()
    page.get_by_test_id("start-compare").click()
    expect(page).to_have_url(re.compile("/comparisons/"))
    made = ask(server, "GET", f"/comparisons/{page.url.split('/')[-1].split('?')[0]}")
    assert (made["target"], made["golden"]) == (broken.rsplit("/", 1)[1], golden)
    expect(page.get_by_test_id("banner")).to_contain_text(CAUSE)


def test_its_options_are_those_of_the_start_page(page: Page, broken: str, sound: str) -> None:
    show(page, f"{broken}?do=compare")
    page.get_by_test_id("compare-with").locator(f"[data-dump='{sound.rsplit('/', 1)[1]}']").check()
    page.get_by_test_id("compare-options").click()
    expect(page).to_have_url(re.compile("target=.*golden="))
    expect(page.get_by_test_id("target")).to_have_value("target_nan")
    expect(page.get_by_test_id("golden")).to_have_value("golden")
    expect(page.get_by_test_id("rename-rules")).to_be_visible()
    page.reload()
    expect(page.get_by_test_id("target")).to_have_value("target_nan")


def test_the_pre_check_of_the_call_is_shown_or_how_to_get_one(page: Page, server: Server, dumps: Path) -> None:
    place = ready(server, dumps / "target_nan")
    dump = place.rsplit("/", 1)[1]
    show(page, place)
    page.get_by_test_id("alone-how").click()
    expect(page.get_by_test_id("unchecked-dump")).to_contain_text(
        f"dumpscope precheck {dumps / 'target_nan'} --server {server.url}/dumps/{dump}"
    )
    line = '{"name": "Functional.gelu.0", "step": 0, "rank": 0, "crash": "broke off"}'
    ask(server, "POST", f"/dumps/{dump}/prechecks", {"text": '{"device": "npu:0"}\n' + line})
    page.reload()
    alone = page.get_by_test_id("alone")
    expect(alone.get_by_test_id("alone-word")).to_have_text("fails")
    expect(alone).to_contain_text("broke off")
    expect(page.get_by_test_id("nodes").locator(f"[data-name='{CAUSE}']").get_by_test_id("alone-chip")).to_be_visible()
    page.keyboard.press("j")
    expect(alone).to_contain_text("The pre-check does not include this call.")


def test_a_dump_that_is_read_shows_no_zero_that_is_not_known(page: Page, server: Server, sound: str) -> None:
    dump = ask(server, "GET", f"/dumps/{sound.rsplit('/', 1)[1]}")
    pending = {**dump, "status": "pending", "nodes": 0, "items": 0, "bytes": 0, "steps": [], "ranks": [], "job": None}
    held: list[Route] = []

    def still_read(route: Route) -> None:
        held.append(route)
        route.fulfill(json=pending)

    page.route(re.compile(rf"/api/dumps/{dump['id']}$"), still_read)
    page.goto(sound)
    expect(page.get_by_text("The dump is being read.")).to_be_visible()
    assert held
    assert not re.search(r"\b0\b", page.locator("main").inner_text())


def test_it_is_all_said_in_chinese(chinese: Page, broken: str) -> None:
    show(chinese, broken)
    expect(chinese.get_by_test_id("opened-at")).to_contain_text("首个并非参数要求的 NaN 或 Inf")
    caption = chinese.get_by_test_id("figure").locator("figcaption")
    expect(caption).to_contain_text("192 个元素，有限值在 -0.1699 至 1.481 之间。")
    chinese.keyboard.press("4")
    expect(caption).to_contain_text("次调用的首个输出的范数，按调用顺序排列。")
    chinese.wait_for_function(DRAWN, arg="order")
    axis = chinese.locator("[data-plot]").evaluate("plot => plot.layout.yaxis.title.text")
    assert axis == "输出的范数"
    expect(chinese.get_by_test_id("open-compare")).to_have_text("与…比对")


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, broken: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, f"{broken}?tab=order")
    page.wait_for_function(DRAWN, arg="order")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    label, value = (page.get_by_test_id("rank").locator("span").nth(place).bounding_box() or {} for place in (0, 1))
    assert label["x"] < value["x"]
    show(page, f"{broken}?do=compare")
    expect(page.get_by_test_id("compare-with").get_by_role("radio").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
