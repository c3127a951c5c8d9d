"""What watching a training costs a step, beside msprobe's TrainerMon in one run.

    python bench/monitor_cost.py [--peer /path/to/venv/bin/python] [--device cpu] [--width 128] [--tokens 2048] [--steps 8]

A transformer of 24 layers (292 parameters), AdamW, clipped gradients. Every case is a process of its own, of one thread on the
CPU. Ours records every second step (`every`), so that plain and watched steps take turns. TrainerMon measures gradients in all
steps whatever its interval is: plain ones come before and after. The first twenty steps of each case do not count, as each of
them may measure other parameters for the first time. What a case adds is the difference of the medians, in CPU time on the CPU,
else in wall time with the device waited for; the writing of the file is shared out over the steps. Cases:

    ours         Monitor(model, optimizer) as it is: gradients every step, a tenth of the moments and updates
    ours-all     Monitor with TrainerMon's configuration: gradients twice and both moments, six statistics, every step
    trainermon   msprobe's TrainerMon with that configuration (csv)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = ("ours", "ours-all", "trainermon")
WARM_UP = 20
CONFIG = {
    "targets": {},
    "wg_distribution": True,
    "mv_distribution": True,
    "format": "csv",
    "ops": ["norm", "min", "max", "mean", "zeros", "nans"],
    "step_count_per_record": 1000,
}


def build(width: int, device: str) -> tuple[Any, Any]:
    """A model of 292 parameters and its optimizer."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    torch.manual_seed(0)
    layers = [
        nn.TransformerEncoderLayer(
            width, max(1, width // 64), 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        for _ in range(24)
    ]
    model = nn.Sequential(*layers, nn.LayerNorm(width), nn.Linear(width, width)).to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-8)  # every step computes alike


def watch(case: str, model: Any, optimizer: Any, folder: str) -> Any:
    """Begin to watch. Returns a function that ends it."""
    config = Path(folder) / "config.json"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    if case == "trainermon":
        os.environ["MONITOR_OUTPUT_DIR"] = folder
        from msprobe.pytorch.monitor.module_hook import TrainerMon  # noqa: PLC0415

        plain = optimizer.step
        mon = TrainerMon(str(config), params_have_main_grad=False)
        mon.set_monitor(model, optimizer, grad_acc_steps=1)

        def end() -> None:
            mon._remove_all_hooks(optimizer)
            optimizer.step = plain

        return end
    from dumpscope_capture.monitor import Monitor  # noqa: PLC0415

    return Monitor(model, optimizer, folder, config=None if case == "ours" else str(config), every=2).close


def measure(case: str, width: int, tokens: int, steps: int, device: str) -> None:
    """Print the seconds of plain and of watched steps, as JSON."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    model, optimizer = build(width, device)
    data = torch.randn(max(1, tokens // 128), 128, width, device=device)

    def clock() -> float:
        if device == "cpu":
            return time.process_time()
        getattr(torch, device).synchronize()
        return time.perf_counter()

    def step() -> float:
        begun = clock()
        optimizer.zero_grad()
        model(data).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return clock() - begun

    step()
    alone = [step() for _ in range(steps)] if case == "trainermon" else []
    with tempfile.TemporaryDirectory() as folder:
        end = watch(case, model, optimizer, folder)
        count = WARM_UP + steps * (1 if alone else 2)
        inside = [step() for _ in range(count)]
        begun = clock()
        end()
        rest = (clock() - begun) / count
    if alone:
        alone += [step() for _ in range(steps)]
    plain = alone or inside[WARM_UP + 1 :: 2]
    watched = inside[WARM_UP:] if alone else inside[WARM_UP::2]
    seconds = {"plain": plain, "watched": [one + rest for one in watched]}
    print(json.dumps({**seconds, "parameters": len(list(model.parameters()))}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=os.environ.get("DUMPSCOPE_PEER_PYTHON", ""))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--case", choices=CASES)
    given = parser.parse_args()
    if given.case:
        measure(given.case, given.width, given.tokens, given.steps, given.device)
        return
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root / "capture")}
    clock = "CPU time" if given.device == "cpu" else "wall time"
    print(f"{'case':<12}{'plain step':>12}{'watched':>12}{'adds':>10}{'share':>9}   median {clock} in ms")
    for case in CASES:
        python = given.peer if case == "trainermon" else sys.executable
        if not python:
            print(f"{case:<12}no interpreter with msprobe: --peer")
            continue
        command = [python, __file__, "--case", case, "--device", given.device, "--width", str(given.width)]
        command += ["--tokens", str(given.tokens), "--steps", str(given.steps)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        plain, watched = (1000 * statistics.median(found[kind]) for kind in ("plain", "watched"))
        adds = watched - plain
        print(
            f"{case:<12}{plain:>12.1f}{watched:>12.1f}{adds:>10.1f}{adds / plain:>8.1%}   {found['parameters']} parameters"
        )


if __name__ == "__main__":
    main()
