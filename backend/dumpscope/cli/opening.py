"""Opens the dump that a path names, archives included, and reads its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dumpscope.domain.records import Layout, RankDump, RankRef
from dumpscope.errors import DumpscopeError, Problem, UnreadableError
from dumpscope.pipeline.tasks.temporary_folder import Room
from dumpscope.readers import open_dump, read_rank


@contextmanager
def open_layout(path: Path) -> Iterator[Layout]:
    """Layout of the dump at `path`; an archive is unpacked into a temporary folder that is removed with the block."""
    with Room() as room:
        yield open_dump(path, room.path)


def read_ranks(layout: Layout) -> Iterator[tuple[RankRef, RankDump | Problem]]:
    """Every rank of a dump; one that cannot be read at all is a Problem, and the others follow."""
    for ref in layout.ranks:
        try:
            yield ref, read_rank(ref)
        except DumpscopeError as error:
            yield ref, Problem(loc=error.where or ref.dump_json, kind=error.code, message=str(error))


def require_read(read: int, layout: Layout, problems: list[Problem]) -> None:
    """Raise UnreadableError where no rank of the dump could be read."""
    if not read:
        why = problems[0].message if problems else "no rank was found"
        raise UnreadableError(f"nothing of this dump can be read: {why}", where=layout.root)
