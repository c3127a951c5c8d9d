"""The source around a call over REST: recorded beside the dump, read below a source root, or told why there is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api.app import create_app
from dumpscope.settings import Settings
from dumpscope_format.source_files import SOURCE_FILES, TOO_LARGE, SourceFile, written

NODE = "Functional.softmax.1.forward"


def frame_of(dump: Path) -> tuple[str, int, str]:
    """File, line and text of the innermost line of the stack of NODE in the first step."""
    (stack,) = [
        frames
        for names, frames in json.loads(next(dump.glob("step0/*/stack.json")).read_text()).values()
        if NODE in names
    ]
    own = next(text for text in stack if "models.py" in text)
    place, code = own.split(", \n ")
    file, line = place.removeprefix("File ").split(", line ")
    return file, int(line.split(",")[0]), code


def source_around(line: int, code: str, *, more: str = "") -> str:
    """A file of 40 lines with the call's text at its line."""
    texts = [f"name_{number} = {number}" for number in range(1, 41)]
    texts[line - 1] = "    " + code
    return "\n".join(texts) + f"\n{more}"


@pytest.fixture
def pair(tmp_path: Path, dumps: Path) -> tuple[Path, Path]:
    """Copies of target_fault and golden, which a test may write to."""
    for name in ("target_fault", "golden"):
        shutil.copytree(dumps / name, tmp_path / "given" / name)
    return tmp_path / "given" / "target_fault", tmp_path / "given" / "golden"


@pytest.fixture
def serve(make_settings: Make, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """A server over the copies, with these settings."""
    running: list[TestClient] = []

    def started(**given: Any) -> Client:
        client = TestClient(create_app(make_settings(roots=[tmp_path], **given)), base_url=BASE)
        running.append(client)
        return client.__enter__()

    yield started
    for client in running:
        client.__exit__(None, None, None)


def record(dump: Path, *files: SourceFile) -> None:
    for folder in dump.glob("step*/*"):
        (folder / SOURCE_FILES).write_bytes(b"".join(map(written, files)))


def asked(client: Client, comparison: str, node: str = NODE, **query: Any) -> dict[str, Any]:
    reply = client.get(f"/api/comparisons/{comparison}/nodes/{node}/source", params=query)
    assert reply.status_code == 200, reply.text
    assert len(reply.content) < 200_000
    body: dict[str, Any] = reply.json()
    return body


def test_recorded_files_that_differ_stand_beside_each_other(
    serve: Callable[..., Client], pair: tuple[Path, Path]
) -> None:
    file, line, code = frame_of(pair[0])
    record(pair[0], SourceFile(file=file, text=source_around(line, code).replace("name_12", "renamed")))
    record(pair[1], SourceFile(file=file, text=source_around(line, code, more="# only here\n")))
    client = serve()
    comparison = compare(client, *pair)
    body = asked(client, comparison)
    assert (body["same"], body["whole"]) == (False, False)
    (call,) = [row for row in body["rows"] if row["at"]]
    assert call["target"] == call["golden"] == {"number": line, "text": f"    {code}"}
    for side in ("target", "golden"):
        told = body[side]
        assert (told["file"], told["line"], told["now"], told["code"]) == (file, line, line, code)
        assert (told["state"], told["matches"], told["changed"], told["path"], told["text"]) == (
            "recorded",
            True,
            False,
            None,
            "",
        )
    changed = [row for row in body["rows"] if row["kind"] == "changed"]
    assert [(row["target"]["text"], row["golden"]["text"]) for row in changed] == [("renamed = 12", "name_12 = 12")]
    backward = asked(client, comparison, "Functional.softmax.1.backward")
    assert backward["rows"] == body["rows"], "a backward call has the line of its forward call"


def test_equal_files_are_said_to_be_so(serve: Callable[..., Client], pair: tuple[Path, Path]) -> None:
    file, line, code = frame_of(pair[0])
    for dump in pair:
        record(dump, SourceFile(file=file, text=source_around(line, code)))
    client = serve()
    body = asked(client, compare(client, *pair), step=1)
    assert body["same"]
    assert body["whole"]
    assert [row["target"]["number"] for row in body["rows"]] == list(range(line - 8, line + 9))


def test_a_source_root_gives_the_same_form_and_says_that_it_was_read_now(
    serve: Callable[..., Client], pair: tuple[Path, Path], tmp_path: Path
) -> None:
    file, line, code = frame_of(pair[0])
    record(pair[0], SourceFile(file=file, text=source_around(line, code)))
    mounted = tmp_path / "mounted" / "models.py"
    mounted.parent.mkdir()
    mounted.write_text("# a new line\n" + source_around(line, code), encoding="utf-8")
    client = serve(source_roots=[str(mounted.parent)])
    body = asked(client, compare(client, *pair))
    target, golden = body["target"], body["golden"]
    assert target.keys() == golden.keys()
    assert (target["state"], golden["state"]) == ("recorded", "read")
    assert golden["path"] == str(mounted)
    assert (golden["line"], golden["now"], golden["matches"]) == (line, line + 1, False)
    assert [one["id"] for one in golden["said"]] == ["source.read", "source.moved"]
    assert f"line {line + 1} does" in golden["text"]
    (call,) = [row for row in body["rows"] if row["at"]]
    assert (call["target"]["number"], call["golden"]["number"]) == (line, line + 1)
    mounted.write_text("import torch\n" * 40, encoding="utf-8")
    golden = asked(client, register_again(client))["golden"]
    assert [one["id"] for one in golden["said"]] == ["source.read", "source.other_text"]
    assert golden["now"] == line


def register_again(client: Client) -> str:
    """The comparison that is there."""
    return str(client.get("/api/comparisons").json()["items"][0]["id"])


def test_recorded_source_wins_and_a_change_after_loading_is_told(
    serve: Callable[..., Client], pair: tuple[Path, Path], tmp_path: Path
) -> None:
    file, line, code = frame_of(pair[0])
    record(pair[0], SourceFile(file=file, text=source_around(line, code), changed=True))
    (tmp_path / "models.py").write_text("# mounted\n", encoding="utf-8")
    client = serve(source_roots=[str(tmp_path)])
    target = asked(client, compare(client, *pair))["target"]
    assert target["state"] == "recorded"
    assert target["changed"]
    assert [one["id"] for one in target["said"]] == ["source.changed"]


def test_without_source_the_reply_says_how_to_get_it(
    serve: Callable[..., Client], pair: tuple[Path, Path], tmp_path: Path
) -> None:
    file, _, _ = frame_of(pair[0])
    record(pair[1], SourceFile(file=file, left_out=TOO_LARGE))
    client = serve()
    comparison = compare(client, *pair)
    body = asked(client, comparison)
    assert (body["rows"], body["same"], body["whole"]) == ([], False, None)
    assert [one["id"] for one in body["target"]["said"]] == ["source.none", "source.give_root"]
    assert [one["id"] for one in body["golden"]["said"]] == ["source.too_large", "source.give_root"]
    assert "--source-root" in body["target"]["text"]
    shutil.rmtree(pair[0])
    assert [one["id"] for one in asked(client, comparison)["target"]["said"]] == ["source.gone", "source.give_root"]
    (tmp_path / "empty").mkdir()
    told = asked(serve(source_roots=[str(tmp_path / "empty")]), comparison)["target"]["said"]
    assert told[-1]["id"] == "source.not_below"


def test_one_side_that_has_source_is_shown_alone(serve: Callable[..., Client], pair: tuple[Path, Path]) -> None:
    file, line, code = frame_of(pair[0])
    record(pair[1], SourceFile(file=file, text=source_around(line, code)))
    client = serve()
    body = asked(client, compare(client, *pair))
    assert {row["kind"] for row in body["rows"]} == {"plain"}
    assert all(row["target"] is None for row in body["rows"])
    assert body["target"]["state"] == "missing"


def test_one_dump_has_the_same_reply(serve: Callable[..., Client], pair: tuple[Path, Path]) -> None:
    file, line, code = frame_of(pair[0])
    record(pair[0], SourceFile(file=file, text=source_around(line, code)))
    client = serve()
    dump = register(client, pair[0])
    settled(client, f"/api/dumps/{dump}")
    reply = client.get(f"/api/dumps/{dump}/nodes/{NODE}/source")
    assert reply.status_code == 200, reply.text
    body = reply.json()
    assert body["golden"] is None
    assert [row["target"]["number"] for row in body["rows"]] == list(range(line - 8, line + 9))
    assert client.get(f"/api/dumps/{dump}/nodes/no.such.node/source").status_code == 404


def test_an_uploaded_dump_brings_its_source(
    serve: Callable[..., Client], pair: tuple[Path, Path], tmp_path: Path
) -> None:
    file, line, code = frame_of(pair[0])
    record(pair[0], SourceFile(file=file, text=source_around(line, code)))
    packed = Path(shutil.make_archive(str(tmp_path / "dump"), "zip", pair[0]))
    client = serve()
    reply = client.post("/api/uploads", files={"files": ("dump.zip", packed.read_bytes())})
    assert reply.status_code == 202, reply.text
    dump = reply.json()["id"]
    settled(client, f"/api/dumps/{dump}")
    target = client.get(f"/api/dumps/{dump}/nodes/{NODE}/source").json()["target"]
    assert (target["state"], target["matches"]) == ("recorded", True)


def test_very_long_lines_are_cut_and_the_reply_stays_small(
    serve: Callable[..., Client], pair: tuple[Path, Path]
) -> None:
    file, line, code = frame_of(pair[0])
    for number, dump in enumerate(pair):
        text = source_around(line, code).replace("name_", f"{'界' * 2_000}{number}")
        record(dump, SourceFile(file=file, text=text))
    client = serve()
    body = asked(client, compare(client, *pair))
    texts = [row[side]["text"] for row in body["rows"] for side in ("target", "golden") if row[side]]
    assert max(map(len, texts)) == 400
    assert any(text.endswith("…") for text in texts)


@pytest.mark.parametrize("root", ["/no/such/folder", "=/tmp"])
def test_a_source_root_that_is_none_is_refused_at_start(root: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="PREFIX=DIR"):
        Settings(data_dir=tmp_path, source_roots=[root])


def test_source_roots_come_from_the_environment_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMPSCOPE_SOURCE_ROOTS", json.dumps([str(tmp_path), f"/train={tmp_path}"]))
    folders = Settings(data_dir=tmp_path).source_folders
    assert [(root.folder, root.prefix) for root in folders] == [(str(tmp_path), ()), (str(tmp_path), ("train",))]
