"""Find the records of one call in a dump and write what runs it alone."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.records import DumpIndex, RankRef
from dumpscope.domain.run import Run
from dumpscope.errors import DumpscopeError, NotFoundError, UnreadableError, UsageError
from dumpscope.readers.formats import format_of
from dumpscope.readers.msprobe.rank import dump_root, read_rank
from dumpscope.readers.msprobe.raw_records import Body, read_bodies
from dumpscope.readers.msprobe.run_file import argument_names, compiled_regions, read_run, region_file
from dumpscope.reproduce import saved
from dumpscope.reproduce.calls import Records, document, forward_name, label_of, reason, specs
from dumpscope.reproduce.regions import region_document
from dumpscope.reproduce.script import region_script, script
from dumpscope.texts import say
from dumpscope_format import saved_call
from dumpscope_format.compiled_graph import SUFFIX
from dumpscope_format.naming import NodeName, build, parse
from dumpscope_format.paths import RUN_JSON, TENSOR_FOLDER, safe_join
from dumpscope_format.replay import REGION_RUNTIME, RUNTIME, CallDocument, RegionDocument

INSIDE_LIMIT: Final = 6
REGION: Final = "Compiled"
"""Prefix of the labels of regions of compiled code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCall:
    """A call's document and where it was found. folder: of its tensor files, None where the dump has none"""

    ref: RankRef
    call: CallDocument | RegionDocument
    folder: str | None

    @property
    def arguments(self) -> list[dict[str, Any]]:
        """Tensors that the call is given."""
        return specs([self.call["args"], list(self.call["kwargs"].values())])

    @property
    def files(self) -> list[str]:
        """Names of its tensor files that are there, each once."""
        if self.folder is None:
            return []
        named = [spec["file"] for part in _parts(self.call) for spec in specs(part) if "file" in spec]
        return [name for name in dict.fromkeys(named) if os.path.isfile(os.path.join(self.folder, name))]


def _parts(call: CallDocument | RegionDocument) -> Iterator[object]:
    yield from (call["args"], list(call["kwargs"].values()), call["grads"], call["results"], call["gradients"])


def find_call(layout: DumpIndex, node: str, *, step: int | None = None, rank: int | None = None) -> FoundCall:
    """The call that `node` names, in the first step and rank that has it.

    Raises UsageError where it cannot be run alone, NotFoundError where no rank holds it."""
    name = forward_name(node)
    call = f"{label_of(name)}.{name.index}"
    chosen = [ref for ref in layout.ranks if step in (None, ref.step) and rank in (None, ref.number)]
    for ref in chosen:
        kept = os.path.join(ref.folder, saved_call.call_folder(call))
        if os.path.isfile(os.path.join(kept, saved_call.CALL_JSON)):
            return find_saved(kept, ref)
        _require_arguments(ref)
        wanted = (build(name), _backward(name))
        bodies = read_bodies(ref, wanted)
        if wanted[0] in bodies:
            return _found(ref, name, bodies)
    hint = (
        say("pipeline.backward_there_but_not_forward_arguments") if _has_backward(chosen, name) else _like(chosen, call)
    )
    raise NotFoundError(say("pipeline.no_call_dump", call=call), where=layout.root, hint=hint)


def _like(refs: Sequence[RankRef], call: str) -> str | None:
    """Calls of a like name, for one that no rank holds."""
    from difflib import get_close_matches  # noqa: PLC0415

    held = {
        f"{label_of(one)}.{one.index}": None
        for ref in refs[:1]
        for one in map(parse, read_bodies(ref))
        if one.kind == "api"
    }
    near = get_close_matches(call, held, 3)
    return say("pipeline.calls_like_it", names=", ".join(near)) if near else None


def find_saved(folder: str, ref: RankRef | None = None) -> FoundCall:
    """The call of a saved call's folder. Raises UnreadableError, UsageError."""
    try:
        documents = saved_call.read(folder)
        call = saved.document(documents)
    except saved_call.SavedCallError as error:
        raise UnreadableError(str(error)) from error
    if ref is None:
        step, rank = documents.call["step"], documents.call["rank"]
        ref = RankRef(
            step=step or 0, rank=rank, label="", folder=folder, dump_json="", stack_json=None, construct_json=None
        )
    return FoundCall(ref=ref, call=call, folder=str(documents.folder))


def is_saved(path: Path) -> bool:
    """Whether a path is a saved call: its folder or its call.json."""
    return path.name == saved_call.CALL_JSON or (path / saved_call.CALL_JSON).is_file()


def calls_of(ref: RankRef) -> Iterator[tuple[str, CallDocument | UsageError]]:
    """Every function call of a rank in the order of the file, or why it cannot be run alone."""
    _require_arguments(ref)
    bodies = read_bodies(ref)
    run, names, own = _run_description(ref)
    for node, body in bodies.items():
        name = parse(node)
        if name.kind != "api" or name.direction != "forward":
            continue
        records = Records(
            name=name,
            forward=body,
            backward=bodies.get(_backward(name)),
            names=names.get(name.label, []),
            run=run,
            own=own,
        )
        try:
            yield f"{name.label}.{name.index}", document(records)
        except UsageError as error:
            yield f"{name.label}.{name.index}", error


def write_script(found: FoundCall, *, origin: str, data: str) -> str:
    """The text of the script of a call or of a region; see `reproduce.script`."""
    if "graph" in found.call:
        return region_script(found.call, runtime(REGION_RUNTIME), origin=origin, data=data)
    return script(found.call, runtime(), origin=origin, data=data)


def copy_tensors(found: FoundCall, folder: Path) -> None:
    """Copy the tensor files of a call into a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in found.files:
        assert found.folder is not None
        shutil.copyfile(safe_join(found.folder, name), folder / name)


def runtime(modules: Sequence[str] = RUNTIME) -> list[tuple[str, str]]:
    """Names and texts of the modules that a script carries; they are read, not imported."""
    place = importlib.util.find_spec("dumpscope_capture")
    folders = list(place.submodule_search_locations or ()) if place else []
    if not folders:
        raise UnreadableError(
            say("pipeline.dumpscope_capture_not_installed_beside_dumpscope"), hint=say("pipeline.install_whole_package")
        )
    base = Path(folders[0]) / "replay"
    return [(name, (base / f"{name}.py").read_text(encoding="utf-8")) for name in modules]


def _found(ref: RankRef, name: NodeName, bodies: dict[str, Body]) -> FoundCall:
    run, names, own = _run_description(ref)
    records = Records(
        name=name,
        forward=bodies[build(name)],
        backward=bodies.get(_backward(name)),
        names=names.get(name.label, []),
        run=run,
        own=own,
    )
    if name.label.split(".")[0] == REGION:
        return FoundCall(ref=ref, call=_region(ref, records), folder=tensor_folder(ref))
    try:
        call = document(records)
    except UsageError as error:
        raise reason(error, _inside(ref, name)) from error
    return FoundCall(ref=ref, call=call, folder=tensor_folder(ref))


def _region(ref: RankRef, records: Records) -> RegionDocument:
    """A region of compiled code with its graph. Raises UsageError, UnreadableError."""
    root = dump_root(ref)
    entry = compiled_regions(ref.folder, root).get(f"{label_of(records.name)}.{records.name.index}", {})
    text = entry.get("graph")
    graph = region_file(ref.folder, root, os.path.splitext(text)[0] + SUFFIX) if isinstance(text, str) else None
    return region_document(records, entry, graph, region_file(ref.folder, root, entry.get("random")))


def _require_arguments(ref: RankRef) -> None:
    """Raise UsageError for a dump whose format does not keep all arguments of a call."""
    written = format_of(ref)
    if written.no_rerun is not None:
        raise UsageError(
            say("pipeline.so_no_call_can_run_from", lost=written.no_rerun), where=ref.folder, hint=written.rerun_hint
        )


def tensor_folder(ref: RankRef) -> str | None:
    """Folder of a rank's tensor files beside its JSON."""
    folder = os.path.join(os.path.dirname(ref.dump_json), TENSOR_FOLDER)
    return folder if os.path.isdir(folder) else None


def _run_description(ref: RankRef) -> tuple[Run | None, dict[str, list[str]], bool]:
    run, _ = read_run(ref.folder, dump_root(ref), "")
    own = os.path.isfile(os.path.join(ref.folder, RUN_JSON))
    return run, argument_names(ref.folder, dump_root(ref)), own


def _backward(name: NodeName) -> str:
    return build(NodeName(kind=name.kind, direction="backward", label=name.label, index=name.index, prefix=name.prefix))


def _has_backward(refs: Sequence[RankRef], name: NodeName) -> bool:
    return any(_backward(name) in read_bodies(ref, (_backward(name),)) for ref in refs)


def _inside(ref: RankRef, name: NodeName) -> list[str]:
    """Function calls recorded inside a module, by the module tree."""

    try:
        dump = read_rank(ref)
    except DumpscopeError:
        return []
    wanted = build(name)
    found = []
    for entry, node in enumerate(dump.tree.names[: len(dump.nodes.names)]):
        parent = int(dump.tree.parent[entry])
        if parent >= 0 and dump.tree.names[parent] == wanted and parse(node).kind == "api":
            found.append(node.rpartition(".")[0])
            if len(found) == INSIDE_LIMIT:
                break
    return found
