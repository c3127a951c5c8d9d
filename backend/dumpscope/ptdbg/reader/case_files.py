"""The files that ptdbg's `need_replicate` leaves in the working directory of a run.

forward_info_{pid}.json, backward_info_{pid}.json    arguments of the calls that overflowed
stack_info_{pid}.json                                their call stacks
forward_real_data_{time}/rank{R}/{api}.{argno}.npy   tensors that the first names
"""

from __future__ import annotations

import os
import re
from typing import Final

from dumpscope.domain.records import RankRef, Traits
from dumpscope.errors import UnreadableError
from dumpscope.readers.formats import Note
from dumpscope.readers.regular_file import read_head
from dumpscope.texts import say
from dumpscope_format.paths import inside, natural_key

LAYOUT: Final = "cases"
"""Name of the format."""
TRAITS: Final = Traits(all_arguments=False, numbered_items=True, ptdbg_names=True, filtered=True)
ENTRY_LIMIT: Final = 20_000
DATA_FOLDER: Final = re.compile(r"forward_real_data_[0-9_]+")

_FILE: Final = re.compile(r"(forward|backward|stack)_info_([0-9]{1,19})\.json")
_RANK: Final = re.compile(rb"forward_real_data_[0-9_]+/rank([0-9]{1,9})/")


def is_cases(name: str) -> bool:
    """Whether a file is named as one that holds arguments or stacks of such calls."""
    return _FILE.fullmatch(name) is not None


def lone_cases(path: str) -> RankRef:
    """The rank of a named file, with the other files of the same process. Raises UnreadableError for a stack file alone."""
    folder, name = os.path.split(path)
    found = _FILE.fullmatch(name)
    assert found is not None
    ref = _ref(folder, found[2], folder, "")
    if ref is None:
        raise UnreadableError(
            say("readers.alone_no_dump", name=name),
            where=path,
            hint=say("readers.keep_forward_info_json_beside", found=found[2]),
        )
    return ref


def find_cases(folder: str, root: str, note: Note) -> list[RankRef]:
    """One rank for each process that left files in a folder; of two of one rank the newest, which is noted."""
    processes = sorted(
        {found[2] for name in _names(folder) if (found := _FILE.fullmatch(name)) and found[1] != "stack"},
        key=natural_key,
    )
    refs = [ref for process in processes if (ref := _ref(folder, process, root, f"proc{process}")) is not None]
    used: dict[int, RankRef] = {}
    for ref in sorted(refs, key=_newest):
        used[ref.rank or 0] = ref
    left = [ref.label for ref in refs if ref not in used.values()]
    if left:
        names = ", ".join(f"*_info_{label.removeprefix('proc')}.json" for label in left[:5])
        note(folder, "several_runs", say("readers.newer_files_same_rank_read_left", names=names))
    return [used[rank] for rank in sorted(used)]


def _ref(folder: str, process: str, root: str, label: str) -> RankRef | None:
    """None where neither direction has a file. label: unless the rank is known"""
    forward, backward, stack = (
        _file(folder, f"{word}_info_{process}.json", root) for word in ("forward", "backward", "stack")
    )
    mains = [path for path in (forward, backward) if path is not None]
    if not mains:
        return None
    rank = None if forward is None else _rank(forward)
    return RankRef(
        step=0,
        rank=rank,
        label=f"rank{rank}" if label and rank is not None else label,
        folder=folder,
        dump_json=mains[0],
        stack_json=stack,
        construct_json=None,
        layout=LAYOUT,
        traits=TRAITS,
        parts=tuple(mains[1:]),
    )


def _file(folder: str, name: str, root: str) -> str | None:
    path = os.path.join(folder, name)
    return path if os.path.isfile(path) and (not os.path.islink(path) or inside(root, path)) else None


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for _, entry in zip(range(ENTRY_LIMIT), entries, strict=False)]
    except OSError:
        return []


def _rank(path: str) -> int | None:
    """The rank whose folder holds the first tensor."""
    found = _RANK.search(read_head(path).replace(b"\\", b"/"))
    return int(found[1]) if found else None


def _newest(ref: RankRef) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    try:
        changed = os.stat(ref.dump_json).st_mtime_ns
    except OSError:
        changed = 0
    return changed, natural_key(ref.dump_json)
