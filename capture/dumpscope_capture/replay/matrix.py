"""The call over device, dtype, layout and determinism, each combination in a process of its own."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch

from dumpscope_capture.replay.arguments import Case, tensor_specs

CELL_SECONDS: Final = 300
FACTORS: Final = ("device", "dtype", "layout", "deterministic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """verdict: of the run, or "crash"; off: the largest number of units that any result is off"""

    case: Case
    verdict: str
    off: float
    said: str

    @property
    def fails(self) -> bool:
        return self.verdict in ("error", "crash")

    def document(self) -> dict[str, Any]:
        return {**asdict(self.case), "verdict": self.verdict, "off": str(self.off), "said": self.said}


def devices() -> list[str]:
    """The CPU and the accelerators of this machine."""
    found = ["cpu"]
    for kind in ("cuda", "npu", "xpu", "mps"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            found.append(kind)
    return found


def cases(call: dict[str, Any], base: Case, on: list[str]) -> list[Case]:
    specs = list(tensor_specs([call["args"], call["kwargs"]]))
    floats = {spec["dtype"] for spec in specs if spec["dtype"].startswith(("float", "bfloat"))}
    types = ["recorded", *(one for one in ("float32", "float64") if floats and floats != {one})]
    layouts = ["recorded", "contiguous"] if any(spec.get("stride") for spec in specs) else ["recorded"]
    return [
        Case(device=device, dtype=dtype, layout=layout, deterministic=fixed, seed=base.seed)
        for device, dtype, layout, fixed in itertools.product(on, types, layouts, (False, True))
    ]


def run_matrix(script: list[str], call: dict[str, Any], base: Case, on: list[str]) -> list[Cell]:
    """Run `script` once per case; a process that dies or hangs is a result. Rows appear as they come."""
    cells = []
    for case in cases(call, base, on):
        cells.append(_run_cell(script, case))
        print(row(cells[-1]), flush=True)
    return cells


def _run_cell(script: list[str], case: Case) -> Cell:
    words = [
        "--json",
        "--device",
        case.device,
        "--dtype",
        case.dtype,
        "--layout",
        case.layout,
        "--seed",
        str(case.seed),
    ]
    command = [sys.executable, *script, *words, *(["--deterministic"] if case.deterministic else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CELL_SECONDS)
    except subprocess.TimeoutExpired:
        return Cell(case=case, verdict="crash", off=0.0, said=f"no end after {CELL_SECONDS} s")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return Cell(case=case, verdict="crash", off=0.0, said=f"{how}: {last[:160]}")
    judged = [one for one in found["here"].values() if one["units"] is not None]
    off = max((float(one["units"]) for one in judged), default=0.0)
    return Cell(case=case, verdict=found["verdict"], off=off, said=found["error"] or found["said"][0])


def row(cell: Cell) -> str:
    case = cell.case
    fixed = "deterministic" if case.deterministic else "any order"
    off = f"{cell.off:.3g} units" if cell.off else ""
    said = cell.said if cell.fails else ""
    return f"  {case.device:5} {case.dtype:9} {case.layout:10} {fixed:13}  {cell.verdict:8} {off:14} {said}".rstrip()


def conclusion(cells: list[Cell]) -> list[str]:
    """Which factor flips the result: cells that differ in it alone and do not agree."""
    failing = [cell for cell in cells if cell.fails]
    if not failing:
        return ["No cell fails: not reproduced on this machine."]
    if len(failing) == len(cells):
        return ["Every cell fails: the result hangs on none of these factors."]
    said = []
    for factor in FACTORS:
        flips: dict[tuple[str, str], int] = {}
        pairs = 0
        for one, other in itertools.permutations(cells, 2):
            mine, its = asdict(one.case), asdict(other.case)
            if [key for key in FACTORS if mine[key] != its[key]] != [factor]:
                continue
            pairs += one.fails
            if one.fails and not other.fails:
                change = str(mine[factor]), str(its[factor])
                flips[change] = flips.get(change, 0) + 1
        if flips:
            changes = ", ".join(f"{old} to {new} ({count}x)" for (old, new), count in flips.items())
            said.append(f"{factor} flips the result: fails no more from {changes}, of {pairs} failing pairs.")
    return said
