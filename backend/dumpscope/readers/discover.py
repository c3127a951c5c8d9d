"""What lies under a path: steps, ranks and their files, before any record is parsed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dumpscope.domain.records import Layout, RankRef
from dumpscope.errors import ForeignError, Problem, UnreadableError
from dumpscope.readers.file_type import contents, refuse_file
from dumpscope.readers.msprobe.json_members import open_regular
from dumpscope.readers.ptdbg.case_files import DATA_FOLDER, find_cases, is_cases, lone_cases
from dumpscope.readers.ptdbg.files import SUFFIX, Found, find_files, lone_file, rank_ref, without_processes
from dumpscope.readers.ptdbg.lines import looks_like_lines
from dumpscope.texts import say
from dumpscope_format.journal import JOURNAL, is_flushed, read_header
from dumpscope_format.paths import (
    CONSTRUCT_JSON,
    DEBUG_JSON,
    DUMP_JSON,
    STACK_JSON,
    inside,
    is_single,
    natural_key,
    rank_number,
    step_number,
)

HINT: Final = say("readers.name_dump_root_holding_step0_step")
SEARCH_DEPTH: Final = 3
ENTRY_LIMIT: Final = 20_000
HEAD: Final = 64 << 10
_EMPTY_DATA: Final = re.compile(rb'"data"\s*:\s*\{\s*\}')
_DATA: Final = re.compile(rb'"data"\s*:\s*\{')
_DEBUG_LEVEL: Final = re.compile(rb'"level"\s*:\s*"debug"')


def discover(path: str | os.PathLike[str]) -> Layout:
    """Find steps and ranks under `path`, in natural order.

    Raises UnreadableError where nothing there is a dump. Parts that are refused (links out of the dump, FIFOs and devices
    under a dump file's name) and second runs in one step folder are problems of the result.
    """
    named = os.fspath(path)
    try:
        status = os.stat(named)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(say("readers.cannot_opened", reason=reason), where=named, hint=HINT) from error
    real = os.path.realpath(named)
    if stat.S_ISDIR(status.st_mode):
        return _Search(root=real, shown=named).run()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(say("readers.neither_folder_nor_regular_file"), where=named, hint=HINT)
    return _lone_file(real, named)


def _lone_file(real: str, named: str) -> Layout:
    name = os.path.basename(real)
    if name in (STACK_JSON, CONSTRUCT_JSON):
        raise UnreadableError(
            say("readers.alone_no_dump", name=name), where=named, hint=say("readers.name_beside", dump_json=DUMP_JSON)
        )
    if is_cases(name):
        return Layout(root=os.path.dirname(real), ranks=[lone_cases(real)], problems=[])
    head = _head(real)
    named_so = name in (DUMP_JSON, DEBUG_JSON) and (not head.strip() or b"{" in head[:64])
    if name != JOURNAL and not named_so and not _DATA.search(head):
        if looks_like_lines(head) or (name.endswith(SUFFIX) and not head.strip()):
            return Layout(root=os.path.dirname(real), ranks=[lone_file(real)], problems=[])
        raise refuse_file(real, named)
    folder = os.path.dirname(real)
    parent = os.path.basename(os.path.dirname(folder))
    problems: list[Problem] = []
    ref = RankRef(
        step=step_number(parent) or 0,
        rank=rank_number(os.path.basename(folder)),
        label="",
        folder=folder,
        dump_json=real,
        stack_json=_side(folder, STACK_JSON, folder, problems),
        construct_json=_side(folder, CONSTRUCT_JSON, folder, problems),
        debug=_is_debug(real, name, head),
    )
    return Layout(root=folder, ranks=[ref], problems=problems)


def _is_debug(path: str, name: str, head: bytes) -> bool:
    if name == JOURNAL:
        return read_header(path).get("level") == "debug"
    return name == DEBUG_JSON or (name != DUMP_JSON and _DEBUG_LEVEL.search(head) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Sub-folders of one folder that may belong to a dump, in natural order."""

    steps: list[tuple[int, str]]
    ranks: list[tuple[int, str]]
    singles: list[str]
    others: list[str]


class _Search:
    def __init__(self, *, root: str, shown: str) -> None:
        self.root = root
        self.shown = shown
        self.problems: list[Problem] = []

    def run(self) -> Layout:
        root = self._descend(self.root, SEARCH_DEPTH, self._is_dump)
        if root is None:
            return self._cases()
        self.root = root
        ranks = self._dump(root)
        if not ranks:
            raise self._nothing()
        return Layout(root=root, ranks=ranks, problems=self.problems)

    def _cases(self) -> Layout:
        """What need_replicate left, where no other dump lies beside it."""
        root = self._descend(self.root, SEARCH_DEPTH, lambda folder: bool(find_cases(folder, self.root, _unsaid)))
        if root is None:
            raise self._nothing()
        self.root = root
        return Layout(root=root, ranks=find_cases(root, root, self._note), problems=self.problems)

    def _nothing(self) -> UnreadableError:
        detail = say("readers.holds_no_dump")
        found = None if self.problems else contents(self.root)
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
        return UnreadableError(detail, where=self.shown, hint=HINT)

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
        if any(os.path.lexists(os.path.join(folder, name)) for name in (DUMP_JSON, DEBUG_JSON, JOURNAL)):
            return True
        parts = self._folders(folder)
        if parts.steps or parts.ranks or parts.singles:
            return True
        return self._files(folder, flat=rank_number(os.path.basename(folder)) is None) is not None

    def _dump(self, folder: str) -> list[RankRef]:
        name = os.path.basename(folder)
        above = step_number(os.path.basename(os.path.dirname(folder))) or 0
        ref = self._rank(folder, above, rank_number(name), name)
        if ref is not None:
            return [ref]
        parts = self._folders(folder)
        if not (parts.steps or parts.ranks or parts.singles):
            found = self._files(folder, flat=rank_number(name) is None)
            return [] if found is None else [self._ptdbg(found, folder, above, name)]
        ranks: list[RankRef] = []
        for step, below in parts.steps:
            ranks += self._step(below, step, self._folders(below))
        if parts.steps and (parts.ranks or parts.singles):
            self._note(folder, "ignored", say("readers.rank_folders_beside_step_folders_left"))
        return ranks or self._step(folder, step_number(name) or 0, parts)

    def _step(self, folder: str, step: int, parts: Folders) -> list[RankRef]:
        ranks = [ref for number, below in parts.ranks if (ref := self._rank(below, step, number, None, any_form=True))]
        ranks = without_processes(ranks, self._note)
        singles = [ref for below in parts.singles if (ref := self._rank(below, step, None, None, any_form=True))]
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
        ref = self._rank(folder, step, None, "", any_form=True)
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

    def _files(self, folder: str, *, flat: bool) -> Found | None:
        return find_files(folder, self.root, self._note, flat=flat)

    def _ptdbg(self, found: Found, folder: str, step: int, name: str) -> RankRef:
        rank = rank_number(name)
        ref = rank_ref(found, step=step, rank=rank, label="" if rank is None else name, folder=folder)
        return without_processes([ref], self._note)[0]

    def _rank(
        self, folder: str, step: int, rank: int | None, label: str | None, *, any_form: bool = False
    ) -> RankRef | None:
        """The dump files of one folder, None where it has none. label None: the folder's own name; any_form: ptdbg's too"""
        dump = _side(folder, DUMP_JSON, self.root, self.problems, self._loc(folder))
        debug = _side(folder, DEBUG_JSON, self.root, self.problems, self._loc(folder))
        main = dump or debug
        left = _side(folder, JOURNAL, self.root, self.problems, self._loc(folder))
        if left is not None and (
            main is None or not is_flushed(left)
        ):  # the journal holds at least what the JSON holds
            main, dump, debug = left, (None if read_header(left).get("level") == "debug" else left), None
        if main is None and any_form:
            found = self._files(folder, flat=False)
            name = os.path.basename(folder) if label is None else label
            return None if found is None else rank_ref(found, step=step, rank=rank, label=name, folder=folder)
        if main is None:
            return None
        if dump and debug:
            self._note(
                folder, "ignored", say("readers.beside_left_out_name_read", debug_json=DEBUG_JSON, dump_json=DUMP_JSON)
            )
        where = self._loc(folder)
        return RankRef(
            step=step,
            rank=rank,
            label=os.path.basename(folder) if label is None else label,
            folder=folder,
            dump_json=main,
            stack_json=_side(folder, STACK_JSON, self.root, self.problems, where),
            construct_json=_side(folder, CONSTRUCT_JSON, self.root, self.problems, where),
            debug=dump is None,
        )

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
            elif not entry.is_symlink() and not name.startswith(".") and not DATA_FOLDER.fullmatch(name):
                others.append(entry.path)
        return Folders(steps=steps, ranks=ranks, singles=singles, others=others)

    def _loc(self, path: str) -> str:
        relative = os.path.relpath(path, self.root)
        return os.path.basename(self.root) if relative == "." else relative

    def _note(self, path: str, kind: str, message: str) -> None:
        problem = Problem(loc=self._loc(path), kind=kind, message=message)
        if problem not in self.problems:
            self.problems.append(problem)


def _unsaid(_path: str, _kind: str, _message: str) -> None:
    pass


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _side(folder: str, name: str, root: str, problems: list[Problem], where: str = "") -> str | None:
    """Path of a file of a rank folder, None where it is absent or refused (which is noted)."""
    path = os.path.join(folder, name)
    if not os.path.lexists(path):
        return None
    reason = None
    if os.path.islink(path) and not inside(root, path):
        reason = say("readers.link_out_dump")
    else:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                reason = say("readers.not_regular_file")
        except OSError as error:
            reason = say("readers.cannot_opened_2", reason=error.strerror)
    if reason is None:
        return path
    loc = name if where in ("", ".") else f"{where}/{name}"
    problem = Problem(loc=loc, kind="refused", message=say("readers.not_read", name=name, reason=reason))
    if problem not in problems:
        problems.append(problem)
    return None


def _newest(ref: RankRef) -> tuple[bool, int, tuple[tuple[int, int, str], ...]]:
    """Sort key: with data before without, then by time, then by number."""
    try:
        changed = os.stat(ref.dump_json).st_mtime_ns
    except OSError:
        changed = 0
    head = _head(ref.dump_json)
    return bool(head) and _EMPTY_DATA.search(head) is None, changed, natural_key(ref.label)


def _head(path: str) -> bytes:
    """First 64 kB of a regular file, b"" where it cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read(HEAD)
    except (UnreadableError, OSError):
        return b""
