"""`dumpscope info`: what is in a dump."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from dumpscope.analysis.setting_differences import describe_notes
from dumpscope.cli.exit_codes import COMPARED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout, read_ranks, require_read
from dumpscope.cli.options import Dump, Json
from dumpscope.cli.printing import line, print_json
from dumpscope.domain.records import DumpIndex, Kind, NodeKind, RankDump, RankRef, State, join_words
from dumpscope.domain.run import Run
from dumpscope.errors import Problem, UnreadableError
from dumpscope.export.document import problem_document
from dumpscope.export.words import list_numbers, plural
from dumpscope.readers.kernel_files import KernelFolder, kernel_folders
from dumpscope.readers.msprobe.rank import dump_root
from dumpscope.readers.msprobe.run_file import calls_between_regions, compiled_regions
from dumpscope.readers.tensors.members import split_member
from dumpscope.texts import rendered, tell, translate
from dumpscope_format.run import GROUPS
from dumpscope_format.schema import STATISTIC_KEYS


def info(path: Dump, json: Json = False) -> int:
    """Show what is in a dump: framework, task, level, steps, ranks, nodes, items, problems."""
    try:
        with open_layout(path) as layout:
            document, lost = describe(path, layout)
    except UnreadableError:
        folders = kernel_folders(path) if path.is_dir() else []
        if not folders:
            raise
        return _list_kernels(path, folders, as_json=json)
    if (
        not document["nodes"] and path.is_dir() and (folders := kernel_folders(path))
    ):  # a plan is called dump.json as well
        return _list_kernels(path, folders, as_json=json)
    if json:
        print_json(document)
    else:
        _print(document)
    return NOT_FULLY_JUDGED if lost else COMPARED


def _list_kernels(path: Path, folders: list[KernelFolder], *, as_json: bool) -> int:
    """List the kernel files that a device dumped; they cannot be compared."""
    if as_json:
        print_json({"schema": 1, "path": str(path), "layout": "kernels", "units": [asdict(one) for one in folders]})
        return COMPARED
    line(str(path))
    line(
        "  "
        + tell(
            "cli.kernels_ascend_device_convert_canns_msaccucmp", files=plural(sum(one.files for one in folders), "file")
        )
    )
    for one in folders:
        place = ", ".join(f"{word} {value}" for word, value in (("device", one.device), ("model", one.model)) if value)
        listed_types = ", ".join(f"{name} {count}" for name, count in one.operators.items())
        line(
            "  "
            + tell(
                "cli.bytes",
                time=one.time or one.path,
                part=": " if place else "",
                place=place,
                files=plural(one.files, "file"),
                nbytes=one.nbytes,
            )
        )
        line(f"    {listed_types}")
    return COMPARED


def describe(path: Path, layout: DumpIndex) -> tuple[dict[str, Any], bool]:
    """The info document, and whether a rank could not be read or is empty."""
    problems: list[Problem] = list(layout.problems)
    units: list[dict[str, Any]] = []
    heads: dict[str, set[str]] = {name: set() for name in ("framework", "layout", "task", "level", "summary")}
    lost = False
    for ref, read in read_ranks(layout):
        if isinstance(read, Problem):
            problems.append(read)
            lost = True
            continue
        problems += [one for one in read.problems if one not in problems]
        for name, values in heads.items():
            values.add(getattr(read.header, name))
        lost = lost or not len(read.nodes)
        run = read.header.run
        told = None if run is None else asdict(run)
        unrecorded = {} if told is None else told.pop("unrecorded")
        about = {"run": told, "unrecorded": unrecorded, "compiled": _compiled(ref), **_counts(read)}
        units.append({"step": ref.step, "rank": ref.rank or 0, "folder": ref.label, **about})
    require_read(len(units), layout, problems)
    document = {
        "schema": 1,
        "path": str(path),
        **{name: join_words(values) for name, values in heads.items()},
        "steps": layout.steps,
        "ranks": layout.rank_numbers,
        "nodes": sum(unit["nodes"] for unit in units),
        "items": sum(unit["items"] for unit in units),
        "units": units,
        "problems": [problem_document(problem) for problem in problems],
    }
    return document, lost


def _compiled(ref: RankRef) -> dict[str, Any] | None:
    """Regions of compiled code of a rank, None without one. graph_breaks: graphs that end where something broke them"""
    root = dump_root(ref)
    regions = list(compiled_regions(ref.folder, root).values())
    if not regions:
        return None
    graphs = {str(one.get("graph") or (one.get("function"), one.get("place"))): one for one in regions}
    return {
        "regions": len(regions),
        "graphs": len(graphs),
        "backends": dict(Counter(str(one.get("backend") or "?") for one in regions)),
        "graph_breaks": sum(one.get("graph_break") is True for one in graphs.values()),
        "calls_between": calls_between_regions(ref.folder, root),
    }


def _files(dump: RankDump) -> int:
    """Number of items whose tensor file is there."""
    folder, items = dump.header.data_dir, dump.items
    if folder is None:
        return 0
    files = [(split_member(name) or (name,))[0] for name in items.data_names]
    there = np.array([os.path.lexists(os.path.join(folder, name)) for name in files], dtype=bool)
    codes = items.data_name[items.data_name >= 0]
    return int(there[codes].sum()) if len(codes) else 0


def _statistics(dump: RankDump) -> list[str]:
    """Names of the statistics that any tensor has."""
    there = (dump.items.stat_state[dump.items.kind == Kind.TENSOR] != State.ABSENT).any(axis=0)
    return [name for name, held in zip(STATISTIC_KEYS, there.tolist(), strict=True) if held]


def _counts(dump: RankDump) -> dict[str, Any]:
    items = dump.items
    kinds = Counter(dump.nodes.kind.tolist())
    return {
        "nodes": len(dump.nodes),
        "items": len(items),
        "tensors": int((items.kind == Kind.TENSOR).sum()),
        "tensor_files": _files(dump),
        "tensor_files_missing": int((items.data_name >= 0).sum()) - _files(dump),
        "kinds": {NodeKind(kind).name.lower(): count for kind, count in sorted(kinds.items())},
        "dtypes": sorted(items.dtypes),
        "statistics": _statistics(dump),
        "stacks": bool(dump.nodes.stacks),
        "tree": "inferred" if dump.tree.inferred else "recorded",
    }


def _print(document: dict[str, Any]) -> None:
    units = document["units"]
    line(document["path"])
    line(
        "  "
        + tell(
            "cli.task_level",
            document=document["framework"] or tell("cli.unknown_framework"),
            format=_format(document["layout"]),
            document2=document["task"] or tell("cli.unknown"),
            document3=document["level"] or tell("cli.unknown"),
            recorded=_describe_values(document),
        )
    )
    line(
        "  "
        + tell(
            "cli.steps_and_ranks", steps=_numbers("step", document["steps"]), ranks=_numbers("rank", document["ranks"])
        )
    )
    if len(units) > 1:
        line("  " + tell("cli.all", nodes=plural(document["nodes"], "node"), items=plural(document["items"], "item")))
    runs = [unit["run"] for unit in units]
    alike = all(run == runs[0] for run in runs)
    if alike:
        _print_run(runs[0], "  ")
    for unit in units:
        line("  " + tell("cli.step_rank", unit=unit["step"], unit2=unit["rank"], contents=_contents(unit)))
        if unit["nodes"]:
            line(f"    {_sources(unit)}")
        if unit["compiled"]:
            line(f"    {_describe_compiled(unit['compiled'])}")
        if unit["dtypes"]:
            line("    " + tell("cli.dtypes", names=", ".join(unit["dtypes"])))
        if not alike:
            _print_run(unit["run"], "    ")
    if document["problems"]:
        line(f"  {plural(len(document['problems']), 'problem')}:")
        for problem in document["problems"]:
            line(
                "    "
                + tell(
                    "cli.at",
                    problem=problem["kind"],
                    problem2=problem["loc"],
                    problem3=translate(problem["message"], problem["said"] and [problem["said"]]),
                )
            )


def _print_run(run: dict[str, Any] | None, indent: str) -> None:
    """How the program was run, as far as the dump says."""
    if run is None:
        return
    if run["devices"]:
        line(tell("cli.devices", indent=indent, names=", ".join(run["devices"])))
    for group in GROUPS:
        known = [f"{name} {value}" for name, value in run[group].items() if value]
        if known:
            line(f"{indent}{group}: {', '.join(known)}")
    for note in describe_notes({"dump": Run.from_json(run)}):
        line(indent + rendered([note]))


_SUMMARIES: Final = {
    "statistics": "cli.summary_statistics",
    "md5": "cli.summary_md5",
    "xor": "cli.summary_xor",
}


def _describe_values(document: dict[str, Any]) -> str:
    """What the dump keeps of each value."""
    if not document["nodes"]:
        return tell("cli.nothing_recorded")
    if not document["items"]:
        return tell("cli.calls_their_order_no_values")
    of = " " + tell("cli.saved_variables") if "debug" in document["level"] else ""
    held = {name for unit in document["units"] for name in unit["statistics"]}
    names = tell("cli.names").join(name for name in STATISTIC_KEYS if name in held)
    summaries = tell("cli.or").join(
        (tell(_SUMMARIES[word], names=names) if word in _SUMMARIES else word)
        for word in document["summary"].split(", ")
    )
    filed = any(unit["tensor_files"] for unit in document["units"])
    if filed and not held and document["summary"] == "statistics":
        return tell("cli.tensors_alone")
    tensors = tell("cli.and_tensors") if filed else ""
    return f"{summaries}{tensors}{of}"


def _format(layout: str) -> str:
    """The file format, if it is not the usual one."""
    return "" if layout in ("", "msprobe") else tell("cli.form", layout=layout)


def _contents(unit: dict[str, Any]) -> str:
    if not unit["nodes"]:
        return tell("cli.nothing_recorded")
    kinds = unit["kinds"]
    if set(kinds) == {"debug"}:
        nodes = plural(unit["nodes"], "saved variable")
    else:
        nodes = f"{plural(unit['nodes'], 'node')} ({', '.join(f'{count} {tell(_KINDS[kind])}' for kind, count in kinds.items())})"
    if not unit["items"]:
        return nodes
    missing = unit["tensor_files_missing"]
    files = f", {plural(unit['tensor_files'], 'tensor file')}" if unit["tensor_files"] or missing else ""
    if missing:
        files += ", " + tell("cli.missing_files", missing=missing)
    return f"{nodes}, {plural(unit['items'], 'item')} ({plural(unit['tensors'], 'tensor')}{files})"


def _describe_compiled(compiled: dict[str, Any]) -> str:
    backends = ", ".join(f"{name} ({count})" for name, count in compiled["backends"].items())
    said = tell("cli.compiled_regions", count=compiled["regions"], graphs=compiled["graphs"], backends=backends)
    if compiled["graph_breaks"]:
        said += "; " + tell("cli.compiled_breaks", count=compiled["graph_breaks"])
    if compiled["calls_between"]:
        said += "; " + tell("cli.compiled_between", count=compiled["calls_between"])
    return said


_KINDS: Final = {
    "api": "cli.kind_api",
    "module": "cli.kind_module",
    "gradient": "cli.kind_gradient",
    "debug": "cli.kind_saved",
    "other": "cli.kind_other",
}


def _sources(unit: dict[str, Any]) -> str:
    """Whether stacks and the module tree were recorded."""
    stacks = tell("cli.call_stacks_recorded") if unit["stacks"] else tell("cli.no_call_stacks")
    if set(unit["kinds"]) == {"debug"}:
        return stacks
    if unit["tree"] == "recorded":
        return tell("cli.module_tree_recorded", stacks=stacks)
    return tell(
        "cli.module_tree_inferred_from_names",
        stacks=stacks,
        part=" " + tell("cli.and_stacks") if unit["stacks"] else "",
    )


def _numbers(word: str, numbers: list[int]) -> str:
    return tell(f"cli.numbers_of_{word}", count=len(numbers), numbers=list_numbers(numbers))
