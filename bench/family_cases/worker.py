"""Records one step of tiny models of many families, each in a forked process:

    python worker.py OUT [FAMILY ...]

For each family OUT/FAMILY holds the dumps `fused` and `eager` (the two forms of attention), `fault0` and `fault1` (fused, with
one operation wrong by 5 %), and done.json: what was tried, and where a recorded run differs from the bare one.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import sys
import zlib
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "capture"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from family_cases.small import build, families, inputs, loss_of
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture import PrecisionDebugger

SECONDS: Final = 120
WRONG: Final = 1.05
CASES: Final = (("L0", "statistics"), ("L1", "statistics"), ("mix", "statistics"), ("mix", "tensor"))
MOVES: Final = (
    "detach", "view", "alias", "empty", "_to_copy", "clone", "copy_", "t.", "transpose", "expand", "slice", "select", "zeros",
    "ones", "fill_", "as_strided", "permute", "unsqueeze", "squeeze", "arange", "rand", "normal_", "uniform_", "bernoulli_",
    "_unsafe_view", "reshape", "split", "unbind", "new_", "lift", "zero_", "is_", "_local_scalar", "narrow", "chunk",
    "diagonal", "index_put", "linspace", "set_", "equal", "resize", "topk", "sort",
)  # fmt: skip
"""Beginnings of the names of operations that compute nothing, or cannot be wrong by a part of their size."""


class Kernels(TorchDispatchMode):
    """Counts what computes. wrong: (operation, its n-th call) whose result is too large"""

    def __init__(self, wrong: tuple[str, int] | None = None) -> None:
        super().__init__()
        self.wrong, self.calls = wrong, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = str(func).removeprefix("aten.")
        first = made[0] if isinstance(made, tuple | list) and made else made
        if not isinstance(first, torch.Tensor) or not first.is_floating_point() or name.startswith(MOVES):
            return made
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if first.numel() > 1 and float(first.detach().float().norm()) > 1e-6:
                if self.wrong == (name, self.calls[name]):
                    torch.ops.aten.mul_.Scalar(first, WRONG)
                self.calls[name] += 1
        return made


State = list[torch.Tensor | None]


def run(family: str, dump: Path | None = None, level: str = "mix", task: str = "statistics", **how: Any) -> State:
    """One step: its loss, gradients, buffers and the state of the random generator. how: attention, train, kernels"""
    model = build(family, how.get("attention"))
    model.train(how.get("train", False))
    torch.manual_seed(3)
    given = inputs(model)
    debugger = None
    if dump is not None:
        shutil.rmtree(dump, ignore_errors=True)
        debugger = PrecisionDebugger(dump_path=str(dump), task=task, level=level)
        debugger.start(model)
    with how.get("kernels") or nullcontext():
        loss = loss_of(model(**given))
        loss.backward()
    if debugger is not None:
        debugger.stop()
        debugger.step()
    return [loss.detach(), *(one.grad for one in model.parameters()), *model.buffers(), torch.get_rng_state()]


def same(one: State, other: State) -> bool:
    return len(one) == len(other) and all(
        (a is None) == (b is None) and (a is None or b is None or torch.equal(a.nan_to_num(), b.nan_to_num()))
        for a, b in zip(one, other, strict=True)
    )


def try_family(family: str, folder: Path) -> dict[str, Any]:
    bare = run(family, train=True)
    said: dict[str, Any] = {"repeats": same(bare, run(family, train=True)), "changed": [], "faults": []}
    for level, task in CASES if said["repeats"] else ():
        if not same(bare, run(family, folder / "tried" / f"{level}_{task}", level, task, train=True)):
            said["changed"].append(f"{level} {task}")
    shutil.rmtree(folder / "tried", ignore_errors=True)
    run(family, folder / "eager", attention="eager")
    try:
        run(family, folder / "fused", attention="sdpa")
    except ValueError:  # this family has one form alone
        shutil.rmtree(folder / "fused", ignore_errors=True)
        return said
    counted = Kernels()
    run(family, attention="sdpa", kernels=counted)
    chosen = random.Random(zlib.crc32(family.encode()))
    for number, name in enumerate(chosen.sample(sorted(counted.calls), 2)):
        wrong = name, chosen.randrange(counted.calls[name])
        run(family, folder / f"fault{number}", attention="sdpa", kernels=Kernels(wrong))
        said["faults"].append(f"{name} {wrong[1]}")
    return said


def main() -> None:
    out, asked = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for known in ("llama", "vit", "bart"):  # what many families need is imported once
        run(known)
    for family in asked or families():
        folder = out / family
        if (folder / "done.json").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if not (child := os.fork()):
            signal.alarm(SECONDS)
            try:
                said = try_family(family, folder)
            except BaseException as error:  # a family that small sizes do not suit
                said = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
            (folder / "done.json").write_text(json.dumps(said))
            os._exit(0)
        os.waitpid(child, 0)
        print(family, (folder / "done.json").read_text() if (folder / "done.json").exists() else "ended", flush=True)


if __name__ == "__main__":
    main()
