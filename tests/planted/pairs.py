"""Makes pairs of real dumps with a known first wrong node, in forked children. Needs torch, and msprobe for its dumps.

    python -m planted.pairs OUT [--pairs 60] [--seed N] [--dumper ours]        (with tests and capture on PYTHONPATH)

A group is one network, dtype, way of training and set of weights. OUT/pairs.jsonl names every pair and its truth: the API
call to which the faulty kernel belongs, and the nodes that show the fault first in a noise-free pair of the same kind of
dump, compared number by number (truth.py).
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
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from torch.utils.checkpoint import set_checkpoint_early_stop

from planted.dumpers import DUMPERS, configured, prepare
from planted.faults import KINDS, Call, Fault, Kernels
from planted.models import MODELS, Net
from planted.truth import Seen, around, seen

torch.set_num_threads(1)
OPTIMIZERS = ("sgd", "sgd", "adam", "unseen", "unseen")
DTYPES = ("float32", "bfloat16", "float32", "bfloat16", "autocast")
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
DUMPS = (("tensor", 5), ("statistics", 5), ("md5", 1), ("xor", 1))
"""Kinds of dump and how often each is made."""
LEVELS = ("mix", "mix", "mix", "L1", "L0")
WAYS = 2
"""Kinds of dump, each at its level, that one group has."""
LOUDNESS = (0.3, 1.0, 3.0)
"""Strengths of the noise of healthy pairs; that of faulty pairs is 1."""
DRAWS = 3
"""Healthy noisy runs that tell what noise does to a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One dump. weight: (parameter, factor or None for one element) changed before the run; batch: the input is changed;
    dtype: other than the group's; kernels: other kernels of this machine ("threads", "plain", "" for the usual ones)"""

    task: str = "tensor"
    level: str = "mix"
    noise: int = 0
    loudness: float = 1.0
    faults: tuple[Fault, ...] = ()
    insert: int | None = None
    changes: bool = False
    weight: tuple[str, float | None] | None = None
    batch: float = 0.0
    approximate: str = "none"
    eps: float = 1e-5
    gain: float = 0.9
    drop: float | None = None
    dtype: str = ""
    kernels: str = ""
    record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """optimizer: "sgd", "adam", or "unseen": its step runs after the dump was stopped. dtype: "autocast" computes in bfloat16
    where torch thinks it safe; micro: batches a step; checkpointed: parts of the forward run again in the backward pass"""

    model: str
    dtype: str
    seed: int
    optimizer: str
    steps: int
    micro: int
    checkpointed: bool
    dumper: str
    folder: Path = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """calls: kernels where they were recorded; hits: those with a fault; inserted: node of the inserted call"""

    calls: list[Call]
    hits: list[Call]
    inserted: str


def made(group: Group, run: Run, path: Path) -> Made:
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
    answer: Made = pickle.loads(raw)
    return answer


def _train(group: Group, run: Run, path: Path) -> Made:
    path.mkdir(parents=True)
    if run.kernels == "threads":
        torch.set_num_threads(2)
    if run.kernels == "plain":
        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    net, batches, optimizer = _built(group, run)
    dumper = DUMPERS[group.dumper](configured(path, task=run.task, level=run.level))
    kernels = Kernels(
        dumper, insert_code=Net.place.__code__, faults=run.faults, noise=run.noise, loudness=run.loudness, record=run.record
    )  # fmt: skip
    cast = torch.autocast("cpu", torch.bfloat16) if group.dtype == "autocast" and not run.dtype else nullcontext()
    for step in range(group.steps):
        kernels.step = step
        dumper.debugger.start(model=net)
        # msprobe records no function after a recomputation that was stopped early
        with kernels, set_checkpoint_early_stop(group.dumper == "ours"):
            for batch in batches[step * group.micro : (step + 1) * group.micro]:
                kernels.phase = "forward"
                with cast:
                    loss = net(*batch)
                kernels.phase = "backward"
                loss.backward()
            kernels.phase = "optimizer"
            if group.optimizer != "unseen":
                optimizer.step()
        dumper.debugger.stop()
        if group.optimizer == "unseen":
            optimizer.step()
        dumper.debugger.step()
        optimizer.zero_grad()
    if len(kernels.hits) < len(run.faults):
        raise RuntimeError(f"a kernel of {run.faults} never ran")
    return Made(calls=kernels.calls, hits=kernels.hits, inserted=kernels.inserted)


def _built(group: Group, run: Run) -> tuple[Net, list[tuple[Any, ...]], torch.optim.Optimizer]:
    torch.manual_seed(group.seed)
    net = MODELS[group.model]()
    dtype = getattr(torch, (run.dtype or group.dtype).replace("autocast", "float32"))
    net.to(dtype)
    draw = torch.Generator().manual_seed(group.seed)
    batches = [net.batch(draw) for _ in range(group.steps * group.micro)]
    net.insert, net.changes, net.approximate, net.eps = run.insert, run.changes, run.approximate, run.eps
    net.gain, net.checkpointed = run.gain, group.checkpointed
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

    def __init__(
        self, out: Path, chance: random.Random, *, dumper: str, noise: str, healthy: float, faults: int = 1
    ) -> None:
        self.out, self.chance, self.dumper = out, chance, dumper
        self.noise, self.healthy, self.faults = noise, healthy, faults
        self.number = self.causes = 0
        self.listing = out / "pairs.jsonl"

    def group(self, model: str, dtype: str, size: int) -> None:
        """One group of about `size` pairs."""
        chance = self.chance
        group = Group(
            model=model, dtype=dtype, seed=chance.randrange(1 << 30), optimizer=chance.choice(OPTIMIZERS),
            steps=2 if chance.random() < 0.15 else 1, micro=2 if chance.random() < 0.15 else 1,
            checkpointed=chance.random() < 0.15, dumper=self.dumper, folder=self.out / f"group{self.number}",
        )  # fmt: skip
        self.references: dict[Run, Path] = {}
        calls = made(group, Run(record=True), group.folder / "first").calls
        again = made(group, Run(record=True), group.folder / "again").calls
        for step in range(group.steps):
            found = seen(group.folder / "first", group.folder / "again", dtype, "", step, [])
            if found.differing or calls != again:
                raise RuntimeError(f"{group} does not repeat bit by bit")
        shutil.rmtree(group.folder / "again")
        self.references[Run()] = group.folder / "first"
        before = self.number
        ways = [self._way() for _ in range(WAYS)]
        while self.number - before < size:
            run, about = self._cause(group, calls)
            task, level = chance.choice(ways)
            self._pairs(group, replace(run, task=task, level=level), about)

    def _way(self) -> tuple[str, str]:
        """Task and level of a dump."""
        return self.chance.choices([name for name, _ in DUMPS], [often for _, often in DUMPS])[0], self.chance.choice(
            LEVELS
        )

    def _cause(self, group: Group, calls: list[Call]) -> tuple[Run, dict[str, Any]]:
        chance = self.chance
        insert = chance.randrange(MODELS[group.model].PLACES) if chance.random() < 0.2 else None
        if chance.random() < self.healthy:
            dice = chance.random()
            if dice < 0.2:
                return Run(kernels=chance.choice(["threads", "plain"])), {"cause": "healthy", "healthy": "kernels"}
            if dice < 0.4 and group.dtype == "float32":
                return Run(dtype="bfloat16", insert=insert), {"cause": "healthy", "healthy": "dtype"}
            return Run(insert=insert, loudness=chance.choice(LOUDNESS)), {"cause": "healthy", "healthy": "noise"}
        if self.faults > 1:
            return Run(faults=tuple(self._fault(calls) for _ in range(self.faults))), {"cause": "several"}
        dice = chance.random()
        if dice < 0.05:
            place = chance.randrange(MODELS[group.model].PLACES)
            return Run(insert=place, changes=True), {"cause": "structure"}
        if dice < 0.10:
            names = [name for name, _ in MODELS[group.model]().named_parameters()]
            weight = chance.choice(names), chance.choice([None, 1.1])
            return Run(insert=insert, weight=weight), {"cause": "weight", "weight": weight[0]}
        if dice < 0.13:
            return Run(insert=insert, batch=0.05), {"cause": "input"}
        if dice < 0.18:
            changes: dict[str, dict[str, Any]] = {"gain": {"gain": chance.choice([0.95, 0.8, 1.8])}}
            if group.model in ("gpt", "mixer"):
                changes |= {"approximate": {"approximate": "tanh"}, "eps": {"eps": 1e-3}}
            if group.model == "mixer":
                changes["drop"] = {"drop": 0.3}
            kind = chance.choice(list(changes))
            return Run(insert=insert, **changes[kind]), {"cause": "argument", "argument": kind}
        fault = self._fault(calls)
        return Run(insert=insert, faults=(fault,)), {"cause": fault.kind}

    def _fault(self, calls: list[Call]) -> Fault:
        """Every kind of kernel is as likely, however often it runs."""
        chance = self.chance
        phase = chance.choice(["forward", "backward"])
        op = chance.choice(sorted({call.op for call in calls if call.phase == phase}))
        call = chance.choice([call for call in calls if call.op == op and call.phase == phase])
        kind = chance.choice(list(KINDS))
        return Fault(
            kind=kind, strength=chance.choice(STRENGTHS[kind]), op=call.op, count=call.count,
            output=chance.randrange(len(call.elements)) if call.phase == "backward" else 0,
        )  # fmt: skip

    def _reference(self, group: Group, run: Run) -> Path:
        """A dump without fault; made once a group."""
        if run not in self.references:
            path = group.folder / f"reference{len(self.references)}"
            made(group, run, path)
            self.references[run] = path
        return self.references[run]

    def _pairs(self, group: Group, own: Run, about: dict[str, Any]) -> None:
        """The pairs of one cause: noise-free and noisy."""
        chance = self.chance
        insert = None if own.changes else own.insert
        plain = Run(task=own.task, level=own.level)
        clean = group.folder / f"{'clean' if self.noise == 'only' else 'pair'}{self.number}"
        owners = made(group, replace(own, record=True), clean)
        if own.level == "L0":  # no API call is seen there
            owners = made(group, replace(own, level="mix", record=True), group.folder / "owners")
            shutil.rmtree(group.folder / "owners")
        hits = owners.hits or [None]
        reference = self._reference(group, replace(plain, insert=insert))
        truths = [self._truth(group, reference, clean, hit, insert) for hit in hits]
        self.causes += 1
        entry = {
            "number": self.causes, "model": group.model, "dtype": group.dtype, "task": own.task, "level": own.level, "noise": 0,
            "steps": group.steps, "micro": group.micro, "checkpointed": group.checkpointed, "insert": own.insert, **about,
            "group": group.folder.name, "run": asdict(own),
            "owner": hits[0].owner if hits[0] else "", "owners": [hit.owner for hit in owners.hits],
            "phase": hits[0].phase if hits[0] else "", "inserted": owners.inserted,
            "golden": str(self._reference(group, plain).relative_to(self.out)),
            "seen": asdict(truths[0]), "all_seen": [asdict(one) for one in truths], "floors": [],
        }  # fmt: skip
        if self.noise != "only":
            self._written(entry, clean)
        if self.noise != "none" and own.task != "xor":  # every hash differs from the first noisy kernel on
            noise = chance.randrange(1, 1 << 30)
            noisy = group.folder / f"pair{self.number}"
            made(group, replace(own, noise=noise), noisy)
            floors = [
                self._truth(
                    group, reference, self._reference(group, replace(plain, insert=insert, noise=group.seed + draw)),
                    hits[0], insert, at=truths[0].first,
                )
                for draw in range(1, DRAWS + 1)
            ] if about["cause"] != "healthy" else []  # fmt: skip
            self._written(entry | {"noise": noise, "floors": [asdict(floor) for floor in floors]}, noisy)
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
    parser.add_argument("--healthy", type=float, default=0.15, help="share of causes that are no fault")
    parser.add_argument("--faults", type=int, default=1, help="faults planted in each faulty pair")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--dumper", choices=list(DUMPERS), default="ours")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(1 << 30)
    print(f"seed {seed}", flush=True)
    prepare(options.dumper)
    options.out.mkdir(parents=True, exist_ok=True)
    maker = Maker(
        options.out.resolve(), random.Random(seed), dumper=options.dumper, noise=options.noise, healthy=options.healthy,
        faults=options.faults,
    )  # fmt: skip
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
