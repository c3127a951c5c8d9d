"""Opens result tables of msprobe and ptdbg: each becomes two dumps, of its target and of its golden side."""

from dumpscope.readers.result_tables.files import TableFile, find_tables
from dumpscope.readers.result_tables.write_dumps import Opened, write_dumps

__all__ = ["Opened", "TableFile", "find_tables", "write_dumps"]
