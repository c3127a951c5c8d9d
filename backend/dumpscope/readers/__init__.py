"""From disk to columns: find the ranks of a dump, read their records, their tree and their tensors."""

from __future__ import annotations

from dumpscope.readers.archives.limits import Limits
from dumpscope.readers.discover import discover
from dumpscope.readers.formats import read_rank
from dumpscope.readers.opening import open_dump

__all__ = ["Limits", "discover", "open_dump", "read_rank"]
