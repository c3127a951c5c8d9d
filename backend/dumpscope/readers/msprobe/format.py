"""msprobe's dumps as a format: dump.json or debug.json in a rank's folder, or the journal that a killed run left."""

from __future__ import annotations

import os
import re
from typing import Final

from dumpscope.domain.records import RankDump, RankRef
from dumpscope.errors import UnreadableError
from dumpscope.readers.formats import DumpFormat, Note, Place
from dumpscope.readers.msprobe.rank import holds_records_alone, read_rank
from dumpscope.readers.regular_file import read_head, refusal
from dumpscope.texts import say
from dumpscope_format.journal import JOURNAL, is_flushed, read_header
from dumpscope_format.paths import CONSTRUCT_JSON, DEBUG_JSON, DUMP_JSON, STACK_JSON, rank_number, step_number

_FILES: Final = frozenset({DUMP_JSON, DEBUG_JSON, JOURNAL})
_DATA: Final = re.compile(rb'"data"\s*:\s*\{')
_EMPTY_DATA: Final = re.compile(rb'"data"\s*:\s*\{\s*\}')
_DEBUG_LEVEL: Final = re.compile(rb'"level"\s*:\s*"debug"')


class MsprobeFormat(DumpFormat):
    name = "msprobe"
    file_words = say("readers.dump_json_or_debug_json", dump_json=DUMP_JSON, debug_json=DEBUG_JSON)
    before_folders = True
    no_rerun = None

    def find_rank(self, place: Place) -> RankRef | None:
        folder, root, note = place.folder, place.root, place.note
        dump = _file(folder, DUMP_JSON, root, note)
        debug = _file(folder, DEBUG_JSON, root, note)
        main = dump or debug
        left = _file(folder, JOURNAL, root, note)
        if left is not None and (main is None or not is_flushed(left)):  # it holds at least what the JSON holds
            main, dump, debug = left, (None if read_header(left).get("level") == "debug" else left), None
        if main is None:
            return None
        if dump and debug:
            note(
                folder, "ignored", say("readers.beside_left_out_name_read", debug_json=DEBUG_JSON, dump_json=DUMP_JSON)
            )
        return RankRef(
            step=place.step,
            rank=place.rank,
            label=place.label,
            folder=folder,
            dump_json=main,
            stack_json=_file(folder, STACK_JSON, root, note),
            construct_json=_file(folder, CONSTRUCT_JSON, root, note),
            debug=dump is None,
        )

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return read_rank(ref, follow_stored_path=follow_stored_path)

    def writes_folder(self, place: Place) -> bool:
        return any(os.path.lexists(os.path.join(place.folder, name)) for name in _FILES)

    def open_file(self, path: str, head: bytes, note: Note) -> RankRef | None:
        folder, name = os.path.split(path)
        if name in (STACK_JSON, CONSTRUCT_JSON):
            raise UnreadableError(
                say("readers.alone_no_dump", name=name),
                where=path,
                hint=say("readers.name_beside", dump_json=DUMP_JSON),
            )
        named_so = name in (DUMP_JSON, DEBUG_JSON) and (not head.strip() or b"{" in head[:64])
        if name != JOURNAL and not named_so and not _DATA.search(head) and not holds_records_alone(head):
            return None
        return RankRef(
            step=step_number(os.path.basename(os.path.dirname(folder))) or 0,
            rank=rank_number(os.path.basename(folder)),
            label="",
            folder=folder,
            dump_json=path,
            stack_json=_file(folder, STACK_JSON, folder, note),
            construct_json=_file(folder, CONSTRUCT_JSON, folder, note),
            debug=_is_debug(path, name, head),
        )

    def names_file(self, name: str) -> bool:
        return name in _FILES

    def has_data(self, ref: RankRef) -> bool:
        head = read_head(ref.dump_json)
        return bool(head) and _EMPTY_DATA.search(head) is None


MSPROBE: Final = MsprobeFormat()


def _is_debug(path: str, name: str, head: bytes) -> bool:
    if name == JOURNAL:
        return read_header(path).get("level") == "debug"
    return name == DEBUG_JSON or (name != DUMP_JSON and _DEBUG_LEVEL.search(head) is not None)


def _file(folder: str, name: str, root: str, note: Note) -> str | None:
    """Path of a file of a rank folder, None where it is absent or refused (which is noted)."""
    path = os.path.join(folder, name)
    if not os.path.lexists(path):
        return None
    reason = refusal(path, root)
    if reason is None:
        return path
    note(path, "refused", say("readers.not_read", name=name, reason=reason))
    return None
