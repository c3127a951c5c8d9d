"""A training of twelve steps with a trigger: `python triggered.py FOLDER TRIGGER BAD HOW`, one process a rank.

BAD: "RANK:STEP" of the bad batch; HOW: "large", "nan", or "kill" (the process kills itself in the middle of that step)
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn

from dumpscope_capture import PrecisionDebugger

STEPS = 12


def main(folder: Path, trigger: str, bad: str, how: str) -> None:
    rank, several = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several:
        torch.distributed.init_process_group("gloo")
    settings = folder / f"config{rank}.json"
    settings.write_text(
        json.dumps({"task": "tensor", "dump_path": str(folder / "dump"), "level": "L0", "trigger": json.loads(trigger)})
    )
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.0)
    debugger = PrecisionDebugger(str(settings))
    for step in range(STEPS):
        debugger.start(net)
        x = torch.ones(4, 8)
        here = bad == f"{rank}:{step}"
        if here and how == "large":
            x = x * 1e4
        if here and how == "nan":
            x = x * float("nan")
        loss = (net(x) + x.mean()).square().mean()
        if here and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        if several:  # as data parallel training does: no rank is more than a step ahead
            torch.distributed.barrier()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step(loss=loss)
        print(step, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5])
