"""Worker of the pre-check: reads calls as JSON lines from stdin, runs each alone and writes one JSON line for each to stdout.

    python -m dumpscope_capture.precheck --device npu --seed 1234 [--save FOLDER] [--prelude FILE]

Input line: {"call": document, "folder": of its tensors}. Output line: the report of the replay, with `details`, one row a result.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from dumpscope_capture.precheck_columns import columns
from dumpscope_capture.replay.arguments import Case, Tensors, tensor_specs
from dumpscope_capture.replay.judging import ERROR
from dumpscope_capture.replay.reporting import Report
from dumpscope_capture.replay.targets import load_npu, missing_device, run_prelude
from dumpscope_format.paths import file_name
from dumpscope_format.replay import NO_DEVICE


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--save", help="folder for the tensors of calls that are wrong")
    parser.add_argument("--prelude", help="Python file or module to run first")
    options = parser.parse_args(words)
    torch.set_num_threads(1)  # the processes share the machine
    load_npu([options.device])
    if options.prelude:
        run_prelude(options.prelude)
    lacking = missing_device([options.device])
    if lacking:
        print(lacking, file=sys.stderr)
        return NO_DEVICE
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of operators goes to stderr, not between the answers
    for line in sys.stdin:
        given = json.loads(line)
        answer = check(given["call"], given["folder"], options.device, options.seed, options.save)
        out.write(json.dumps(answer) + "\n")
        out.flush()
    return 0


def check(call: dict[str, Any], folder: str | None, device: str, seed: int, save: str | None = None) -> dict[str, Any]:
    """The report of one call, with `details`: {"item", "direction", columns...}."""
    if call["backward"] == "sum":
        call = {**call, "backward": "none"}  # the dump has no backward of this call
    case = Case(device=device, seed=seed)
    report = Report(call, folder, case)
    right = {**report.reference.outputs, **report.reference.gradients}
    details = []
    for direction, found in (("forward", report.outcome.outputs), ("backward", report.outcome.gradients)):
        for place, (item, tensor) in enumerate(found.items()):
            if item not in right:
                continue
            row = columns(tensor, right[item], random=report.kind == "random")
            details.append({"item": item, "direction": direction, "place": place, **row})
    if save and ERROR in (report.verdict, report.recorded_verdict, *(row["status"] for row in details)):
        keep(report, folder, seed, Path(save))
    return {**report.document(), "details": details}


def keep(report: Report, folder: str | None, seed: int, target: Path) -> None:
    """Write inputs and both results of a call."""
    target.mkdir(parents=True, exist_ok=True)
    tensors = Tensors(folder, seed)
    name = report.call["name"]
    given = [*tensor_specs([report.call["args"], report.call["kwargs"]]), *tensor_specs(report.call["grads"])]
    for spec in given:
        direction = "backward.input" if spec["tensor"].startswith("grad.") else "forward.input"
        place = spec["tensor"].partition(".")[2]
        torch.save(tensors(spec).clone(), target / file_name(f"{name}.{direction}.{place}"))
    for side, outcome in (("device", report.outcome), ("bench", report.reference)):
        for direction, found in (("forward", outcome.outputs), ("backward", outcome.gradients)):
            for place, tensor in enumerate(found.values()):
                torch.save(tensor, target / file_name(f"{name}.{direction}.output.{side}.{place}"))


if __name__ == "__main__":
    sys.exit(main())
