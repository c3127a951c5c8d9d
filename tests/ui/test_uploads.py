"""Dumps that come from the reader's own machine."""

from __future__ import annotations

import base64
from pathlib import Path

from playwright.sync_api import Page, expect

from ui.conftest import Server
from ui.driving import ask

DROP = """
(zone, files) => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([bytes], name));
  }
  for (const type of ["dragenter", "dragover", "drop"])
    zone.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}
"""


def opens(page: Page, name: str, nodes: str) -> None:
    """The dump `name` is listed and its page shows its calls."""
    page.get_by_role("link", name=name, exact=True).first.click(timeout=60_000)
    expect(page.get_by_test_id("facts")).to_contain_text(nodes, timeout=30_000)
    expect(page.get_by_test_id("nodes").get_by_role("option").first).to_be_visible(timeout=15_000)


def test_an_uploaded_folder_keeps_its_steps_and_ranks(page: Page, server: Server, dumps: Path) -> None:
    page.goto(server.url)
    page.get_by_test_id("folder-input").set_input_files(dumps / "dist2_stat_fault")
    opens(page, "dist2_stat_fault", "statistics")
    page.get_by_test_id("rank").click()
    expect(page.get_by_role("option", name="1", exact=True)).to_be_visible()


def test_files_dropped_on_the_page_become_a_dump(page: Page, server: Server, dumps: Path) -> None:
    (dump,) = (dumps / "stat_nan").glob("step0/*/dump.json")
    files = [
        (name, base64.b64encode((dump.parent / name).read_bytes()).decode())
        for name in ("dump.json", "stack.json", "construct.json")
    ]
    page.goto(server.url)
    page.get_by_test_id("drop").wait_for()
    page.get_by_test_id("drop").evaluate(DROP, files)
    upload = page.get_by_test_id("upload")
    expect(upload).to_have_attribute("data-state", "sent", timeout=30_000)
    row = page.get_by_test_id("dumps").get_by_role("row").nth(1)
    expect(row).to_contain_text("163", timeout=30_000)
    row.get_by_role("link").first.click()
    expect(page.get_by_test_id("nodes").get_by_text("Functional.gelu.0.forward", exact=True)).to_be_visible(
        timeout=15_000
    )


def test_an_upload_that_is_no_dump_says_so_where_it_was_dropped(page: Page, server: Server, tmp_path: Path) -> None:
    junk = tmp_path / "junk.zip"
    junk.write_bytes(b"no zip at all")
    page.goto(server.url)
    page.get_by_test_id("file-input").set_input_files([junk])
    expect(page.get_by_test_id("upload")).to_contain_text("junk.zip could not be read", timeout=30_000)


def test_two_dumps_that_were_just_added_are_compared_from_where_they_were_added(
    page: Page, server: Server, dumps: Path
) -> None:
    page.goto(server.url)
    page.get_by_test_id("folder-input").set_input_files(dumps / "stat_fault")
    page.get_by_test_id("server-path").fill(str(dumps / "stat_golden"))
    page.get_by_test_id("register").click()
    sent, registered = page.get_by_test_id("upload"), page.get_by_test_id("registered")
    sent.get_by_role("button", name="Use stat_fault as target").click(timeout=30_000)
    registered.get_by_role("button", name="Use stat_golden as golden").click(timeout=30_000)
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.softmax.1.forward", timeout=60_000)


def test_dumps_of_one_name_are_told_apart_by_their_path(page: Page, server: Server, dumps: Path) -> None:
    for name in ("golden", "stat_golden"):
        ask(server, "POST", "/dumps", {"path": str(dumps / name)})
    page.goto(server.url)
    page.get_by_test_id("golden").click()
    page.get_by_test_id("golden").fill("golden")
    expect(page.get_by_role("option").filter(has_text=str(dumps / "stat_golden")).first).to_be_visible(timeout=15_000)
