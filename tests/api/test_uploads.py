"""Uploads keep relative paths, refuse dangerous names one by one, and leave nothing behind when they fail."""

from __future__ import annotations

import io
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.conftest import BASE, Client, Make, register, settled
from dumpscope.api.app import create_app
from dumpscope.domain.options import Options
from dumpscope.index.comparisons.catalogue import create_comparison
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.pipeline.tasks.cleanup import hold_folder
from dumpscope.pipeline.uploads import unfinished
from dumpscope.readers.archives.entry_names import FOLDED, PLAIN, Folding

RELU = (
    b'{"task": "statistics", "level": "L1", "framework": "pytorch", "data": {"Functional.relu.0.forward": {"input_args": [],'
    b' "input_kwargs": {}, "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1.0, "Min": 1.0,'
    b' "Mean": 1.0, "Norm": 1.0, "requires_grad": false}]}}}'
)


def folder_parts(folder: Path) -> list[Any]:
    """A folder as a browser sends it."""
    return [
        ("files", (str(path.relative_to(folder.parent)), path.read_bytes()))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


def uploaded(client: Client, parts: list[Any]) -> dict[str, Any]:
    reply = client.post("/api/uploads", files=parts)
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"/api/dumps/{reply.json()['id']}"
    return settled(client, f"/api/dumps/{reply.json()['id']}")


def archive(folder: Path, kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
            for path in folder.rglob("*"):
                target.write(path, path.relative_to(folder.parent))
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            tar.add(folder, folder.name)
    return buffer.getvalue()


def test_a_folder_from_the_browser_is_the_same_dump(client: Client, dumps: Path) -> None:
    row = uploaded(client, folder_parts(dumps / "stat_fault"))
    direct = settled(client, f"/api/dumps/{register(client, dumps / 'stat_fault')}")
    assert row["name"] == "stat_fault"
    assert row["status"] == "ready"
    for field in ("framework", "task", "level", "summary", "steps", "ranks", "nodes", "items", "problems"):
        assert row[field] == direct[field], field


def test_uploaded_tensors_are_compared(client: Client, dumps: Path) -> None:
    ids = [uploaded(client, folder_parts(dumps / name / "step0"))["id"] for name in ("target_fault", "golden")]
    reply = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]})
    row = settled(client, f"/api/comparisons/{reply.json()['id']}")
    assert (row["mode"], row["origin"]["node"]) == ("tensor", "Functional.softmax.1.forward")


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_is_unpacked_on_the_server(client: Client, dumps: Path, kind: str) -> None:
    row = uploaded(client, [("files", (f"stat_fault.{kind}", archive(dumps / "stat_fault", kind)))])
    assert row["status"] == "ready", row
    assert row["nodes"] > 100
    assert row["name"] == f"stat_fault.{kind}"


BAD_NAMES = [
    "../escape.json", "a/../../escape.json", "/etc/escape.json", "C:/escape.json", "c:escape.json", "a\\..\\escape.json",
    "./escape.json", "a//escape.json", "a/./escape.json", "..", ".", "x" * 300, "/".join("d" * 30), "bad\x01name",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_dangerous_name_is_refused_alone_and_the_rest_is_read(make_settings: Make, tmp_path: Path, name: str) -> None:
    settings = make_settings()
    boundary = "edge"
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    body = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{shown}"\r\n\r\n'.encode()
        + RELU
        + b"\r\n"
        for shown in (quoted, "run/dump.json")
    )
    with TestClient(create_app(settings), base_url=BASE) as running:
        reply = running.post(
            "/api/uploads",
            content=body + f"--{boundary}--\r\n".encode(),
            headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
        )
        assert reply.status_code == 202, reply.text
        row = settled(running, f"/api/dumps/{reply.json()['id']}")
    assert row["status"] == "ready", row
    assert [problem["kind"] for problem in row["problems"] if problem["kind"] == "refused"] == ["refused"]
    written = [path for path in tmp_path.rglob("*.json") if path.is_file()]
    assert [path.name for path in written] == ["dump.json"]
    assert settings.uploads in written[0].parents


@pytest.mark.parametrize(("folding", "refused"), [(PLAIN, 2), (FOLDED, 3)])
def test_names_that_clash_are_refused_but_the_first_one_stays(
    client: Client, monkeypatch: pytest.MonkeyPatch, folding: Folding, refused: int
) -> None:
    monkeypatch.setattr(unfinished, "probe", lambda _folder: folding)
    parts = [("files", (name, RELU)) for name in ("run/dump.json", "run/DUMP.json", "run/dump.json/x", "run")]
    row = uploaded(client, parts)
    assert row["status"] == "ready"
    assert [problem["kind"] for problem in row["problems"]].count("refused") == refused


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "multipart/form-data; boundary=x"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"not multipart at all", "multipart/form-data; boundary=x"),
        (b"--x\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a\"\r\n\r\nabc", "multipart/form-data; boundary=x"),
        (b"{}", "application/json"),
        (b"x", "multipart/form-data"),
    ],
)  # fmt: skip
def test_a_damaged_upload_is_one_clear_error_and_leaves_nothing(make_settings: Make, content: bytes, kind: str) -> None:
    settings = make_settings()
    with TestClient(create_app(settings), base_url=BASE) as running:
        reply = running.post("/api/uploads", content=content, headers={"Content-Type": kind})
        assert (reply.status_code, reply.json()["error"]) == (400, "usage")
        assert running.get("/api/dumps").json()["total"] == 0
    assert list(settings.uploads.iterdir()) == []


def test_an_upload_past_the_limit_is_refused_and_removed(make_settings: Make) -> None:
    settings = make_settings(upload_mib=1)

    def pieces() -> Any:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
        for _ in range(40):
            yield b"0" * (64 << 10)

    with TestClient(create_app(settings), base_url=BASE) as running:
        for content in (b"".join(pieces()), pieces()):
            kind = {"Content-Type": "multipart/form-data; boundary=x"}
            reply = running.post("/api/uploads", content=content, headers=kind)
            assert (reply.status_code, reply.json()["error"]) == (413, "limit")
        assert running.get("/api/dumps").json()["total"] == 0
    assert list(settings.uploads.iterdir()) == []


def test_too_many_files_are_refused(make_settings: Make) -> None:
    with TestClient(create_app(make_settings(upload_files=3)), base_url=BASE) as running:
        reply = running.post("/api/uploads", files=[("files", (f"run/{number}", b"x")) for number in range(5)])
        assert reply.status_code == 413


def test_a_bomb_in_an_archive_fails_the_dump_and_leaves_no_files(make_settings: Make) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bomb:
        for number in range(8):
            bomb.writestr(f"run/{number}.pt", b"\0" * (1 << 20))
    settings = make_settings(upload_mib=4)
    with TestClient(create_app(settings), base_url=BASE) as running:
        row = uploaded(running, [("files", ("bomb.zip", buffer.getvalue()))])
        assert row["status"] == "failed"
        assert row["error"]["error"] == "limit"
        assert list(settings.unpacked.glob("*")) == []
        deadline = time.monotonic() + 30
        while list(settings.uploads.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert running.delete(f"/api/dumps/{row['id']}").status_code == 204


def test_what_is_no_dump_fails_with_advice_and_can_be_deleted_with_its_files(make_settings: Make) -> None:
    settings = make_settings()
    with TestClient(create_app(settings), base_url=BASE) as running:
        row = uploaded(running, [("files", ("notes/readme.txt", b"hello"))])
        assert row["status"] == "failed"
        assert (row["error"]["error"], row["error"]["kind"]) == ("foreign", "text")
        assert "readme.txt is a text file" in row["error"]["detail"]
        assert row["error"]["hint"]
        assert running.delete(f"/api/dumps/{row['id']}").status_code == 204
    assert list(settings.uploads.iterdir()) == []


def test_a_name_may_come_with_the_upload(client: Client) -> None:
    reply = client.post("/api/uploads", data={"name": "Nightly 7"}, files=[("files", ("run/dump.json", RELU))])
    assert settled(client, f"/api/dumps/{reply.json()['id']}")["name"] == "Nightly 7"


@pytest.mark.parametrize(
    ("names", "says", "hint"),
    [
        (["target.zip", "golden.tar.gz"], "2 archives (target.zip, golden.tar.gz)", "one by one"),
        (["run/target.zip", "run/notes.txt"], "the archive run/target.zip beside 1 other files", "alone"),
    ],
)
def test_an_archive_in_company_is_refused_with_the_remedy(
    make_settings: Make, dumps: Path, names: list[str], says: str, hint: str
) -> None:
    settings = make_settings()
    content = archive(dumps / "stat_fault", "zip")
    with TestClient(create_app(settings), base_url=BASE) as client:
        reply = client.post("/api/uploads", files=[("files", (name, content)) for name in names])
        assert reply.status_code == 400
        assert says in reply.json()["detail"]
        assert hint in reply.json()["hint"]
        assert client.get("/api/dumps").json()["total"] == 0
        assert list(settings.uploads.iterdir()) == []


def test_an_upload_that_a_kill_cut_off_is_gone_after_the_next_start(make_settings: Make) -> None:
    settings = make_settings()
    with TestClient(create_app(settings), base_url=BASE) as client:
        database = client.app.state.shared.database  # type: ignore[attr-defined]
        whole = uploaded(client, [("files", ("dump.json", RELU))])
        cut, live, foreign = (
            create_dump(database, name="upload", path=str(folder), owned=True)
            for folder in (settings.uploads, settings.uploads, "/other/uploads")
        )
        never_read = create_dump(database, name="run", path="/somewhere")
        never_compared = create_comparison(
            database, name="c", target=whole["id"], golden=whole["id"], options=Options()
        )
        for dump_id in (cut, live, ".gone-0123"):
            (settings.uploads / dump_id).mkdir()
            (settings.uploads / dump_id / "dump.json.part").write_bytes(RELU[:50])
    with (
        hold_folder(settings.uploads / live),
        TestClient(create_app(settings), base_url=BASE) as client,
    ):
        left = {row["id"]: row for row in client.get("/api/dumps").json()["items"]}
        assert set(left) == {whole["id"], live, foreign, never_read}
        assert {folder.name for folder in settings.uploads.iterdir()} == {whole["id"], live}
        assert left[never_read]["status"] == "failed"
        assert left[never_read]["error"]["hint"] == "start it again"
        assert client.get(f"/api/comparisons/{never_compared}").json()["status"] == "failed"
        busy = client.delete(f"/api/dumps/{live}")
        assert (busy.status_code, busy.json()["detail"]) == (409, "the dump is still being uploaded")
    with TestClient(create_app(settings), base_url=BASE) as client:
        assert {row["id"] for row in client.get("/api/dumps").json()["items"]} == {whole["id"], foreign, never_read}


def test_what_was_refused_of_an_upload_that_is_no_dump_is_listed_too(client: Client) -> None:
    row = uploaded(client, [("files", (name, b"1")) for name in ("notes/a.txt", "notes/a.txt/b", "../up")])
    assert row["status"] == "failed"
    assert [(one["kind"], one["loc"]) for one in row["problems"]] == [
        ("refused", "notes/a.txt/b"),
        ("refused", "../up"),
    ]
