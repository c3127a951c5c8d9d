"""Dump formats: what one must be able to do, and the formats there are.

The formats of this package come first, then those that other installed packages register under the entry point group
`dumpscope.formats`, then folders of any tensors. docs/dumps.md says how one is written.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from dumpscope import extensions
from dumpscope.domain.records import RankDump, RankRef, Traits
from dumpscope.errors import DumpscopeError, UnreadableError
from dumpscope.readers.regular_file import read_head
from dumpscope.texts import say

BUILT_IN: Final = (
    "dumpscope.readers.msprobe.format:MSPROBE",
    "dumpscope.ptdbg.reader.formats:PTDBG",
    "dumpscope.ptdbg.reader.formats:CASES",
    "dumpscope.readers.recordings.debug_mode:DEBUG_MODE",
    "dumpscope.readers.recordings.torchtitan_log:TORCHTITAN",
    "dumpscope.readers.recordings.module_tree:MODULE_TREE",
)
"""By name, as no module here may import a format: formats import this one, and ptdbg's can be taken out."""
LAST: Final = ("dumpscope.readers.recordings.tensor_folder:TENSOR_FOLDER",)
"""Takes what no other format knows, of this package or of another."""

Note = Callable[[str, str, str], None]
"""Called with a path, a problem kind and a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder in which one rank may have been dumped.

    root: folder of the whole dump, which no link may leave
    step, rank: by the names of folders; rank None: no number
    label: name of the rank's folder, "" for a step folder
    alone: the folder is no rank's and no step's, so that two sets of records in it are two dumps
    note: for what is left out
    """

    folder: str
    root: str
    step: int
    rank: int | None
    label: str
    note: Note
    alone: bool = False


class DumpFormat(ABC):
    """One way in which tools write dumps. A subclass must have a name, find_rank and read_rank.

    name: stored with its ranks (RankRef.layout); a stored dump is read again by this name
    traits: what it records
    file_words: what a user may name to open a file of it, "a ptdbg .pkl"; "" where only folders are opened
    before_folders: its records in a folder count before step and rank folders below, else after
    no_rerun, rerun_hint: why no single call can be run again from its records, and what to do; None where one can
    """

    name: str
    traits: Traits = Traits()
    file_words: str = ""
    before_folders: bool = False
    no_rerun: str | None = say("readers.format_keeps_not_all_arguments")
    rerun_hint: str = say("readers.dump_step_again_capture_or_msprobe")

    @abstractmethod
    def find_rank(self, place: Place) -> RankRef | None:
        """The rank dumped into a folder, None where this format wrote none there."""

    def rank_at(self, place: Place, dump_json: str) -> RankRef:
        """The rank of a folder whose records are in `dump_json`."""
        return RankRef(
            step=place.step,
            rank=place.rank,
            label=place.label,
            folder=place.folder,
            dump_json=dump_json,
            stack_json=None,
            construct_json=None,
            layout=self.name,
            traits=self.traits,
        )

    @abstractmethod
    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        """Everything but tensors; damaged parts become problems of the result.

        follow_stored_path: a tensor folder that the records name by its absolute path may be used
        Raises UnreadableError where no file can be opened.
        """

    def writes_folder(self, place: Place) -> bool:
        """Whether a folder is a dump of this format, so that none is looked for below it."""
        return self.find_rank(place) is not None

    def find_ranks(self, folder: str, root: str, note: Note) -> list[RankRef]:
        """Several ranks in one folder; asked only where no format finds a rank by `find_rank`."""
        return []

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        """The rank of a file that the user named, None for a file of another kind. head: its first 64 kB

        Raises UnreadableError for a file of this format that is no dump by itself.
        """
        return None

    def names_file(self, name: str) -> bool:
        """Whether a file of this name can be opened as a dump, as far as names tell."""
        return False

    def marks_folder(self, name: str) -> bool:
        """Whether a folder with a file of this name is a dump, as far as names tell."""
        return self.names_file(name)

    def names_data(self, name: str) -> bool:
        """Whether a folder of this name holds only tensors and is not searched for dumps."""
        return False

    def number_ranks(self, refs: Sequence[RankRef], note: Note) -> list[RankRef]:
        """The ranks of one step, all of this format, with other numbers where those of their folders are no ranks."""
        return list(refs)

    def has_data(self, ref: RankRef) -> bool:
        """Whether something was recorded: of several runs in one step folder the newest with data is read."""
        return bool(read_head(ref.dump_json))


@cache
def formats() -> tuple[DumpFormat, ...]:
    """All formats in the order in which they are asked. Raises DumpscopeError for an extension that is no usable format."""
    ours, last = ([_imported(place) for place in places] for places in (BUILT_IN, LAST))
    extras = extensions.load(extensions.FORMATS)
    wrong = next((extra for extra in extras if not isinstance(extra, DumpFormat)), None)
    if wrong is not None:
        raise DumpscopeError(say("readers.extension_no_dump_format", extension=f"{wrong!r}"))
    found: dict[str, DumpFormat] = {}
    for one in (*ours, *extras, *last):
        if one.name in found:
            raise DumpscopeError(
                say("readers.two_dump_formats_named", name=f"{one.name!r}"), hint=say("readers.rename_extensions")
            )
        found[one.name] = one
    return tuple(found.values())


def _imported(place: str) -> DumpFormat:
    module, _, name = place.partition(":")
    one: DumpFormat = getattr(importlib.import_module(module), name)
    return one


def format_of(ref: RankRef) -> DumpFormat:
    """Raises UnreadableError where no installed package reads the rank's format."""
    for one in formats():
        if one.name == ref.layout:
            return one
    raise UnreadableError(
        say("readers.format_not_installed", layout=f"{ref.layout!r}"),
        where=ref.folder,
        hint=say("readers.install_package_reads_it"),
    )


def read_rank(ref: RankRef, *, follow_stored_path: bool = True) -> RankDump:
    """Read everything but tensors; see `DumpFormat.read_rank`."""
    return format_of(ref).read_rank(ref, follow_stored_path=follow_stored_path)
