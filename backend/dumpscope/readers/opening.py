"""Open whatever a path names: a folder, a file, or an archive that is unpacked first."""

from __future__ import annotations

import os
import shutil
import stat

from dumpscope.domain.records import DumpIndex
from dumpscope.errors import UnreadableError
from dumpscope.readers.archives.limits import DEFAULT, Limits
from dumpscope.readers.discover import discover
from dumpscope.readers.file_type import refuse_archive


def open_dump(path: str | os.PathLike[str], workdir: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> DumpIndex:
    """Steps and ranks of the dump at `path`. An archive is unpacked into a new folder below `workdir`, which the caller owns.

    Raises UnreadableError where nothing is a dump, LimitError for an archive past `limits`; an archive that fails leaves
    nothing in `workdir`.
    """
    named = os.fspath(path)
    if not _is_archive(named):
        return discover(named)
    from dumpscope.readers.archives.unpack import unpack  # noqa: PLC0415 (most dumps are folders)

    folder, problems = unpack(named, os.fspath(workdir), limits)
    try:
        layout = discover(folder)
    except UnreadableError as error:
        shutil.rmtree(folder, ignore_errors=True)
        error.where = named
        raise (refuse_archive(named) or error) from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return DumpIndex(root=layout.root, ranks=layout.ranks, problems=[*problems, *layout.problems])


def _is_archive(path: str) -> bool:
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
    if not regular:
        return False
    from dumpscope.readers.archives.unpack import kind_of  # noqa: PLC0415

    return kind_of(path) is not None
