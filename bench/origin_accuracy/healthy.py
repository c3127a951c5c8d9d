"""Pairs of healthy runs of real and tiny models: none may be accused. One command makes, compares and counts them:

    python bench/origin_accuracy/healthy.py OUT --python newest=PYTHON [--python 2.5=PYTHON ...] [--only TEXT] [--docs]

OUT/runs holds the dumps, one folder a run, which a second command does not make again; OUT/answers.json every answer. Each
`--python` names an interpreter by the torch that it has; `newest`, with the libraries of bench/real_models.py, makes most runs,
and the pairs of interpreters that are not given are left out. A pair is right if nothing is named and the exit status is 0.
What a pair may name because its runs truly differ (a call that only one of two programs makes) is written down with the pair.
--seed draws other weights and data into an OUT of its own: pairs that nobody looked at.
--docs writes the table into docs/verdicts.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))

from healthy_cases.pairs import Pair, Recorded, all_pairs  # noqa: E402

WORKER = BENCH / "healthy_cases" / "worker.py"
DOCS = BENCH.parent / "docs" / "verdicts.md"
BEGIN, END = "<!-- healthy: begin -->", "<!-- healthy: end -->"
AT_ONCE = 50
"""Runs that one process makes."""
HEAD = ("what differs", "pairs", "named nothing, status 0", "accused", "not fully judged")


def make(out: Path, pythons: dict[str, str], process: tuple[str, str], runs: list[Recorded]) -> None:
    """Record the runs of one kind of process."""
    name, kernels = process
    listed = out / f"{runs[0].folder}.json"
    listed.write_text(
        json.dumps([{"folder": str(out / "runs" / one.folder), "run": one.run, "record": one.record} for one in runs]),
        encoding="utf-8",
    )
    env = {
        **os.environ, "PYTHONPATH": str(BENCH.parent / "capture"), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
        "TORCHINDUCTOR_CACHE_DIR": str(out / "inductor"), "TORCHINDUCTOR_COMPILE_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        "TRANSFORMERS_VERBOSITY": "error", **({"ATEN_CPU_CAPABILITY": kernels} if kernels else {}),
    }  # fmt: skip
    subprocess.run([pythons[name], str(WORKER), str(listed)], env=env, check=True)


def is_made(out: Path, one: Recorded) -> bool:
    return (out / "runs" / one.folder / ".made").exists()


def make_all(out: Path, pythons: dict[str, str], pairs: list[Pair], jobs: int) -> None:
    processes: dict[tuple[str, str], dict[str, Recorded]] = defaultdict(dict)
    for pair in pairs:
        for one in (pair.target, pair.golden):
            if not is_made(out, one):
                processes[one.process][one.folder] = one
    with ThreadPoolExecutor(jobs) as pool:
        made = [
            pool.submit(make, out, pythons, key, list(runs.values())[start : start + AT_ONCE])
            for key, runs in processes.items()
            for start in range(0, len(runs), AT_ONCE)
        ]
        for one in made:
            one.result()


def answer(out: Path, pair: Pair) -> dict[str, Any]:
    """What the command line says of a pair."""
    from dumpscope.cli.commands.compare import status  # noqa: PLC0415
    from dumpscope.domain.options import Options  # noqa: PLC0415
    from dumpscope.pipeline.compare.in_process import compare_layouts  # noqa: PLC0415
    from dumpscope.readers import discover  # noqa: PLC0415

    sides = [out / "runs" / one.folder for one in (pair.target, pair.golden)]
    found: dict[str, Any] = {"way": pair.way, "name": pair.name, "folders": [str(one) for one in sides]}
    failed = [one for one in sides if (one / "failed.txt").exists()]
    if failed:
        text = (failed[0] / "failed.txt").read_text(encoding="utf-8").strip()
        return {**found, "failed": text.splitlines()[-1]}
    names = str(sides[0]), str(sides[1])
    outcome = compare_layouts(discover(sides[0]), discover(sides[1]), Options(), paths=names, jobs=1)
    origins = [
        {"node": one.node, "kind": one.kind, "confidence": one.confidence, "evidence": one.evidence, "step": one.step}
        for one in outcome.answer.origins
    ]
    code = status(outcome.answer, "no", incomplete=outcome.incomplete)
    counts = outcome.answer.counts
    return {
        **found, "origins": origins, "status": code, "yes": counts.yes, "no": counts.no, "warning": counts.warning,
        "alone": [counts.unmatched_target, counts.unmatched_golden],
        "accused": accused(pair, origins, code, counts.no),
    }  # fmt: skip


def accused(pair: Pair, origins: list[dict[str, Any]], code: int, no: int) -> bool:
    """Whether the answer names a cause that is no true difference, or says that the runs diverged."""
    if pair.other and origins and not no and all(one["kind"] == pair.other for one in origins):
        return False
    return bool(origins) or code == 1


def describe(one: dict[str, Any]) -> str:
    """A pair that is not silent: its answer, and where its dumps are."""
    seen = one.get("failed") or f"status {one['status']}, {one['no']} no, alone {one['alone']}"
    lines = [f"- {one['way']}: {one['name']} [{seen}]", f"    {' '.join(one['folders'])}"]
    for origin in one.get("origins", [])[:4]:
        named = f"step {origin['step']} {origin['node']} {origin['kind']} {origin['confidence']:.2f}"
        lines.append(f"    {named}: {origin['evidence'][:300]}")
    return "\n".join(lines) + "\n"


def table(answers: list[dict[str, Any]]) -> str:
    ways: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in answers:
        if "failed" not in one:
            ways[one["way"]].append(one)
    rows = [list(HEAD), ["---"] * len(HEAD)]
    for way, some in [*ways.items(), ("**all**", [one for part in ways.values() for one in part])]:
        wrong = sum(one["accused"] for one in some)
        unsure = sum(one["status"] == 3 for one in some)
        silent = sum(not one["origins"] and one["status"] == 0 for one in some)
        rows.append([way, *map(str, (len(some), silent, wrong, unsure))])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="TORCH=PYTHON")
    parser.add_argument("--only", default="", help="pairs whose way or name holds this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, help="by which weights and data are drawn")
    parser.add_argument("--made", action="store_true", help="make no run: the pairs whose runs are there")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/verdicts.md")
    given = parser.parse_args()
    out = given.out.resolve()
    (out / "runs").mkdir(parents=True, exist_ok=True)
    pythons = dict(one.split("=", 1) for one in given.python)
    pairs = [pair for pair in all_pairs(given.seed) if given.only in f"{pair.way}: {pair.name}"]
    pairs = [pair for pair in pairs if {pair.target.process[0], pair.golden.process[0]} <= pythons.keys()]
    if given.made:
        pairs = [pair for pair in pairs if all(is_made(out, one) for one in (pair.target, pair.golden))]
    else:
        make_all(out, pythons, pairs, given.jobs)
    with ProcessPoolExecutor(given.jobs) as pool:
        answers = list(pool.map(partial(answer, out), pairs, chunksize=2))
    if not given.only:
        (out / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    print("".join(describe(one) for one in answers if "failed" in one or one["accused"] or one["status"]))
    text = table(answers)
    print(text)
    if given.docs:
        head, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        DOCS.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return int(any("failed" in one or one["accused"] for one in answers))


if __name__ == "__main__":
    sys.exit(main())
