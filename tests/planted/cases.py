"""Pairs of dumps of small training runs that differ in one stated way each: `python -m planted.cases OUT`. Needs torch."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from planted.dumpers import prepare
from planted.faults import Fault
from planted.runs import Group, Run, made


def group(model: str, dtype: str = "float32", *, micro: int = 1, checkpointed: bool = False) -> Group:
    return Group(
        model=model, dtype=dtype, seed=5, optimizer="unseen", steps=1, micro=micro, checkpointed=checkpointed,
        dumper="ours", folder=Path(),
    )  # fmt: skip


def scaled(op: str, count: int, by: float = 1.5) -> Fault:
    return Fault(kind="scale", strength=by, op=op, count=count)


STATISTICS = Run(task="statistics")
CASES: dict[str, tuple[Group, Run, Run]] = {
    "two_faults": (group("towers"), Run(faults=(scaled("gelu", 0), scaled("gelu", 1))), Run()),
    "two_faults_noisy": (
        group("towers"),
        replace(STATISTICS, noise=11, faults=(scaled("gelu", 0), scaled("gelu", 1))),
        STATISTICS,
    ),
    "second_batch": (group("conv", micro=2), Run(noise=12, faults=(scaled("convolution", 5),)), Run()),
    "second_batch_bfloat16": (
        group("conv", "bfloat16", micro=2),
        replace(STATISTICS, noise=13, faults=(scaled("convolution", 5),)),
        STATISTICS,
    ),
    "checkpoint": (group("gpt", checkpointed=True), replace(STATISTICS, faults=(scaled("gelu", 1),)), STATISTICS),
    "run_again": (group("gpt", checkpointed=True), replace(STATISTICS, faults=(scaled("gelu", 2),)), STATISTICS),
    "run_again_noisy": (
        group("gpt", checkpointed=True),
        replace(STATISTICS, noise=21, faults=(scaled("gelu", 2, 1.1),)),
        STATISTICS,
    ),
    "autocast": (group("gpt", "autocast"), replace(STATISTICS, noise=14, faults=(scaled("_softmax", 1),)), STATISTICS),
    "autocast_healthy": (group("gpt", "autocast"), replace(STATISTICS, noise=15), STATISTICS),
    "checkpoint_healthy": (group("conv", checkpointed=True), replace(STATISTICS, noise=16), STATISTICS),
    "number": (group("mixer"), replace(STATISTICS, gain=0.8), STATISTICS),
    "beside": (group("gpt"), replace(STATISTICS, insert=4), STATISTICS),
    "beside_hashes": (group("gpt"), Run(task="xor", insert=4), Run(task="xor")),
    "beside_fault": (
        group("mixer"),
        replace(STATISTICS, insert=4, faults=(scaled("tanh", 0),)),
        STATISTICS,
    ),
}  # fmt: skip
"""Name of a case, and what runs as the target and as the golden."""


def main() -> None:
    prepare("ours")
    out = Path(sys.argv[1]).resolve()
    for name, (some, target, golden) in CASES.items():
        for side, run in (("target", target), ("golden", golden)):
            made(some, run, out / name / side)


if __name__ == "__main__":
    main()
