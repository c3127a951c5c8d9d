"""The type of a file that is no dump, by its first bytes, and advice for the user."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from dumpscope.errors import ForeignError, UnreadableError
from dumpscope.readers.regular_file import open_regular
from dumpscope.texts import say
from dumpscope_format.monitor import SUFFIX

HEAD: Final = 4096
LISTED: Final = 200
"""Files and folders below a folder that are looked at."""
_PACK: Final = say("readers.unpack_name_folder_pack_dump_zip")
_BESIDE: Final = say("readers.name_folder_dump_belongs_dump_json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """word: stable, for programs; text: what the file is; hint: what to do instead"""

    word: str
    text: str
    hint: str


def _kind(word: str, text: str, hint: str) -> Kind:
    return Kind(word=word, text=text, hint=hint)


CUT: Final = _kind("cut", "", say("readers.copy_send_again_whole"))
COMPRESSED: Final = _kind(
    "compressed", say("readers.compressed_file_without_tar"), say("readers.unpack_name_file_pack_folder_tar")
)
_EMPTY: Final = _kind("empty", say("readers.empty_file"), say("readers.copy_send_again_let_run_write"))
_OFFICE: Final = _kind("document", say("readers.document"), say("readers.name_folder_dump_zip_tar"))
_TORCH: Final = _kind("tensor", say("readers.saved_tensor_model"), say("readers.name_dump_or_compare_checkpoints"))
_ZIP_CUT: Final = _kind(CUT.word, say("readers.cut_archive", archive="zip"), CUT.hint)
_ARCHIVE: Final = _kind("archive", say("readers.archive"), say("readers.name_not_folder"))
_TEXT: Final = _kind("text", say("readers.text_file"), say("readers.name_folder_dump_zip_tar"))
_JSON: Final = _kind("json", say("readers.json_file_without_records_dump"), _BESIDE)
_BINARY: Final = _kind("binary", say("readers.binary_file_no_known_kind"), say("readers.name_folder_dump_zip_tar"))
_TABLE: Final = _kind("table", say("readers.result_table"), say("readers.open_result_table"))
_VIS: Final = _kind("graph", say("readers.vis_graph"), say("readers.open_dumps_of_graph"))
_MONITOR: Final = _kind("monitor", say("readers.monitored_run"), say("readers.open_monitored_run"))
_VIS_ENDS: Final = (".vis", ".vis.db")
_MAGIC: Final = (
    (b"Rar!\x1a\x07", _kind("rar", say("readers.rar_archive"), _PACK)),
    (b"7z\xbc\xaf\x27\x1c", _kind("7z", say("readers.7_zip_archive"), _PACK)),
    (b"\x28\xb5\x2f\xfd", _kind("zstd", say("readers.packed_zstd"), _PACK)),
    (b"\x04\x22\x4d\x18", _kind("lz4", say("readers.packed_lz4"), _PACK)),
    (
        b"SQLite format 3\0",
        _kind("result", say("readers.sqlite_file_results"), say("readers.open_result_dumpscope_serve_file")),
    ),
    (b"\x1f\x8b", _ARCHIVE),
    (b"BZh", _ARCHIVE),
    (b"\xfd7zXZ\0", _ARCHIVE),
    (b"\x93NUMPY", _kind("tensor", say("readers.numpy_array"), _BESIDE)),
    *((b"\x80%c" % protocol, _TORCH) for protocol in range(2, 6)),
    (b"%PDF-", _OFFICE),
    (b"\xd0\xcf\x11\xe0", _OFFICE),
    (b"\x89PNG", _kind("image", say("readers.image"), say("readers.name_folder_dump_zip_tar"))),
    (b"\xff\xd8\xff", _kind("image", say("readers.image"), say("readers.name_folder_dump_zip_tar"))),
)
_TAIL: Final = 65_557
"""Bytes that the end of a zip archive may take: its last record and a comment."""
_OFFICE_NAMES: Final = (b"[Content_Types].xml", b"_rels/", b"xl/", b"word/", b"ppt/", b"docProps/", b"mimetype")
KINDS: Final = frozenset(
    kind.word
    for kind in (
        CUT,
        COMPRESSED,
        _MONITOR,
        _TABLE,
        _VIS,
        _ARCHIVE,
        _EMPTY,
        _TEXT,
        _JSON,
        _BINARY,
        *dict(_MAGIC).values(),
    )
)


def recognise(path: str) -> Kind:
    """What the file is; raises UnreadableError where it cannot be opened."""
    with open_regular(path) as stream:
        head = stream.read(HEAD)
        if head.startswith(b"PK\x03\x04"):
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL))
            return _zipped(head, stream.read())
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if not head.strip():
        return _EMPTY
    if head[257:262] == b"ustar":
        return _ARCHIVE
    if b"\0" in head or not _decodes(head):
        return _BINARY
    return _JSON if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else _TEXT


def refuse_file(path: str, shown: str) -> ForeignError:
    """The error for a file that is no dump. shown: what the user called it"""
    from dumpscope.readers.monitors.msprobe_csv import is_monitor_csv  # noqa: PLC0415
    from dumpscope.readers.result_tables.files import find_tables  # noqa: PLC0415

    kind = _VIS if path.endswith(_VIS_ENDS) else _TABLE if find_tables(path) else recognise(path)
    if path.endswith(SUFFIX) or (kind is _TEXT and is_monitor_csv(path)):
        kind = _MONITOR
    return ForeignError(say("readers.no_dump", text=kind.text), kind=kind.word, where=shown, hint=kind.hint)


def refuse_archive(path: str) -> ForeignError | None:
    """The error for an archive that is something else by its contents; None where it is a plain archive."""
    from dumpscope.readers.result_tables.files import find_tables  # noqa: PLC0415

    kind = recognise(path)
    if kind == _OFFICE and find_tables(path):
        kind = _TABLE
    if kind in (_OFFICE, _TORCH, _TABLE):
        return ForeignError(say("readers.no_dump", text=kind.text), kind=kind.word, where=path, hint=kind.hint)
    return None


def refuse_cut(path: str, archive: str, why: str) -> ForeignError:
    """The error for an archive of which nothing could be unpacked."""
    text = say("readers.cut_archive", archive=archive)
    return ForeignError(say("readers.is_2", text=text, why=why), kind=CUT.word, where=path, hint=CUT.hint)


def refuse_compressed(path: str) -> ForeignError:
    """The error for a single file that is compressed."""
    return ForeignError(
        say("readers.is_3", text=COMPRESSED.text), kind=COMPRESSED.word, where=path, hint=COMPRESSED.hint
    )


def telling(folder: str) -> tuple[str, Kind] | None:
    """Name and kind of a file that tells what else a folder without a dump is: a result, or a monitored run."""
    from dumpscope.readers.monitors.msprobe_csv import is_monitor_csv  # noqa: PLC0415

    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry, _ in zip(entries, range(LISTED), strict=False) if entry.is_file())
    for name in names:
        path = os.path.join(folder, name)
        try:
            if name.endswith(SUFFIX) or (name.endswith(".csv") and is_monitor_csv(path)):
                return name, _MONITOR
            if name == "result.db":
                return name, recognise(path)
        except (OSError, UnreadableError):
            continue
    return None


def contents(folder: str) -> tuple[str, Kind] | None:
    """Name and kind of a file in a folder without a dump, where all its files are of this kind; None for a mixture or no file."""
    found: tuple[str, Kind] | None = None
    seen = 0
    for above, folders, names in os.walk(folder):
        folders.sort()
        seen += 1
        for name in sorted(names):
            seen += 1
            path = os.path.join(above, name)
            try:
                kind = None if seen > LISTED or os.path.islink(path) else recognise(path)
            except (OSError, UnreadableError):
                return None
            if kind is None or (found is not None and found[1] != kind):
                return None
            found = found or (name, kind)
        if seen > LISTED:
            return None
    return found


def _zipped(head: bytes, tail: bytes) -> Kind:
    """By the name of its first entry: the whole directory of one from outside may be of any size."""
    if b"PK\x05\x06" not in tail:
        return _ZIP_CUT
    first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if first.startswith(_OFFICE_NAMES):
        return _OFFICE
    return _TORCH if first.endswith(b"data.pkl") else _ARCHIVE


def _decodes(head: bytes) -> bool:
    for cut_off in range(4):  # the last character may be cut
        try:
            head[: len(head) - cut_off].decode()
            return True
        except UnicodeDecodeError:
            continue
    return False
