"""Makes pairs of real dumps with a known first wrong node, in forked children. Needs torch, and msprobe for its dumps.

    python -m planted.pairs OUT [--pairs N] [--counted N] [--silent N] [--seed N] [--dumper ours]

with tests and capture on PYTHONPATH. A run that was broken off goes on where it stood.

A group is one network, dtype, way of training and set of weights. OUT/pairs.jsonl names every pair and its truth: the API
call to which the faulty kernel belongs, and the nodes that show the fault first in a noise-free pair of the same kind of
dump, compared number by number (truth.py).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from planted.dumpers import DUMPERS, prepare
from planted.faults import KINDS, Call, Fault
from planted.models import BESIDE, MODELS
from planted.runs import Group, Run, made
from planted.truth import Seen, accepted, around, reach, seen

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


class Maker:
    """Makes pairs group by group. A group is listed once it is whole and draws its chances from the seed and its own number,
    so a run that was broken off goes on where it stood and ends with the same pairs."""

    def __init__(self, out: Path, options: argparse.Namespace) -> None:
        self.out, self.dumper = out, options.dumper
        self.noise, self.healthy, self.faults = options.noise, options.healthy, options.faults
        self.listing = out / "pairs.jsonl"
        self.seed = _kept(out, options)
        self.places = [(model, dtype) for model in options.models.split(",") for dtype in options.dtypes.split(",")]
        random.Random(self.seed).shuffle(self.places)
        self.listed = (
            [json.loads(line) for line in self.listing.read_text().splitlines()] if self.listing.exists() else []
        )
        self.groups = 1 + max((int(entry["group"].removeprefix("group")) for entry in self.listed), default=-1)
        self.number, self.causes = len(self.listed), max((entry["number"] for entry in self.listed), default=0)

    def group(self, size: int) -> None:
        """One group of about `size` pairs."""
        chance = self.chance = random.Random(f"{self.seed}/{self.groups}")
        model, dtype = self.places[self.groups % len(self.places)]
        group = Group(
            model=model, dtype=dtype, seed=chance.randrange(1 << 30), optimizer=chance.choice(OPTIMIZERS),
            steps=2 if chance.random() < 0.15 else 1, micro=2 if chance.random() < 0.15 else 1,
            checkpointed=chance.random() < 0.15, dumper=self.dumper, folder=self.out / f"group{self.groups}",
        )  # fmt: skip
        shutil.rmtree(group.folder, ignore_errors=True)
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
        whole = self.listing.with_suffix(".new")
        whole.write_text("".join(json.dumps(entry) + "\n" for entry in self.listed))
        os.replace(whole, self.listing)
        self.groups += 1

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
        self.causes += 1
        clean, noisy = group.folder / f"cause{self.causes}", group.folder / f"cause{self.causes}noisy"
        owners = made(group, replace(own, record=True), clean)
        if own.level == "L0":  # no API call is seen there
            owners = made(group, replace(own, level="mix", record=True), group.folder / "owners")
            shutil.rmtree(group.folder / "owners")
        hits = owners.hits or [None]
        reference = self._reference(group, replace(plain, insert=insert))
        truths = [self._truth(group, reference, clean, hit, insert) for hit in hits]
        healthy = about["cause"] == "healthy"
        # What is bit-equal proves nothing, and hashes alone do not tell how much differs.
        shown = not healthy or insert is not None or (truths[0].differing > 0 and own.task != "xor")
        entry = {
            "number": self.causes, "model": group.model, "dtype": group.dtype, "task": own.task, "level": own.level, "noise": 0,
            "steps": group.steps, "micro": group.micro, "checkpointed": group.checkpointed, "insert": own.insert, **about,
            "beside": own.insert is not None and own.insert >= MODELS[group.model].PLACES - BESIDE,
            "group": group.folder.name, "run": asdict(own),
            "owner": hits[0].owner if hits[0] else "", "owners": [hit.owner for hit in owners.hits],
            "phase": hits[0].phase if hits[0] else "", "inserted": owners.inserted,
            "golden": str(self._reference(group, plain).relative_to(self.out)),
            "seen": asdict(truths[0]), "all_seen": [asdict(one) for one in truths], "floors": [],
            "all_floors": [],
        }  # fmt: skip
        if self.noise != "only" and shown:
            self._written(entry, clean)
        if self.noise != "none" and own.task != "xor":  # every hash differs from the first noisy kernel on
            noise = chance.randrange(1, 1 << 30)
            made(group, replace(own, noise=noise), noisy)
            floors = [
                [
                    asdict(self._truth(
                        group, reference, self._reference(group, replace(plain, insert=insert, noise=group.seed + draw)),
                        hit, insert, at=truth.first,
                    ))
                    for draw in range(1, DRAWS + 1) if not healthy
                ]
                for hit, truth in zip(hits, truths, strict=True)
            ]  # fmt: skip
            self._written(entry | {"noise": noise, "floors": floors[0], "all_floors": floors}, noisy)
        if self.noise == "only" or not shown:
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
        self.listed.append({"id": self.number, **entry, "target": str(target.relative_to(self.out))})
        self.number += 1

    def groups_left(self, options: argparse.Namespace) -> Iterator[int]:
        """Sizes of the groups to come, until there are enough pairs of every sort."""
        while True:
            healthy = sum(entry["cause"] == "healthy" for entry in self.listed)
            counted = sum(map(counts, self.listed))
            print(f"{len(self.listed)} pairs: {counted} faulty that count, {healthy} healthy", flush=True)
            if self.number >= options.pairs and healthy >= options.silent and counted >= options.counted:
                return
            yield min(options.group, max(options.pairs - self.number, 1) if options.pairs else options.group)


def counts(entry: dict[str, Any]) -> bool:
    """A faulty pair whose fault rises above what its dumps store."""
    return entry["cause"] != "healthy" and reach(entry, accepted(entry)[1]) in ("clear", "hidden")


def _kept(out: Path, options: argparse.Namespace) -> int:
    """The seed, kept beside the pairs with what else they follow from. Raises ValueError where pairs of others stand there."""
    names = ("dumper", "noise", "healthy", "faults", "models", "dtypes", "group")
    told = {name: getattr(options, name) for name in names}
    kept = out / "options.json"
    if not kept.exists():
        told["seed"] = secrets.randbelow(1 << 30) if options.seed is None else options.seed
        kept.write_text(json.dumps(told))
    known = json.loads(kept.read_text())
    if known != told | {"seed": known["seed"] if options.seed is None else options.seed}:
        raise ValueError(f"{out} holds pairs made with other options: {known}")
    return int(known["seed"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=int, default=0, help="at least so many pairs")
    parser.add_argument("--counted", type=int, default=0, help="at least so many faulty pairs that count")
    parser.add_argument("--silent", type=int, default=0, help="at least so many healthy pairs")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--group", type=int, default=12, help="pairs of one network and its weights")
    parser.add_argument("--noise", choices=["both", "none", "only"], default="both")
    parser.add_argument("--healthy", type=float, default=0.15, help="share of causes that are no fault")
    parser.add_argument("--faults", type=int, default=1, help="faults planted in each faulty pair")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--dumper", choices=list(DUMPERS), default="ours")
    options = parser.parse_args()
    prepare(options.dumper)
    options.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    maker = Maker(options.out.resolve(), options)
    print(f"seed {maker.seed}", flush=True)
    for size in maker.groups_left(options):
        maker.group(size)
    print(f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
