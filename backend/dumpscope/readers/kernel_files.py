"""What an Ascend device dumped of its kernels, from the names of folders and files alone; the contents are CANN's own.

{dump_path}/{YYYYmmddHHMMSS}/{device}/{model}/[{index}/]{OpType}.{OpName}.{task}.{stream}.{microseconds}
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from dumpscope_format.paths import natural_key

DEPTH: Final = 5
FILE_LIMIT: Final = 200_000
_TIME: Final = re.compile(r"\d{14}")
_FILE: Final = re.compile(r"([^.]+)\.(.+)\.(\d+)\.(\d+)\.(\d{13,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFolder:
    """Files of one run of a model on a device. device, model: as the folders are named, "" where the path begins below them;
    operators: kernels by their type; microseconds: from the first file to the last"""

    path: str
    time: str
    device: str
    model: str
    files: int
    nbytes: int
    operators: dict[str, int]
    microseconds: int


def kernel_folders(root: str | os.PathLike[str]) -> list[KernelFolder]:
    """Folders with kernel files under a path, in natural order; none where it has no such files. Links are not followed."""
    found: list[KernelFolder] = []
    left = FILE_LIMIT
    base = os.path.realpath(root)
    for folder, below, names in os.walk(base):
        below.sort(key=natural_key)
        if os.path.relpath(folder, base).count(os.sep) >= DEPTH - 1:
            below.clear()
        matches = [match for name in names[:left] if (match := _FILE.fullmatch(name))]
        left -= len(names)
        if matches:
            found.append(_folder(folder, matches))
        if left <= 0:
            break
    return found


def _folder(folder: str, matches: list[re.Match[str]]) -> KernelFolder:
    parts = folder.split(os.sep)
    start = next((place for place in range(len(parts) - 1, -1, -1) if _TIME.fullmatch(parts[place])), None)
    time, device, model = (*parts[start:], "", "", "")[:3] if start is not None else ("", "", "")
    times = [int(match[5]) for match in matches]
    return KernelFolder(
        path=folder,
        time=time,
        device=device,
        model=model,
        files=len(matches),
        nbytes=sum(os.lstat(os.path.join(folder, match[0])).st_size for match in matches),
        operators=dict(sorted(Counter(match[1] for match in matches).items())),
        microseconds=max(times) - min(times),
    )
