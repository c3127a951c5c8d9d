"""Records the runs of one program: the sound one and one for each fault, with statistics and with tensors. Needs the libraries.

    python worker.py CASE FOLDER            writes FOLDER/<run>/<task>/ and, last of all, FOLDER/<run>/done.json
    python worker.py CASE FOLDER --plain    only a second sound run, "plain", without MKL-DNN; its caller takes other kernels away
    python worker.py CASE FOLDER --list     prints the calls below autograd, by which faults are placed

`--seed N` draws other weights and data, `--hidden N` makes models of the text libraries that wide.

The libraries are imported once; then this process forks for each run and rank. What is done is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from faulty_models.faults import FAULTS
from faulty_models.planting import Fault, Planting
from faulty_models.programs import PROGRAMS, Program
from model_cases.cases import TINY
from model_cases.runs import SEED, Captured, Loaded, Loading, seed

TASKS = ("statistics", "tensor")
SOUND, PLAIN = "sound", "plain"


class Planted(Captured):
    """A recorded run of so many parts, with faults."""

    def __init__(self, settings: dict[str, Any], program: Program, planting: Planting, rank: int, folder: Path) -> None:
        super().__init__(settings, rank, program.ranks, folder)
        self.planting, self.steps = planting, program.steps

    def begin(self, *models: torch.nn.Module) -> None:
        if self.part >= self.steps:
            raise Loaded
        self.planting.part = self.part
        self.planting.watch(*models)
        super().begin(*models)
        self.planting.__enter__()

    def end(self) -> None:
        self.planting.__exit__(None, None, None)
        super().end()

    def keep(self, name: str, value: Any) -> None:
        """Nothing is compared here but dumps."""


def run_here(
    program: Program,
    settings: dict[str, Any],
    faults: tuple[Fault, ...],
    rank: int,
    folder: Path,
    listing: bool,
    number: int,
) -> Any:
    torch.set_num_threads(1)
    if program.ranks > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(program.ranks))
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=program.ranks
        )
    seed(number)
    planting = Planting(faults, rank, listing=listing)
    with suppress(Loaded):
        program.run(Planted(settings, program, planting, rank, folder))
    if program.ranks > 1:
        torch.distributed.destroy_process_group()
    return planting.visits if listing else planting.struck


def run(
    program: Program, task: str, faults: tuple[Fault, ...], folder: Path, *, listing: bool = False, number: int = SEED
) -> list[Any]:
    """What each rank returned. number: by which weights and data are drawn. Raises RuntimeError where one failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {"task": task, "level": program.level, task: {}, **program.settings}
    children = []
    for rank in range(program.ranks):
        child = os.fork()
        if child == 0:
            try:
                warnings.simplefilter("ignore")
                made: Any = run_here(program, settings, faults, rank, folder, listing, number)
            except BaseException:
                made = traceback.format_exc()[-1500:]
            (folder / f"{rank}.pickle").write_bytes(pickle.dumps(made))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    found = []
    for rank in range(program.ranks):
        path = folder / f"{rank}.pickle"
        made = pickle.loads(path.read_bytes()) if path.exists() else "the process died"
        if isinstance(made, str):
            raise RuntimeError(f"rank {rank}: {made}")
        path.unlink()
        found.append(made)
    return found


def load(program: Program) -> None:
    """Import and build what a program needs, so that its runs need not."""
    seed()
    with suppress(BaseException):  # without a process group, some cannot build all
        program.run(Loading(0, program.ranks))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--hidden", type=int, default=TINY["hidden_size"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    TINY.update(hidden_size=options.hidden, intermediate_size=options.hidden * 3 // 2)
    case, program, number = options.case, PROGRAMS[options.case], options.seed
    out = (options.folder / case).resolve()
    load(program)
    if options.list:
        for rank, visits in enumerate(run(program, "statistics", (), out / "list", listing=True, number=number)):
            for one in visits:
                print(rank, one.part, f"{one.op} {one.nth}", one.owner, *one.shapes)
        return 0
    failed = 0
    own = [one for one in FAULTS if one.case == case]
    by_name = {one.name: one for one in FAULTS}
    runs: list[tuple[str, tuple[Fault, ...]]] = [(SOUND, ())]
    runs += [(one.name, (one, *(by_name[other] for other in one.beside))) for one in own]
    if options.plain:
        torch.backends.mkldnn.enabled = False
        runs = [(PLAIN, ())]
    for name, faults in runs:
        done = out / name / "done.json"
        if done.exists():
            continue
        try:
            modules: list[str] = []
            for task in TASKS:
                struck = run(program, task, faults, out / name / task, number=number)
                silent = {one.name for one in faults} - {each for places in struck for each in places}
                if silent:
                    raise RuntimeError(f"a call never ran: {sorted(silent)}")
                modules = next((places[name] for places in struck if name in places), [])
            done.write_text(json.dumps({"modules": modules}))
            print(f"{case}: {name} recorded", flush=True)
        except RuntimeError as error:
            failed += 1
            print(f"{case}: {name} FAILED: {error}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
