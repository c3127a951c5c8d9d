"""ptdbg_ascend's dumps as formats: records with their results, and what `need_replicate` left of calls that overflowed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from dumpscope.domain.records import RankDump, RankRef
from dumpscope.ptdbg.reader import case_files, files
from dumpscope.ptdbg.reader.case_files import DATA_FOLDER, find_cases, is_cases, lone_cases
from dumpscope.ptdbg.reader.cases import read_cases
from dumpscope.ptdbg.reader.files import SUFFIX, find_files, lone_file, rank_ref, without_processes
from dumpscope.ptdbg.reader.lines import looks_like_lines
from dumpscope.ptdbg.reader.rank import read_ptdbg
from dumpscope.readers.formats import DumpFormat, Note, Place
from dumpscope.texts import say


class PtdbgFormat(DumpFormat):
    name = files.LAYOUT
    traits = files.TRAITS
    file_words = say("readers.ptdbg_file", suffix=SUFFIX)
    no_rerun = say("readers.ptdbg_keeps_not_all_arguments")
    rerun_hint = say("readers.dump_step_again_msprobes_form_old")

    def find_rank(self, place: Place) -> RankRef | None:
        found = find_files(place.folder, place.root, place.note, flat=place.alone)
        if found is None:
            return None
        label = "" if place.alone else place.label
        return rank_ref(found, step=place.step, rank=place.rank, label=label, folder=place.folder)

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return read_ptdbg(ref)

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        is_lines = looks_like_lines(head) or (path.endswith(SUFFIX) and not head.strip())
        return lone_file(path) if is_lines else None

    def names_file(self, name: str) -> bool:
        return name.endswith(SUFFIX)

    def number_ranks(self, refs: Sequence[RankRef], note: Note) -> list[RankRef]:
        return without_processes(refs, note)


class CasesFormat(DumpFormat):
    """One rank for each process that left files in a folder, which no folders of steps and ranks contain."""

    name = case_files.LAYOUT
    traits = case_files.TRAITS
    no_rerun = say("readers.need_replicate_keeps_no_results")
    rerun_hint = PtdbgFormat.rerun_hint

    def find_rank(self, place: Place) -> RankRef | None:
        return None

    def find_ranks(self, folder: str, root: str, note: Note) -> list[RankRef]:
        return find_cases(folder, root, note)

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return read_cases(ref)

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        return lone_cases(path) if is_cases(os.path.basename(path)) else None

    def names_file(self, name: str) -> bool:
        return is_cases(name)

    def names_data(self, name: str) -> bool:
        return DATA_FOLDER.fullmatch(name) is not None


PTDBG: Final = PtdbgFormat()
CASES: Final = CasesFormat()
