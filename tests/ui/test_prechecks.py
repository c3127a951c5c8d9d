"""Beside a comparison stands what a pre-check of its dumps says: the origin is itself wrong, what follows was fed wrong data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from warm_python import warm_python

from dumpscope.cli.app import status
from dumpscope.pipeline.operators.precheck import STATE
from ui.conftest import Server
from ui.driving import ask, finished, show
from ui.expecting import expect

pytest.importorskip("torch")

ORIGIN = "Functional.softmax.1.forward"
LATER = "Functional.linear.7.forward"
NOT_RUN = re.compile(r"^Alone.* not run yet: dumpscope precheck$", re.DOTALL)


@pytest.fixture(scope="module")
def checked(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The precheck.jsonl of target_fault's first step."""
    folder = tmp_path_factory.mktemp("checked")
    command = ["precheck", str(dumps / "target_fault"), "--step", "0", "--jobs", "1", "-o", str(folder)]
    assert status(command) == 1
    return folder / STATE


@pytest.fixture(scope="module")
def lending(tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Server]:
    """A server with a Python that has torch."""
    running = Server(tmp_path_factory.mktemp("lending") / "data", dumps, DUMPSCOPE_PYTHON=warm_python())
    yield running
    running.stop()


def test_the_origin_fails_alone_and_a_later_divergent_call_passes(
    page: Page, server: Server, dumps: Path, checked: Path
) -> None:
    address = finished(server, dumps / "target_fault", dumps / "golden")
    show(page, address)
    expect(page.get_by_test_id("selected-name")).to_contain_text(ORIGIN)
    expect(page.get_by_test_id("origin-alone")).to_have_count(0)
    expect(page.get_by_test_id("alone-how")).to_have_text(NOT_RUN)
    page.get_by_test_id("alone-how").click()
    empty = page.get_by_test_id("unchecked-target")
    dump = ask(server, "GET", address.removeprefix(server.url))["target"]
    expect(empty.get_by_role("code")).to_have_text(
        f"dumpscope precheck {dumps / 'target_fault'} --server {server.url}/dumps/{dump}"
    )
    expect(page.get_by_test_id("run-precheck-target")).to_have_count(0)
    with page.expect_file_chooser() as chooser:
        page.get_by_test_id("send-precheck-target").click()
    chooser.value.set_files(checked)

    said = page.get_by_test_id("alone-target")
    expect(said.get_by_test_id("alone-word")).to_have_text("fails")
    expect(said).to_contain_text("in the dump: fails (9.26e+4 units")
    expect(said).to_contain_text("run on cpu: passes")
    expect(said).to_contain_text("inputs recorded")
    expect(page.get_by_test_id("alone-how")).to_have_text("golden not run yet: dumpscope precheck")
    expect(page.get_by_test_id("origin-alone")).to_contain_text("wrong for its own inputs")
    calls = page.get_by_test_id("calls")
    row = calls.get_by_role("row", selected=True)
    expect(row.get_by_test_id("alone-chip")).to_contain_text("fails alone")
    expect(
        page.get_by_test_id("tree").get_by_role("treeitem", selected=True).get_by_test_id("alone-chip")
    ).to_be_visible()

    page.get_by_test_id("search").fill("alone:fail")
    expect(page.get_by_test_id("total")).to_contain_text("2 ")
    expect(calls.get_by_test_id("alone-chip")).to_have_count(2)
    show(page, f"{address}?s=0&r=0&n={LATER}")
    expect(page.get_by_test_id("selected-name")).to_contain_text(LATER)
    expect(page.get_by_test_id("alone-target").get_by_test_id("alone-word")).to_have_text("passes")
    show(page, f"{address}?s=1&r=0&n={ORIGIN}")
    expect(page.get_by_test_id("alone-how")).to_have_text(NOT_RUN)
    page.get_by_test_id("alone-how").click()
    expect(page.get_by_test_id("unchecked-target")).to_contain_text("but not of this step and rank")
    expect(page.get_by_test_id("unchecked-golden")).not_to_contain_text("but not of this step and rank")
    ask(server, "DELETE", f"/dumps/{dump}/prechecks")


def test_the_server_runs_one_with_progress(page: Page, lending: Server, dumps: Path) -> None:
    show(page, finished(lending, dumps / "target_fault_bwd", dumps / "golden"))
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.layer_norm.3.backward")
    page.get_by_test_id("alone-how").click()
    page.get_by_test_id("run-precheck-target").click()
    said = page.get_by_test_id("alone-target")
    expect(said.get_by_test_id("alone-word")).to_have_text("fails")
    expect(page.get_by_test_id("unchecked-target")).to_have_count(0)
    expect(page.get_by_test_id("origin-alone")).to_contain_text("wrong for its own inputs")


def test_a_run_is_cancelled(page: Page, lending: Server, dumps: Path) -> None:
    show(page, finished(lending, dumps / "target_extra_op", dumps / "golden"))
    calls = page.get_by_test_id("calls")
    expect(calls).to_have_attribute("aria-rowcount", re.compile(r"^\d{3}$"))  # the list is there
    everything = calls.get_attribute("aria-rowcount") or ""
    page.get_by_test_id("search").fill("api:linear")
    expect(calls).not_to_have_attribute("aria-rowcount", everything)  # no row moves under the pointer any more
    calls.get_by_role("row").filter(has_text="Functional.linear.0.forward").click()
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.linear.0.forward")
    page.get_by_test_id("alone-how").click()
    golden = page.get_by_test_id("unchecked-golden")
    golden.get_by_test_id("run-precheck-golden").click()
    golden.get_by_test_id("cancel").click()
    expect(golden.get_by_test_id("run-precheck-golden")).to_be_visible()
    expect(page.get_by_test_id("alone-golden")).to_have_count(0)


def test_it_is_said_in_chinese_too(page: Page, server: Server, dumps: Path, checked: Path) -> None:
    address = finished(server, dumps / "target_fault", dumps / "golden")
    dump = ask(server, "GET", address.removeprefix(server.url))["target"]
    ask(server, "POST", f"/dumps/{dump}/prechecks", {"text": checked.read_text()})
    page.add_init_script("localStorage.setItem('dumpscope.language', 'zh')")
    show(page, address)
    expect(page.get_by_test_id("alone-target").get_by_test_id("alone-word")).to_have_text("失败")
    expect(page.get_by_test_id("origin-alone")).to_contain_text("单独运行")
