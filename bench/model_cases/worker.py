"""Runs one case in each way, each in a process of its own, and writes what was found.

    python worker.py CASE FOLDER        writes FOLDER/CASE.json
    python worker.py --list             names of the cases

The case's libraries are imported once; then this process forks for every run.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from model_cases.cases import CASES, here
from model_cases.census import plain, recorded, without_node
from model_cases.runs import Captured, Counted, Loading, Run, seed

LEVELS: Final = ("L0", "L1", "mix")
TASKS: Final = ("statistics", "tensor")
ALL: Final = "L1 statistics, risk level ALL"
"""The run whose nodes every counted call is looked for in."""

LOW_RISK: Final = ("repeat_interleave", "diag")
"""Calls of msprobe's list of low risk that compute; no nodes at the default level."""

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    **{f"{level} {task}": {"level": level, "task": task} for level in LEVELS for task in TASKS},
    ALL: {"level": "L1", "task": "statistics", "risk_level": "ALL"},
}


def in_process(make: Callable[[int], Run], case: str, folder: Path) -> list[dict[str, Any]]:
    """Run a case in forked processes, one for each rank; what each returned, or {"error": text}."""
    folder.mkdir(parents=True, exist_ok=True)
    size = CASES[case].ranks
    children = {}
    for rank in range(size):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                (folder / f"{rank}.pickle").write_bytes(pickle.dumps(run_here(make, case, folder, rank, size)))
                code = 0
            except BaseException:
                (folder / f"{rank}.pickle").write_bytes(pickle.dumps({"error": traceback.format_exc()[-1200:]}))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children[rank] = child
    for child in children.values():
        os.waitpid(child, 0)
    found = []
    for rank in range(size):
        path = folder / f"{rank}.pickle"
        found.append(pickle.loads(path.read_bytes()) if path.exists() else {"error": "the process died"})
    return found


def load(case: str) -> None:
    """Import and build what a case needs, so that its runs need not."""
    seed()
    with suppress(BaseException):  # without a process group, some cannot build all
        CASES[case].run(Loading(0, CASES[case].ranks))


def run_here(make: Callable[[int], Run], case: str, folder: Path, rank: int, size: int) -> dict[str, Any]:
    """One rank's run."""
    torch.set_num_threads(1)  # torch makes its pool anew after a fork; two threads that do so at once end the process
    if size > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    seed()
    run = make(rank)
    began = time.perf_counter()
    CASES[case].run(run)
    seconds = time.perf_counter() - began
    if size > 1:
        torch.distributed.destroy_process_group()
    return {"kept": run.kept, "seconds": seconds, **run.close()}


def steps(dump: Path, rank: int, size: int) -> list[Path]:
    """Folders of a rank's dump, one for each step."""
    return sorted(dump.glob(f"step*/rank{rank}" if size > 1 else "step*/*"))


def differences(bare: dict[str, str], other: dict[str, str]) -> list[str]:
    """Names of what is not equal, in order."""
    return [name for name in {**bare, **other} if bare.get(name) != other.get(name)]


def modules_of(folders: list[Path]) -> Counter[str]:
    """Class -> forward nodes of modules."""
    found: Counter[str] = Counter()
    for folder in folders:
        for name in json.loads((folder / "dump.json").read_text(encoding="utf-8"))["data"]:
            if name.startswith("Module.") and ".forward." in name:
                found[name.split(".forward.")[0].rpartition(".")[2]] += 1
    return found


def examine(case: str, folder: Path) -> dict[str, Any]:
    """All runs of a case, and what is wrong with them."""
    size = CASES[case].ranks
    began = time.perf_counter()
    load(case)
    bare = in_process(lambda rank: Run(rank, size), case, folder / "bare")
    result: dict[str, Any] = {
        "title": CASES[case].title, "runs": len(SETTINGS), "wrong": [], "equal": [], "nodes": {}, "kept": 0, "modules": 0,
    }  # fmt: skip
    for rank, one in enumerate(bare):
        if "error" in one:
            return {**result, "wrong": [f"bare, rank {rank}: {one['error']}"]}
    result["kept"] = sum(len(one["kept"]) for one in bare)
    result["bare seconds"] = bare[0]["seconds"]
    wrong: list[str] = result["wrong"]
    again = in_process(lambda rank: Run(rank, size), case, folder / "again")
    for rank, one in enumerate(again):
        odd = ["failed"] if "error" in one else differences(bare[rank]["kept"], one["kept"])
        if odd:
            wrong.append(f"two bare runs differ, rank {rank}: {len(odd)}, first {odd[:3]}")
    counted = in_process(lambda rank: Counted(rank, size, compiled=CASES[case].compiled), case, folder / "counted")
    result["modules"] = sum(sum(one["modules"].values()) for one in counted if "modules" in one)
    wrong += [f"counting failed, rank {rank}: {one['error']}" for rank, one in enumerate(counted) if "error" in one]
    at_default: Any = None
    for label, settings in SETTINGS.items():
        dump = folder / label.replace(" ", "_")
        found = in_process(partial(Captured, settings, size=size, folder=dump), case, dump)
        equal = True
        for rank, one in enumerate(found):
            where = label if size == 1 else f"{label}, rank {rank}"
            if "error" in one:
                wrong.append(f"{where}: {one['error']}")
                equal = False
                continue
            odd = differences(bare[rank]["kept"], one["kept"])
            if odd:
                wrong.append(f"{where}: {len(odd)} of {len(bare[rank]['kept'])} differ, first {odd[:4]}")
                equal = False
            folders = steps(dump, rank, size)
            counts: Counter[str] = Counter()
            for place in folders:
                run = json.loads((place / "run.json").read_text(encoding="utf-8"))
                counts.update(run["counts"])
                for note, names in run.get("notes", {}).items():
                    result.setdefault("notes", {}).setdefault(note, names)
            if counts:
                wrong.append(f"{where}: losses {dict(counts)}")
            if not folders:
                wrong.append(f"{where}: no dump")
            if rank == 0:
                result["nodes"].setdefault(label, sum(map(number_of_nodes, folders)))
                result.setdefault("seconds", {})[label] = one["seconds"]
            if "error" in counted[rank]:
                continue
            if settings["level"] != "L1" and not CASES[case].compiled:
                wrong += compare_modules(where, counted[rank]["modules"], modules_of(folders))
            if CASES[case].compiled:
                regions = sum(number_of_nodes(place, "Compiled.", ".forward") for place in folders)
                result["regions"] = counted[rank]["regions"]
                result["region nodes"] = regions
                result["missing"] = max(result.get("missing", 0), counted[rank]["regions"] - regions)
                if regions != counted[rank]["regions"]:
                    wrong.append(f"{where}: {regions} nodes of compiled regions, {counted[rank]['regions']} ran")
            elif label == "L1 statistics":
                at_default = [*(at_default or []), recorded(folders)]
            elif label == ALL:
                count_calls(result, where, counted[rank]["visits"], folders, at_default[rank])
        if equal:
            result["equal"].append(label)
        shutil.rmtree(dump, ignore_errors=True)
    result["wall seconds"] = time.perf_counter() - began
    return result


def number_of_nodes(folder: Path, begin: str = "", within: str = "") -> int:
    names = json.loads((folder / "dump.json").read_text(encoding="utf-8"))["data"]
    return sum(name.startswith(begin) and within in name for name in names)


def compare_modules(where: str, counted: Counter[str], nodes: Counter[str]) -> list[str]:
    if counted == nodes:
        return []
    return [f"{where}: modules without a node {dict(counted - nodes)}, nodes without a module {dict(nodes - counted)}"]


def count_calls(result: dict[str, Any], where: str, visits: list[Any], folders: list[Path], default: Any) -> None:
    """Note which counted calls have no node: at the default level, and at all. Those that have none because they only view, copy
    or make data must be counted by name in run.json; any other is missing."""
    unrecorded: Counter[str] = Counter()
    for place in folders:
        for name, number in json.loads((place / "run.json").read_text(encoding="utf-8")).get("unrecorded", {}).items():
            unrecorded[plain(name.rpartition(".")[2])] += number
    left_out: Counter[str] = Counter()
    missing = []
    for one in without_node(visits, recorded(folders)):
        if not one.computes and unrecorded[plain(one.name)] > 0:
            unrecorded[plain(one.name)] -= 1
            left_out[one.name] += 1
        else:
            missing.append(one)
    quiet = without_node(visits, default)
    result["calls"] = result.get("calls", 0) + len(visits)
    result["calls at default"] = result.get("calls at default", 0) + len(visits) - len(quiet)
    total: Counter[str] = Counter(result.get("only at ALL", {}))
    total.update(one.name for one in quiet)
    total.subtract(left_out)
    result["only at ALL"] = dict(+total)
    missing += [one for one in quiet if one.computes and one.name not in LOW_RISK]
    result["left out"] = dict(Counter(result.get("left out", {})) + left_out)
    result["missing"] = result.get("missing", 0) + len(missing)
    for text in sorted({f"{one.site[0]}:{one.site[1]} {one.name} {sorted(one.ops)}" for one in missing}):
        result["wrong"].append(f"{where}: no node for {text}")


def main(case: str, folder: str = "") -> int:
    if case == "--list":
        print("\n".join(CASES))
        return 0
    torch.set_num_threads(1)
    place = Path(folder, case)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    reason = here(case)
    result = {"title": CASES[case].title, "not made": reason, "wrong": []} if reason else examine(case, place)
    Path(folder, f"{case}.json").write_text(json.dumps(result, indent=1, default=str), encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)
    return int(bool(result["wrong"]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
