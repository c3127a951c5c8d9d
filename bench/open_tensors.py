"""Time to open tensor files: python bench/open_tensors.py FOLDER [--root]. Compares with torch.load where torch is installed."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dumpscope.readers.tensors import torch_file


def best(files: list[Path], load: Callable[[str], Any], rounds: int = 3) -> float:
    """Microseconds a file, the best of some rounds, so that every file is in the page cache."""
    names = [str(path) for path in files]
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for name in names:
            load(name)
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / len(files) * 1e6


def main() -> None:
    folder = Path(sys.argv[1])
    files = sorted(folder.rglob("*.pt"))[:4096]
    size = sum(path.stat().st_size for path in files)
    print(f"{len(files)} files, {size / len(files) / 1024:.1f} KiB on average")
    print(f"load            {best(files, torch_file.load):8.1f} us a file")
    print(f"load below root {best(files, lambda name: torch_file.load(name, root=folder)):8.1f} us a file")
    print(f"load and sum    {best(files, lambda name: torch_file.load(name).array.sum()):8.1f} us a file")
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return
    print(f"torch.load      {best(files, torch.load):8.1f} us a file")
    print(f"torch.load mmap {best(files, lambda name: torch.load(name, mmap=True)):8.1f} us a file")


if __name__ == "__main__":
    main()
