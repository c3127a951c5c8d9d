"""Dumps that come from the reader's own machine."""

from __future__ import annotations

import base64
import random
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, Route

from ui.conftest import FLAGS, PATIENCE, Server, new_page
from ui.driving import ask
from ui.expecting import expect

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


SMALL = 5000


def many_small(dumps: Path, folder: Path) -> Path:
    """A real dump beside five thousand tiny files in one folder."""
    shutil.copytree(dumps / "stat_fault", folder)
    (folder / "step0" / "small").mkdir()
    for number in range(SMALL):
        (folder / "step0" / "small" / f"{number}.pt").write_bytes(b"%d" % number)
    (folder / "step0" / "small" / '\u5f20\u91cf "q" %22 #1.pt').write_bytes(b"named")
    return folder


def opens(page: Page, name: str, nodes: str) -> None:
    """The dump `name` is listed and its page shows its calls."""
    page.get_by_role("link", name=name, exact=True).first.click()
    expect(page.get_by_test_id("facts")).to_contain_text(nodes)
    expect(page.get_by_test_id("nodes").get_by_role("option").first).to_be_visible()


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
    expect(upload).to_have_attribute("data-state", "sent")
    row = page.get_by_test_id("dumps").get_by_role("row").nth(1)
    expect(row).to_contain_text("163")
    row.get_by_role("link").first.click()
    expect(page.get_by_test_id("nodes").get_by_text("Functional.gelu.0.forward", exact=True)).to_be_visible()


def test_files_that_are_left_out_are_listed_one_by_one_where_they_were_dropped(
    page: Page, server: Server, dumps: Path
) -> None:
    (dump,) = (dumps / "stat_nan").glob("step0/*/dump.json")
    files = [
        (name, base64.b64encode((dump.parent / name).read_bytes()).decode())
        for name in ("dump.json", "stack.json", "construct.json")
    ]
    page.goto(server.url)
    page.get_by_test_id("drop").evaluate(DROP, [*files, ("C:one.pt", "AAAA"), ("D:two.pt", "AAAA")])
    upload = page.get_by_test_id("upload")
    refused = upload.get_by_test_id("refused")
    expect(refused).to_have_text("2 files were left out")
    refused.click()
    listed = page.get_by_test_id("problems")
    expect(listed).to_contain_text("C:one.pt")
    expect(listed).to_contain_text("D:two.pt")
    expect(listed.get_by_role("listitem")).to_have_count(2)


def test_a_piece_that_was_damaged_on_its_way_is_sent_again(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    folder = large_dump(dumps, tmp_path / "damaged")
    page = new_page(context)
    page.goto(own_server.url)
    broken: list[str] = []

    def damage(route: Route) -> None:
        """The first piece arrives as another one than it says."""
        if "offset=" in route.request.url and not broken:
            broken.append(route.request.url)
            assert len(route.request.headers["x-crc32"]) == 8
            route.continue_(headers={**route.request.headers, "x-crc32": "00000000"})
        else:
            route.continue_()

    page.route("**/api/uploads/*/files?*", damage)
    drop_folder(page, folder)
    expect(page.get_by_test_id("upload")).to_have_attribute("data-state", "sent")
    assert len(broken) == 1
    assert arrived(own_server, folder.name) == contents(folder)


def test_an_upload_that_is_no_dump_says_so_where_it_was_dropped(page: Page, server: Server, tmp_path: Path) -> None:
    junk = tmp_path / "junk.zip"
    junk.write_bytes(b"no zip at all")
    page.goto(server.url)
    page.get_by_test_id("file-input").set_input_files([junk])
    expect(page.get_by_test_id("upload")).to_contain_text("junk.zip could not be read")


def test_a_side_that_gets_no_dump_is_empty_again_and_says_why(page: Page, server: Server, tmp_path: Path) -> None:
    junk = tmp_path / "junk.zip"
    junk.write_bytes(b"no zip at all")
    page.goto(server.url)
    page.get_by_test_id("golden-file-input").set_input_files([junk])
    zone = page.get_by_test_id("zone-golden")
    expect(zone.get_by_test_id("failure")).to_contain_text("junk.zip could not be read")
    expect(zone).to_have_attribute("data-refused", "true")
    expect(page.get_by_test_id("golden")).to_have_value("")
    expect(page.get_by_test_id("zone-target").get_by_test_id("failure")).to_have_count(0)


@pytest.mark.parametrize(
    ("language", "cut", "again", "rar"),
    [
        ("en-US", "a zip archive that is cut off or damaged", "send it again, whole", "dump.rar is a RAR archive"),
        ("zh-CN", "不完整或已损坏的 zip 压缩包：没有目录", "请重新完整地拷贝或发送", "RAR 压缩包"),
    ],
)
def test_what_is_no_dump_is_named_with_the_remedy_in_both_languages(
    page_in: Callable[[str], Page], server: Server, tmp_path: Path, language: str, cut: str, again: str, rar: str
) -> None:
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as out:
        out.writestr("run/dump.json", random.Random(1).randbytes(5000))
    (tmp_path / "cut.zip").write_bytes(whole.read_bytes()[:3000])
    (tmp_path / "dump.rar").write_bytes(b"Rar!\x1a\x07\x01\0")
    page = page_in(language)
    page.goto(server.url)
    for name, said, remedy in (("cut.zip", cut, again), ("dump.rar", rar, ".tar.gz")):
        page.get_by_test_id("file-input").set_input_files([tmp_path / name])
        line = page.get_by_test_id("upload").filter(has_text=name)
        expect(line).to_contain_text(said)
        expect(line).to_contain_text(remedy)


def test_two_dumps_that_were_just_added_are_compared_from_where_they_were_added(
    page: Page, server: Server, dumps: Path
) -> None:
    page.goto(server.url)
    page.get_by_test_id("folder-input").set_input_files(dumps / "stat_fault")
    page.get_by_test_id("server-path").fill(str(dumps / "stat_golden"))
    page.get_by_test_id("register").click()
    sent, registered = page.get_by_test_id("upload"), page.get_by_test_id("registered")
    sent.get_by_role("button", name="Use stat_fault as target").click()
    registered.get_by_role("button", name="Use stat_golden as golden").click()
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("origin")).to_contain_text("Functional.softmax.1.forward")


def test_dumps_are_picked_from_the_servers_folders_and_what_is_in_them_is_said_before_comparing(
    page: Page, server: Server, dumps: Path
) -> None:
    page.goto(server.url)
    page.get_by_test_id("browse").click()
    picker = page.get_by_test_id("path-picker")
    picker.get_by_role("button", name=str(dumps), exact=True).click()
    expect(page.get_by_test_id("path-place")).to_have_text(str(dumps))
    picker.get_by_role("button", name="dist2_stat_fault", exact=True).click()
    picker.get_by_role("button", name="step0", exact=True).click()
    picker.get_by_role("button", name="Up").click()
    picker.get_by_role("button", name=f"Register {dumps / 'dist2_stat_fault'}", exact=True).click()
    picker.get_by_role("button", name="Up").click()
    picker.get_by_label("Search this folder").fill("stat_gold")
    register = picker.get_by_role("button", name="Register stat_golden", exact=True)
    register.click()
    expect(register).to_be_disabled()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("registered")).to_have_count(2)
    page.get_by_role("button", name="Use dist2_stat_fault as target").first.click()
    detected = page.locator("form").get_by_test_id("detected")
    expect(detected).to_contain_text("statistics")
    expect(detected).to_contain_text("ranks 0–1")


def test_dumps_of_one_name_are_told_apart_by_their_path(page: Page, server: Server, dumps: Path) -> None:
    for name in ("golden", "stat_golden"):
        ask(server, "POST", "/dumps", {"path": str(dumps / name)})
    page.goto(server.url)
    page.get_by_test_id("golden").click()
    page.get_by_test_id("golden").fill("golden")
    expect(page.get_by_role("option").filter(has_text=str(dumps / "stat_golden")).first).to_be_visible()


LARGE = 20_000_000
REQUEST_FILES = 500


@pytest.fixture(scope="module")
def kept_server(tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("own") / "data", dumps)
    yield running
    running.stop()


@pytest.fixture
def own_server(kept_server: Server) -> Server:
    """A server that a test may stop and start, and that receives nothing yet."""
    if kept_server.process.poll() is not None:
        kept_server.start()
    for begun in (kept_server.data / "receiving").glob("*"):
        ask(kept_server, "DELETE", f"/uploads/{begun.name}")
    return kept_server


def until(holds: Callable[[], bool], seconds: float = PATIENCE / 1000) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def drop_folder(page: Page, folder: Path) -> None:
    page.get_by_test_id("folder-input").set_input_files(folder)


def large_dump(dumps: Path, folder: Path, size: int = LARGE) -> Path:
    """A real dump beside a file that takes several requests."""
    shutil.copytree(dumps / "stat_fault", folder)
    (folder / "step0" / "large.bin").write_bytes(random.Random(5).randbytes(size))
    return folder


def arrived(server: Server, name: str) -> dict[str, bytes]:
    """The files of the newest uploaded dump of this name, by their path."""
    (row, *_older) = ask(server, "GET", f"/dumps?q={name}&sort=-created")["items"]
    folder = server.data / "uploads" / row["id"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder.parent)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def slow(page: Page, bytes_a_second: int) -> None:
    """The browser sends no faster than this; -1: as fast as it can."""
    session = page.context.new_cdp_session(page)
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": bytes_a_second},
    )


def test_an_upload_goes_on_by_itself_after_the_server_restarted(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    folder = large_dump(dumps, tmp_path / "cut_by_restart", 2 * LARGE)  # it shall last
    page = new_page(context)
    page.goto(own_server.url)
    expect(page.get_by_test_id("upload-room")).to_contain_text("Up to")
    slow(page, 8_000_000)
    drop_folder(page, folder)
    upload = page.get_by_test_id("upload")
    expect(upload).to_contain_text("MB/s")
    own_server.stop()
    expect(upload).to_have_attribute("data-state", "lost")
    expect(upload).to_contain_text("The upload continues by itself")
    (begun,) = (own_server.data / "receiving").iterdir()
    assert sum(path.stat().st_size for path in begun.rglob("*") if path.is_file()) > 1_000_000
    slow(page, -1)
    own_server.start()
    expect(upload).to_have_attribute("data-state", "sent")
    assert arrived(own_server, folder.name) == contents(folder)


def test_an_upload_goes_on_after_the_page_was_reloaded_and_the_folder_chosen_again(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    folder = large_dump(dumps, tmp_path / "cut_by_reload")
    page = new_page(context)
    page.goto(own_server.url)
    broken: list[str] = []

    def cut(route: Route) -> None:
        """The third piece and what comes after it never reaches the server."""
        broken.append(route.request.url)
        if len(broken) < 3:
            route.continue_()
        else:
            route.abort("connectionreset")

    page.route("**/api/uploads/*/files?*", cut)
    drop_folder(page, folder)
    expect(page.get_by_test_id("upload")).to_have_attribute("data-state", "lost")
    page.unroute("**/api/uploads/*/files?*")
    page.reload()
    expect(page.get_by_test_id("unfinished")).to_contain_text("cut_by_reload is incomplete")
    sent: list[int] = []
    page.on("request", lambda request: sent.append(offset_of(request.url)) if "offset=" in request.url else None)
    drop_folder(page, folder)
    expect(page.get_by_test_id("upload")).to_have_attribute("data-state", "sent")
    expect(page.get_by_test_id("unfinished")).to_have_count(0)
    assert min(sent) == 16_000_000
    assert arrived(own_server, folder.name) == contents(folder)


def test_a_browser_remembers_an_upload_once_the_server_knows_it(page: Page, own_server: Server, dumps: Path) -> None:
    """Another tab that opened in between asked for it, got a 404, and forgot it."""
    held: list[Route] = []
    remembered = "() => Object.keys(localStorage).some((key) => key.startsWith('dumpscope.upload'))"

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile("/api/uploads/[^/]+$"), hold)
    page.goto(own_server.url)
    with page.expect_request(re.compile("/api/uploads/[^/]+$")) as beginning:
        page.get_by_test_id("folder-input").set_input_files(dumps / "stat_golden")
    assert beginning.value.method == "PUT"
    assert page.evaluate(remembered) is False
    page.route("**/finish", lambda route: None)
    held[0].continue_()
    page.wait_for_function(remembered)


def test_an_upload_goes_on_after_the_browser_was_closed_and_started_again(
    playwright: Playwright, chromium: str, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    folder = large_dump(dumps, tmp_path / "cut_by_restart_of_browser")

    def started() -> BrowserContext:
        return playwright.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=chromium, args=FLAGS, locale="en-US"
        )

    context = started()
    page = context.new_page()
    page.goto(own_server.url)
    asked: list[str] = []

    def cut(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) < 3:
            route.continue_()
        else:
            route.abort("connectionreset")

    page.route("**/api/uploads/*/files?*", cut)
    drop_folder(page, folder)
    expect(page.get_by_test_id("upload")).to_have_attribute("data-state", "lost")
    context.close()
    context = started()
    page = context.new_page()
    page.goto(own_server.url)
    expect(page.get_by_test_id("unfinished")).to_contain_text("cut_by_restart_of_browser is incomplete")
    sent: list[int] = []
    page.on("request", lambda request: sent.append(offset_of(request.url)) if "offset=" in request.url else None)
    drop_folder(page, folder)
    expect(page.get_by_test_id("upload")).to_have_attribute("data-state", "sent")
    context.close()
    assert min(sent) == 16_000_000
    assert arrived(own_server, folder.name) == contents(folder)


def offset_of(url: str) -> int:
    return int(parse_qs(urlsplit(url).query)["offset"][0])


def test_a_cancelled_upload_leaves_nothing_on_the_server(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    page = new_page(context)
    page.goto(own_server.url)
    slow(page, 4_000_000)
    drop_folder(page, large_dump(dumps, tmp_path / "cancelled", 2 * LARGE))
    expect(page.get_by_test_id("upload")).to_contain_text("MB/s")
    receiving = own_server.data / "receiving"
    assert list(receiving.iterdir()) != []
    page.get_by_test_id("upload").get_by_role("button", name="Cancel").click()
    expect(page.get_by_test_id("upload")).to_have_count(0)
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.startsWith('dumpscope.upload'))")
    until(lambda: list(receiving.iterdir()) == [])
    page.reload()
    expect(page.get_by_test_id("drop")).to_be_visible()
    expect(page.get_by_test_id("unfinished")).to_have_count(0)


def test_an_upload_that_cannot_fit_is_refused_before_it_is_sent(page: Page, server: Server, tmp_path: Path) -> None:
    room = {"limit": 1000, "free": 10**9, "files": 10, "request": 1 << 24, "hours": 24}
    page.route("**/api/uploads", lambda route: route.fulfill(json=room))
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method in ("PUT", "POST") else None)
    large = tmp_path / "large.zip"
    large.write_bytes(b"0" * 2000)
    page.goto(server.url)
    expect(page.get_by_test_id("upload-room")).to_contain_text("1 kB")
    page.get_by_test_id("file-input").set_input_files([large])
    expect(page.get_by_test_id("upload")).to_contain_text("It is 2 kB, but the server has room for only 1 kB")
    assert sent == []


def test_a_file_that_changed_while_the_connection_was_lost_is_named_and_not_tried_for_ever(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    folder = large_dump(dumps, tmp_path / "changing")
    page = new_page(context)
    page.goto(own_server.url)
    page.route("**/api/uploads/*/files?*", lambda route: route.abort("connectionreset"))
    drop_folder(page, folder)
    upload = page.get_by_test_id("upload")
    expect(upload).to_have_attribute("data-state", "lost")
    (folder / "step0" / "large.bin").unlink()
    expect(upload).to_contain_text("changing/step0/large.bin was changed or moved")


def test_five_thousand_small_files_of_one_folder_are_sent_in_batches(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    folder = many_small(dumps, tmp_path / "many_small")
    page = new_page(context)
    page.goto(own_server.url)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method) if request.url.endswith("/files") else None)
    drop_folder(page, folder)
    expect(page.get_by_test_id("upload")).to_have_attribute("data-state", "sent")
    assert sent.count("POST") <= SMALL / REQUEST_FILES + 1
    assert arrived(own_server, folder.name) == contents(folder)
    expect(page.get_by_test_id("upload")).to_contain_text("is ready to compare")


def test_many_small_files_show_their_progress_and_leave_nothing_when_cancelled(
    context: BrowserContext, own_server: Server, dumps: Path, tmp_path: Path
) -> None:
    page = new_page(context)
    page.goto(own_server.url)
    slow(page, 100_000)
    drop_folder(page, many_small(dumps, tmp_path / "many_cancelled"))
    upload = page.get_by_test_id("upload")
    expect(upload).to_contain_text("kB/s")
    upload.get_by_role("button", name="Cancel").click()
    expect(upload).to_have_count(0)
    receiving = own_server.data / "receiving"
    until(lambda: list(receiving.iterdir()) == [])


def test_entries_that_were_left_out_are_listed_one_by_one(
    page: Page, server: Server, dumps: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "left_out.zip"
    bad = ["../up.pt", "/abs.pt", "C:/drive.pt", "run/a.pt/under.pt"]
    with zipfile.ZipFile(archive, "w") as out:
        for file in sorted((dumps / "stat_fault").rglob("*.json")):
            out.write(file, Path("run") / file.relative_to(dumps / "stat_fault"))
        for name in ["run/\u00e9.pt", "run/a.pt", *bad]:
            out.writestr(name, b"1")
    page.goto(server.url)
    page.get_by_test_id("file-input").set_input_files([archive])
    upload = page.get_by_test_id("upload")
    expect(upload).to_contain_text("left_out.zip is ready to compare")
    upload.get_by_test_id("refused").click()
    listed = page.get_by_test_id("problems")
    expect(listed.get_by_role("listitem")).to_have_count(len(bad))
    for name in bad:
        expect(listed).to_contain_text(f"left_out.zip:{name}")
