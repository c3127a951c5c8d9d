"""Both languages say everything, and the Chinese screens say nothing in English but names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from dumpscope import errors
from dumpscope.api.http.error_body import CODES
from dumpscope.plots.pair.density import pair_density_data, pair_density_figure
from dumpscope.plots.pair.difference_map import difference_map_data, difference_map_figure
from dumpscope.plots.pair.errors import error_histogram_data, error_histogram_figure
from dumpscope.plots.pair.histogram import pair_histogram_data, pair_histogram_figure
from dumpscope.plots.run.apis import all_apis_data, all_apis_figure
from dumpscope.plots.run.distribution import api_distribution_data, api_distribution_figure
from dumpscope.plots.run.order import error_order_data, error_order_figure
from dumpscope.plots.run.steps_and_ranks import call_over_runs_data, call_over_runs_figure
from dumpscope.plots.run.values import (
    Measure,
    ValueOrder,
    api_values_data,
    api_values_figure,
    value_order_data,
    value_order_figure,
)
from dumpscope.plots.tensor.histogram import tensor_histogram_data, tensor_histogram_figure
from dumpscope.plots.tensor.statistics import spread_figure, spread_of
from dumpscope.plots.tensor.value_map import value_map_data, value_map_figure
from dumpscope.readers.file_type import KINDS
from dumpscope.texts import catalogue
from ui.conftest import Server
from ui.driving import ask, go_on, known, ready, show, start
from ui.expecting import expect

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "backend" / "dumpscope" / "texts"
CHINESE = re.compile("[\u4e00-\u9fff]")


TERMS = re.compile(r"\{\w+\}|\b(?:inf|step|rank|task|level|dtype|Warning|Yes|NaN/Inf|msprobe)\b|--[a-z-]+")
"""What Chinese readers call by its English name; rule.Q says what msprobe says."""
COMMANDS = re.compile(r"^(?:pip install|dumpscope|run|--server|--matrix) ")


def test_every_sentence_of_the_server_is_chinese() -> None:
    for key, template in catalogue("zh")["said"].items():
        bare = TERMS.sub("", template)
        assert (
            CHINESE.search(template)
            or not re.search("[a-z]{2}", bare)
            or COMMANDS.match(template)
            or key[:6] == "rule.Q"
        ), key


def sources(*folders: str) -> Iterator[str]:
    for folder in folders:
        for path in (ROOT / "backend" / "dumpscope" / folder).rglob("*.py"):
            yield path.read_text(encoding="utf-8")


def test_each_side_has_one_name_in_chinese() -> None:
    for path in TEXTS.glob("zh*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search("目标|(?<!参考)基准", text), path.name


def test_every_kind_of_problem_is_explained_in_chinese() -> None:
    explained = catalogue("zh")["kinds"]["problems"]
    used: set[str] = set()
    for source in sources("readers", "pipeline", "match", "api"):
        used |= set(re.findall(r'(?:Problem|TensorError)\([^()]*?kind="([a-z_]+)"', source, re.S))
        used |= set(re.findall(r'\b_note(?:_node)?\([^"()]*"([a-z_]+)"', source))
        used |= set(re.findall(r'raise TensorError\(.*?kind="([a-z_]+)"', source, re.S))
    assert {"truncated", "missing", "refused", "wrong_type", "unmatched_rank", "over_budget"} <= used
    assert used <= explained.keys()
    assert all(CHINESE.search(text) for text in explained.values())


def test_every_error_code_is_explained_in_chinese() -> None:
    explained = catalogue("zh")["kinds"]["errors"]
    ours = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")}
    assert ours | set(CODES.values()) | {"http"} == explained.keys()
    assert all(CHINESE.search(text) for text in explained.values())


def test_everything_that_is_no_dump_is_explained_in_chinese() -> None:
    explained = catalogue("zh")["kinds"]["foreign"]
    assert explained.keys() == KINDS
    assert all(CHINESE.search(text) and text.count("。") > 1 for text in explained.values())


def spoken(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for one in part:
            yield from spoken(one) if isinstance(one, dict | list) else ()
    elif isinstance(part, dict):
        for key, value in part.items():
            if isinstance(value, str):
                if key in ("text", "name", "hovertemplate"):
                    yield value
            else:
                yield from spoken(value)


MEASURES: tuple[Measure, ...] = ("norm", "max")


def test_every_word_of_a_figure_is_known_in_chinese() -> None:
    known = catalogue("zh")["figures"]
    values, bins = np.arange(6.0), [1] * 23
    orders = error_order_data(
        [0, 1, 2], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], list("abc"), selected=0, origins=[1], backward=1
    )
    lost = np.where(values == 2, np.nan, values)
    spread = spread_of(6, high=5.0, low=0.0, mean=2.5, norm=8.0)
    assert spread is not None
    sizes, bad = np.array([1.0, 2.0, np.nan]), np.array([False, False, True])

    def order_of(measure: Measure) -> ValueOrder:
        return value_order_data(list("abc"), sizes, bad, np.array([False, True, False]), measure=measure, first=2)

    figures = [
        error_order_figure(orders),
        api_distribution_figure(api_distribution_data("a", [0, 1], [0.5, 2.0], ["a", "b"], current=1)),
        all_apis_figure(all_apis_data(["a"], np.array([0, 0]), np.array([0.5, 2.0]), ["a", "b"], current=1)),
        call_over_runs_figure(call_over_runs_data("a", [0, 1], [0, 0], [0.5, 2.0], current=(0, 0))),
        call_over_runs_figure(call_over_runs_data("a", [0, 0], [0, 1], [0.5, 2.0], current=(0, 0))),
        pair_histogram_figure(pair_histogram_data(values, values + 1)),
        pair_histogram_figure(pair_histogram_data(values + 1j, values)),
        pair_histogram_figure(pair_histogram_data(values, values + 1), ecdf=True),
        pair_density_figure(pair_density_data(values, values + 1)),
        pair_density_figure(pair_density_data(values + 1j, values)),
        difference_map_figure(difference_map_data(lost, values + 1)),
        difference_map_figure(difference_map_data(values, values + 1, reduce="rms")),
        error_histogram_figure(error_histogram_data(bins, bins)),
        tensor_histogram_figure(tensor_histogram_data(values)),
        value_map_figure(value_map_data(lost)),
        value_map_figure(value_map_data(values, reduce="rms")),
        spread_figure(spread),
        *(value_order_figure(order_of(measure)) for measure in MEASURES),
        api_values_figure(api_values_data(["a"], np.zeros(3, int), list("abc"), sizes, bad, measure="norm", current=1)),
    ]
    words = {word for figure in figures for word in spoken(figure)}
    words -= {"", "a", "b", "c", "%{text}<extra></extra>", "%{x}<extra></extra>", "dim 0", "rank 0"}
    assert words == known.keys()


SENTENCE = re.compile(r"[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}")
"""Three words in a row: names of nodes, files and tools have none."""

VISIBLE = """() => {
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const box = walk.currentNode.parentElement;
    if (box.closest("script, style, code, pre, bdi, .mono, [lang=en]")) continue;
    if (walk.currentNode.data.trim()) out.push(walk.currentNode.data.trim());
  }
  for (const box of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
    if (box.closest("code, pre, bdi")) continue;
    for (const name of ["aria-label", "title", "placeholder"]) {
      const text = box.getAttribute(name);
      const stack = name === "title" && box.closest("[data-testid^=stack]");
      if (text && !stack) out.push(text);
    }
  }
  return out;
}"""


def assert_no_english(page: Page, screen: str) -> None:
    seen = page.evaluate(VISIBLE)
    assert any(CHINESE.search(text) for text in seen), screen
    assert [text for text in seen if SENTENCE.search(text)] == [], screen


@pytest.mark.parametrize(
    ("target", "golden", "says"),
    [
        ("target_fault", "golden", "输入全部完全相同，但输出不一致"),
        ("target_nan", "golden", "标杆侧没有的 NaN 或 Inf"),
        ("target_fault_weight", "golden", "在任何算子使用之前就已不一致"),
        ("target_fault_gelu_arg", "golden", "调用参数不同"),
        ("target_extra_op", "golden", "仅出现在"),
        ("stat_fault", "stat_golden", "两个输入的统计量完全相同，但输出不一致"),
        ("md5_fault", "md5_golden", "输入全部完全相同，但输出不一致"),
    ],
)
def test_a_chinese_reader_is_told_everything_in_chinese(
    chinese: Page, server: Server, dumps: Path, target: str, golden: str, says: str
) -> None:
    show(chinese, known(server, dumps / target, dumps / golden))
    expect(chinese.get_by_test_id("reason")).to_contain_text(says)
    for plot in ("hist", "pair", "api", "map", "order", "apis", "error", "runs"):
        chinese.get_by_test_id(f"plot-{plot}").click()
        expect(chinese.get_by_test_id(f"plot-{plot}")).to_have_attribute("aria-selected", "true")
        expect(chinese.get_by_test_id("figure")).to_contain_text(CHINESE)
        chinese.wait_for_load_state("networkidle")
        assert_no_english(chinese, f"{target}, {plot}")
    item = chinese.get_by_test_id("io").get_by_role("button").last
    item.click()
    expect(chinese.get_by_test_id("io")).to_contain_text("规则")
    chinese.wait_for_load_state("networkidle")
    assert_no_english(chinese, f"{target}, metrics")


def test_dialogs_are_chinese_too(chinese: Page, server: Server, dumps: Path) -> None:
    address = known(server, dumps / "target_fault", dumps / "golden")
    show(chinese, address)
    for dialog in ("match", "matches", "trends"):
        go_on(chinese, f"{address}?do={dialog}")
        expect(chinese.get_by_role("dialog")).to_contain_text(CHINESE)
        chinese.wait_for_load_state("networkidle")
        assert_no_english(chinese, dialog)
        go_on(chinese, address)
        expect(chinese.get_by_role("dialog")).to_have_count(0)


def test_trends_of_a_dump_are_chinese_too(chinese: Page, server: Server, dumps: Path) -> None:
    comparison = known(server, dumps / "target_fault", dumps / "golden").rsplit("/", 1)[1]
    dump = ask(server, "GET", f"/comparisons/{comparison}")["target"]
    show(chinese, f"{server.url}/dumps/{dump}")
    expect(chinese.get_by_test_id("node-trend")).to_contain_text("首个 NaN/Inf")
    chinese.get_by_test_id("open-trends").click()
    expect(chinese.get_by_test_id("trends").get_by_role("table")).to_be_visible()
    chinese.wait_for_load_state("networkidle")
    assert_no_english(chinese, "trends of a dump")


@pytest.mark.parametrize("dump", ["target_nan", "stat_nan", "golden", "cfg_structure"])
def test_one_dump_alone_is_chinese_too(chinese: Page, server: Server, dumps: Path, dump: str) -> None:
    show(chinese, ready(server, dumps / dump))
    expect(chinese.get_by_test_id("opened-at")).to_contain_text(CHINESE)
    for plot in ("hist", "map", "values", "order", "apis"):
        chinese.get_by_test_id(f"plot-{plot}").click()
        expect(chinese.get_by_test_id(f"plot-{plot}")).to_have_attribute("aria-selected", "true")
        chinese.wait_for_load_state("networkidle")
        assert_no_english(chinese, f"{dump}, {plot}")
    chinese.get_by_test_id("alone-how").click()
    expect(chinese.get_by_test_id("unchecked-dump")).to_be_visible()
    for opener, there in (("help", "marks"), ("open-compare", "compare-with")):
        chinese.get_by_test_id(opener).click()
        expect(chinese.get_by_test_id(there)).to_be_visible()
        chinese.wait_for_load_state("networkidle")
        assert_no_english(chinese, f"{dump}, {there}")
        chinese.keyboard.press("Escape")
        expect(chinese.get_by_test_id(there)).to_have_count(0)


def test_the_options_of_a_comparison_are_chinese_too(chinese: Page, server: Server) -> None:
    show(chinese, server.url)
    chinese.get_by_role("button", name="选项").click()
    expect(chinese.get_by_test_id("rename-rules")).to_be_visible()
    assert_no_english(chinese, "options")


def test_start_dump_and_failure_are_chinese_too(chinese: Page, server: Server, dumps: Path) -> None:
    failed = start(server, dumps / "crash_tensor", dumps / "golden")
    show(chinese, f"{server.url}/comparisons/{failed}")
    expect(chinese.get_by_test_id("failure")).to_contain_text("重新比对")
    assert_no_english(chinese, "failed comparison")
    dump = ask(server, "GET", f"/comparisons/{failed}")["target"]
    show(chinese, f"{server.url}/dumps/{dump}")
    expect(chinese.get_by_test_id("facts")).to_be_visible()
    chinese.wait_for_load_state("networkidle")
    assert_no_english(chinese, "dump with problems")
    show(chinese, server.url)
    expect(chinese.get_by_test_id("comparisons").get_by_role("row").nth(1)).to_be_visible()
    assert_no_english(chinese, "start")
