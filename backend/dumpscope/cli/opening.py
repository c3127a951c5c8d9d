"""Opening what a path names, archives included, and reading its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dumpscope.domain.records import DumpIndex, RankDump, RankRef
from dumpscope.errors import DumpscopeError, Problem, UnreadableError
from dumpscope.pipeline.tasks.temporary_folder import Room
from dumpscope.readers import open_dump, read_rank


@contextmanager
def opened(path: Path) -> Iterator[DumpIndex]:
    """Steps and ranks of the dump at `path`; an archive is unpacked into a temporary folder that lives as long as the block."""
    with Room() as room:
        yield open_dump(path, room.path)


def ranks(layout: DumpIndex) -> Iterator[tuple[RankRef, RankDump | Problem]]:
    """Every rank of a dump; one that cannot be read at all is a Problem, and the others follow."""
    for ref in layout.ranks:
        try:
            yield ref, read_rank(ref)
        except DumpscopeError as error:
            yield ref, Problem(loc=error.where or ref.dump_json, kind=error.code, message=str(error))


def require_some(read: int, layout: DumpIndex, problems: list[Problem]) -> None:
    """Raise UnreadableError where no rank of the dump could be read."""
    if not read:
        why = problems[0].message if problems else "no rank was found"
        raise UnreadableError(f"nothing of this dump can be read: {why}", where=layout.root)
