"""Write both sides of a synthetic data parallel job: a dump per rank, with faults whose place is known.

Every rank runs one model on data of its own (statistics, level mix); the gradient of each layer goes through an all_reduce of all
ranks, and an optimizer uses it. Golden and target agree in every digit but for what follows from the faults:

    a backward call is wrong on every rank, and so is all that is computed from it
    an earlier backward call is wrong on BRANCH alone, whatever comes from there included
    one rank, the stray, began with other weights: everything that it computes differs

A side's text is made once for each of these and varied by a few digits of every activation, so that a rank costs a copy.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from synthetic import Run, Scope, Shape, Tensor, _embedding, _head, _layer, _list, _object

COMMON, BRANCHED = 0.85, 0.75
"""Share of a rank's calls before the fault of every rank, and before the one of the branch: both are in the backward pass."""
PER_LAYER = 58
"""Nodes of a layer: forward, backward, its all_reduce and its optimizer call."""
PLACE = b"@@@@"
"""Stands in a template for the digits of a rank."""

_NUMBER = re.compile(r'("(?:Max|Min|Mean|Norm)": -?\d+\.\d{5})\d*')


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Both sides, and what was planted. common: call that is wrong on all ranks; branched: that of the ranks `branch`"""

    target: Path
    golden: Path
    ranks: int
    common: str
    branched: str
    branch: tuple[int, ...]
    stray: int


@dataclass
class JobRun(Run):
    """One rank. ranks: of the job; faults: shares of the calls before each planted fault; stray: has other weights"""

    ranks: int = 1
    faults: tuple[float, ...] = ()
    stray: bool = False
    planted: list[str] = field(default_factory=list)

    def tensor(
        self, shape: Shape, *, wrong: bool = False, origin: bool = False, fixed: bool = False, grad: bool = True
    ) -> Tensor:
        wrong = wrong or (fixed and self.stray)
        made = super().tensor(shape, wrong=wrong, origin=origin, fixed=fixed, grad=grad)
        if not fixed:
            made.text = _NUMBER.sub(rf"\g<1>{PLACE.decode()}", made.text)
        return made

    def faulty(self, name: str) -> bool:
        place = len(self.planted)
        if place < len(self.faults) and self.count >= self.faults[place] * self.limit and ".backward" in name:
            self.planted.append(name)
            return True
        return False

    def step(self, layers: int, reduced_wrong: bool) -> None:
        """The whole iteration. reduced_wrong: some rank gives wrong gradients, so that all receive wrong ones"""
        hidden = _embedding(self)
        for layer in range(layers):
            hidden = _layer(self, layer, hidden)
        self.backward(_head(self, hidden))
        gradients = [
            value.grad
            for scope in reversed(self.tape)
            if isinstance(scope, Scope) and scope.opens and scope.name.endswith("fc2.Linear.forward.0")
            for value in [scope.parameters["weight"]]
            if value.grad is not None
        ]
        members = ",\n".join(f"      {rank}" for rank in range(self.ranks))
        group = f'    {{\n     "type": "torch.ProcessGroup",\n     "group_ranks": [\n{members}\n     ]\n    }}'
        reduced = [
            self._send(number, given, reduced_wrong or given.wrong, group) for number, given in enumerate(gradients)
        ]
        self.construct["optimizer"] = None
        number = 0
        while self.count < self.limit:
            self._update(number, reduced[number] if number < len(reduced) else None)
            number += 1

    def _send(self, number: int, given: Tensor, wrong: bool, group: str) -> Tensor:
        node = f"Distributed.all_reduce.{number}.forward"
        taken = super().tensor(given.shape, wrong=wrong, grad=False)  # the same on every rank
        self.construct[node] = None
        self.stack(node, 70)
        parts = [("input_args", _list([given.text])), ("input_kwargs", _object({"group": group}))]
        self.node(node, [*parts, ("output", _list([taken.text]))], 3)
        return taken

    def _update(self, number: int, gradient: Tensor | None) -> None:
        node = f"Tensor.add_.{number}.forward"
        given = gradient or self.tensor((1,), grad=False)
        made = self.tensor(given.shape, wrong=given.wrong, grad=False)
        self.construct[node] = "optimizer"
        self.stack(node, 60)
        self.node(
            node, [("input_args", _list([given.text])), ("input_kwargs", "{}"), ("output", _list([made.text]))], 2
        )


def write_job(folder: Path, ranks: int, nodes: int) -> Job:
    """Write `folder`/target and `folder`/golden, unless they are there; the same call gives the same files."""
    target, golden = folder / "target", folder / "golden"
    branch, stray = tuple(range(ranks // 4, ranks // 4 + max(1, ranks // 32))), ranks - 3
    common, branched = (COMMON,), (BRANCHED, COMMON)
    kinds = {
        "golden": _template(folder / "kinds/golden", ranks, nodes),
        "common": _template(folder / "kinds/common", ranks, nodes, faults=common),
        "branch": _template(folder / "kinds/branch", ranks, nodes, faults=branched),
        "stray": _template(folder / "kinds/stray", ranks, nodes, faults=common, stray=True),
    }
    for rank in range(ranks):
        kind = "branch" if rank in branch else "stray" if rank == stray else "common"
        _vary(kinds["golden"][0], golden, rank)
        _vary(kinds[kind][0], target, rank)
    return Job(
        target=target, golden=golden, ranks=ranks, common=kinds["common"][1][0], branched=kinds["branch"][1][0],
        branch=branch, stray=stray,
    )  # fmt: skip


def _template(
    folder: Path, ranks: int, nodes: int, *, faults: tuple[float, ...] = (), stray: bool = False
) -> tuple[Path, list[str]]:
    """Folder of a rank whose digits are PLACE, and the names of its planted faults."""
    folder.mkdir(parents=True, exist_ok=True)
    run = JobRun(
        path=folder, limit=nodes, seed=1, fault_at=None, fault_size=0.02, nonfinite=False, noise=0.0,
        ranks=ranks, faults=faults, stray=stray,
    )  # fmt: skip
    run.step(max(1, (nodes - 20) // PER_LAYER), reduced_wrong=bool(faults))
    run.finish()
    return folder, run.planted


def _vary(kind: Path, side: Path, rank: int) -> None:
    place = side / "step0" / f"rank{rank}"
    if (place / "construct.json").exists():
        return
    place.mkdir(parents=True)
    digits = f"{(rank * 7919) % 9000 + 1000:04}".encode()
    (place / "dump.json").write_bytes((kind / "dump.json").read_bytes().replace(PLACE, digits))
    for name in ("stack.json", "construct.json"):  # the same code on every rank
        os.link(kind / name, place / name)
