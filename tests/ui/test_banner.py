"""What the banner says in each state that a comparison can end in."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from ui.conftest import Server
from ui.driving import ask, begin, finished, known, show, sides
from ui.expecting import expect
from ui.made import cut_rank, died, late, other_inputs

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def made(generated: Path, dumps: Path) -> Path:
    folder = generated / "states"
    other_inputs(dumps / "stat_golden", folder / "other_inputs")
    late(dumps / "stat_golden", folder / "late", "Functional.linear.4.forward")
    cut_rank(dumps / "dist2_stat_fault", folder / "cut")
    died(dumps / "stat_golden", folder / "died", "Module.layers.0.Block.forward.0")
    return folder


def banner_of(page: Page, address: str) -> None:
    show(page, address)
    expect(page.get_by_test_id("banner")).to_be_visible()


def test_inputs_that_differ_already_are_listed(page: Page, server: Server, made: Path, dumps: Path) -> None:
    banner_of(page, finished(server, made / "other_inputs", dumps / "stat_golden"))
    inputs = page.get_by_test_id("inputs-differ")
    expect(inputs).to_contain_text("The inputs already differ")
    expect(inputs).to_contain_text("another seed")
    inputs.get_by_role("button").first.click()
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.embedding.0.forward")


def test_a_cause_that_was_not_dumped_is_called_the_first_visible_divergence(
    page: Page, server: Server, made: Path, dumps: Path
) -> None:
    banner_of(page, finished(server, made / "late", dumps / "stat_golden"))
    banner = page.get_by_test_id("banner")
    expect(banner.get_by_role("heading")).to_have_text("First visible divergence")
    expect(page.get_by_test_id("reason")).to_contain_text(
        "The last recorded call before it is Functional.layer_norm.2.forward"
    )


def test_what_is_damaged_is_told_with_its_place_and_the_rest_is_compared(
    page: Page, server: Server, made: Path, dumps: Path
) -> None:
    banner_of(page, finished(server, made / "cut", dumps / "dist2_stat_golden"))
    damage = page.get_by_test_id("damage")
    expect(damage).to_contain_text("step0/rank1/dump.json:byte ")
    expect(damage).to_contain_text("28 complete records were kept")
    expect(damage).to_contain_text("run it again up to stop()")
    expect(page.get_by_test_id("origin")).to_be_visible()
    page.get_by_test_id("calls").locator("[data-name]").first.click()
    expect(page.get_by_test_id("why")).to_be_visible()


def test_two_runs_that_agree_name_their_largest_error_and_the_coverage(page: Page, server: Server, dumps: Path) -> None:
    banner_of(page, known(server, dumps / "stat_golden", dumps / "stat_golden"))
    expect(page.get_by_test_id("largest")).to_contain_text("every compared number is equal")
    expect(page.get_by_test_id("banner")).to_contain_text("163 nodes, 503 items: 503 Yes")
    banner_of(page, known(server, dumps / "stat_bf16", dumps / "stat_golden"))
    largest = page.get_by_test_id("largest")
    expect(largest).to_contain_text("times its floor, at")
    name = largest.get_by_role("button").inner_text()
    largest.get_by_role("button").click()
    expect(page.get_by_test_id("selected-name")).to_contain_text(name[-12:])


@pytest.mark.parametrize(
    ("target", "golden", "says"),
    [
        ("stat_fault", "golden", "target statistics, golden tensor"),
        ("cfg_L1_stat", "stat_golden", "target L1, golden mix"),
        ("stat_bf16", "stat_golden", "mostly target torch.bfloat16, golden torch.float32"),
    ],
)
def test_sides_that_were_dumped_differently_are_told_apart_at_once(
    page: Page, server: Server, dumps: Path, target: str, golden: str, says: str
) -> None:
    banner_of(page, known(server, dumps / target, dumps / golden))
    expect(page.get_by_test_id("sides-apart")).to_contain_text(says)


@pytest.mark.parametrize(("pair", "badge"), [("stat", "statistics"), ("md5", "hashes")])
def test_without_tensors_a_badge_says_so_and_missing_plots_name_the_setting(
    page: Page, server: Server, dumps: Path, pair: str, badge: str
) -> None:
    show(page, f"{known(server, dumps / f'{pair}_fault', dumps / f'{pair}_golden')}?tab=hist")
    expect(page.get_by_test_id("mode")).to_have_text(badge)
    expect(page.get_by_role("region", name="Plots")).to_contain_text('"task": "tensor"')


def test_a_tree_without_construct_json_is_marked_as_inferred(page: Page, server: Server, dumps: Path) -> None:
    banner_of(page, known(server, dumps / "types_L1_stat", dumps / "types_L1_stat"))
    page.get_by_test_id("banner").get_by_role("button", name="tree inferred").click()
    expect(page.get_by_text("The dump has no construct.json")).to_be_visible()


@pytest.fixture
def slow(tmp_path: Path, dumps: Path) -> Iterator[Server]:
    """A server whose jobs run one at a time."""
    running = Server(tmp_path / "data", dumps, DUMPSCOPE_JOB_SLOTS="1")
    yield running
    running.stop()


def last_of_many(server: Server, dumps: Path) -> str:
    """Id of a comparison that waits behind others."""
    both = sides(server, dumps / "target_fault", dumps / "golden")
    return [begin(server, both) for _ in range(25)][-1]


def test_a_reload_rejoins_a_running_comparison_and_it_can_be_cancelled(page: Page, slow: Server, dumps: Path) -> None:
    last = last_of_many(slow, dumps)
    page.goto(f"{slow.url}/comparisons/{last}")
    job = page.get_by_test_id("job")
    expect(job).to_contain_text("queued")
    page.reload()
    expect(job).to_contain_text("Comparing")
    page.get_by_test_id("cancel").click()
    expect(page.get_by_test_id("cancelled")).to_be_visible()
    assert ask(slow, "GET", f"/comparisons/{last}")["status"] == "cancelled"


def test_while_tensors_are_read_the_first_origin_by_statistics_is_named_as_provisional(
    page: Page, slow: Server, dumps: Path
) -> None:
    waiting = last_of_many(slow, dumps)

    def running(route: Route) -> None:  # real tensors that last so long are too large for a test
        job = route.fetch().json()
        job |= {"status": "running", "progress": 0.4, "message": "4 of 9 tensors", "provisional": CAUSE}
        route.fulfill(json=job)

    page.route("**/api/jobs/*", running)
    page.goto(f"{slow.url}/comparisons/{waiting}")
    expect(page.get_by_test_id("provisional")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("provisional")).to_contain_text("by statistics alone")
    expect(page.get_by_test_id("job")).to_contain_text("4 of 9 tensors")
    expect(page.get_by_test_id("job")).not_to_contain_text("provisional")
    page.unroute("**/api/jobs/*")
    page.get_by_test_id("cancel").click()
    expect(page.get_by_test_id("cancelled")).to_be_visible()


def test_counts_of_more_than_one_step_say_so_for_the_list_shows_one(page: Page, server: Server, dumps: Path) -> None:
    show(page, known(server, dumps / "target_fault", dumps / "golden"))
    expect(page.get_by_test_id("banner")).to_contain_text("in all steps and ranks:")
    show(page, known(server, dumps / "stat_fault", dumps / "stat_golden"))
    expect(page.get_by_test_id("count-origin")).to_be_visible()
    expect(page.get_by_test_id("banner")).not_to_contain_text("in all steps and ranks:")


def test_a_step_that_one_side_has_alone_is_named_and_no_problem(
    page: Page, server: Server, generated: Path, dumps: Path
) -> None:
    folder = generated / "one_step_less"
    shutil.copytree(dumps / "golden", folder)
    shutil.rmtree(folder / "step1")
    banner_of(page, finished(server, folder, dumps / "golden"))
    note = page.get_by_test_id("units-alone")
    expect(note).to_have_text("step1 rank0 on one side only")
    expect(page.get_by_test_id("banner")).not_to_contain_text("problem")
    note.click()
    expect(page.get_by_test_id("problems")).to_contain_text("Only the golden has this step")


def test_a_run_that_died_is_not_fully_judged_from_a_call_that_can_be_opened(
    page: Page, server: Server, made: Path, dumps: Path
) -> None:
    banner_of(page, finished(server, made / "died", dumps / "stat_golden"))
    banner = page.get_by_test_id("banner")
    expect(banner.get_by_role("heading")).to_have_text("Not fully judged")
    expect(banner).to_contain_text("The record of the target ends before, at Module.layers.0.Block.forward.0.")
    expect(banner).to_contain_text("What was compared agrees.")
    page.get_by_test_id("coverage").click()
    reasons = page.get_by_test_id("coverage-reasons")
    expect(reasons).to_contain_text("after the end of the other record (matters, and was not judged)")
    expect(reasons).to_contain_text("The record of the target ends at")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("not-judged-from")).to_have_text(re.compile(r"^from .+ on\.$"))
    page.get_by_test_id("not-judged-from").get_by_role("button").click()
    expect(page.get_by_test_id("selected-name")).to_contain_text("Functional.layer_norm.2.forward")
