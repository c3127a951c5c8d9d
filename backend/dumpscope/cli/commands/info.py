"""`dumpscope info`: what is in a dump."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from dumpscope.cli.app import FINE, INCOMPLETE
from dumpscope.cli.opening import opened, ranks, require_some
from dumpscope.cli.printing import line, listed, plural, print_json
from dumpscope.domain.records import DumpIndex, Kind, NodeKind, RankDump
from dumpscope.errors import Problem, UnreadableError
from dumpscope.export.document import problem_document
from dumpscope.readers.kernel_files import KernelFolder, kernel_folders
from dumpscope_format.run import GROUPS


def run(path: Path, *, as_json: bool) -> int:
    try:
        with opened(path) as layout:
            document, lost = describe(path, layout)
    except UnreadableError:
        folders = kernel_folders(path) if path.is_dir() else []
        if not folders:
            raise
        return _run_kernels(path, folders, as_json=as_json)
    if (
        not document["nodes"] and path.is_dir() and (folders := kernel_folders(path))
    ):  # a plan is called dump.json as well
        return _run_kernels(path, folders, as_json=as_json)
    if as_json:
        print_json(document)
    else:
        _print(document)
    return INCOMPLETE if lost else FINE


def _run_kernels(path: Path, folders: list[KernelFolder], *, as_json: bool) -> int:
    """What a device dumped of its kernels is listed; it is no dump that can be compared."""
    if as_json:
        print_json({"schema": 1, "path": str(path), "layout": "kernels", "units": [asdict(one) for one in folders]})
        return FINE
    line(str(path))
    line(
        f"  kernels of an Ascend device, {plural(sum(one.files for one in folders), 'file')} (convert with CANN's msaccucmp.py)"
    )
    for one in folders:
        place = ", ".join(f"{word} {value}" for word, value in (("device", one.device), ("model", one.model)) if value)
        listed_types = ", ".join(f"{name} {count}" for name, count in one.operators.items())
        line(f"  {one.time or one.path}{': ' if place else ''}{place}: {plural(one.files, 'file')}, {one.nbytes} bytes")
        line(f"    {listed_types}")
    return FINE


def describe(path: Path, layout: DumpIndex) -> tuple[dict[str, Any], bool]:
    """The info document, and whether some rank could not be read or holds nothing."""
    problems: list[Problem] = list(layout.problems)
    units: list[dict[str, Any]] = []
    heads: dict[str, set[str]] = {name: set() for name in ("framework", "layout", "task", "level", "summary")}
    lost = False
    for ref, read in ranks(layout):
        if isinstance(read, Problem):
            problems.append(read)
            lost = True
            continue
        problems += [one for one in read.problems if one not in problems]
        for name, values in heads.items():
            values.add(getattr(read.header, name))
        lost = lost or not len(read.nodes)
        run = read.header.run
        about = {"run": None if run is None else asdict(run), **_counts(read)}
        units.append({"step": ref.step, "rank": ref.rank or 0, "folder": ref.label, **about})
    require_some(len(units), layout, problems)
    document = {
        "schema": 1,
        "path": str(path),
        **{name: ", ".join(sorted(values)) for name, values in heads.items()},
        "steps": layout.steps,
        "ranks": layout.rank_numbers,
        "nodes": sum(unit["nodes"] for unit in units),
        "items": sum(unit["items"] for unit in units),
        "units": units,
        "problems": [problem_document(problem) for problem in problems],
    }
    return document, lost


def _counts(dump: RankDump) -> dict[str, Any]:
    items = dump.items
    kinds = Counter(dump.nodes.kind.tolist())
    return {
        "nodes": len(dump.nodes),
        "items": len(items),
        "tensors": int((items.kind == Kind.TENSOR).sum()),
        "tensor_files": int((items.data_name >= 0).sum()),
        "kinds": {NodeKind(kind).name.lower(): count for kind, count in sorted(kinds.items())},
        "dtypes": sorted(items.dtypes),
        "stacks": bool(dump.nodes.stacks),
        "tree": "inferred" if dump.tree.inferred else "recorded",
    }


def _print(document: dict[str, Any]) -> None:
    units = document["units"]
    line(document["path"])
    line(
        f"  {document['framework'] or 'unknown framework'}{_form(document['layout'])}, task {document['task'] or 'unknown'},"
        f" level {document['level'] or 'unknown'}: {_holds(document)}"
    )
    line(f"  {_numbers('step', document['steps'])}; {_numbers('rank', document['ranks'])}")
    if len(units) > 1:
        line(f"  {plural(document['nodes'], 'node')}, {plural(document['items'], 'item')} in all")
    runs = [unit["run"] for unit in units]
    alike = all(run == runs[0] for run in runs)
    if alike:
        _print_run(runs[0], "  ")
    for unit in units:
        line(f"  step {unit['step']} rank {unit['rank']}: {_contents(unit)}")
        if unit["nodes"]:
            line(f"    {_context(unit)}")
        if unit["dtypes"]:
            line(f"    dtypes {', '.join(unit['dtypes'])}")
        if not alike:
            _print_run(unit["run"], "    ")
    if document["problems"]:
        line(f"  {plural(len(document['problems']), 'problem')}:")
        for problem in document["problems"]:
            line(f"    {problem['kind']} at {problem['loc']}: {problem['message']}")


def _print_run(run: dict[str, Any] | None, indent: str) -> None:
    """How it was run, as far as it is told."""
    if run is None:
        return
    if run["devices"]:
        line(f"{indent}devices: {', '.join(run['devices'])}")
    for group in GROUPS:
        told = [f"{name} {value}" for name, value in run[group].items() if value]
        if told:
            line(f"{indent}{group}: {', '.join(told)}")


_SUMMARIES: Final = {
    "statistics": "statistics (Max, Min, Mean, Norm)",
    "md5": "statistics and a checksum (md5)",
    "xor": "a checksum (xor)",
}


def _holds(document: dict[str, Any]) -> str:
    """What was kept of each value."""
    if not document["nodes"]:
        return "nothing was recorded"
    if not document["items"]:
        return "the calls and their order, no values"
    of = " of saved variables" if "debug" in document["level"] else ""
    summaries = " or ".join(_SUMMARIES.get(word, word) for word in document["summary"].split(", "))
    tensors = " and tensors" if any(unit["tensor_files"] for unit in document["units"]) else ""
    return f"{summaries}{tensors}{of}"


def _form(layout: str) -> str:
    """Said of every form but the usual one."""
    return "" if layout in ("", "msprobe") else f", form of {layout}"


def _contents(unit: dict[str, Any]) -> str:
    if not unit["nodes"]:
        return "nothing was recorded"
    kinds = unit["kinds"]
    if set(kinds) == {"debug"}:
        nodes = plural(unit["nodes"], "saved variable")
    else:
        nodes = (
            f"{plural(unit['nodes'], 'node')} ({', '.join(f'{count} {_KINDS[kind]}' for kind, count in kinds.items())})"
        )
    if not unit["items"]:
        return nodes
    files = f", {plural(unit['tensor_files'], 'tensor file')}" if unit["tensor_files"] else ""
    return f"{nodes}, {plural(unit['items'], 'item')} ({plural(unit['tensors'], 'tensor')}{files})"


_KINDS: Final = {
    "api": "API",
    "module": "module",
    "gradient": "gradient",
    "debug": "saved",
    "other": "of no known form",
}


def _context(unit: dict[str, Any]) -> str:
    """Where the calls came from."""
    stacks = "call stacks recorded" if unit["stacks"] else "no call stacks"
    if set(unit["kinds"]) == {"debug"}:
        return stacks
    if unit["tree"] == "recorded":
        return f"{stacks}, module tree recorded"
    return f"{stacks}, module tree inferred from names{' and stacks' if unit['stacks'] else ''}"


def _numbers(word: str, numbers: list[int]) -> str:
    return f"{word}{'' if len(numbers) == 1 else 's'} {listed(numbers)}"
