"""One rank of a dump, whatever wrote it."""

from __future__ import annotations

from dumpscope.domain.records import RankDump, RankRef
from dumpscope.readers.msprobe import rank as msprobe
from dumpscope.readers.ptdbg.case_files import LAYOUT as CASES
from dumpscope.readers.ptdbg.cases import read_cases
from dumpscope.readers.ptdbg.rank import read_ptdbg


def read_rank(ref: RankRef, *, follow_stored_path: bool = True) -> RankDump:
    """Read everything but tensors of an msprobe or ptdbg rank; see `msprobe.read_rank`."""
    if ref.layout == "ptdbg":
        return read_ptdbg(ref)
    if ref.layout == CASES:
        return read_cases(ref)
    return msprobe.read_rank(ref, follow_stored_path=follow_stored_path)
