"""Take a multipart upload apart while it streams, straight into files below one folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from dumpscope.errors import LimitError, Problem, UsageError

NAME_LIMIT: Final = 64
"""Bytes of a form field other than a file that are read (the dump's name)."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_DEPTH: Final = 16
_PART_BYTES: Final = 255


@dataclass(slots=True, kw_only=True)
class Received:
    """files: relative paths as written; problems: parts that were refused, one by one; name: the form's `name`, if any"""

    files: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    bytes: int = 0
    name: str = ""


class Receiver:
    """Feed it the body's pieces with `write`, then `finish`. `folder` must be new and empty.

    Raises UsageError for a body that is not multipart, LimitError past `limit` bytes or `files` files; what was written then is
    for the caller to remove.
    """

    def __init__(self, content_type: str, folder: Path, *, limit: int, files: int) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise UsageError(
                "the upload is not multipart/form-data",
                hint='send every file as a part named "files" with its relative path',
            )
        self.result = Received()
        self._folder = folder
        self._limit, self._files = limit, files
        self._taken: dict[str, str] = {}
        self._folders: set[str] = set()
        self._header: list[bytes] = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._stream: BinaryIO | None = None
        self._text: bytearray | None = None
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._data,
                "on_part_end": self._end,
            },
        )

    def write(self, piece: bytes) -> None:
        self.result.bytes += len(piece)
        if self.result.bytes > self._limit:
            raise LimitError(
                f"the upload is larger than {self._limit >> 20} MiB",
                hint="register the folder by its path, or raise DUMPSCOPE_UPLOAD_MIB",
            )
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise UsageError(f"the upload is damaged: {error}", hint="send it again") from error

    def finish(self) -> Received:
        try:
            self._parser.finalize()
        except MultipartParseError as error:
            raise UsageError(f"the upload is damaged: {error}", hint="send it again") from error
        if self._stream is not None:
            raise UsageError("the upload ends in the middle of a file", hint="send it again")
        return self.result

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _begin(self) -> None:
        self._headers = {}
        self._header = [b"", b""]

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0] += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1] += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = [b"", b""]

    def _headers_finished(self) -> None:
        _kind, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        given = options.get(b"filename")
        if given is None:
            self._text = bytearray() if options.get(b"name") == b"name" else None
            return
        shown = given.decode("utf-8", "replace")
        if len(self.result.files) + len(self.result.problems) >= self._files:
            raise LimitError(
                f"more than {self._files} files", hint="upload one archive, or register the folder by its path"
            )
        reason = self._refusal(shown)
        if reason is not None:
            self.result.problems.append(
                Problem(loc=shown[:500], kind="refused", message=f"{reason} The file was left out.")
            )
            return
        target = self._folder.joinpath(*shown.split("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        self._stream = open(target, "xb")  # noqa: SIM115  (closed at the part's end)
        self.result.files.append(shown)

    def _refusal(self, name: str) -> str | None:
        """Why a file of this name is not written, None where it may be."""
        parts = name.split("/")
        if not name or any(part in ("", ".") for part in parts):
            return "Its name is empty, absolute or not in its shortest form."
        if ".." in parts:
            return "Its name climbs out of the upload with `..`."
        if "\\" in name or _DRIVE.match(name):
            return "Its name is an absolute or Windows path."
        if any(ord(letter) < 32 or letter == "\ufffd" for letter in name):
            return "Its name holds control characters or is not UTF-8."
        if len(parts) > _DEPTH or any(len(part.encode()) > _PART_BYTES for part in parts):
            return "Its name is too long or too deep."
        folded = name.casefold()
        above = [("/".join(parts[:depth])).casefold() for depth in range(1, len(parts))]
        if folded in self._taken or folded in self._folders or any(folder in self._taken for folder in above):
            return "Another file of the upload has its name (upper and lower case count as equal)."
        self._taken[folded] = name
        self._folders.update(above)
        return None

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._stream is not None:
            self._stream.write(data[start:end])
        elif self._text is not None and len(self._text) < NAME_LIMIT * 4:
            self._text += data[start:end]

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        elif self._text is not None:
            self.result.name = bytes(self._text).decode("utf-8", "replace")[:NAME_LIMIT].strip()
            self._text = None


def free_bytes(folder: Path) -> int:
    """Bytes that can still be written where `folder` lies."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize
