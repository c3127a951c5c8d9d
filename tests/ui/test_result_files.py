"""A result goes out of one browser as a file and comes up in a colleague's, who has none of its dumps."""

from __future__ import annotations

import shutil
from pathlib import Path

from cli.test_serving import running
from old_result import unpack
from playwright.sync_api import Page

from ui.conftest import Server
from ui.driving import finished, show
from ui.expecting import expect

CAUSE = "Functional.softmax.1.forward"


def test_an_exported_file_shows_a_colleague_the_same_cause(
    page: Page, server: Server, dumps: Path, generated: Path, tmp_path: Path
) -> None:
    sides = [generated / "shared" / name for name in ("target_fault", "golden")]
    for side in sides:
        shutil.copytree(dumps / side.name, side)
    show(page, finished(server, *sides))
    expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
    expect(page.get_by_test_id("copy-mark")).to_have_count(0)
    page.get_by_test_id("export").click()
    expect(page.get_by_test_id("export-db")).to_have_text("result file (.db)")
    with page.expect_download() as download:
        page.get_by_test_id("export-db").click()
    assert download.value.suggested_filename.endswith(".db")
    file = tmp_path / "result.db"
    download.value.save_as(file)
    expect(page.get_by_test_id("banner")).to_contain_text("Suspects")
    banner = page.get_by_test_id("banner").inner_text()
    shutil.rmtree(generated / "shared")

    with running("serve", file, "--port", 0, DUMPSCOPE_EXECUTOR="threads:1") as (address, _):
        page.goto(address)
        expect(page.get_by_test_id("selected-name")).to_contain_text(CAUSE)
        expect(page.get_by_test_id("banner")).to_contain_text("Suspects")
        assert page.get_by_test_id("banner").inner_text() == banner
        mark = page.get_by_test_id("copy-mark")
        expect(mark).to_have_text("copy")
        mark.hover()
        expect(page.get_by_role("tooltip")).to_contain_text(
            f"A copy of {file}. Your changes are lost when this server stops"
        )
        page.keyboard.press("v")
        page.get_by_test_id("note-form").get_by_text("known", exact=True).click()
        page.get_by_test_id("save-note").click()
        expect(page.get_by_test_id("banner").get_by_test_id("note-chip")).to_have_text("known")
        page.keyboard.press("1")
        expect(page.get_by_text(f"not here: there is no folder {sides[0]}").first).to_be_visible()


def test_a_file_that_is_being_written_can_be_cancelled_and_another_one_asked_for(
    page: Page, server: Server, dumps: Path
) -> None:
    page.goto(finished(server, dumps / "stat_fault", dumps / "stat_golden"))
    expect(page.get_by_test_id("banner")).to_be_visible()
    page.route("**/export.xlsx", lambda _route: None)  # it is written for as long as anybody waits
    page.get_by_test_id("export").click()
    with page.expect_request("**/export.xlsx"):
        page.get_by_test_id("export-xlsx").click()
    bar = page.get_by_test_id("exporting")
    expect(bar).to_contain_text("Writing xlsx")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("export.xlsx")) as closed:
        page.get_by_test_id("cancel-export").click()
    assert closed.value.failure == "net::ERR_ABORTED"
    expect(bar).to_have_count(0)
    page.get_by_test_id("export").click()
    expect(page.get_by_test_id("export-csv")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_test_id("export-csv").click()
    assert download.value.suggested_filename == "stat_fault against stat_golden.csv"
    assert "Functional.softmax.1.forward" in Path(download.value.path()).read_text()
    expect(bar).to_have_count(0)


def test_an_address_of_an_earlier_version_shows_the_same_selection(page: Page, tmp_path: Path) -> None:
    node = "Functional.gelu.1.forward"
    query = f"?s=0&r=0&n={node}&tab=order&f=class%3Apropagated&q=linear&sort=-out_score"  # as d6b1173 wrote it
    file, answers = unpack(tmp_path)
    found = sorted(
        (call for call in answers["propagated"] if "linear" in call["name"].lower()),
        key=lambda call: (-call["out_score"], call["order"]),
    )
    with running("serve", file, "--port", 0, DUMPSCOPE_EXECUTOR="threads:1") as (address, _):
        assert address.endswith(f"/comparisons/{answers['id']}")
        page.goto(address + query)
        expect(page.get_by_test_id("selected-name")).to_contain_text(node, timeout=30_000)
        expect(page.get_by_test_id("search")).to_have_value("linear")
        expect(page.get_by_test_id("total")).to_contain_text(str(len(found)))
        expect(page.get_by_test_id("plot-order")).to_have_attribute("aria-selected", "true")
        rows = page.get_by_test_id("calls").locator("[data-name]")
        expect(rows.first).to_have_attribute("data-name", found[0]["name"])
        shown = rows.evaluate_all("rows => rows.map(row => row.dataset.name)")
        assert len(shown) > 3
        assert shown == [call["name"] for call in found][: len(shown)]
        assert page.url == address + query


def test_a_result_of_an_earlier_version_says_what_it_lacks_and_how_to_get_it(page: Page, tmp_path: Path) -> None:
    file, _answers = unpack(tmp_path)
    with running("serve", file, "--port", 0, DUMPSCOPE_EXECUTOR="threads:1") as (address, _):
        page.goto(address)
        older = page.get_by_test_id("older-result")
        expect(older).to_contain_text(
            "An older version of dumpscope made this result: it has no suspects beside origins"
        )
        expect(older.get_by_role("button", name="Compare again")).to_be_visible()
