"""Trains one small model under msprobe's TrainerMon or under our monitor, with the same configuration.

python -m capture.monitored_peer ENGINE CONFIG FOLDER     ENGINE: dumpscope or msprobe
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

import torch
from torch import nn

CONFIG: Final = {
    "targets": {},
    "xy_distribution": True,
    "wg_distribution": True,
    "mv_distribution": True,
    "param_distribution": True,
    "format": "csv",
    "ops": ["norm", "min", "max", "mean", "zeros", "nans"],
    "ndigits": 20,
    "step_count_per_record": 4,
}


def train(engine: str, config: str, folder: str) -> None:
    """Six steps of a model with large and small weights, clipped gradients and one NaN."""
    torch.manual_seed(11)
    model = nn.Sequential(nn.Linear(80, 96), nn.LayerNorm(96), nn.GELU(), nn.Linear(96, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch: Any = None
    if engine == "msprobe":
        os.environ["MONITOR_OUTPUT_DIR"] = folder
        from msprobe.pytorch.monitor.module_hook import TrainerMon  # noqa: PLC0415

        TrainerMon(config, params_have_main_grad=False).set_monitor(model, optimizer, grad_acc_steps=1)
    else:
        from dumpscope_capture.monitor import Monitor  # noqa: PLC0415

        watch = Monitor(model, optimizer, folder, config=config)
    for step in range(6):
        optimizer.zero_grad()
        model(torch.randn(16, 80)).square().mean().backward()
        if step == 4:
            model[3].bias.grad[2] = float("nan")
        nn.utils.clip_grad_norm_(model[:3].parameters(), 0.05)
        optimizer.step()
    if watch is not None:
        watch.close()


if __name__ == "__main__":
    if not os.path.exists(sys.argv[2]):
        with open(sys.argv[2], "w", encoding="utf-8") as stream:
            json.dump(CONFIG, stream)
    train(*sys.argv[1:4])
