"""Families of transformers that nobody chose: is a recorded step bit-equal, is a healthy pair silent, is a wrong kernel named?

    PYTHONPATH=tests python bench/origin_accuracy/families.py OUT --env PYTHON [--family NAME ...]

PYTHON is an interpreter with torch and transformers. Each family of the library whose default configuration can be made small is
run for one step in training, bare and recorded (`family_cases/worker.py`). Then fused attention is compared with written-out
attention, which is healthy, and two runs of fused attention with one operation wrong by 5 % are compared with written-out
attention, too. The truth of a fault is what the same dump shows beside fused attention without it: all else is equal there to the
bit. What is recorded is not recorded again. About 40 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from pipeline.comparing import compare

WORKER: Final = Path(__file__).resolve().parents[1] / "family_cases" / "worker.py"


def score_fault(folder: Path, name: str) -> tuple[str, str]:
    """(outcome, words): right; later (listed behind another); silent; wrong; void (it left no trace)."""
    quiet, _ = compare(folder / name, folder / "fused")
    answer, _ = compare(folder / name, folder / "eager")
    named = [f"{one.node} {one.confidence:.2f}" for one in answer.origins]
    nodes = [one.node for one in answer.origins]
    if not quiet.origins:
        return "void", ""
    truth = quiet.origins[0].node
    outcome = "right" if nodes[:1] == [truth] else "later" if truth in nodes else "wrong" if nodes else "silent"
    return outcome, f"{truth} against {', '.join(named[:2]) or 'nothing'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--env", required=True, help="an interpreter with torch and transformers")
    parser.add_argument("--family", action="append", default=[])
    given = parser.parse_args()
    subprocess.run([given.env, str(WORKER), str(given.out), *given.family], check=True)
    counts: Counter[str] = Counter()
    for folder in sorted(one.parent for one in given.out.glob("*/done.json")):
        if given.family and folder.name not in given.family:
            continue
        said: dict[str, Any] = json.loads((folder / "done.json").read_text())
        if "failed" in said:
            counts["not made small"] += 1
            continue
        counts["recorded"] += said["repeats"]
        if said["changed"]:
            counts["changed by the recorder"] += 1
            print(f"{folder.name}: recording changes {said['changed']}")
        if not (folder / "fused").exists():
            continue
        answer, _ = compare(folder / "fused", folder / "eager")
        counts["healthy pairs"] += 1
        if answer.origins or answer.counts.no:
            counts["healthy pairs accused"] += 1
            print(f"{folder.name}: healthy, {answer.counts.no} No, {[one.node for one in answer.origins[:2]]}")
        for number, fault in enumerate(said["faults"]):
            outcome, words = score_fault(folder, f"fault{number}")
            counts[f"faults {outcome}"] += 1
            if outcome not in ("right", "void"):
                print(f"{folder.name}: {fault} {outcome}: {words}")
    print(*(f"{count} {what}" for what, count in sorted(counts.items())), sep="\n")
    return int(bool(counts["changed by the recorder"]))


if __name__ == "__main__":
    sys.exit(main())
