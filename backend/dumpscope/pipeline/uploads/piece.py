"""One piece of a file on its way into an unfinished upload, checked against its checksum."""

from __future__ import annotations

import zlib

from dumpscope.errors import ConflictError
from dumpscope.pipeline.uploads.unfinished import Unfinished
from dumpscope.texts import say


class SentPiece:
    """Writes what arrives. Where a checksum was given, the last bytes wait until all of it is checked, so that no file is whole
    before that."""

    def __init__(self, upload: Unfinished, path: str, size: int, offset: int, checksum: int | None) -> None:
        self._upload, self._path, self._size = upload, path, size
        self._offset = self._at = offset
        self._checksum = checksum
        self._crc = 0
        self._waiting = b""

    def add(self, data: bytes) -> None:
        """Bytes that follow those before."""
        if self._checksum is None:
            self._write(data)
            return
        self._crc = zlib.crc32(data, self._crc)
        if data:
            self._write(self._waiting)
            self._waiting = data

    def end(self) -> None:
        """No more bytes come. Raises ConflictError where they are not what the checksum says; nothing of them stays then."""
        if self._checksum is not None and self._crc != self._checksum:
            self._upload.rewind(self._path, self._offset)
            raise ConflictError(
                say("pipeline.piece_not_what_checksum_says_damaged"),
                where=self._path,
                hint=say("api.send_again"),
            )
        self._write(self._waiting)

    def _write(self, data: bytes) -> None:
        self._upload.write(self._path, self._size, self._at, data)
        self._at += len(data)
