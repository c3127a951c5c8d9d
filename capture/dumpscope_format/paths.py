"""Where a dump's files lie: folder and file names, natural order, joining names without leaving a folder."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Final

DUMP_JSON: Final = "dump.json"
STACK_JSON: Final = "stack.json"
CONSTRUCT_JSON: Final = "construct.json"
DEBUG_JSON: Final = "debug.json"
RUN_JSON: Final = "run.json"
TENSOR_FOLDER: Final = "dump_tensor_data"
TENSOR_SUFFIX: Final = ".pt"
NAME_LIMIT: Final = 255  # bytes of one file name on every common file system

_STEP: Final = re.compile(r"step(0|[1-9][0-9]{0,8})")
_RANK: Final = re.compile(r"rank(0|[1-9][0-9]{0,8})")
_SINGLE: Final = re.compile(r"proc[0-9]+|rank")
_DIGITS: Final = re.compile(r"([0-9]+)")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f/\\]")


def step_folder(step: int) -> str:
    return f"step{step}"


def rank_folder(rank: int | None, pid: int) -> str:
    """`rank3`, or `proc{pid}` where no process group exists."""
    return f"proc{pid}" if rank is None else f"rank{rank}"


def step_number(folder: str) -> int | None:
    """Number of a `step7` folder name, None for any other name."""
    found = _STEP.fullmatch(folder)
    return int(found[1]) if found else None


def rank_number(folder: str) -> int | None:
    """Number of a `rank7` folder name, None for any other name."""
    found = _RANK.fullmatch(folder)
    return int(found[1]) if found else None


def is_single(folder: str) -> bool:
    """Whether a folder name is that of a run without ranks: `proc1234` or a bare `rank`."""
    return _SINGLE.fullmatch(folder) is not None


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts rank2 before rank10."""
    parts = _DIGITS.split(text)
    return tuple((0, int(part), part) if number % 2 else (1, 0, part) for number, part in enumerate(parts) if part)


def file_name(item: str, suffix: str = TENSOR_SUFFIX) -> str:
    """File name of an item: `{item}.pt`, free of separators and control characters, at most 255 bytes.

    A name that is too long keeps its head and ends in a digest of the whole, so that two long names never meet.
    """
    name = _UNSAFE.sub("_", item)
    if name == item and len(f"{name}{suffix}".encode()) <= NAME_LIMIT:
        return f"{name}{suffix}"
    mark = f"~{hashlib.sha256(item.encode(errors='surrogatepass')).hexdigest()[:16]}{suffix}"
    head = name.encode(errors="replace")[: NAME_LIMIT - len(mark)].decode(errors="ignore")
    return f"{head}{mark}"


def inside(root: str, path: str) -> bool:
    """Whether `path`, all links followed, is `root` or inside it."""
    base = os.path.realpath(root)
    real = os.path.realpath(path)
    return real == base or real.startswith(base if base.endswith(os.sep) else base + os.sep)


def safe_join(root: str, *parts: str) -> str:
    """Join names read from a dump to a folder.

    Raises ValueError where a part is absolute, climbs with `..`, is no plain name, or a link on the way leaves `root`.
    """
    for part in parts:
        pieces = part.replace("\\", "/").split("/")
        if not part or "\0" in part or part.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", part):
            raise ValueError(f"{part!r} is not a relative name")
        if any(piece in ("", ".", "..") for piece in pieces):
            raise ValueError(f"{part!r} climbs out of its folder")
    path = os.path.join(root, *parts)
    if not inside(root, path):
        raise ValueError(f"{os.path.join(*parts)!r} leaves the dump through a link")
    return path
