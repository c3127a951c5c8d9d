"""Two checkpoints of 8 GiB each, shards against one file with renamed modules and one changed tensor, beside a plain read.

    python bench/diff_checkpoints.py [--gib 8] [--folder DIR] [--changed]

Prints what the command found, its rate, the rate at which the same bytes are only read (in the same run, before and after),
and its peak memory. --changed: every tensor differs, the slowest case. The files are deleted at the end; they need twice the
size on disk.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

SHARDS: Final = 4
HIDDEN: Final = 4096
PLANTED: Final = ("mlp.down_proj.weight", 0.03)
READ: Final = 1 << 20


def shapes(gib: float) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a decoder in bfloat16 of about so many GiB."""
    found: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (32000, HIDDEN), "norm.weight": (HIDDEN,)}
    layer = 0
    while sum(2 * int(np.prod(shape)) for shape in found.values()) < gib * (1 << 30):
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            found[f"layers.{layer}.self_attn.{name}.weight"] = (HIDDEN, HIDDEN)
        for name in ("gate_proj", "up_proj"):
            found[f"layers.{layer}.mlp.{name}.weight"] = (11008, HIDDEN)
        found[f"layers.{layer}.mlp.down_proj.weight"] = (HIDDEN, 11008)
        found[f"layers.{layer}.input_layernorm.weight"] = (HIDDEN,)
        layer += 1
    return found


def content(base: np.ndarray[Any, Any], number: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Values of one tensor: pieces of random numbers, begun at another place for every tensor."""
    size = int(np.prod(shape))
    rolled = np.roll(base, number * 7919)
    return np.tile(rolled, size // base.size + 1)[:size]


def write(path: Path, tensors: list[tuple[str, int, tuple[int, ...]]], base: np.ndarray[Any, Any], change: Any) -> None:
    """One .safetensors file."""
    header: dict[str, Any] = {}
    at = 0
    for name, _, shape in tensors:
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, number, shape in tensors:
            file.write(change(name, content(base, number, shape)).view(np.uint8))


def read_rate(files: list[Path]) -> float:
    """Bytes per second of reading files into one small buffer."""
    buffer = bytearray(READ)
    total = 0
    begun = time.perf_counter()
    for path in files:
        with path.open("rb", buffering=0) as file:
            while size := file.readinto(buffer):
                total += size
    return total / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=8)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--changed", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        measure(folder, given.gib, changed=given.changed)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, gib: float, *, changed: bool) -> None:
    base = np.random.default_rng(0).standard_normal(16 << 20, dtype=np.float32).astype(ml_dtypes.bfloat16)
    held = [(name, number, shape) for number, (name, shape) in enumerate(shapes(gib).items())]
    layer = max(int(name.split(".")[1]) for name, _, _ in held if name.startswith("layers.")) // 2
    planted = f"transformer.h.{layer}.{PLANTED[0]}"

    def change(name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if changed:
            return (values.astype(np.float32) * 1.01).astype(values.dtype)
        if name == planted:
            values[: int(values.size * PLANTED[1])] *= 2
        return values

    (folder / "sharded").mkdir()
    shards = [held[place::SHARDS] for place in range(SHARDS)]
    names = [f"model-{place + 1:05}-of-{SHARDS:05}.safetensors" for place in range(SHARDS)]
    for file, part in zip(names, shards, strict=True):
        write(folder / "sharded" / file, part, base, lambda _, values: values)
    table = {name: file for file, part in zip(names, shards, strict=True) for name, _, _ in part}
    (folder / "sharded" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    renamed = [(name.replace("layers.", "transformer.h."), number, shape) for name, number, shape in held]
    write(folder / "one.safetensors", renamed, base, change)
    files = [*(folder / "sharded" / file for file in names), folder / "one.safetensors"]
    total = sum(file.stat().st_size for file in files)
    print(f"{len(held)} tensors, {total / 2**30:.1f} GiB in both checkpoints")
    compile_kernel = "from dumpscope.metrics.native.loader import load_kernel; load_kernel(1 << 40)"
    subprocess.run([sys.executable, "-c", compile_kernel], check=True)
    read_rate(files)
    before = read_rate(files)
    command = [
        sys.executable,
        "-m",
        "dumpscope",
        "diff-checkpoints",
        str(folder / "one.safetensors"),
        str(folder / "sharded"),
    ]
    for threads in (1, 0):
        begun = time.perf_counter()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, "--json", "--limit", "2", "-j", str(threads)], capture_output=True, check=False
        )
        wall = time.perf_counter() - begun
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        answer = json.loads(done.stdout)
        after = read_rate(files)
        plain = (before + after) / 2
        print(f"{threads or 'all'} thread(s): {answer['summary']} (exit status {done.returncode})")
        print(f"  renames: {'; '.join(answer['rules'])}")
        print(f"  compared at {total / wall / 1e9:.2f} GB/s ({wall:.1f} s, {cpu:.1f} s of processor)")
        print(f"  plain read, one thread: {plain / 1e9:.2f} GB/s; share {total / wall / plain:.0%}")
        assert changed or answer["tensors"][0]["name"] == planted
    print(f"peak memory of the command: {now.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
