"""Replies: strict JSON, pages of limited size, cursors."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from fastapi import Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from dumpscope.errors import UsageError
from dumpscope.index.store.codec import storable
from dumpscope.index.store.page import Page, Seek
from dumpscope.index.trees.tree_levels import Level, Levels
from dumpscope.index.trees.trees import TreeRow
from dumpscope.texts import say

REPLY_BYTES: Final = 190_000
"""A page ends before its JSON exceeds this; the documented limit is 200 kB."""

Row = TypeVar("Row")


class StrictJSON(JSONResponse):
    """JSON that every parser can read: a NaN is an error here instead of an invalid token in the reply."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )


def reply(model: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """One wire model as the body."""
    return Response(_dumped(model), status, headers, media_type="application/json")


def page_reply(page: Page[Row], wire: Callable[[Row], BaseModel], *, walkable: bool = False) -> Response:
    """A page of models, cut before it exceeds REPLY_BYTES. walkable: also give a `prev` cursor."""
    pieces: list[bytes] = []
    size = 0
    for row in reversed(page.rows) if page.back else page.rows:
        piece = _dumped(wire(row))
        size += len(piece) + 1
        if pieces and size > REPLY_BYTES:
            break
        pieces.append(piece)
    if page.back:
        pieces.reverse()
    cut = len(page.rows) - len(pieces)
    first, end = (cut, len(page.rows)) if page.back else (0, len(pieces))
    more, before = page.more or end < len(page.rows), page.before or first > 0
    following = encode_cursor(page.keys[end - 1], page.total) if more and pieces else None
    start = None if page.start is None else page.start + first
    tail: dict[str, Any] = {"next": following, "total": page.total, "start": start}
    if walkable:
        tail["prev"] = encode_cursor(page.keys[first], page.total, back=True) if before and pieces else None
    body = b'{"items":[' + b",".join(pieces) + b"]," + json.dumps(tail, separators=(",", ":")).encode()[1:]
    return Response(body, media_type="application/json")


def levels_reply(levels: Levels, wire: Callable[[TreeRow], BaseModel]) -> Response:
    """The path to a node. It ends early before it exceeds REPLY_BYTES; then `next` is the level to ask for."""
    pieces: list[bytes] = []
    size = 0
    for level in levels.levels:
        piece = _level(level, wire)
        size += len(piece) + 1
        if pieces and size > REPLY_BYTES:
            break
        pieces.append(piece)
    end = levels.first + len(pieces)
    tail = {"depth": levels.depth, "next": end if pieces and end < levels.depth else None}
    body = b'{"levels":[' + b",".join(pieces) + b"]," + json.dumps(tail, separators=(",", ":")).encode()[1:]
    return Response(body, media_type="application/json")


def _level(level: Level, wire: Callable[[TreeRow], BaseModel]) -> bytes:
    """A level as JSON; if its rows are too large, only those nearest to the path."""
    page = level.page
    rows = [_dumped(wire(row)) for row in page.rows]
    first = last = next(place for place, row in enumerate(page.rows) if row.entry == level.entry)
    room = REPLY_BYTES - 1000 - len(rows[first])
    while last + 1 < len(rows) and len(rows[last + 1]) < room:
        last += 1
        room -= len(rows[last]) + 1
    while first > 0 and len(rows[first - 1]) < room:
        first -= 1
        room -= len(rows[first]) + 1
    more, before = page.more or last + 1 < len(rows), page.before or first > 0
    tail = {
        "parent": level.parent,
        "next": encode_cursor(page.keys[last], page.total) if more else None,
        "prev": encode_cursor(page.keys[first], page.total, back=True) if before else None,
        "total": page.total,
        "start": (page.start or 0) + first,
    }
    body = b",".join(rows[first : last + 1])
    return b'{"items":[' + body + b"]," + json.dumps(tail, separators=(",", ":")).encode()[1:]


def list_reply(
    found: Sequence[tuple[tuple[Any, ...], Row]],
    limit: int,
    total: int | None,
    count: Callable[[], int],
    wire: Callable[[Row], BaseModel],
) -> Response:
    """A page of a list that was read one row beyond `limit`. found: (key, row) pairs; count: total if the cursor has none"""
    page = Page(
        rows=[row for _key, row in found[:limit]],
        keys=[key for key, _row in found[:limit]],
        more=len(found) > limit,
        total=count() if total is None else total,
    )
    return page_reply(page, wire)


def encode_cursor(key: Sequence[Any], total: int, *, back: bool = False) -> str:
    text = json.dumps([list(key), total, int(back)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> tuple[Seek | None, int | None]:
    """(key to continue from, total of the list); raises UsageError for text that is no cursor."""
    if not cursor:
        return None, None
    try:
        raw = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        key, total, back = json.loads(raw)
        sound = isinstance(key, list) and type(total) is int and 1 <= len(key) <= 2
        sound = sound and all(isinstance(part, int | float | str) and _fits(part) for part in key) and _fits(total)
    except (ValueError, TypeError, binascii.Error, UnicodeError, RecursionError):
        sound = False
    if not sound:
        raise UsageError(say("api.cursor_not_one_ours"), hint=say("api.pass_next_page_before_none_start"))
    clean = tuple(storable([part])[0] if isinstance(part, str) else part for part in key)
    return Seek(key=clean, back=bool(back)), total


def _fits(part: int | float | str) -> bool:
    if isinstance(part, int):
        return abs(part) < 2**63
    return isinstance(part, str) or not math.isnan(part)


def after(cursor: str | None) -> int | None:
    """Key of a cursor over one integer column."""
    seek, _total = decode_cursor(cursor)
    if seek is None:
        return None
    seek.check(int)
    return int(seek.key[0])


def _dumped(model: BaseModel) -> bytes:
    return model.model_dump_json(by_alias=True).encode("utf-8", "replace")
