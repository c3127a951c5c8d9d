"""One archive per finding, for the operator's owner: it runs where it is unpacked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.records import RankDump
from dumpscope.errors import DumpscopeError, UsageError
from dumpscope.pipeline.operators.reproduce import FoundCall, copy_tensors, write_script
from dumpscope.readers.msprobe.rank import dump_root, read_rank
from dumpscope.readers.msprobe.run_file import read_run
from dumpscope.reproduce.script import expression
from dumpscope.texts import say
from dumpscope_format.paths import safe_join
from dumpscope_format.replay import CallDocument, RegionDocument

SCRIPT: Final = "reproduce.py"
TENSORS: Final = "tensors"
PLOTS: Final = "plots"
_STAMP: Final = (1980, 1, 1, 0, 0, 0)
"""The same call gives the same archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What goes in beside the call. python: runs it here and fills in output and matrix, None to leave them out

    attached: further files (controls, logs); report: folder of a comparison's report; drawings: SVG texts by name
    """

    python: str | None = None
    attached: Sequence[Path] = ()
    report: Path | None = None
    drawings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What an archive will hold of a call without running it. parts: (name, bytes) as unpacked; mind: what it lacks"""

    parts: list[tuple[str, int]]
    mind: list[str]


def plan(found: FoundCall, origin: str, drawings: Mapping[str, str]) -> Planned:
    """What `hand_over` would write with the same drawings and nothing run or attached."""
    texts = _texts(found, origin, drawings)
    texts["README.txt"] = _readme(found, origin, {*texts, *([TENSORS] if found.files else [])})
    sizes = {name: len(text.encode()) for name, text in texts.items()}
    if found.folder is not None:
        sizes |= {f"{TENSORS}/{name}": os.path.getsize(safe_join(found.folder, name)) for name in found.files}
    return Planned(parts=sorted(sizes.items()), mind=_mind(found, set(texts)))


def hand_over(found: FoundCall, origin: str, target: Path, evidence: Evidence) -> list[str]:
    """Write the archive; returns the names in it. Raises UsageError for a file that is not there."""
    for path in evidence.attached:
        if not path.is_file():
            raise UsageError(say("pipeline.nothing_attach"), where=str(path))
    with tempfile.TemporaryDirectory(prefix="dumpscope-") as temporary:
        folder = Path(temporary)
        copy_tensors(found, folder / TENSORS)
        for name, text in _texts(found, origin, evidence.drawings).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        if evidence.python is not None:
            _run(folder, evidence.python, matrix="graph" not in found.call)
        for path in evidence.attached:
            (folder / "attached").mkdir(exist_ok=True)
            shutil.copyfile(path, folder / "attached" / path.name)
        if evidence.report is not None:
            shutil.copytree(evidence.report, folder / "comparison")
        there = {path.name for path in folder.iterdir() if path.is_file() or any(path.iterdir())}
        (folder / "README.txt").write_text(_readme(found, origin, there), encoding="utf-8")
        return _pack(folder, target)


def _texts(found: FoundCall, origin: str, drawings: Mapping[str, str]) -> dict[str, str]:
    """Text files by name."""
    stack = call_stack(found)
    return {
        SCRIPT: write_script(found, origin=origin, data=TENSORS),
        "call.json": _json(found.call),
        "environment.json": _json(_environment(found)),
        **({"stack.txt": "\n".join(stack) + "\n"} if stack else {}),
        **{f"{PLOTS}/{name}.svg": text for name, text in drawings.items()},
    }


def call_stack(found: FoundCall) -> list[str]:
    """Frames of the call, innermost first; none where the dump tells none."""
    if not found.ref.dump_json:
        return []
    try:
        dump = read_rank(found.ref)
    except DumpscopeError:
        return []
    return [" ".join(frame.split()) for frame in _frames(dump, found.call)]


def _frames(dump: RankDump, call: CallDocument | RegionDocument) -> tuple[str, ...]:
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


def _run(folder: Path, python: str, *, matrix: bool) -> None:
    """The script's own answer and, for a single operator, its matrix on this machine."""
    runs = [("output.txt", []), ("matrix.txt", ["--matrix", "--save", "matrix.json", "--logs", "logs"])]
    for name, words in runs if matrix else runs[:1]:
        done = subprocess.run(
            [python, SCRIPT, *words], cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
        (folder / name).write_text(done.stdout + done.stderr, encoding="utf-8")


def _readme(found: FoundCall, origin: str, there: Collection[str]) -> str:
    """there: names of files and folders in the archive"""
    call = found.call
    region = "graph" in call
    descriptions = {
        SCRIPT: f"runs the call alone and judges it: python reproduce.py --device npu; {'' if region else '--matrix; '}--help",
        TENSORS: f"{len(found.files)} recorded tensor files that it reads",
        "call.json": "the call: arguments, types, shapes, strides, storage formats, gradients, results",
        "environment.json": "versions, devices and switches of the run it is from",
        "stack.txt": "where the program called it, innermost frame first",
        PLOTS: "the comparison that named the call: error in call order, and of every call of its API",
        "output.txt": "what the script said where this archive was made",
        "matrix.txt": "device, type, layout and order there: which of them flips the result; matrix.json for programs",
        "logs": "what each of its runs said, and the log of an Ascend runtime",
        "attached": "controls, logs and whatever else was given along",
        "comparison": "report of the comparison that named the call",
    }
    folders = {name.partition("/")[0] for name in there}
    notes = [f"  {note}" for note in (*call["notes"], *_mind(found, there))]
    return "\n".join([
        f"{call['name']}, from {origin}",
        "",
        f"  {expression(call)}",
        "",
        "Unpack and run:  python reproduce.py          needs Python 3.10, torch and numpy, nothing else",
        "",
        *(f"  {name:18}{what}" for name, what in descriptions.items() if name in folders),
        *(["", "Mind:", *notes] if notes else []),
        "",
    ])  # fmt: skip


def _mind(found: FoundCall, there: Collection[str]) -> list[str]:
    """What the archive lacks."""
    lacking = (
        (say("pipeline.tensors_not_dump_numbers_made_up"), not found.files),
        (say("pipeline.dump_does_not_tell_how_run"), not _environment(found)),
        (say("pipeline.dump_holds_no_call_stack"), "stack.txt" not in there),
        (say("pipeline.not_run_where_archive_made"), "output.txt" not in there),
    )
    return [what for what, lacks in lacking if lacks]


def _json(document: Any) -> str:
    return json.dumps(document, indent=1) if document else "{}"


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
