"""How often the first origin is right in models of real libraries: faults planted below autograd, with one command:

    PYTHONPATH=tests python bench/origin_accuracy/real_models.py OUT --env PYTHON [--case NAME ...] [--docs]

PYTHON is an interpreter with torch and the libraries (`bench/real_models.py` makes one). The runs of each program
(faulty_models/programs.py) are recorded, the sound one and one for each fault (faulty_models/faults/), with statistics and with
tensors. Then each pair is compared, as the command line does, and held against the truth, which stands beside the fault. What is
recorded is not recorded again, so after an interruption the same command goes on where it stood.

A fault counts if it left a trace: some number that is stored differs. If the call that went wrong is not recorded, or none of its
own numbers differs, the first recorded call that differs is as right, and so is a module around it.
--seed and --hidden draw other weights and data and other widths, into an OUT of their own: pairs that nobody looked at.
--docs writes the tables into docs/verdicts.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from pipeline.comparing import compare

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
DOCS: Final = ROOT / "docs" / "verdicts.md"
BEGIN, END = "<!-- faulty models: begin -->", "<!-- faulty models: end -->"
TASKS: Final = ("statistics", "tensor")
SURE: Final = 0.9


@dataclass(frozen=True, kw_only=True)
class Row:
    """A pair of runs and its answer. outcome: right, kind (the right place, another kind), later (the true origin stands behind
    another one), half (one of two causes is listed), wrong, silent, void (the fault left no trace)
    more: causes that are listed and none of the planted ones"""

    fault: dict[str, Any]
    task: str
    truth: tuple[str, ...]
    outcome: str
    node: str
    kind: str
    confidence: float
    origins: tuple[str, ...]
    evidence: str
    more: int


def score(out: Path, fault: dict[str, Any], task: str) -> Row:
    folder = out / fault["case"]
    target, golden = folder / fault["name"] / task, folder / "sound" / task
    modules = json.loads((folder / fault["name"] / "done.json").read_text())["modules"]
    ranks = [fault["rank"]] if fault["rank"] is not None else None
    differing = differences(target, golden, fault["part"])
    own = fault["node"], *fault["also"]
    truth = list(own)
    if not any(name in own for name, _ in differing):
        truth += [name for name, rank in differing if ranks is None or rank in ranks][:1]
        around = {*modules, *modules_around(golden, fault["part"], own)}
        truth += [name for name, _ in differing if name in around and name not in truth]
    answer, _ = compare(target, golden)
    several = bool(fault["beside"])
    right = [
        one.node in truth
        and one.step == fault["part"]
        and (ranks is None or one.rank in ranks or set(ranks) & set(one.ranks))
        for one in answer.origins
    ]
    first = answer.origins[0] if answer.origins else None
    beside = [all_faults()[name] for name in fault["beside"]]
    listed = all(any(one.node == other["node"] for one in answer.origins) for other in beside)
    if not differing:
        outcome = "void"
    elif not right:
        outcome = "silent"
    elif several:
        outcome = "right" if any(right) and listed else "half" if any(right) else "wrong"
    elif right[0]:
        outcome = "right" if first is not None and first.kind in fault["kinds"] else "kind"
    else:
        outcome = "later" if any(right) else "wrong"
    return Row(
        fault=fault, task=task, truth=tuple(truth), outcome=outcome, node=first.node if first else "",
        kind=first.kind if first else "", confidence=first.confidence if first else 0.0,
        origins=tuple(f"{one.step}/{one.rank} {one.node} {one.kind} {one.confidence:.2f}" for one in answer.origins),
        evidence=first.evidence if first else "",
        more=sum(
            not good and one.node not in [other["node"] for other in beside]
            for one, good in zip(answer.origins, right, strict=True)
        ),
    )  # fmt: skip


def modules_around(dump: Path, part: int, nodes: Iterable[str]) -> set[str]:
    """Nodes of the modules that called these, as the dump tells."""
    found: set[str] = set()
    for path in dump.glob(f"step{part}/*/construct.json"):
        parents = json.loads(path.read_text())
        for node in nodes:
            parent = parents.get(node)
            while isinstance(parent, str) and parent not in found:
                found.add(parent)
                parent = parents.get(parent)
    return found


def differences(target: Path, golden: Path, part: int) -> list[tuple[str, int]]:
    """(node, rank) of what holds another number on the two sides in this step, in the order of the file; a module stands where it
    ends."""
    found = []
    folders = [sorted(side.glob(f"step{part}/*/")) for side in (target, golden)]
    for rank, (here, there) in enumerate(zip(*folders, strict=True)):
        one, other = (json.loads((side / "dump.json").read_text())["data"] for side in (here, there))
        for name, record in one.items():
            kept = {key: value for key, value in record.items() if key != "input_args" or not fills(name)}
            if name not in other or differs(kept, other[name], here, there):
                found.append((name, rank))
    return found


def fills(node: str) -> bool:
    """The call overwrites what it is given, whatever that holds."""
    return node.split(".")[1] in ("bernoulli_", "copy_", "fill_", "normal_", "uniform_", "zero_")


def differs(one: Any, other: Any, here: Path, there: Path) -> bool:
    """Another number, or another content of a tensor file; text and uninitialised memory apart."""
    if isinstance(one, dict) and isinstance(other, dict):
        if "uninitialised" in one:
            return False
        files = one.get("data_name"), other.get("data_name")
        if None not in files:
            paths = here / "dump_tensor_data" / str(files[0]), there / "dump_tensor_data" / str(files[1])
            if all(path.exists() for path in paths) and paths[0].read_bytes() != paths[1].read_bytes():
                return True
        return any(differs(one[key], other[key], here, there) for key in one if key in other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) != len(other) or any(differs(a, b, here, there) for a, b in zip(one, other, strict=True))
    return (
        isinstance(one, (int, float))
        and isinstance(other, (int, float))
        and one != other
        and not (math.isnan(one) and math.isnan(other))
    )


_FAULTS: dict[str, dict[str, Any]] = {}


def all_faults() -> dict[str, dict[str, Any]]:
    return _FAULTS


def read_faults(python: str) -> None:
    """What is planted, by name, as the environment's interpreter tells it."""
    ask = (
        "import dataclasses, json; from faulty_models.faults import FAULTS\n"
        "print(json.dumps([{k: getattr(f, k) for k in f.__dataclass_fields__ if k != 'change'} for f in FAULTS]))"
    )
    told = subprocess.run([python, "-c", ask], env=environment(), check=True, capture_output=True, text=True).stdout
    for one in json.loads(told.splitlines()[-1]):
        _FAULTS[one["name"]] = one


def environment() -> dict[str, str]:
    paths = os.pathsep.join(map(str, (HERE, HERE.parent, ROOT / "capture")))
    return {
        **os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "DUMPSCOPE_LOG_LEVEL": "4",
        "TRANSFORMERS_VERBOSITY": "error", "PYTHONWARNINGS": "ignore",
    }  # fmt: skip


def record(python: str, out: Path, cases: Iterable[str], drawn: list[str]) -> None:
    """drawn: options of the worker by which other weights, data and widths are drawn"""
    for case in cases:
        own = [one["name"] for one in all_faults().values() if one["case"] == case]
        if all((out / case / name / "done.json").exists() for name in ("sound", *own)):
            continue
        subprocess.run(
            [python, HERE / "faulty_models" / "worker.py", case, out, *drawn], env=environment(), check=False
        )


def score_all(out: Path, cases: Iterable[str], names: Iterable[str], jobs: int) -> Iterator[Row]:
    """What is recorded whole, in the order of the faults."""
    wanted = set(names)
    faults = [
        fault
        for fault in all_faults().values()
        if fault["case"] in cases
        and (out / fault["case"] / fault["name"] / "done.json").exists()
        and (out / fault["case"] / "sound" / "done.json").exists()
        and (not wanted or fault["name"] in wanted)
    ]
    work = [(out, fault, task) for fault in faults for task in TASKS]
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        yield from pool.map(score, *zip(*work, strict=True))


# -- tables ------------------------------------------------------------------------------------------------------------


def by_family(rows: list[Row]) -> str:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.fault["family"]].append(row)
    lines = [
        "| fault in | counted | first origin right | right place, other kind | statistics | tensors | no trace | others listed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, some in [*sorted(groups.items()), ("**all**", rows)]:
        sure = [row for row in some if row.outcome != "void"]
        count = Counter(row.outcome for row in sure)
        parts = [[row for row in sure if row.task == task] for task in TASKS]
        shares = [f"{sum(row.outcome == 'right' for row in part)} of {len(part)}" for part in parts]
        more = sum(row.more > 0 for row in sure)
        cells = [name, len(sure), count["right"], count["kind"], *shares, len(some) - len(sure), more]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def by_confidence(rows: list[Row]) -> str:
    """Of answers that were given with so much confidence, how many name the right call."""
    lines = ["| confidence of the first origin | answers | right call | right call and kind |", "|---|---|---|---|"]
    bands = (
        (SURE, 1.01, "90 % and more"),
        (0.8, SURE, "80 to 89 %"),
        (0.5, 0.8, "50 to 79 %"),
        (0.0, 0.5, "below 50 %"),
    )
    for least, most, words in bands:
        some = [row for row in rows if row.node and row.outcome != "void" and least <= round(row.confidence, 2) < most]
        call = sum(row.outcome in ("right", "kind", "half") for row in some)
        share = f" ({100 * call / len(some):.0f} %)" if some else ""
        lines.append(f"| {words} | {len(some)} | {call}{share} | {sum(row.outcome == 'right' for row in some)} |")
    return "\n".join(lines)


def by_fault(rows: list[Row]) -> str:
    lines = ["| fault | model | truth | first origin | kind | confidence | right |", "|---|---|---|---|---|---|---|"]
    pairs: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        pairs[row.fault["name"]].append(row)
    for name, some in pairs.items():
        cells = [" / ".join(dict.fromkeys(texts)) for texts in (
            [row.node or "none" for row in some], [row.kind or "-" for row in some],
            [f"{100 * row.confidence:.0f} %" for row in some],
            [{"right": "yes", "void": "no trace"}.get(row.outcome, row.outcome) for row in some],
        )]  # fmt: skip
        lines.append(f"| {name} | {some[0].fault['case']} | {some[0].fault['node']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_docs(rows: list[Row]) -> None:
    text = DOCS.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    body = f"{BEGIN}\n{by_family(rows)}\n\n{by_confidence(rows)}\n\n{by_fault(rows)}\n{END}"
    DOCS.write_text(before + body + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--env", required=True, help="interpreter that has torch and the libraries")
    parser.add_argument("--case", nargs="*", default=[], help="these programs only")
    parser.add_argument("--fault", nargs="*", default=[], help="score these faults only")
    parser.add_argument("--seed", type=int, help="by which weights and data are drawn")
    parser.add_argument("--hidden", type=int, help="width of the text models")
    parser.add_argument("--score", action="store_true", help="record nothing, score what is there")
    parser.add_argument("--jobs", type=int, default=1, help="pairs that are compared at once")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/verdicts.md")
    options = parser.parse_args()
    out = options.out.resolve()
    read_faults(options.env)
    cases = options.case or list(dict.fromkeys(one["case"] for one in all_faults().values()))
    if not options.score:
        drawn = [("--seed", options.seed), ("--hidden", options.hidden)]
        record(options.env, out, cases, [part for name, one in drawn if one is not None for part in (name, str(one))])
    rows = []
    for row in score_all(out, cases, options.fault, options.jobs):
        rows.append(row)
        if row.outcome != "right" or row.more:
            print(f"{row.fault['name']} ({row.fault['case']}, {row.task}): {row.outcome}; truth {', '.join(row.truth)}")
            for one in row.origins[:4]:
                print(f"    {one}")
            print(f"    > {row.evidence[:400]}", flush=True)
    print(f"\n{by_family(rows)}\n\n{by_confidence(rows)}")
    if options.docs:
        write_docs(rows)
    sys.exit(any(row.outcome not in ("right", "void") for row in rows))


if __name__ == "__main__":
    main()
