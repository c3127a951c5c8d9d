"""Find the steps and ranks of a dump under a path, and their files, before any record is parsed.

All formats share the folders of steps and ranks; each format recognises its own files in them (`formats.DumpFormat`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from dumpscope.domain.records import DumpIndex, RankRef
from dumpscope.errors import ForeignError, Problem, UnreadableError
from dumpscope.readers.file_type import contents, refuse_file, telling
from dumpscope.readers.formats import DumpFormat, Note, Place, format_of, formats
from dumpscope.readers.regular_file import read_head
from dumpscope.texts import phrase, said_of, say
from dumpscope_format.paths import TENSOR_FOLDER, inside, is_single, natural_key, rank_number, step_number

SEARCH_DEPTH: Final = 3
ENTRY_LIMIT: Final = 20_000


def discover(path: str | os.PathLike[str], steps: Collection[int] | None = None) -> DumpIndex:
    """Find steps and ranks under `path`, in natural order. steps: of the folders of steps only these are looked into

    Raises UnreadableError where nothing there is a dump. Parts that are refused (links out of the dump, FIFOs and devices
    under a dump file's name) and second runs in one step folder are problems of the result.
    """
    named = os.fspath(path)
    try:
        status = os.stat(named)
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise UnreadableError(say("readers.no_such_path"), where=named, hint=nearest(named)) from error
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(say("readers.cannot_opened", reason=reason), where=named, hint=_hint()) from error
    real = os.path.realpath(named)
    if stat.S_ISDIR(status.st_mode):
        return _Search(root=real, shown=named, steps=steps).run()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(say("readers.neither_folder_nor_regular_file"), where=named, hint=_hint())
    return _lone_file(real, named)


def dump_root(path: str) -> str | None:
    """Folder of the steps or ranks of the dump under a folder, None where there is none (yet).

    Raises UnreadableError where there are several dumps.
    """
    return _Search(root=os.path.realpath(path), shown=path).folder()


def nearest(named: str) -> str:
    """Of a path that is not there: a name that is written like it, else how far the path leads."""
    from difflib import get_close_matches  # noqa: PLC0415

    path = os.path.abspath(named)
    while not os.path.lexists(path):
        path, missing = os.path.split(path)
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry, _ in zip(entries, range(ENTRY_LIMIT), strict=False)]
    except OSError:
        names = []
    near = get_close_matches(missing, names, 1)
    if near:
        return say("readers.did_you_mean", path=os.path.join(path, near[0]))
    return say("readers.path_leads_to", folder=path, missing=missing)


def _hint() -> str:
    """What a user may name."""
    words = [one.file_words for one in formats() if one.file_words]
    files = [(said_of(one) or [phrase("own.sentence", en=one, zh=one)])[0] for one in words]
    return say("readers.name_dump_root_holding_step0_step", files=files)


def _lone_file(real: str, named: str) -> DumpIndex:
    folder, name = os.path.split(real)
    head = read_head(real)
    problems: list[Problem] = []

    def note(path: str, kind: str, message: str) -> None:
        problems.append(Problem(loc=os.path.relpath(path, folder), kind=kind, message=message))

    for one in sorted(formats(), key=lambda one: not one.names_file(name)):
        try:
            ref = one.open_file(real, head, note)
        except UnreadableError as error:
            error.where = named
            raise
        if ref is not None:
            return DumpIndex(root=folder, ranks=[ref], problems=problems)
    raise refuse_file(real, named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Sub-folders of one folder that may belong to a dump, in natural order."""

    steps: list[tuple[int, str]]
    ranks: list[tuple[int, str]]
    singles: list[str]
    others: list[str]


class _Search:
    def __init__(self, *, root: str, shown: str, steps: Collection[int] | None = None) -> None:
        self.root = root
        self.shown = shown
        self.steps = steps
        self.problems: list[Problem] = []

    def folder(self) -> str | None:
        """Folder of the steps, or of the ranks; None where there is no dump."""
        return self._descend(self.root, SEARCH_DEPTH, self._is_dump)

    def run(self) -> DumpIndex:
        root = self.folder()
        if root is None:
            return self._by_other_ways()
        self.root = root
        ranks = self._dump(root)
        if not ranks:
            raise self._nothing()
        return DumpIndex(root=root, ranks=ranks, problems=self.problems)

    def _by_other_ways(self) -> DumpIndex:
        """Ranks of a format that puts several into one folder, where no folder is a rank's."""
        for one in formats():
            root = self._descend(self.root, SEARCH_DEPTH, partial(self._has_ranks, one))
            if root is not None:
                self.root = root
                return DumpIndex(root=root, ranks=one.find_ranks(root, root, self._note), problems=self.problems)
        raise self._nothing()

    def _has_ranks(self, one: DumpFormat, folder: str) -> bool:
        return bool(one.find_ranks(folder, self.root, _silent))

    def _nothing(self) -> UnreadableError:
        detail = say("readers.holds_no_dump")
        if os.path.basename(self.root) == TENSOR_FOLDER:
            return UnreadableError(detail, where=self.shown, hint=say("readers.name_folder_above_tensors"))
        found = telling(self.root) or (None if self.problems else contents(self.root))
        if found is not None:
            name, kind = found
            return ForeignError(
                say("readers.is", detail=detail, name=name, text=kind.text),
                kind=kind.word,
                where=self.shown,
                hint=kind.hint,
            )
        if self.problems:
            first = self.problems[0]
            detail = say("error.at", where=detail, what=say("error.at", where=first.loc, what=first.message))
        return UnreadableError(detail, where=self.shown, hint=_hint())

    def _descend(self, folder: str, depth: int, is_dump: Callable[[str], bool]) -> str | None:
        """The folder itself where it is a dump, else the only one below it that is."""
        if is_dump(folder):
            return folder
        if depth == 0:
            return None
        found = [below for other in self._folders(folder).others if (below := self._descend(other, depth - 1, is_dump))]
        if len(found) > 1:
            some = ", ".join(os.path.relpath(below, self.root) for below in found[:5])
            more = ", ..." if len(found) > 5 else ""
            raise UnreadableError(
                say("readers.holds_dumps", count=len(found)),
                where=self.shown,
                hint=say("readers.name_one_them", some=some, more=more),
            )
        return found[0] if found else None

    def _is_dump(self, folder: str) -> bool:
        parts = self._folders(folder)
        if parts.steps or parts.ranks or parts.singles:
            return True
        place = self._top(folder, _silent)
        return any(one.writes_folder(place) for one in formats())

    def _top(self, folder: str, note: Note) -> Place:
        """The folder that the search ended in, seen as a rank's."""
        name = os.path.basename(folder)
        rank = rank_number(name)
        step = step_number(os.path.basename(os.path.dirname(folder))) or 0
        return Place(folder=folder, root=self.root, step=step, rank=rank, label=name, note=note, alone=rank is None)

    def _dump(self, folder: str) -> list[RankRef]:
        place = self._top(folder, self._note)
        parts = self._folders(folder)
        within = bool(parts.steps or parts.ranks or parts.singles)
        ref = _first(place, lambda one: one.before_folders or not within)
        if ref is not None:
            return format_of(ref).number_ranks([ref], self._note)
        if not within:
            return []
        ranks: list[RankRef] = []
        for step, below in parts.steps:
            if self.steps is not None and step not in self.steps:
                continue
            ranks += self._step(below, step, self._folders(below))
        if parts.steps and (parts.ranks or parts.singles):
            self._note(folder, "ignored", say("readers.rank_folders_beside_step_folders_left"))
        return ranks or self._step(folder, step_number(place.label) or 0, parts)

    def _step(self, folder: str, step: int, parts: Folders) -> list[RankRef]:
        ranks = [ref for number, below in parts.ranks if (ref := self._rank(below, step, number))]
        layouts = {ref.layout for ref in ranks}
        if len(layouts) == 1:
            ranks = format_of(ranks[0]).number_ranks(ranks, self._note)
        singles = [ref for below in parts.singles if (ref := self._rank(below, step, None))]
        if ranks:
            if singles:
                self._several(folder, say("readers.ranks_read", label=ranks[0].label, label2=ranks[-1].label), singles)
            return ranks
        if len(singles) > 1:
            used = max(singles, key=_newest)
            self._several(
                folder, say("readers.read_newest_data", label=used.label), [ref for ref in singles if ref is not used]
            )
            return [used]
        if singles:
            return singles
        ref = self._rank(folder, step, None, label="")
        if ref is None and len(parts.others) == 1 and (tagged := self._folders(parts.others[0])).ranks:
            return self._step(parts.others[0], step, tagged)  # ptdbg's guide puts the tag below the step
        if ref is None:
            self._note(folder, "missing", say("readers.step_folder_holds_no_rank_dump"))
        return [] if ref is None else [ref]

    def _several(self, folder: str, used: str, left: list[RankRef]) -> None:
        names = ", ".join(ref.label for ref in left)
        self._note(
            folder,
            "several_runs",
            say("readers.several_runs_wrote_into_step_left", used=used, names=names),
        )

    def _rank(self, folder: str, step: int, rank: int | None, *, label: str | None = None) -> RankRef | None:
        """The rank dumped into a folder, None where there is none. label: unless it is the folder's name"""
        name = os.path.basename(folder) if label is None else label
        return _first(Place(folder=folder, root=self.root, step=step, rank=rank, label=name, note=self._note))

    def _folders(self, folder: str) -> Folders:
        steps: list[tuple[int, str]] = []
        ranks: list[tuple[int, str]] = []
        singles: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(folder) as entries:
                listed = [entry for _, entry in zip(range(ENTRY_LIMIT), entries, strict=False)]
        except OSError as error:
            self._note(folder, "unreadable", say("readers.folder_cannot_listed", reason=error.strerror))
            listed = []
        for entry in sorted(listed, key=lambda entry: natural_key(entry.name)):
            name = entry.name
            step, rank = step_number(name), rank_number(name)
            known = step is not None or rank is not None or is_single(name)
            if not _is_folder(entry):
                continue
            if entry.is_symlink() and not inside(self.root, entry.path):
                if known:
                    self._note(entry.path, "refused", say("readers.folder_link_out_dump_left_out"))
                continue
            if step is not None:
                steps.append((step, entry.path))
            elif rank is not None:
                ranks.append((rank, entry.path))
            elif is_single(name):
                singles.append(entry.path)
            elif not entry.is_symlink() and not name.startswith(".") and not _names_data(name):
                others.append(entry.path)
        return Folders(steps=steps, ranks=ranks, singles=singles, others=others)

    def _loc(self, path: str) -> str:
        relative = os.path.relpath(path, self.root)
        return os.path.basename(self.root) if relative == "." else relative

    def _note(self, path: str, kind: str, message: str) -> None:
        problem = Problem(loc=self._loc(path), kind=kind, message=message)
        if problem not in self.problems:
            self.problems.append(problem)


def _first(place: Place, asked: Callable[[DumpFormat], bool] = lambda _: True) -> RankRef | None:
    """The rank of the first format that has one in a folder."""
    return next((ref for one in formats() if asked(one) and (ref := one.find_rank(place)) is not None), None)


def _names_data(name: str) -> bool:
    return any(one.names_data(name) for one in formats())


def _silent(_path: str, _kind: str, _message: str) -> None:
    pass


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _newest(ref: RankRef) -> tuple[bool, int, tuple[tuple[int, int, str], ...]]:
    """Sort key: with data before without, then by time, then by number."""
    try:
        changed = os.stat(ref.dump_json).st_mtime_ns
    except OSError:
        changed = 0
    return format_of(ref).has_data(ref), changed, natural_key(ref.label)
