"""Runs cases under this capture or under msprobe, each in a forked child: engines are imported once, and are one a process.

python -m capture.peer_runs ENGINE FOLDER CASES     ENGINE: dumpscope or msprobe; CASES: a JSON file, see `Case`
With RANK and WORLD_SIZE in the environment the processes of one launch meet in the folder.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch.distributed as dist
from warm_python import finish

from capture import dist_models, peer_models

DISTRIBUTED = {"ddp": dist_models.run, "dtensor": dist_models.shard, "fsdp2": dist_models.shard_fully}


class Case(TypedDict):
    """model: a name `peer_models.build` or `DISTRIBUTED` knows; the dump goes to FOLDER/{name}; section: more keys of the task;
    steps: of a model of one process (2)"""

    name: str
    model: str
    level: str
    task: str
    summary: str
    risk: str
    section: NotRequired[dict[str, Any]]
    steps: NotRequired[int]


def config(engine: str, case: Case, folder: Path) -> str:
    """Write a case's config.json. Returns its path."""
    settings: dict[str, Any] = {
        "task": case["task"], "dump_path": str(folder / case["name"]), "level": case["level"], "risk_level": case["risk"],
        case["task"]: {"summary_mode": case["summary"], **case.get("section", {})},
    }  # fmt: skip
    if engine == "dumpscope":
        settings["backward"] = settings["numbering"] = "msprobe"
    path = folder / f"{case['name']}.{os.getpid()}.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return str(path)


def run(make: Callable[[str], Any], engine: str, case: Case, folder: Path) -> None:
    debugger = make(config(engine, case, folder))
    if case["model"] not in DISTRIBUTED:
        peer_models.train(case["model"], debugger, case.get("steps", 2))
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/{case['name']}.store", rank=rank, world_size=size)
    before = (dist.all_reduce, dist.send, dist.Work.wait)
    DISTRIBUTED[case["model"]](debugger, rank)
    if engine == "dumpscope":
        assert (dist.all_reduce, dist.send, dist.Work.wait) == before
    dist.destroy_process_group()


def main(engine: str, where: str, cases: str) -> int:
    """Run the cases one after the other. Returns how many failed."""
    if engine == "msprobe":
        from msprobe.pytorch import PrecisionDebugger as Debugger  # type: ignore[import-not-found]  # noqa: PLC0415
    else:
        from dumpscope_capture import PrecisionDebugger as Debugger  # noqa: PLC0415
    gc.collect()
    gc.freeze()  # a child that looked at what was imported would copy it
    failed = 0
    for case in json.loads(Path(cases).read_text(encoding="utf-8")):
        child = os.fork()
        if child == 0:
            os._exit(finish(partial(run, Debugger, engine, case, Path(where))))
        _, status = os.waitpid(child, 0)
        if status:
            failed += 1
            print(f"case {case['name']} failed", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
