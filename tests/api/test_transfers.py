"""Uploads in pieces go on where they were, whatever broke: the connection, the page or the server."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st

from api.conftest import BASE, Client, Make, register, settled
from api.test_uploads import RELU, archive, folder_parts
from dumpscope.api.app import create_app
from dumpscope.pipeline.uploads import unfinished
from dumpscope.pipeline.uploads.unfinished import UnfinishedUploads
from dumpscope.readers.archives.entry_names import FOLDED
from dumpscope.settings import Settings


def begin(client: Client, upload: str, files: int, size: int, **more: Any) -> Any:
    return client.put(f"/api/uploads/{upload}", json={"files": files, "bytes": size, **more})


def piece(client: Client, name: str, path: str, content: bytes, at: int, size: int) -> Any:
    return client.put(f"/api/uploads/{name}/files", params={"path": path, "size": size, "offset": at}, content=content)


def finished(client: Client, name: str) -> dict[str, Any]:
    reply = client.post(f"/api/uploads/{name}/finish")
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"/api/dumps/{reply.json()['id']}"
    return settled(client, f"/api/dumps/{reply.json()['id']}")


def files_of(settings: Settings) -> dict[str, bytes]:
    """Every uploaded file by its path below the dump's folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for folder in settings.uploads.iterdir()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_sent_over_two_restarts_arrives_equal_and_is_the_same_dump(make_settings: Make, dumps: Path) -> None:
    settings = make_settings()
    parts = {name: content for _field, (name, content) in folder_parts(dumps / "stat_fault")}
    large = max(parts, key=lambda name: len(parts[name]))
    size, half = len(parts[large]), len(parts[large]) // 2
    total = sum(map(len, parts.values()))
    with TestClient(create_app(settings), base_url=BASE) as client:
        assert begin(client, "u", len(parts), total).json()["there"] == 0
        small = [("files", (name, content)) for name, content in parts.items() if name != large]
        assert client.post("/api/uploads/u/files", files=small[:1]).json()["whole"] == 1
        assert piece(client, "u", large, parts[large][:half], 0, size).status_code == 200
    with TestClient(create_app(settings), base_url=BASE) as client:
        assert client.get("/api/dumps").json()["total"] == 0
        state = begin(client, "u", len(parts), total).json()
        assert (state["whole"], state["there"]) == (1, half + len(small[0][1][1]))
        listed = client.get("/api/uploads/u/files").json()["items"]
        assert {"path": large, "bytes": half, "size": size} in listed
        assert client.post("/api/uploads/u/finish").status_code == 409
        assert client.post("/api/uploads/u/files", files=small).status_code == 200
        assert piece(client, "u", large, parts[large][half:], half, size).json()["there"] == total
    with TestClient(create_app(settings), base_url=BASE) as client:
        row = finished(client, "u")
        again = client.post("/api/uploads/u/finish")
        assert (again.status_code, again.json()["id"], again.json()["job"]) == (202, row["id"], row["job"])
        direct = settled(client, f"/api/dumps/{register(client, dumps / 'stat_fault')}")
        assert begin(client, "u", len(parts), total).json()["dump"] == row["id"]
    assert row["name"] == "stat_fault"
    for field in ("framework", "task", "level", "summary", "steps", "ranks", "nodes", "items", "problems"):
        assert row[field] == direct[field], field
    assert files_of(settings) == parts


@given(
    content=st.binary(max_size=60),
    steps=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), max_size=6),
)
def test_a_file_in_any_pieces_with_repeats_and_reloads_is_the_file(
    content: bytes, steps: list[tuple[int, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("receiving")
    upload = UnfinishedUploads(folder, 60).begin("u", name="", files=1, bytes=len(content))
    have = 0
    for back, length, reload in [*steps, (0, len(content), False)]:
        at = max(0, have - back)
        upload.write("run/a.pt", len(content), at, content[at : at + length])
        have = max(have, min(at + length, len(content)))
        if reload:
            upload = UnfinishedUploads(folder, 60).get("u")
        assert upload.bytes == have
    upload.check()
    assert (folder / "u" / "files" / "run" / "a.pt").read_bytes() == content
    assert list((folder / "u" / "parts").iterdir()) == []


def test_bytes_past_a_gap_another_size_and_more_than_was_announced_are_refused(client: Client) -> None:
    begin(client, "u", 2, 12)
    assert piece(client, "u", "run/a", b"abc", 0, 6).status_code == 200
    for content, at, size, status in [(b"x", 4, 6, 409), (b"x", 3, 7, 409), (b"xxxx", 3, 6, 400)]:
        assert piece(client, "u", "run/a", content, at, size).status_code == status
    assert piece(client, "u", "run/a", b"def", 3, 6).json()["whole"] == 1
    assert piece(client, "u", "run/a", b"def", 3, 6).json()["there"] == 6
    assert piece(client, "u", "run/a", b"", 0, 5).status_code == 409
    assert piece(client, "u", "run/b", b"1234567", 0, 7).status_code == 413
    assert piece(client, "u", "run/b", b"123456", 0, 6).status_code == 200
    assert piece(client, "u", "run/c", b"", 0, 0).status_code == 413
    assert begin(client, "u", 3, 12).status_code == 409


def test_a_piece_that_is_not_what_its_checksum_says_leaves_nothing(client: Client) -> None:
    content = os.urandom(3 << 20)
    begin(client, "u", 1, len(content))

    def send(at: int, sent: bytes, meant: bytes) -> Any:
        params: dict[str, Any] = {"path": "a.bin", "size": len(content), "offset": at}
        headers = {"X-CRC32": f"{zlib.crc32(meant):08x}"}
        return client.put("/api/uploads/u/files", params=params, content=sent, headers=headers)

    cut = 2 << 20
    first, rest = content[:cut], content[cut:]
    assert send(0, b"?" + first[1:], first).status_code == 409
    assert client.get("/api/uploads/u").json()["there"] == 0
    assert send(0, first, first).json()["there"] == cut
    damaged = send(cut, rest[:-1] + bytes([rest[-1] ^ 1]), rest)
    assert damaged.status_code == 409
    assert "checksum" in damaged.json()["detail"]
    assert client.get("/api/uploads/u").json()["there"] == cut
    assert send(cut, rest, rest).json()["whole"] == 1
    assert client.put("/api/uploads/u/files?path=b&size=1", content=b"1", headers={"X-CRC32": "no"}).status_code == 422


def test_names_are_refused_one_by_one_in_both_ways_and_told_with_the_dump(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "probe", lambda _folder: FOLDED)
    begin(client, "u", 6, 2 * len(RELU) + 8)
    sent = [("run/dump.json", RELU), ("run/DUMP.json", b"1"), ("../x", b"1"), ("run/dump.json", RELU + b" ")]
    batch = [("files", part) for part in sent]
    first = client.post("/api/uploads/u/files", files=batch[:3]).json()
    assert [problem["loc"] for problem in first["problems"]] == ["run/DUMP.json", "../x"]
    assert client.post("/api/uploads/u/files", files=batch[:3]).json() == first
    state = piece(client, "u", "/etc/x", b"1", 0, 1).json()
    assert [problem["loc"] for problem in state["problems"]] == ["run/DUMP.json", "../x", "/etc/x"]
    client.post("/api/uploads/u/files", files=batch[3:])
    assert piece(client, "u", "run/notes", b"", 0, 0).json()["whole"] == 2
    row = finished(client, "u")
    assert row["status"] == "ready"
    assert [one["loc"] for one in row["problems"] if one["kind"] == "refused"] == [
        "run/DUMP.json",
        "../x",
        "/etc/x",
        "run/dump.json",
    ]


def test_a_batch_that_breaks_off_keeps_the_files_that_are_whole(client: Client) -> None:
    begin(client, "u", 2, 6)
    head = '--x\r\nContent-Disposition: form-data; name="files"; filename="run/{}"\r\n\r\n'
    body = head.format("a").encode() + b"abc\r\n" + head.format("b").encode() + b"de"
    reply = client.post(
        "/api/uploads/u/files", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert reply.status_code == 400
    assert client.get("/api/uploads/u/files").json()["items"] == [{"path": "run/a", "bytes": 3, "size": 3}]


def test_five_thousand_small_files_take_ten_requests(make_settings: Make) -> None:
    settings = make_settings()
    parts = [("files", (f"run/{number}.pt", b"%d" % number)) for number in range(4999)]
    parts.append(("files", ("run/dump.json", RELU)))
    with TestClient(create_app(settings), base_url=BASE) as client:
        begin(client, "u", 5000, sum(len(content) for _field, (_name, content) in parts))
        for start in range(0, 5000, 500):
            assert client.post("/api/uploads/u/files", files=parts[start : start + 500]).status_code == 200
        paths: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = client.get("/api/uploads/u/files", params={"cursor": cursor}).json()
            paths += [row["path"] for row in page["items"]]
            cursor = page["next"]
        assert paths == sorted(name for _field, (name, _content) in parts)
        assert finished(client, "u")["status"] == "ready"
    assert len(files_of(settings)) == 5000


def test_an_archive_in_pieces_is_unpacked(client: Client, dumps: Path) -> None:
    content = archive(dumps / "stat_fault", "zip")
    begin(client, "u", 1, len(content), name="Nightly 7")
    for at in range(0, len(content), 50_000):
        assert piece(client, "u", "run.zip", content[at : at + 50_000], at, len(content)).status_code == 200
    row = finished(client, "u")
    assert (row["name"], row["status"]) == ("Nightly 7", "ready")
    assert row["nodes"] > 100


def test_too_much_is_refused_before_anything_is_sent_and_said_beforehand(make_settings: Make) -> None:
    settings = make_settings(upload_mib=1, upload_files=3)
    with TestClient(create_app(settings), base_url=BASE) as client:
        room = client.get("/api/uploads").json()
        assert (room["limit"], room["files"], room["hours"]) == (1 << 20, 3, 24)
        assert room["free"] > 0
        for files, size in ((1, (1 << 20) + 1), (4, 10)):
            reply = begin(client, "u", files, size)
            assert (reply.status_code, reply.json()["error"]) == (413, "limit")
            assert reply.json()["hint"]
    assert not settings.receiving.exists()


def test_an_upload_that_is_broken_off_or_no_dump_or_too_old_leaves_nothing(make_settings: Make) -> None:
    settings = make_settings(upload_hours=1)
    with TestClient(create_app(settings), base_url=BASE) as client:
        for name in ("off", "bad", "old", "new"):
            begin(client, name, 1, 3)
            piece(client, name, "a/b", b"ab", 0, 3)
        assert client.delete("/api/uploads/off").status_code == 204
        assert client.get("/api/uploads/off").status_code == 404
        assert piece(client, "off", "a/b", b"c", 2, 3).status_code == 404
        begin(client, "two", 2, 2)
        client.post("/api/uploads/two/files", files=[("files", (name, b"1")) for name in ("a.zip", "b.zip")])
        refused = client.post("/api/uploads/two/finish")
        assert (refused.status_code, client.get("/api/dumps").json()["total"]) == (400, 0)
        past = time.time() - 3700
        os.utime(settings.receiving / "old" / "upload.json", (past, past))
    with TestClient(create_app(settings), base_url=BASE) as client:
        deadline = time.monotonic() + 30
        while (left := sorted(folder.name for folder in settings.receiving.iterdir())) != ["bad", "new"]:
            assert time.monotonic() < deadline, left
            time.sleep(0.02)
        assert client.get("/api/uploads/new").json()["there"] == 2
    assert list(settings.uploads.iterdir()) == []


def batch_of(*files: tuple[str, bytes, bytes]) -> tuple[bytes, dict[str, str]]:
    """A multipart body of (name, content, the content that its checksum is of)."""
    parts = b"".join(
        b'--edge\r\nContent-Disposition: form-data; name="crc32"\r\n\r\n%08x\r\n'
        b'--edge\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n%s\r\n'
        % (zlib.crc32(meant), name.encode(), content)
        for name, content, meant in files
    )
    return parts + b"--edge--\r\n", {"Content-Type": "multipart/form-data; boundary=edge"}


def test_a_small_file_that_is_not_what_its_checksum_says_is_not_kept_but_those_before_it_are(client: Client) -> None:
    begin(client, "u", 4, len(RELU) + 9)
    good = ("run/dump.json", RELU, RELU)
    body, headers = batch_of(("../x", b"12", b"no"), good, ("run/a", b"abd", b"abc"), ("run/b", b"12", b"12"))
    reply = client.post("/api/uploads/u/files", content=body, headers=headers)
    assert (reply.status_code, reply.json()["hint"]) == (409, "send it again")
    assert reply.json()["detail"].startswith("run/a: it was damaged on its way")
    assert [row["path"] for row in client.get("/api/uploads/u/files").json()["items"]] == ["run/dump.json"]
    body, headers = batch_of(("run/a", b"abc", b"abc"), ("run/b", b"12", b"12"))
    assert client.post("/api/uploads/u/files", content=body, headers=headers).json()["whole"] == 3
    assert finished(client, "u")["status"] == "ready"
