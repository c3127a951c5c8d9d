"""`dumpscope info`: what is in a dump."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from dumpscope.cli.app import FINE, INCOMPLETE
from dumpscope.cli.opening import opened, ranks, require_some
from dumpscope.cli.printing import line, listed, plural, print_json
from dumpscope.domain.records import Kind, Layout, NodeKind, RankDump
from dumpscope.errors import Problem
from dumpscope.export.document import problem_document


def run(path: Path, *, as_json: bool) -> int:
    with opened(path) as layout:
        document, lost = describe(path, layout)
    if as_json:
        print_json(document)
    else:
        _print(document)
    return INCOMPLETE if lost else FINE


def describe(path: Path, layout: Layout) -> tuple[dict[str, Any], bool]:
    """The info document, and whether some rank could not be read."""
    problems: list[Problem] = list(layout.problems)
    units: list[dict[str, Any]] = []
    heads: dict[str, set[str]] = {name: set() for name in ("framework", "task", "level", "summary")}
    lost = False
    for ref, read in ranks(layout):
        if isinstance(read, Problem):
            problems.append(read)
            lost = True
            continue
        problems += [one for one in read.problems if one not in problems]
        for name, values in heads.items():
            values.add(getattr(read.header, name))
        units.append({"step": ref.step, "rank": ref.rank or 0, "folder": ref.label, **_counts(read)})
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
        "stacks": dump.ref.stack_json is not None,
        "tree": "inferred" if dump.tree.inferred else "recorded",
    }


def _print(document: dict[str, Any]) -> None:
    line(document["path"])
    line(
        f"  {document['framework'] or 'unknown framework'}, task {document['task'] or '?'}, level {document['level'] or '?'},"
        f" holds {document['summary']}{' and tensors' if any(unit['tensor_files'] for unit in document['units']) else ''}"
    )
    line(f"  steps {listed(document['steps'])}; ranks {listed(document['ranks'])}")
    line(f"  {plural(document['nodes'], 'node')}, {plural(document['items'], 'item')}")
    for unit in document["units"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in unit["kinds"].items())
        line(
            f"  step {unit['step']} rank {unit['rank']}: {plural(unit['nodes'], 'node')} ({kinds}),"
            f" {plural(unit['items'], 'item')}, {plural(unit['tensor_files'], 'tensor file')},"
            f" stacks {'yes' if unit['stacks'] else 'no'}, tree {unit['tree']}"
        )
        if unit["dtypes"]:
            line(f"    dtypes {', '.join(unit['dtypes'])}")
    if document["problems"]:
        line(f"  {plural(len(document['problems']), 'problem')}:")
        for problem in document["problems"]:
            line(f"    {problem['kind']} at {problem['loc']}: {problem['message']}")
