"""What capture costs a training step, side by side with msprobe in the same run.

    python bench/capture_overhead.py [--peer /path/to/venv/bin/python] [--device cpu] [--steps 6] [--rounds 2]
    python bench/capture_overhead.py --peer ... --only statistics-L1-md5       one case, within a minute
    python bench/capture_overhead.py --threads 1 --clock cpu        on a machine that does other work at the same time
    python bench/capture_overhead.py --memory 300          resident memory over 300 steps, garbage collector off

A transformer of 4 layers, d=512, batch 4 x 128, trained with Adam. Every case is a process of its own, ours and msprobe's in
turn. In each, plain steps come first and captured ones follow; what capture adds is the difference of the fastest of both kinds
(the first two of each do not count), with the ratio of the lower quartiles beside it. A captured step includes start(), stop()
and step(), which write the files. MB are what a step adds to the disk, a file with several names, also in other steps, counted
once. "off" takes turns: a plain step, and one with start(), stop() and step() of a debugger that records none of them.
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
NEVER = 1_000_000
"""Number of a step that does not come."""

Case = tuple[str, str, str]
Times = dict[tuple[str, Case], list[float]]


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
    folder = Path(tempfile.mkdtemp(prefix="capture-", dir=options.folder))
    if options.engine == "peer":
        from msprobe.pytorch import PrecisionDebugger  # noqa: PLC0415
    else:
        from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415
    config = folder / "config.json"
    task = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": options.summary}
    wanted = [NEVER] if options.engine == "off" else []
    config.write_text(
        json.dumps({
            "task": options.task, "dump_path": str(folder / "dump"), "rank": [], "step": wanted, "level": options.level,
            options.task: task,
        })
    )  # fmt: skip
    debugger = PrecisionDebugger(str(config))
    model, step = build(options.device)
    memory, objects = [], []
    if options.memory:
        gc.disable()
    plain: list[float] = []
    times: list[float] = []
    sizes: list[int] = []
    old: dict[int, int] = {}

    def measure(into: list[float], *, captured: bool) -> None:
        begin = clock()
        if captured:
            debugger.start(model=model)
        step()
        if captured:
            debugger.stop()
            debugger.step()
        synchronize(options.device)
        into.append(clock() - begin)

    count = options.steps + WARM_UP
    if options.engine != "off" and not options.memory:
        for _ in range(count):
            measure(plain, captured=False)
    for number in range(count):
        if options.engine == "off":
            measure(plain, captured=False)
        measure(times, captured=True)
        memory.append(resident())
        if options.memory and number % max(options.steps // 10, 1) == 0:
            objects.append(tensors())
        old, before = disk(folder / "dump" / f"step{number}"), old
        sizes.append(sum(size for inode, size in old.items() if inode not in before))
        shutil.rmtree(folder / "dump" / f"step{number - 1}", ignore_errors=True)
    shutil.rmtree(folder)
    told = {
        "plain": plain[WARM_UP:],
        "times": times[WARM_UP:],
        "memory": memory,
        "objects": objects,
        "size": statistics.mean(sizes),
    }
    print("RESULT", json.dumps(told))


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


def disk(folder: Path) -> dict[int, int]:
    """Bytes of each file on disk below a folder, by inode: a file with several names counts once."""
    files = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return {file.st_ino: file.st_size for file in files}


def ask(python: str, options: argparse.Namespace, engine: str, case: Case) -> dict[str, Any] | None:
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
    cases = [case for case in CASES if not options.only or f"{case[0]}-{case[1]}-{case[2]}" in options.only]
    jobs = [("off", cases[0], sys.executable)]
    for case in cases:
        jobs.append(("ours", case, sys.executable))
        if options.peer:
            jobs.append(("peer", case, options.peer))
    plain: Times = {}
    times: Times = {}
    sizes: dict[tuple[str, Case], float] = {}
    for number in range(options.rounds):
        for engine, case, python in jobs:
            found = ask(python, options, engine, case)
            if found is not None:
                plain.setdefault((engine, case), []).extend(found["plain"])
                times.setdefault((engine, case), []).extend(found["times"])
                sizes[engine, case] = found["size"]
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    off = jobs[0][:2]
    if off in times:
        change = statistics.median(one / other for one, other in zip(times[off], plain[off], strict=True)) - 1
        print(
            f"installed but off: {least(times[off]) / least(plain[off]) - 1:+.1%} ({change:+.1%} in the median of neighbours)"
        )
    heads = (
        "bare ms",
        "ours ms",
        "+ms",
        "x bare",
        "MB",
        "peer bare",
        "ms",
        "+ms",
        "MB",
        "ours/peer added",
        "of the quartiles",
    )
    print(f"{'task level summary':28}" + "".join(f"{head:>{10 if len(head) < 10 else 17}}" for head in heads))
    for case in cases:
        ours, theirs = ("ours", case), ("peer", case)
        line = f"{' '.join(case):28}"
        if ours not in times:
            print(line + "  failed")
            continue
        bare, step = least(plain[ours]), least(times[ours])
        line += f"{bare:10.0f}{step:10.0f}{step - bare:10.0f}{step / bare:10.2f}{sizes[ours] / 1e6:10.1f}"
        if theirs in times:
            added = least(times[theirs]) - least(plain[theirs])
            line += f"{least(plain[theirs]):10.0f}{least(times[theirs]):10.0f}{added:10.0f}{sizes[theirs] / 1e6:10.1f}"
            quarters = (low(times[ours]) - low(plain[ours])) / (low(times[theirs]) - low(plain[theirs]))
            line += f"{(step - bare) / added:17.2f}{quarters:17.2f}"
        print(line)


def least(seconds: list[float]) -> float:
    """The shortest, in ms."""
    return min(seconds) * 1000


def low(seconds: list[float]) -> float:
    """The lower quartile, in ms."""
    return statistics.quantiles(seconds, n=4)[0] * 1000


def watch_memory(options: argparse.Namespace) -> None:
    """Resident memory over many steps without the garbage collector."""
    options.steps = options.memory
    cases = (("statistics", "mix", "statistics"), ("tensor", "L1", "statistics"))
    for case in cases:
        if options.only and "-".join(case) not in options.only:
            continue
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
