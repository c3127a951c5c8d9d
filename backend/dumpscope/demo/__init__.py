"""Two dumps that dumpscope_capture.demo made of one small GPT: a good run, and one whose layers.1 softmax is 2 % off in a row."""

from __future__ import annotations

import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Final

NAME: Final = "Demo: a softmax that is 2 % off"
"""Of the comparison of the two."""


def unpack(folder: Path) -> tuple[Path, Path]:
    """Write the two dumps below `folder` (2 MB; whole files that are there stay) and return (target, golden)."""
    packed = files(__name__).joinpath("dumps.tar.xz")
    with packed.open("rb") as stream, tarfile.open(fileobj=stream, mode="r:xz") as tar:
        for entry in tar:
            there = folder / entry.name
            content = tar.extractfile(entry)
            if content is not None and not (there.is_file() and there.stat().st_size == entry.size):
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(content.read())
    return folder / "target_fault", folder / "golden"
