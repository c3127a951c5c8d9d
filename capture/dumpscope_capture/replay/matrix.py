"""Runs every combination in its own process, and finds the factors that flip the result."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dumpscope_capture.replay.arguments import Case
from dumpscope_capture.replay.cells import Combination, combinations
from dumpscope_capture.replay.reporting import differences

CELL_SECONDS: Final = 300
WAITING: Final = ("ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING")
"""Variables that make launches synchronous, so that an error is raised at the right call."""


@dataclass(frozen=True)
class Cell:
    """Result of one combination. verdict: of the run, or "crash"; off: largest error of a result in units
    made_up: inputs without a file
    """

    combination: Combination
    verdict: str
    off: float
    said: str
    made_up: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        return self.verdict in ("error", "crash")

    def document(self) -> dict[str, Any]:
        factors = self.combination.factors()
        seed = self.combination.case.seed
        return {**factors, "seed": seed, "verdict": self.verdict, "off": str(self.off), "said": self.said}


def run_matrix(
    script: list[str], call: dict[str, Any], base: Case, on: list[str], scalars: Mapping[str, Sequence[str]], logs: str | None
) -> list[Cell]:  # fmt: skip
    """Run `script` once per combination and print each row at once. A process that dies or hangs is a result too.

    logs: folder with a subfolder per run, for its output and the log of an Ascend runtime
    """
    cells = []
    for number, one in enumerate(combinations(call, base, on, scalars)):
        cells.append(
            _run_cell(script, one, None if logs is None else os.path.join(os.path.abspath(logs), f"{number:03}"))
        )
        print(row(cells[-1]), flush=True)
    return cells


def _run_cell(script: list[str], combination: Combination, room: str | None) -> Cell:
    command = [sys.executable, *script, "--json", *combination.options()]
    environment = {**dict.fromkeys(WAITING, "1"), **os.environ}
    if room is not None:
        environment["ASCEND_PROCESS_LOG_PATH"] = os.path.join(room, "device_log")
        os.makedirs(environment["ASCEND_PROCESS_LOG_PATH"], exist_ok=True)
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=CELL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Cell(combination=combination, verdict="crash", off=0.0, said=f"no end after {CELL_SECONDS} s")
    if room is not None:
        with open(os.path.join(room, "output.txt"), "w", encoding="utf-8") as stream:
            stream.write(f"{' '.join(command)}\n\n{done.stdout}{done.stderr}\nexit status {done.returncode}\n")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return Cell(combination=combination, verdict="crash", off=0.0, said=f"{how}: {last[:160]}")
    judged = [one for one in found["here"].values() if one["units"] is not None]
    return Cell(
        combination=combination,
        verdict=found["verdict"],
        off=max((float(one["units"]) for one in judged), default=0.0),
        said=found["error"] or found["said"][0],
        made_up=tuple(found["made_up"]),
    )


def row(cell: Cell) -> str:
    case = cell.combination.case
    fixed = "deterministic" if case.deterministic else "any order"
    values = " ".join(f"{name}={text}" for name, text in cell.combination.values.items())
    off = f"{cell.off:.3g} units" if cell.off else ""
    said = cell.said if cell.fails else ""
    form = f"{case.storage:8} " if case.device.startswith("npu") else ""
    told = f"  {case.device:5} {case.dtype:9} {case.layout:10} {form}{fixed:13} {values}"
    return f"{told.rstrip()}  {cell.verdict:8} {off:14} {said}".rstrip()


def conclusion(cells: list[Cell], call: dict[str, Any]) -> list[str]:
    """Sentences on the factors that flip the result, from cells that differ in one factor only. If no cell fails: what was
    different in the net."""
    failing = [cell for cell in cells if cell.fails]
    if not failing:
        last = cells[-1].combination.case
        here = Case(device=last.device, seed=last.seed)
        told = differences(call, here, sorted({item for cell in cells for item in cell.made_up}))
        return [
            "No cell fails: not reproduced on this machine.",
            *(f"Differs from the call in the net: {one}." for one in told),
        ]
    if len(failing) == len(cells):
        return ["Every cell fails: the result hangs on none of these factors."]
    factors = [(cell.combination.factors(), cell.fails) for cell in cells]
    said = []
    for factor in factors[0][0]:
        flips: dict[tuple[str, str], int] = {}
        pairs = 0
        for (mine, fails), (its, too) in itertools.permutations(factors, 2):
            if [key for key in mine if mine[key] != its[key]] != [factor]:
                continue
            pairs += fails
            if fails and not too:
                change = str(mine[factor]), str(its[factor])
                flips[change] = flips.get(change, 0) + 1
        if flips:
            changes = ", ".join(f"{old} to {new} ({count}x)" for (old, new), count in flips.items())
            said.append(f"{factor} flips the result: fails no more from {changes}, of {pairs} failing pairs.")
    return said
