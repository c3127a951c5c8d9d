"""A watched folder on the page: new steps, a pair compared by itself, a run of the recorder seen live, the end told."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route

from ui.conftest import Server
from ui.driving import ask, known, ready
from ui.expecting import expect
from ui.test_access import AT_REST, grave

SETTLE = 1.0
CAUSE = "softmax.1"

RUN = """
import json, sys, time
import torch
from dumpscope_capture import PrecisionDebugger

folder = sys.argv[1]
with open(folder + ".json", "w") as out:
    json.dump({"task": "statistics", "dump_path": folder, "level": "L1", "step": [], "statistics": {}}, out)
debugger = PrecisionDebugger(folder + ".json")
model = torch.nn.Linear(4, 4)
debugger.start(model)
for line in sys.stdin:
    order = line.strip()
    if order == "calls":
        for _ in range(30):
            torch.relu(model(torch.ones(2, 4)))
    elif order == "step":
        debugger.stop()
        debugger.step()
        debugger.start(model)
    elif order == "end":
        debugger.stop()
        debugger.step()
        break
    print(order, flush=True)
"""
"""A training run that does what it is told, one line each."""


class Training:
    """A real run of the recorder in another process."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, order: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        if order == "end":
            assert self.process.wait(60) == 0
        else:
            assert order in iter(self.process.stdout.readline().strip, "")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def watching(runs: Path, tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "data", runs, DUMPSCOPE_WATCH_SETTLE=str(SETTLE))
    yield running
    running.stop()


def write_step(dumps: Path, run: Path, name: str, step: int) -> None:
    run.mkdir(exist_ok=True)
    copied = run.parent / f".{run.name}.copied"
    shutil.copytree(dumps / name / f"step{step}", copied)
    copied.rename(run / f"step{step}")


def row_of(page: Page, name: str) -> Locator:
    dumps = page.get_by_test_id("dumps").get_by_role("row")
    return dumps.filter(has=page.get_by_role("link", name=name, exact=True))


def begin_watch(page: Page, name: str, partner: str | None = None) -> None:
    row_of(page, name).get_by_test_id("open-watch").click()
    form = page.get_by_test_id("watch-form")
    expect(form).to_be_visible()
    if partner is not None:
        form.get_by_test_id("watch-partner").click()
        page.get_by_role("option", name=partner).first.click()
    form.get_by_test_id("begin-watch").click()
    expect(form).to_have_count(0)


def test_new_steps_appear_and_the_pair_is_compared_by_itself(
    page: Page, watching: Server, runs: Path, dumps: Path
) -> None:
    for name, run in (("target_fault", "npu_run"), ("golden", "gpu_run")):
        write_step(dumps, runs / run, name, 0)
        ready(watching, runs / run)
    page.goto(watching.url)
    begin_watch(page, "gpu_run")
    expect(row_of(page, "gpu_run").get_by_test_id("watch")).to_be_visible()
    begin_watch(page, "npu_run", partner="gpu_run")
    row = row_of(page, "npu_run")
    made = page.get_by_test_id("comparisons").get_by_test_id("made-by-watch")
    expect(made).to_have_text("made by the watch")
    expect(page.get_by_test_id("comparisons")).to_contain_text("Functional.softmax.1.forward")
    expect(row.get_by_test_id("watch-pair")).to_have_text("compared with gpu_run")
    expect(row.get_by_test_id("new-steps")).to_have_count(0)
    for name, run in (("target_fault", "npu_run"), ("golden", "gpu_run")):
        write_step(dumps, runs / run, name, 1)
    expect(row.get_by_test_id("new-steps")).to_have_text("1 new step")
    expect(row.locator("[data-column=steps]")).to_have_text("0–1")
    row.get_by_test_id("watch-pair").click()
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.softmax.1.forward")
    expect(page).to_have_title(f"✖ {CAUSE} - dumpscope")
    expect(page.get_by_test_id("step")).to_be_visible()
    assert len(ask(watching, "GET", "/comparisons")["items"]) == 1


def test_a_running_capture_is_seen_live_until_it_ends(
    page: Page, watching: Server, runs: Path, pytestconfig: pytest.Config
) -> None:
    pytest.importorskip("torch")
    folder = runs / "training"
    run = Training(folder)
    run.tell("calls")
    page.goto(ready(watching, folder))
    expect(page.get_by_test_id("facts")).to_be_visible()
    page.get_by_test_id("open-watch").click()
    page.get_by_test_id("begin-watch").click()
    line = page.get_by_test_id("watch")
    expect(line).to_be_visible()
    run.tell("calls")
    expect(line).to_have_attribute("data-condition", "growing")
    expect(line).to_contain_text(re.compile(r"still growing: step 0, \d+ calls so far"))
    before = nodes(page)
    for _ in range(3):
        run.tell("calls")
    page.wait_for_function(
        f"() => Number(document.querySelector('[data-testid=facts] dd:nth-of-type(1)') !== null) && ({NODES}) > {before}"
    )
    dump = page.url.rsplit("/", 1)[1]
    provisional = ask(watching, "POST", "/comparisons", {"target": dump, "golden": dump})["id"]
    run.tell("calls")
    page.goto(f"{watching.url}/comparisons/{provisional}")
    grew = page.get_by_test_id("grew")
    expect(grew).to_contain_text("Provisional. The target was still growing when it was compared: step 0,")
    run.tell("end")
    expect(grew).to_contain_text("It has ended since.")
    axe_finds_nothing(page, pytestconfig)
    page.goto(f"{watching.url}/dumps/{dump}")
    expect(line).to_have_attribute("data-condition", "ended")
    expect(line).to_contain_text("step 0 ended at")
    expect(page.get_by_test_id("tree").get_by_role("treeitem").first).to_be_visible()
    axe_finds_nothing(page, pytestconfig)
    page.get_by_test_id("stop-watch").click()
    expect(line).to_have_count(0)


def axe_finds_nothing(page: Page, pytestconfig: pytest.Config) -> None:
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        page.wait_for_function(AT_REST)
        assert grave(page, pytestconfig) == []


NODES = """Number([...document.querySelectorAll("[data-testid=facts] dl > div")]
    .find((one) => one.querySelector("dt").textContent === "Nodes")?.querySelector("dd").textContent.replace(/\\D/g, ""))"""


def nodes(page: Page) -> int:
    return int(page.evaluate(NODES))


def test_a_folder_that_is_gone_and_an_empty_one_are_said(
    page: Page, watching: Server, runs: Path, dumps: Path, pytestconfig: pytest.Config
) -> None:
    write_step(dumps, runs / "run", "golden", 0)
    (runs / "tonight").mkdir()
    ready(watching, runs / "run")
    for name in ("run", "tonight"):
        ask(watching, "POST", "/watches", {"path": str(runs / name)})
    page.goto(watching.url)
    expect(row_of(page, "tonight").get_by_test_id("watch")).to_contain_text("watched: no dump there yet")
    expect(row_of(page, "run").get_by_test_id("watch")).to_contain_text("watched: no change since")
    shutil.rmtree(runs / "run")
    expect(row_of(page, "run").get_by_test_id("watch")).to_contain_text("⚠ folder is gone since")
    axe_finds_nothing(page, pytestconfig)
    row_of(page, "run").get_by_test_id("open-watch").click()
    expect(page.get_by_test_id("watch-form")).to_be_visible()
    axe_finds_nothing(page, pytestconfig)
    page.keyboard.press("Escape")
    row_of(page, "run").get_by_test_id("stop-watch").click()
    expect(row_of(page, "run").get_by_test_id("watch")).to_have_count(0)
    page.get_by_test_id("only-watched").click()
    expect(row_of(page, "run")).to_have_count(0)
    expect(row_of(page, "tonight")).to_have_count(1)
    row_of(page, "tonight").get_by_test_id("stop-watch").click()
    expect(page.get_by_test_id("only-watched")).to_have_count(0)
    expect(row_of(page, "run")).to_have_count(1)


def test_a_list_that_was_asked_for_before_a_change_is_read_again(
    page: Page, watching: Server, runs: Path, dumps: Path
) -> None:
    write_step(dumps, runs / "run", "golden", 0)
    ready(watching, runs / "run")
    ask(watching, "POST", "/watches", {"path": str(runs / "run")})
    page.goto(watching.url)
    watch = row_of(page, "run").get_by_test_id("watch")
    expect(watch).to_contain_text("watched: no change since")
    late: list[str] = []

    def reply(route: Route) -> None:
        body = route.fetch().text()
        late.append(body if late else body.replace('"still"', '"looking"'))
        route.fulfill(body=late[-1], content_type="application/json")

    page.route(re.compile(r"/api/dumps\?"), reply)
    page.reload()
    expect(watch).to_contain_text("watched: looking whether it grows")
    expect(watch).to_contain_text("watched: no change since")


FAKE = """
window.shown = [];
window.asked = 0;
class Told {
    static permission = "default";
    static async requestPermission() { window.asked += 1; Told.permission = "granted"; return "granted"; }
    constructor(title, options) { window.shown.push([title, options.body]); }
}
window.Notification = Told;
Object.defineProperty(document, "hidden", { get: () => window.away ?? false });
"""
"""Notifications of a browser, as pages see them: the real ones of a browser without a window show nowhere."""


def test_the_end_of_a_comparison_is_told_by_title_and_on_request_by_a_notification(
    page: Page, watching: Server, runs: Path, dumps: Path
) -> None:
    page.add_init_script(FAKE)
    for name, run in (("target_fault", "npu_run"), ("golden", "gpu_run")):
        write_step(dumps, runs / run, name, 0)
        ready(watching, runs / run)
    page.goto(watching.url)
    expect(page).to_have_title("dumpscope")
    assert page.evaluate("window.asked") == 0, "nobody is asked without a click"
    page.get_by_test_id("notify").click()
    expect(page.get_by_test_id("notify")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("window.asked") == 1
    page.evaluate("window.away = true")
    ids = {dump["name"]: dump["id"] for dump in ask(watching, "GET", "/dumps")["items"]}
    begin_watch(page, "npu_run", partner="gpu_run")
    expect(page.get_by_test_id("made-by-watch")).to_be_visible()
    expect(page).to_have_title(f"✖ {CAUSE} - dumpscope")
    assert page.evaluate("window.shown") == [[f"✖ {CAUSE}", "npu_run ⇄ gpu_run"]]
    page.keyboard.press("Shift")
    expect(page).to_have_title("dumpscope")
    page.get_by_test_id("notify").click()
    expect(page.get_by_test_id("notify")).to_have_attribute("aria-pressed", "false")
    assert ids.keys() == {"npu_run", "gpu_run"}


def test_the_title_of_a_comparison_names_what_it_found(page: Page, server: Server, dumps: Path) -> None:
    page.goto(known(server, dumps / "target_fault", dumps / "golden"))
    expect(page).to_have_title(f"✖ {CAUSE} - dumpscope")
    page.goto(known(server, dumps / "golden", dumps / "golden"))
    expect(page).to_have_title("✓ no origin - dumpscope")


def test_a_page_that_may_not_notify_says_so(page: Page, server: Server) -> None:
    page.add_init_script("Object.defineProperty(window, 'Notification', { value: undefined })")
    page.goto(server.url)
    expect(page.get_by_test_id("notify-blocked")).to_contain_text("Its title tells the end.")


def test_the_watch_reads_as_well_in_chinese(chinese: Page, watching: Server, runs: Path, dumps: Path) -> None:
    write_step(dumps, runs / "run", "golden", 0)
    ready(watching, runs / "run")
    ask(watching, "POST", "/watches", {"path": str(runs / "run")})
    chinese.goto(watching.url)
    expect(row_of(chinese, "run").get_by_test_id("watch")).to_contain_text("监视中：自")
    write_step(dumps, runs / "run", "golden", 1)
    expect(row_of(chinese, "run").get_by_test_id("new-steps")).to_have_text("1 个新 step")
    row_of(chinese, "run").get_by_test_id("open-watch").click()
    expect(chinese.get_by_test_id("watch-form")).to_contain_text("目录中新出现的 step 和 rank 会在写完后自动读取。")
