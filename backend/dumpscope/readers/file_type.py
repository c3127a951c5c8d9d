"""The type of a file that is no dump, by its first bytes, and advice for the user."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from dumpscope.errors import ForeignError, UnreadableError
from dumpscope.readers.regular_file import open_regular

HEAD: Final = 4096
LISTED: Final = 200
"""Files and folders below a folder that are looked at."""
_PACK: Final = "unpack it and name its folder, or pack the dump as .zip or .tar.gz"
_BESIDE: Final = "name the folder of the dump that it belongs to, with the dump.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """word: stable, for programs; text: what the file is; hint: what to do instead"""

    word: str
    text: str
    hint: str


def _kind(word: str, text: str, hint: str) -> Kind:
    return Kind(word=word, text=text, hint=hint)


CUT: Final = _kind("cut", "a {archive} archive that is cut off or damaged", "copy or send it again, whole")
COMPRESSED: Final = _kind(
    "compressed", "a compressed file without a .tar in it", "unpack it and name the file, or pack the folder as .tar.gz"
)
_EMPTY: Final = _kind("empty", "an empty file", "copy or send it again, or let the run write it to its end")
_OFFICE: Final = _kind("document", "a document", "name the folder of the dump, or a .zip or .tar of it")
_TORCH: Final = _kind("tensor", "a saved tensor or model", _BESIDE)
_ZIP_CUT: Final = _kind(CUT.word, CUT.text.format(archive="zip"), CUT.hint)
_ARCHIVE: Final = _kind("archive", "an archive", "name it, not the folder it is in")
_TEXT: Final = _kind("text", "a text file", "name the folder of the dump, or a .zip or .tar of it")
_JSON: Final = _kind("json", "a JSON file without the records of a dump", _BESIDE)
_BINARY: Final = _kind(
    "binary", "a binary file of no known kind", "name the folder of the dump, or a .zip or .tar of it"
)
_MAGIC: Final = (
    (b"Rar!\x1a\x07", _kind("rar", "a RAR archive", _PACK)),
    (b"7z\xbc\xaf\x27\x1c", _kind("7z", "a 7-Zip archive", _PACK)),
    (b"\x28\xb5\x2f\xfd", _kind("zstd", "packed with zstd", _PACK)),
    (b"\x04\x22\x4d\x18", _kind("lz4", "packed with lz4", _PACK)),
    (
        b"SQLite format 3\0",
        _kind("result", "a SQLite file, as results are", "open a result with `dumpscope serve FILE`"),
    ),
    (b"\x1f\x8b", _ARCHIVE),
    (b"BZh", _ARCHIVE),
    (b"\xfd7zXZ\0", _ARCHIVE),
    (b"\x93NUMPY", _kind("tensor", "a NumPy array", _BESIDE)),
    *((b"\x80%c" % protocol, _TORCH) for protocol in range(2, 6)),
    (b"%PDF-", _OFFICE),
    (b"\xd0\xcf\x11\xe0", _OFFICE),
    (b"\x89PNG", _kind("image", "an image", "name the folder of the dump, or a .zip or .tar of it")),
    (b"\xff\xd8\xff", _kind("image", "an image", "name the folder of the dump, or a .zip or .tar of it")),
)
_TAIL: Final = 65_557
"""Bytes that the end of a zip archive may take: its last record and a comment."""
_OFFICE_NAMES: Final = (b"[Content_Types].xml", b"_rels/", b"xl/", b"word/", b"ppt/", b"docProps/", b"mimetype")
KINDS: Final = frozenset(
    kind.word for kind in (CUT, COMPRESSED, _ARCHIVE, _EMPTY, _TEXT, _JSON, _BINARY, *dict(_MAGIC).values())
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
    kind = recognise(path)
    return ForeignError(f"is {kind.text}, no dump", kind=kind.word, where=shown, hint=kind.hint)


def refuse_archive(path: str) -> ForeignError | None:
    """The error for an archive that is something else by its contents; None where it is a plain archive."""
    kind = recognise(path)
    if kind in (_OFFICE, _TORCH):
        return ForeignError(f"is {kind.text}, no dump", kind=kind.word, where=path, hint=kind.hint)
    return None


def refuse_cut(path: str, archive: str, why: str) -> ForeignError:
    """The error for an archive of which nothing could be unpacked."""
    text = CUT.text.format(archive=archive)
    return ForeignError(f"is {text}: {why}", kind=CUT.word, where=path, hint=CUT.hint)


def refuse_compressed(path: str) -> ForeignError:
    """The error for a single file that is compressed."""
    return ForeignError(f"is {COMPRESSED.text}", kind=COMPRESSED.word, where=path, hint=COMPRESSED.hint)


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
