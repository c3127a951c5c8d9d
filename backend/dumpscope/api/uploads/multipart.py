"""Splits a multipart upload while it streams: every file goes to a store as it arrives."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Protocol

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from dumpscope.api.uploads.checksums import compare_sums, parse_sum
from dumpscope.errors import LimitError, UsageError
from dumpscope.texts import say

NAME_LIMIT: Final = 64
"""Most letters of a form field other than a file (the dump's name, the CRC-32 of the file after it)."""


class Store(Protocol):
    """Stores the files of an upload, one after the other."""

    def refusal(self, name: str) -> str | None:
        """Why the file is left out, None if it may be written."""

    def refuse(self, name: str, reason: str) -> None:
        """Note that the file was left out."""

    def create(self, name: str) -> BinaryIO:
        """A stream that takes the file's bytes."""

    def complete(self, name: str) -> None:
        """Called when all bytes have arrived and the stream is closed."""


@dataclass(slots=True, kw_only=True)
class Received:
    """files: relative paths as written; refused: parts that were left out; name: the form's `name`, if any"""

    files: list[str] = field(default_factory=list)
    refused: int = 0
    bytes: int = 0
    name: str = ""


class Receiver:
    """Call `write` with each piece of the body, then `finish`.

    Raises UsageError for a body that is not multipart, LimitError past `limit` bytes or `files` files, ConflictError if a file
    does not match the field `crc32` before it; then the caller must remove the written files.
    """

    def __init__(self, content_type: str, store: Store, *, limit: int, files: int) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise UsageError(
                say("api.upload_not_multipart_form_data"),
                hint=say("api.send_every_file_part_named_files"),
            )
        self.result = Received()
        self._store = store
        self._limit, self._files = limit, files
        self._header: list[bytes] = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._stream: BinaryIO | None = None
        self._text: bytearray | None = None
        self._field = b""
        self._wanted: int | None = None
        self._sum = 0
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
                say("api.upload_larger_than_mib", limit=self._limit >> 20),
                hint=say("api.register_folder_by_path_raise_dumpscope_upload_mib"),
            )
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise UsageError(say("api.upload_damaged", error=error), hint=say("api.send_again")) from error

    def finish(self) -> Received:
        try:
            self._parser.finalize()
        except MultipartParseError as error:
            raise UsageError(say("api.upload_damaged", error=error), hint=say("api.send_again")) from error
        if self._stream is not None:
            raise UsageError(say("api.upload_ends_middle_file"), hint=say("api.send_again"))
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
            self._field = options.get(b"name", b"")
            self._text = bytearray() if self._field in (b"name", b"crc32") else None
            return
        shown = given.decode("utf-8", "replace")
        if len(self.result.files) + self.result.refused >= self._files:
            raise LimitError(
                say("api.more_than_files", files=self._files), hint=say("api.upload_one_archive_register_folder_by")
            )
        reason = self._store.refusal(shown)
        if reason is not None:
            self.result.refused += 1
            self._wanted = None
            self._store.refuse(shown, reason)
            return
        self._sum = 0
        self._stream = self._store.create(shown)
        self.result.files.append(shown)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._stream is not None:
            piece = data[start:end]
            self._stream.write(piece)
            if self._wanted is not None:
                self._sum = zlib.crc32(piece, self._sum)
        elif self._text is not None and len(self._text) < NAME_LIMIT * 4:
            self._text += data[start:end]

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            if self._wanted is not None:
                compare_sums(self._wanted, self._sum, self.result.files[-1])
                self._wanted = None
            self._store.complete(self.result.files[-1])
        elif self._text is not None:
            text = bytes(self._text).decode("utf-8", "replace")[:NAME_LIMIT].strip()
            if self._field == b"name":
                self.result.name = text
            else:
                self._wanted = parse_sum(text)
            self._text = None
