"""One archive per finding, for the operator's owner: it runs where it is unpacked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.records import RankDump
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.pipeline.reproduce import FoundCall, copy_tensors, write_script
from dumpscope.readers.msprobe import dump_root, read_rank
from dumpscope.readers.run import read_run
from dumpscope.reproduce.script import expression
from dumpscope_format.replay import CallDocument

SCRIPT: Final = "reproduce.py"
TENSORS: Final = "tensors"
_STAMP: Final = (1980, 1, 1, 0, 0, 0)
"""The same call gives the same archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What goes in beside the call. python: runs it here and fills in output and matrix, None to leave them out

    attached: further files (controls, logs); report: folder of a comparison's report
    """

    python: str | None = None
    attached: Sequence[Path] = ()
    report: Path | None = None


def hand_over(found: FoundCall, origin: str, target: Path, evidence: Evidence) -> list[str]:
    """Write the archive; returns the names in it. Raises UsageError for a file that is not there."""
    for path in evidence.attached:
        if not path.is_file():
            raise UsageError("nothing to attach", where=str(path))
    with tempfile.TemporaryDirectory(prefix="dumpscope-") as room:
        folder = Path(room)
        copy_tensors(found, folder / TENSORS)
        (folder / SCRIPT).write_text(write_script(found, origin=origin, data=TENSORS), encoding="utf-8")
        _json(folder / "call.json", found.call)
        _json(folder / "environment.json", _environment(found))
        stack = call_stack(found)
        if stack:
            (folder / "stack.txt").write_text("\n".join(stack) + "\n", encoding="utf-8")
        if evidence.python is not None:
            _run(folder, evidence.python)
        for path in evidence.attached:
            (folder / "attached").mkdir(exist_ok=True)
            shutil.copyfile(path, folder / "attached" / path.name)
        if evidence.report is not None:
            shutil.copytree(evidence.report, folder / "comparison")
        (folder / "README.txt").write_text(_readme(found, origin, folder), encoding="utf-8")
        return _pack(folder, target)


def call_stack(found: FoundCall) -> list[str]:
    """Frames of the call, innermost first; none where the dump tells none."""
    if not found.ref.dump_json:
        return []
    try:
        dump = read_rank(found.ref)
    except DumpscopeError:
        return []
    return [" ".join(frame.split()) for frame in _frames(dump, found.call)]


def _frames(dump: RankDump, call: CallDocument) -> tuple[str, ...]:
    for node, name in enumerate(dump.nodes.names):
        if name == f"{call['name']}.forward" and dump.nodes.stack[node] >= 0:
            return dump.nodes.stacks[int(dump.nodes.stack[node])]
    return ()


def _environment(found: FoundCall) -> dict[str, Any]:
    """How the run was made, as the dump or the saved call tells it."""
    if not found.ref.dump_json:
        return dict(found.call["seen"])
    run, _ = read_run(found.ref.folder, dump_root(found.ref), "")
    return {} if run is None else asdict(run)


def _run(folder: Path, python: str) -> None:
    """The script's own answer and matrix on this machine."""
    for name, words in (("output.txt", []), ("matrix.txt", ["--matrix", "--save", "matrix.json"])):
        done = subprocess.run(
            [python, SCRIPT, *words], cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
        (folder / name).write_text(done.stdout + done.stderr, encoding="utf-8")


def _readme(found: FoundCall, origin: str, folder: Path) -> str:
    call = found.call
    told = {
        SCRIPT: "runs the call alone and judges it: python reproduce.py --device npu; --matrix; --help",
        TENSORS: f"{len(found.files)} recorded tensor files that it reads",
        "call.json": "the call: arguments, types, shapes, strides, gradients, results",
        "environment.json": "versions, devices and switches of the run it is from",
        "stack.txt": "where the program called it, innermost frame first",
        "output.txt": "what the script said where this archive was made",
        "matrix.txt": "device, type, layout and order there: which of them flips the result; matrix.json for programs",
        "attached": "controls, logs and whatever else was given along",
        "comparison": "report of the comparison that named the call",
    }
    there = [f"  {name:18}{what}" for name, what in told.items() if (folder / name).exists()]
    missing = [
        what
        for what, lacks in (
            ("its tensors are not in the dump, numbers are made up between the recorded extremes", not found.files),
            ("the dump does not tell how the run was made", (folder / "environment.json").read_text() == "{}"),
            ("the dump holds no call stack", not (folder / "stack.txt").exists()),
            ("it was not run where the archive was made", not (folder / "output.txt").exists()),
        )
        if lacks
    ]
    notes = [f"  {note}" for note in (*call["notes"], *missing)]
    return "\n".join([
        f"{call['name']}, from {origin}",
        "",
        f"  {expression(call)}",
        "",
        "Unpack and run:  python reproduce.py          needs Python 3.10, torch and numpy, nothing else",
        "",
        *there,
        *(["", "Mind:", *notes] if notes else []),
        "",
    ])  # fmt: skip


def _json(path: Path, document: Any) -> None:
    path.write_text("{}" if not document else json.dumps(document, indent=1), encoding="utf-8")


def _pack(folder: Path, target: Path) -> list[str]:
    target.parent.mkdir(parents=True, exist_ok=True)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            info = zipfile.ZipInfo(name, _STAMP)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with open(folder / name, "rb") as source, archive.open(info, "w") as stream:
                shutil.copyfileobj(source, stream)
    os.replace(fresh, target)
    return names
