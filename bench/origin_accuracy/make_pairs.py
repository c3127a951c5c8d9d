"""Makes pairs of real msprobe dumps with a known first wrong node. Run it with a Python that has torch and msprobe.

    python bench/origin_accuracy/make_pairs.py OUT --pairs 60 [--seed N]

A group is one network, dtype and set of weights; each of its dumps is made in a forked child (importing msprobe takes
seconds, and its debugger is a singleton). OUT/pairs.jsonl names every pair and its truth: the API call to which the faulty
kernel belongs, and the nodes that show the fault first in a noise-free pair of tensor dumps, compared byte by byte.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import secrets
import shutil
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from faults import KINDS, Call, Fault, Kernels
from models import MODELS, Net
from truth import Seen, around, seen

torch.set_num_threads(1)
OPTIMIZERS = ("sgd", "sgd", "adam", "unseen", "unseen")
STRENGTHS: dict[str, tuple[float, ...]] = {
    "scale": (1.02, 1.1, 1.5, 2.0, 0.5),
    "noise": (0.02, 0.1, 0.5),
    "shift": (0.05, 0.3, 1.0),
    "outlier": (1.0, 5.0, 50.0),
    "tail": (0.1, 0.5),
    "permute": (1.0,),
    "precision": (1.0,),
    "nan": (1.0,),
    "inf": (1.0,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One dump. weight: (parameter, factor or None for one element) changed before the run; batch: the input is changed."""

    task: str = "tensor"
    level: str = "mix"
    noise: int = 0
    fault: Fault | None = None
    insert: int | None = None
    changes: bool = False
    weight: tuple[str, float | None] | None = None
    batch: float = 0.0
    approximate: str = "none"
    eps: float = 1e-5
    drop: float | None = None
    record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """optimizer: "sgd", "adam", or "unseen": its step runs after the dump was stopped."""

    model: str
    dtype: str
    seed: int
    optimizer: str
    steps: int
    folder: Path = field(compare=False)


def made(group: Group, run: Run, path: Path) -> tuple[list[Call], Call | None, str]:
    """Run the training of a group in a forked child that dumps into `path`."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        try:
            warnings.simplefilter("ignore")
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            answer = _train(group, run, path)
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(answer, pipe)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        raw = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"the run {run} of {group} failed")
    answer: tuple[list[Call], Call | None, str] = pickle.loads(raw)
    return answer


def _train(group: Group, run: Run, path: Path) -> tuple[list[Call], Call | None, str]:
    from msprobe.core.dump.hook_manager import BaseHookManager  # noqa: PLC0415
    from msprobe.pytorch import PrecisionDebugger  # noqa: PLC0415
    from msprobe.pytorch.dump.api_dump.hook_module import HOOKModule  # noqa: PLC0415

    path.mkdir(parents=True)
    config = path / "config.json"
    part: dict[str, Any] = {"scope": [], "list": [], "data_mode": ["all"]}
    if run.task == "statistics":
        part["summary_mode"] = "statistics"
    config.write_text(
        json.dumps(
            {
                "task": run.task,
                "dump_path": str(path / "dump"),
                "rank": [],
                "step": [],
                "level": run.level,
                run.task: part,
            }
        )
    )
    net, batches, optimizer = _built(group, run)
    debugger = PrecisionDebugger(config_path=str(config))
    thread = threading.get_ident()

    def hush(on: bool) -> None:
        BaseHookManager.inner_switch[thread] = on

    kernels = Kernels(
        skip=lambda: BaseHookManager.inner_switch[thread], hush=hush, owner_code=HOOKModule._call_func.__code__,
        insert_code=Net.place.__code__, fault=run.fault, noise=run.noise, record=run.record,
    )  # fmt: skip
    for step, batch in enumerate(batches):
        kernels.step, kernels.phase = step, "forward"
        debugger.start(model=net)
        with kernels:
            loss = net(*batch)
            kernels.phase = "backward"
            loss.backward()
            kernels.phase = "optimizer"
            if group.optimizer != "unseen":
                optimizer.step()
        debugger.stop()
        if group.optimizer == "unseen":
            optimizer.step()
        debugger.step()
        optimizer.zero_grad()
    if run.fault and kernels.hit is None:
        raise RuntimeError(f"the kernel {run.fault} never ran")
    return kernels.calls, kernels.hit, kernels.inserted


def _built(group: Group, run: Run) -> tuple[Net, list[tuple[Any, ...]], torch.optim.Optimizer]:
    torch.manual_seed(group.seed)
    net = MODELS[group.model]()
    dtype = getattr(torch, group.dtype)
    net.to(dtype)
    draw = torch.Generator().manual_seed(group.seed)
    batches = [net.batch(draw) for _ in range(group.steps)]
    net.insert, net.changes, net.approximate, net.eps = run.insert, run.changes, run.approximate, run.eps
    if run.drop is not None:
        for module in net.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = run.drop
    if run.batch:
        first, *rest = batches[0]
        changed = first.clone()
        if changed.is_floating_point():
            changed = changed + run.batch
        else:
            changed[0, 0] = (changed[0, 0] + 1) % 32
        batches[0] = (changed, *rest)
    batches = [
        tuple(one.to(dtype) if one.is_floating_point() and number == 0 else one for number, one in enumerate(batch))
        for batch in batches
    ]
    if run.weight:
        name, factor = run.weight
        parameter = net.get_parameter(name)
        with torch.no_grad():
            if factor is None:
                parameter.view(-1)[parameter.numel() // 2] += 0.1
            else:
                parameter.mul_(factor)
    kinds: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "sgd": lambda: torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, foreach=False),
        "unseen": lambda: torch.optim.SGD(net.parameters(), lr=0.05, foreach=False),
        "adam": lambda: torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False),
    }
    torch.manual_seed(group.seed + 1)
    return net, batches, kinds[group.optimizer]()


class Maker:
    """Makes pairs group by group and appends them to pairs.jsonl as they are finished."""

    def __init__(self, out: Path, chance: random.Random, *, noise: str, healthy: float) -> None:
        self.out, self.chance, self.noise, self.healthy = out, chance, noise, healthy
        self.number = 0
        self.listing = out / "pairs.jsonl"

    def group(self, model: str, dtype: str, size: int) -> None:
        """One group of about `size` pairs."""
        chance = self.chance
        group = Group(
            model=model, dtype=dtype, seed=chance.randrange(1 << 30), optimizer=chance.choice(OPTIMIZERS),
            steps=2 if chance.random() < 0.15 else 1, folder=self.out / f"group{self.number}",
        )  # fmt: skip
        self.references: dict[Run, Path] = {}
        calls, _, _ = made(group, Run(record=True), group.folder / "first")
        again, _, _ = made(group, Run(record=True), group.folder / "again")
        for step in range(group.steps):
            found = seen(group.folder / "first", group.folder / "again", dtype, "", step, [])
            if found.differing or calls != again:
                raise RuntimeError(f"{group} does not repeat bit by bit")
        shutil.rmtree(group.folder / "again")
        self.references[Run()] = group.folder / "first"
        before = self.number
        while self.number - before < size:
            run, about = self._cause(group, calls)
            self._pairs(group, run, about)

    def _cause(self, group: Group, calls: list[Call]) -> tuple[Run, dict[str, Any]]:
        chance = self.chance
        insert = chance.randrange(Net.PLACES) if chance.random() < 0.2 else None
        if chance.random() < self.healthy:
            return Run(insert=insert), {"cause": "healthy"}
        dice = chance.random()
        if dice < 0.05:
            return Run(insert=chance.randrange(Net.PLACES), changes=True), {"cause": "structure"}
        if dice < 0.11:
            names = [name for name, _ in MODELS[group.model]().named_parameters()]
            weight = chance.choice(names), chance.choice([None, 1.1])
            return Run(insert=insert, weight=weight), {"cause": "weight", "weight": weight[0]}
        if dice < 0.14:
            return Run(insert=insert, batch=0.05), {"cause": "input"}
        if dice < 0.19 and group.model in ("gpt", "mixer"):
            kind = chance.choice(["approximate", "eps", "drop"] if group.model == "mixer" else ["approximate", "eps"])
            change: dict[str, Any] = {
                "approximate": {"approximate": "tanh"},
                "eps": {"eps": 1e-3},
                "drop": {"drop": 0.3},
            }
            return Run(insert=insert, **change[kind]), {"cause": "argument", "argument": kind}
        call = self._kernel(calls)
        kind = chance.choice(list(KINDS))
        fault = Fault(
            kind=kind, strength=chance.choice(STRENGTHS[kind]), op=call.op, count=call.count,
            output=chance.randrange(len(call.elements)) if call.phase == "backward" else 0,
        )  # fmt: skip
        return Run(insert=insert, fault=fault), {"cause": kind}

    def _kernel(self, calls: list[Call]) -> Call:
        """Every kind of kernel is as likely, however often it runs."""
        phase = self.chance.choice(["forward", "backward"])
        op = self.chance.choice(sorted({call.op for call in calls if call.phase == phase}))
        return self.chance.choice([call for call in calls if call.op == op and call.phase == phase])

    def _reference(self, group: Group, run: Run) -> Path:
        """A dump without fault; made once a group."""
        if run not in self.references:
            path = group.folder / f"reference{len(self.references)}"
            made(group, run, path)
            self.references[run] = path
        return self.references[run]

    def _pairs(self, group: Group, run: Run, about: dict[str, Any]) -> None:
        """The pairs of one cause: noise-free and noisy, as tensors and as statistics."""
        chance = self.chance
        insert = None if run.changes else run.insert
        hit, inserted = None, ""
        for task, level in (("tensor", "mix"), ("statistics", chance.choice(["mix", "mix", "mix", "L1", "L0"]))):
            own = replace(run, task=task, level=level)
            clean = group.folder / f"{'clean' if self.noise == 'only' else 'pair'}{self.number}"
            _, found, place = made(group, replace(own, record=task == "tensor"), clean)
            hit, inserted = hit or found, inserted or place
            reference = self._reference(group, Run(task=task, level=level, insert=insert))
            truth = self._truth(group, reference, clean, hit, insert)
            entry = {
                "model": group.model, "dtype": group.dtype, "task": task, "level": level, "noise": 0,
                "steps": group.steps, "insert": run.insert, **about, "group": group.folder.name, "run": asdict(own),
                "kernel": asdict(hit) if hit else None, "owner": hit.owner if hit else "", "inserted": inserted,
                "golden": str(self._reference(group, Run(task=task, level=level)).relative_to(self.out)),
                "seen": asdict(truth), "floor": None,
            }  # fmt: skip
            if self.noise != "only":
                self._written(entry, clean)
            if self.noise == "none":
                continue
            noise = chance.randrange(1, 1 << 30)
            noisy = group.folder / f"pair{self.number}"
            made(group, replace(own, noise=noise), noisy)
            healthy = self._reference(group, Run(task=task, level=level, insert=insert, noise=group.seed + 1))
            floor = self._truth(group, reference, healthy, hit, insert, at=truth.first)
            self._written(entry | {"noise": noise, "floor": asdict(floor)}, noisy)
            if self.noise == "only":
                shutil.rmtree(clean)

    def _truth(
        self, group: Group, reference: Path, target: Path, hit: Call | None, insert: int | None, at: str = ""
    ) -> Seen:
        """What shows in this very kind of dump."""
        step = hit.step if hit else 0
        owner = hit.owner if hit else ""
        chain = around(self._reference(group, Run(insert=insert)), owner, step) if owner else []
        return seen(reference, target, group.dtype, owner, step, chain, at)

    def _written(self, entry: dict[str, Any], target: Path) -> None:
        line = {"id": self.number, **entry, "target": str(target.relative_to(self.out))}
        with self.listing.open("a") as lines:
            lines.write(json.dumps(line) + "\n")
        self.number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--group", type=int, default=12, help="pairs of one network and its weights")
    parser.add_argument("--noise", choices=["both", "none", "only"], default="both")
    parser.add_argument("--healthy", type=float, default=0.1, help="share of causes that are no fault")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default="float32,bfloat16")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 30)
    print(f"seed {seed}", flush=True)
    import msprobe.pytorch  # noqa: F401, PLC0415
    import yaml  # noqa: PLC0415

    # Every child reads the dumper's operator lists again; the compiled loader takes a tenth of the time.
    yaml.safe_load = lambda stream: yaml.load(stream, yaml.CSafeLoader)

    options.out.mkdir(parents=True, exist_ok=True)
    maker = Maker(options.out.resolve(), random.Random(seed), noise=options.noise, healthy=options.healthy)
    places = [(model, dtype) for model in options.models.split(",") for dtype in options.dtypes.split(",")]
    maker.chance.shuffle(places)
    start = time.perf_counter()
    while maker.number < options.pairs:
        model, dtype = places[0]
        places.append(places.pop(0))
        maker.group(model, dtype, min(options.group, options.pairs - maker.number))
        print(f"{maker.number} pairs, {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
