"""The program's own files beside a dump: what is kept, what is left out and why, and that the run never notices."""

from __future__ import annotations

import json
import linecache
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from warm_python import warm_python

torch = pytest.importorskip("torch")

from dumpscope_capture.context import source_text  # noqa: E402
from dumpscope_capture.write import source_files  # noqa: E402
from dumpscope_format.source_files import FILE_LIMIT, NO_TEXT, SOURCE_FILES, TOO_LARGE, TOO_MANY, find  # noqa: E402

STEP = "import torch\n\n\ndef step(x):\n    return torch.relu(x)  # ünique\n"


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    """What source.jsonl of a rank folder says, by file."""
    path = folder / SOURCE_FILES
    return {one["file"]: one for one in map(json.loads, path.read_text("ascii").splitlines())}


def run(path: Path, text: str | None = None, *, encoding: str = "utf-8") -> Callable[[Any], Any]:
    """The function `step` of a file, run as an import runs it."""
    if text is not None:
        path.write_text(text, encoding=encoding)
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_bytes(), str(path), "exec"), names)
    step: Callable[[Any], Any] = names["step"]
    return step


@pytest.fixture
def record(make: Callable[..., Any], read: Callable[..., Any]) -> Callable[..., Path]:
    """Records one step of a function; the folder of the dump."""

    def recorded(*steps: Callable[[Any], Any], **keys: Any) -> Path:
        debugger = make(**{"level": "L1", **keys})
        debugger.start()
        for step in steps:
            step(torch.ones(3))
        debugger.stop()
        debugger.step()
        assert not read().errors
        folder: Path = read().folder
        return folder

    return recorded


def test_the_users_files_are_kept_whole_and_no_framework_s(record: Callable[..., Path], tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    kept = lines(record(run(file, STEP)))
    assert kept[str(file)] == {"file": str(file), "changed": False, "text": STEP}
    assert not any("site-packages" in name or "/torch/" in name for name in kept)
    assert kept[__file__]["text"] == Path(__file__).read_text("utf-8")


def test_all_steps_share_one_file_that_holds_each_source_once(make: Callable[..., Any], tmp_path: Path) -> None:
    debugger = make(level="L1")
    for name in ("one.py", "two.py", "one.py"):
        debugger.start()
        run(tmp_path / name, STEP)(torch.ones(3))
        debugger.stop()
        debugger.step()
    files = sorted((tmp_path / "dump").glob(f"step*/*/{SOURCE_FILES}"))
    assert len(files) == 3
    assert len({path.stat().st_ino for path in files}) == 1
    texts = files[0].read_text("ascii").splitlines()
    assert len(texts) == len({json.loads(text)["file"] for text in texts})


def test_a_step_whose_predecessor_was_deleted_has_the_files_too(make: Callable[..., Any], tmp_path: Path) -> None:
    debugger = make(level="L1")
    step = run(tmp_path / "model.py", STEP)
    for number in range(2):
        debugger.start()
        step(torch.ones(3))
        debugger.stop()
        debugger.step()
        (folder,) = (tmp_path / "dump" / f"step{number}").iterdir()
        assert lines(folder)[str(tmp_path / "model.py")]["text"] == STEP
        (folder / SOURCE_FILES).unlink()


@pytest.mark.parametrize("how", ["key", "variable", "no stacks"])
def test_it_can_be_switched_off(
    how: str, record: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "variable":
        monkeypatch.setenv("DUMPSCOPE_SOURCE_FILES", "0")
    keys = {"key": {"source_files": False}, "no stacks": {"extra_info": False}}.get(how, {})
    folder = record(run(tmp_path / "model.py", STEP), **keys)
    assert (folder / "dump.json").is_file()
    assert not (folder / SOURCE_FILES).exists()


def test_a_file_past_its_limit_and_files_past_the_whole_limit_are_named_with_the_reason(
    record: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "TOTAL_LIMIT", 100_000)
    huge = run(tmp_path / "huge.py", STEP + "#" * FILE_LIMIT)
    large = run(tmp_path / "large.py", STEP + "#" * 99_000)
    small = run(tmp_path / "small.py", STEP)
    kept = lines(record(huge, small, large))
    assert kept[str(tmp_path / "huge.py")] == {"file": str(tmp_path / "huge.py"), "left_out": TOO_LARGE}
    assert kept[str(tmp_path / "large.py")]["left_out"] == TOO_MANY
    assert kept[str(tmp_path / "small.py")]["text"] == STEP


def test_code_without_a_file_is_named_and_a_notebook_s_cell_is_kept(record: Callable[..., Path]) -> None:
    made: dict[str, Any] = {}
    exec(STEP, made)
    cell: dict[str, Any] = {}
    name = "<ipython-input-7-0123456789ab>"
    linecache.cache[name] = (len(STEP), None, STEP.splitlines(keepends=True), name)
    try:
        exec(compile(STEP, name, "exec"), cell)
        kept = lines(record(made["step"], cell["step"]))
    finally:
        del linecache.cache[name]
    assert kept["<string>"] == {"file": "<string>", "left_out": NO_TEXT}
    assert kept[name]["text"] == STEP


def test_a_file_in_another_encoding_is_kept_as_python_reads_it(record: Callable[..., Path], tmp_path: Path) -> None:
    text = "# -*- coding: gbk -*-\n# 残差\n" + STEP.replace("ü", "误")
    kept = lines(record(run(tmp_path / "model.py", text, encoding="gbk")))
    assert kept[str(tmp_path / "model.py")]["text"] == text


def test_a_file_that_cannot_be_decoded_costs_no_record(record: Callable[..., Path], tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    step = run(file, STEP)
    file.write_bytes(b"\xff\xfe\x00" + STEP.encode("utf-16"))
    folder = record(step)
    assert lines(folder)[str(file)] == {"file": str(file), "left_out": NO_TEXT}
    assert "Torch.relu.0.forward" in json.loads((folder / "dump.json").read_text("utf-8"))["data"]


def test_a_file_deleted_before_its_first_call_is_named_and_one_deleted_later_is_kept(
    make: Callable[..., Any], read: Callable[..., Any], tmp_path: Path
) -> None:
    early, late = run(tmp_path / "early.py", STEP), run(tmp_path / "late.py", STEP)
    (tmp_path / "early.py").unlink()
    debugger = make(level="L1")
    debugger.start()
    early(torch.ones(3))
    late(torch.ones(3))
    (tmp_path / "late.py").unlink()
    late(torch.ones(3))
    debugger.stop()
    debugger.step()
    kept = lines(read().folder)
    assert kept[str(tmp_path / "early.py")]["left_out"] == NO_TEXT
    assert kept[str(tmp_path / "late.py")]["text"] == STEP


def test_a_file_that_changed_after_it_was_loaded_says_so(record: Callable[..., Path], tmp_path: Path) -> None:
    changed, touched = tmp_path / "changed.py", tmp_path / "touched.py"
    steps = run(changed, STEP), run(touched, STEP)
    changed.write_text("# a new line\n" + STEP, encoding="utf-8")
    os.utime(touched)
    kept = lines(record(*steps))
    assert kept[str(changed)]["changed"] is True
    assert kept[str(touched)] == {"file": str(touched), "changed": False, "text": STEP}


def test_a_file_older_than_the_process_is_not_compiled_again(
    record: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[CodeType] = []
    monkeypatch.setattr("dumpscope_capture.context._holds", lambda text, code: asked.append(code) or False)
    monkeypatch.setattr("dumpscope_capture.context._started", lambda: 4e9)
    assert lines(record(run(tmp_path / "model.py", STEP)))[str(tmp_path / "model.py")]["changed"] is False
    assert asked == []


def test_a_disk_that_refuses_the_file_ends_nothing_and_is_told_once(
    record: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def refuse(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(source_files, "_append", refuse)
    monkeypatch.setattr(source_files.log, "warning", lambda text, *values: told.append(text % values))
    folder = record(run(tmp_path / "one.py", STEP), run(tmp_path / "two.py", STEP))
    assert not (folder / SOURCE_FILES).exists()
    assert json.loads((folder / "run.json").read_text("utf-8"))["counts"] == {}
    assert len([text for text in told if "source is kept" in text]) == 1


def test_an_earlier_run_s_file_is_not_added_to(
    make: Callable[..., Any], read: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "dump" / "step0" / f"proc{os.getpid()}"
    folder.mkdir(parents=True)
    (folder / SOURCE_FILES).write_text('{"file": "/old.py", "text": "", "changed": false}\n')
    debugger = make(level="L1")
    debugger.start()
    run(tmp_path / "model.py", STEP)(torch.ones(3))
    debugger.stop()
    debugger.step()
    assert "/old.py" not in lines(read().folder)


def test_a_killed_run_keeps_the_files_it_had_seen(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, sys
        import torch
        from dumpscope_capture import PrecisionDebugger
        debugger = PrecisionDebugger(task="statistics", dump_path=sys.argv[1], level="L1")
        debugger.start()
        torch.relu(torch.ones(3))
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    )
    done = subprocess.run([warm_python(), str(script), str(tmp_path / "dump")], check=False, timeout=120)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    (folder,) = (tmp_path / "dump" / "step0").iterdir()
    assert lines(folder)[str(script)]["text"] == script.read_text()
    with (folder / SOURCE_FILES).open("ab") as stream:  # a write that was cut off
        stream.write(b'{"file": "/next.py", "te')
    with (folder / SOURCE_FILES).open("rb") as stream:
        assert find(stream, "/next.py") is None


def test_a_file_that_no_stack_named_has_no_text() -> None:
    assert source_text("/never/seen.py") is None
    assert sys.executable not in {name for name in linecache.cache if source_text(name)}
