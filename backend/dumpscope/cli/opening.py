"""Opens the dump at a path, also in an archive, and reads its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dumpscope.domain.records import DumpIndex, RankDump, RankRef
from dumpscope.errors import DumpscopeError, Problem, UnreadableError, UsageError
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.readers import open_dump, read_rank
from dumpscope.texts import say


@contextmanager
def open_layout(path: Path) -> Iterator[DumpIndex]:
    """Steps and ranks of the dump at `path`; an archive is unpacked, and removed at the end of the block."""
    with TemporaryFolder() as room:
        yield open_dump(path, room.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Paths of the two dumps of a comparison. names: as they are shown"""

    target: Path
    golden: Path
    names: tuple[str, str]


@contextmanager
def open_sides(target: Path, golden: Path | None) -> Iterator[Sides]:
    """The two dumps that a user names, or those of a result table where no golden is named; these are removed at the end."""
    if golden is not None:
        yield Sides(target=target, golden=golden, names=(str(target), str(golden)))
        return
    from dumpscope.readers.result_tables import find_tables, write_dumps  # noqa: PLC0415

    tables = find_tables(target)
    if not tables:
        raise UsageError(say("cli.golden_missing"), where=str(target), hint=say("cli.name_golden_or_table"))
    with TemporaryFolder() as room:
        opened = write_dumps(tables, Path(room.path))
        yield Sides(
            target=opened.target,
            golden=opened.golden,
            names=(f"{target} (target)", f"{target} (golden)"),
        )


def read_ranks(layout: DumpIndex) -> Iterator[tuple[RankRef, RankDump | Problem]]:
    """Every rank of a dump; a rank that cannot be read at all is a Problem, and reading continues."""
    for ref in layout.ranks:
        try:
            yield ref, read_rank(ref)
        except DumpscopeError as error:
            yield ref, Problem(loc=error.where or ref.dump_json, kind=error.code, message=str(error))


def require_read(read: int, layout: DumpIndex, problems: list[Problem]) -> None:
    """Raise UnreadableError if no rank of the dump could be read."""
    if not read:
        why = problems[0].message if problems else say("pipeline.no_rank_found")
        raise UnreadableError(say("pipeline.nothing_dump_can_read", why=why), where=layout.root)
