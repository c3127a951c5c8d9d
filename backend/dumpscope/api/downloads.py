"""Downloads: files that the browser saves."""

from __future__ import annotations

import re
from typing import BinaryIO, Final
from urllib.parse import quote

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

PIECE: Final = 1 << 18
"""Bytes of a file per piece."""


class OpenFile(StreamingResponse):
    """An open file. It is closed after it was sent or when the client disconnects, which frees the disk at once."""

    def __init__(self, stream: BinaryIO, headers: dict[str, str], media_type: str) -> None:
        pieces = iter(lambda: stream.read(PIECE), b"")
        super().__init__(pieces, headers=headers, media_type=media_type)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()


def attachment(name: str, kind: str) -> str:
    """The Content-Disposition header of a file NAME.kind to save."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") or "comparison"
    return f"attachment; filename=\"{plain[:100]}.{kind}\"; filename*=UTF-8''{quote(name[:100], safe='')}.{kind}"
