"""What capture costs a training step, side by side with msprobe in the same run.

    python bench/capture_overhead.py [--peer /path/to/venv/bin/python] [--device cpu] [--steps 6] [--rounds 2]
    python bench/capture_overhead.py --threads 1 --clock cpu        on a machine that does other work at the same time
    python bench/capture_overhead.py --memory 300          resident memory over 300 steps, garbage collector off

A transformer of 4 layers, d=512, batch 4 x 128, trained with Adam. Every case is a process of its own; cases are run round by
round so that other load meets them all, and the fastest of all their steps counts (the first two of a process do not), with
the ratio of the lower quartiles beside it. A step includes stop() and step(), which write the files. "off" has a debugger that
never starts.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = [
    ("statistics", "L0", "statistics"),
    ("statistics", "L1", "statistics"),
    ("statistics", "mix", "statistics"),
    ("statistics", "L1", "md5"),
    ("statistics", "mix", "md5"),
    ("tensor", "L0", "statistics"),
    ("tensor", "L1", "statistics"),
    ("tensor", "mix", "statistics"),
]
WARM_UP = 2


def build(device: str) -> tuple[Any, Any]:
    """(model, one training step)."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    class Block(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            q, k, v = (
                self.qkv(self.ln1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            )
            weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
            x = x + self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))
            return x + self.fc2(torch.nn.functional.gelu(self.fc1(self.ln2(x))))

    class Model(nn.Module):
        def __init__(self, width: int = 512, layers: int = 4, words: int = 1000) -> None:
            super().__init__()
            self.embed = nn.Embedding(words, width)
            self.layers = nn.ModuleList(Block(width, 8) for _ in range(layers))
            self.head = nn.Linear(width, words)

        def forward(self, x: Any) -> Any:
            x = self.embed(x)
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    torch.manual_seed(0)
    model = Model().to(device)
    optimiser = torch.optim.Adam(model.parameters(), 1e-4)
    data = torch.randint(0, 1000, (4, 129), device=device)

    def step() -> None:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data[:, :-1]).flatten(0, 1), data[:, 1:].flatten())
        loss.backward()
        optimiser.step()

    return model, step


def child(options: argparse.Namespace) -> None:
    """Time the steps of one case and print them as JSON."""
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    if options.threads:
        import torch  # noqa: PLC0415

        torch.set_num_threads(options.threads)
    debugger: Any = None
    folder = Path(tempfile.mkdtemp(prefix="capture-", dir=options.folder))
    if options.engine in ("ours", "off"):
        from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415
    elif options.engine == "peer":
        from msprobe.pytorch import PrecisionDebugger  # noqa: PLC0415
    if options.engine != "bare":
        config = folder / "config.json"
        task = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": options.summary}
        config.write_text(
            json.dumps({
                "task": options.task, "dump_path": str(folder / "dump"), "rank": [], "step": [], "level": options.level,
                options.task: task,
            })
        )  # fmt: skip
        debugger = PrecisionDebugger(str(config))
    model, step = build(options.device)
    memory, objects = [], []
    if options.memory:
        gc.disable()
    times = []
    size = files = 0
    for number in range(options.steps + WARM_UP):
        begin = clock()
        if debugger is not None and options.engine != "off":
            debugger.start(model=model)
        step()
        if debugger is not None and options.engine != "off":
            debugger.stop()
            debugger.step()
        synchronize(options.device)
        if number >= WARM_UP:
            times.append(clock() - begin)
        memory.append(resident())
        if options.memory and number % max(options.steps // 10, 1) == 0:
            objects.append(tensors())
        if number == 0:
            size, files = disk(folder)
        for old in (folder / "dump").glob(f"step{number}"):
            shutil.rmtree(old)
    shutil.rmtree(folder)
    print("RESULT", json.dumps({"times": times, "memory": memory, "objects": objects, "size": size, "files": files}))


def synchronize(device: str) -> None:
    if device != "cpu":
        import torch  # noqa: PLC0415

        torch.get_device_module(device).synchronize()


def resident() -> int:
    """Resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tensors() -> int:
    """Tensors the collector knows of, dead or alive."""
    import torch  # noqa: PLC0415

    return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())


def disk(folder: Path) -> tuple[int, int]:
    """(bytes on disk, names) below a folder; a file with several names counts once."""
    seen = {}
    names = 0
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            seen[status.st_ino] = status.st_size
            names += 1
    return sum(seen.values()), names


def ask(python: str, options: argparse.Namespace, engine: str, case: tuple[str, str, str]) -> dict[str, Any] | None:
    """Run one case in its own process; None where it failed."""
    task, level, summary = case
    command = [
        python, __file__, "--child", engine, "--task", task, "--level", level, "--summary", summary, "--device", options.device,
        "--steps", str(options.steps), "--folder", options.folder,
        "--clock", options.clock, "--threads", str(options.threads), *(["--memory", "1"] if options.memory else []),
    ]  # fmt: skip
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        if line.startswith("RESULT "):
            found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
            return found
    sys.stderr.write(run.stderr[-2000:])
    return None


def compare(options: argparse.Namespace) -> None:
    """The table of all cases."""
    none = ("statistics", "L1", "statistics")
    cases = [case for case in CASES if not options.only or f"{case[0]}-{case[1]}-{case[2]}" in options.only]
    jobs = [("bare", none, sys.executable), ("off", none, sys.executable)]
    jobs += [("ours", case, sys.executable) for case in cases]
    if options.peer:
        jobs += [("bare peer", none, options.peer), *(("peer", case, options.peer) for case in cases)]
    times: dict[tuple[str, tuple[str, str, str]], list[float]] = {}
    told: dict[tuple[str, tuple[str, str, str]], dict[str, Any]] = {}
    for number in range(options.rounds):
        for engine, case, python in jobs:
            found = ask(python, options, engine.split()[0], case)
            if found is not None:
                times.setdefault((engine, case), []).extend(found["times"])
                told[engine, case] = found
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    best = {key: min(values) * 1000 for key, values in times.items()}
    low = {key: statistics.quantiles(values, n=4)[0] * 1000 for key, values in times.items()}
    bare, peer_bare = best["bare", none], best.get(("bare peer", none))
    print(
        f"bare {bare:.0f} ms a step; installed but off {best['off', none]:.0f} ms ({best['off', none] / bare - 1:+.1%}, "
        f"quartiles {low['off', none] / low['bare', none] - 1:+.1%})"
    )
    if peer_bare:
        print(f"bare under the peer's python {peer_bare:.0f} ms")
    heads = ("ours ms", "+ms", "x bare", "MB", "peer ms", "+ms", "MB", "ours/peer added", "of the quartiles")
    print(f"{'task level summary':28}" + "".join(f"{head:>{9 if len(head) < 9 else 17}}" for head in heads))
    for case in cases:
        ours, theirs = best.get(("ours", case)), best.get(("peer", case))
        line = f"{' '.join(case):28}"
        if ours is None:
            print(line + "  failed")
            continue
        line += f"{ours:9.0f}{ours - bare:9.0f}{ours / bare:9.2f}{told['ours', case]['size'] / 1e6:9.1f}"
        if theirs is not None and peer_bare:
            added = (ours - bare) / (theirs - peer_bare)
            quarter = (low["ours", case] - low["bare", none]) / (low["peer", case] - low["bare peer", none])
            line += f"{theirs:9.0f}{theirs - peer_bare:9.0f}{told['peer', case]['size'] / 1e6:9.1f}{added:17.2f}{quarter:17.2f}"
        print(line)


def watch_memory(options: argparse.Namespace) -> None:
    """Resident memory over many steps without the garbage collector."""
    options.steps = options.memory
    for case in (("statistics", "mix", "statistics"), ("tensor", "L1", "statistics")):
        found = ask(sys.executable, options, "ours", case)
        if found is not None:
            memory = [value / 1e6 for value in found["memory"]]
            places = [0, len(memory) // 10, len(memory) // 4, len(memory) // 2, len(memory) - 1]
            print(" ".join(case), "MB at steps", {place: round(memory[place]) for place in places})
            print(" ".join(case), "tensors at every tenth of the steps", found["objects"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="python of a venv with msprobe and torch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0: its own choice")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: time of the whole process on all cores"
    )
    parser.add_argument("--memory", type=int, default=0, metavar="STEPS")
    parser.add_argument("--only", nargs="*", metavar="TASK-LEVEL-SUMMARY")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the dumps are written")
    parser.add_argument("--child", dest="engine")
    parser.add_argument("--task")
    parser.add_argument("--level")
    parser.add_argument("--summary")
    options = parser.parse_args()
    if options.engine:
        child(options)
    elif options.memory:
        watch_memory(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
