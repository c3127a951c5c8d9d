"""The files of a ptdbg dump in one folder: text files of records, and the folders of `.npy` files that go with them.

dump.pkl, dump/                           any stem, and any mode in front: api_stack_dump.pkl, api_stack_dump/
x.pkl, x_20230104_134340/                 before ptdbg 1.0
Overflow_info_20230104_134340_1.pkl, ...  one file a finding, each with its folder; together they are one rank
dump/                                     .npy files alone, of a run that was killed before it wrote its records
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dumpscope.domain.records import RankRef, Traits
from dumpscope.errors import UnreadableError
from dumpscope.ptdbg.reader.lines import looks_like_lines
from dumpscope.readers.formats import Note
from dumpscope.readers.regular_file import read_head
from dumpscope.texts import say
from dumpscope_format.naming import split_ptdbg_item
from dumpscope_format.paths import inside, natural_key, rank_number, step_number

LAYOUT: Final = "ptdbg"
"""Name of the format."""
TRAITS: Final = Traits(all_arguments=False, numbered_items=True, ptdbg_names=True, filtered=True, stacks_inside=True)
SUFFIX: Final = ".pkl"
TENSOR_SUFFIX: Final = ".npy"
ENTRY_LIMIT: Final = 20_000
PROCESS_FROM: Final = 300, 100_000
"""A folder rank4711 is named by a process id, which A40 wrote as it is and F60 with 100000 added: from the first number on where
the numbers of a step fit no job, from the second on always."""

_OVERFLOW: Final = re.compile(r"Overflow_info_[0-9_]+|.+_(?:forward|backward)_[0-9]{1,9}")
_COUNTED: Final = re.compile(r".+_(?:forward|backward)_([0-9]{1,9})")
_STAMP: Final = re.compile(r"_[0-9]{6,14}(?:_[0-9]{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Files of one rank. main: its records; parts: further files of them; tensors: folder of `.npy` files of `main`"""

    main: str
    parts: tuple[str, ...] = ()
    tensors: str | None = None


def looks_like_ptdbg(path: str) -> bool:
    """Whether a file holds records of ptdbg, whatever its name."""
    return looks_like_lines(read_head(path))


def find_files(folder: str, root: str, note: Note, *, flat: bool = False) -> Found | None:
    """The ptdbg dump in a folder, None where there is none. flat: a folder of no rank, where two files are two dumps

    Raises UnreadableError for two dumps in a flat folder.
    """
    files, folders, arrays = _listed(folder, root)
    lines = [name for name in files if _is_dump(os.path.join(folder, name), folders)]
    if not lines:
        return _arrays_alone(folder, root, folders, arrays)
    overflow = sorted((name for name in lines if _OVERFLOW.fullmatch(name.removesuffix(SUFFIX))), key=_found_at)
    mains = [name for name in lines if name not in overflow]
    if not mains:
        paths = [os.path.join(folder, name) for name in overflow]
        only = tensor_folder(paths[0], root) if len(paths) == 1 else None
        return Found(main=paths[0], parts=tuple(paths[1:]), tensors=only)
    if len(mains) > 1 and flat:
        raise UnreadableError(
            say("readers.holds_dumps", count=len(mains)),
            where=folder,
            hint=say("readers.name_one_them_2", names=", ".join(mains[:5])),
        )
    used = max(mains, key=lambda name: (_newest(os.path.join(folder, name)), name))
    left = [name for name in mains if name != used]
    if left:
        note(
            folder,
            "several_runs",
            say("readers.read_newest_left_out_name_another", used=used, names=", ".join(left[:5])),
        )
    if overflow:
        note(folder, "ignored", say("readers.overflow_files_beside_left_out_name", count=len(overflow), used=used))
    main = os.path.join(folder, used)
    return Found(main=main, tensors=tensor_folder(main, root))


def tensor_folder(path: str, root: str) -> str | None:
    """The folder of `.npy` files that belongs to a file of records: of its stem, else the newest `{stem}_{time}`."""
    stem, folder = os.path.splitext(path)[0], os.path.dirname(path)
    if os.path.isdir(stem) and inside(root, stem):
        return stem
    head = os.path.basename(stem)
    _, folders, _ = _listed(folder, root)
    stamped = [name for name in folders if name.startswith(head) and _STAMP.fullmatch(name[len(head) :])]
    return os.path.join(folder, max(stamped, key=natural_key)) if stamped else None


def lone_file(path: str) -> RankRef:
    """The rank of a named file of records, with the tensor folder next to it."""
    folder = os.path.dirname(path)
    above = os.path.basename(os.path.dirname(folder))
    return RankRef(
        step=step_number(above) or 0,
        rank=rank_number(os.path.basename(folder)),
        label="",
        folder=folder,
        dump_json=path,
        stack_json=None,
        construct_json=None,
        layout=LAYOUT,
        traits=TRAITS,
        tensors=tensor_folder(path, folder),
    )


def rank_ref(found: Found, *, step: int, rank: int | None, label: str, folder: str) -> RankRef:
    return RankRef(
        step=step,
        rank=rank,
        label=label,
        folder=folder,
        dump_json=found.main,
        stack_json=None,
        construct_json=None,
        layout=LAYOUT,
        traits=TRAITS,
        parts=found.parts,
        tensors=found.tensors,
    )


def without_processes(refs: Sequence[RankRef], note: Note) -> list[RankRef]:
    """The ranks of one step, those named by process ids numbered by their order, and a note about that."""
    numbers = [ref.rank for ref in refs if ref.rank is not None]
    if len(numbers) != len(refs) or not are_processes(numbers):
        return list(refs)
    names = ", ".join(ref.label for ref in refs[:8])
    one = len(refs) == 1
    meant = say("readers.process_id") if one else say("readers.process_ids")
    taken = say("readers.taken_rank_0") if one else say("readers.they_taken_ranks_0_order", count=len(refs) - 1)
    note(
        os.path.dirname(refs[0].folder),
        "process",
        say("readers.number_no_rank_known_when_dumped", names=names, meant=meant, taken=taken),
    )
    return [replace(ref, rank=None if one else place) for place, ref in enumerate(refs)]


def are_processes(numbers: Sequence[int]) -> bool:
    """Whether numbers of rank folders of one step are process ids: too large, or too scattered, for the ranks of a job."""
    if not numbers or min(numbers) < PROCESS_FROM[0]:
        return False
    first, count = min(numbers), len(numbers)
    block = max(numbers) - first + 1 == count and first % count == 0
    return max(numbers) >= PROCESS_FROM[1] or count == 1 or not block


def _listed(folder: str, root: str) -> tuple[list[str], list[str], bool]:
    """Names of files that may hold records, of folders, in natural order; whether `.npy` files of a dump lie there."""
    files: list[str] = []
    folders: list[str] = []
    arrays = False
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(ENTRY_LIMIT), entries, strict=False):
                if entry.is_symlink() and not inside(root, entry.path):
                    continue
                if entry.is_dir():
                    folders.append(entry.name)
                elif entry.name.endswith(SUFFIX) and stat.S_ISREG(entry.stat().st_mode):
                    files.append(entry.name)
                elif not arrays and entry.name.endswith(TENSOR_SUFFIX):
                    arrays = split_ptdbg_item(entry.name.removesuffix(TENSOR_SUFFIX)) is not None
    except OSError:
        return [], [], False
    return sorted(files, key=natural_key), sorted(folders, key=natural_key), arrays


def _is_dump(path: str, folders: Sequence[str]) -> bool:
    if looks_like_ptdbg(path):
        return True
    stem = os.path.splitext(os.path.basename(path))[0]
    return stem in folders and os.path.getsize(path) == 0 and holds_arrays(os.path.splitext(path)[0])


def _arrays_alone(folder: str, root: str, folders: Sequence[str], arrays: bool) -> Found | None:
    """`.npy` files without records: in the folder itself, else in the only folder below that holds some."""
    if arrays:
        records = f"{folder}{SUFFIX}"
        if looks_like_ptdbg(records):
            return Found(main=records, tensors=folder)
        return Found(main=folder, tensors=folder)
    below = [path for name in folders if holds_arrays(path := os.path.join(folder, name))]
    return Found(main=below[0], tensors=below[0]) if len(below) == 1 and inside(root, below[0]) else None


def holds_arrays(folder: str) -> bool:
    """Whether `.npy` files of a ptdbg dump lie in a folder."""
    return _listed(folder, folder)[2]


def _found_at(name: str) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Sort key of overflow files: the number at the end says in which order they were found, before it the time does."""
    counted = _COUNTED.fullmatch(name.removesuffix(SUFFIX))
    return int(counted[1]) if counted else 0, natural_key(name)


def _newest(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
