"""Modules over ranks and over steps: the two maps of a file, of all ranks and steps, also those whose calls it does not hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dumpscope.api.one_file.asking import Held
from dumpscope.api.one_file.calls import Unit

BUCKETS: Final = 40
"""Columns of steps; as many as the page asks for."""
MAP_BYTES: Final = 300_000
"""JSON of one map after which no further row is taken."""


def take_maps(held: Held, top: str, summary: Mapping[str, Any], units: list[Unit]) -> None:
    """The map of ranks of each step that the file holds, and the map of steps, where there are several; the page searches."""
    several = {word: len({one[word] for one in summary["units"]}) > 1 for word in ("step", "rank")}
    if several["rank"]:
        for step in dict.fromkeys(unit.step for unit in units):
            _take_rows(held, f"{top}/rank-map", step=step)
    if any(several.values()):
        for by_rank in (False, True) if several["rank"] else (False,):
            _take_rows(held, f"{top}/trends", buckets=BUCKETS, by_rank=by_rank)


def _take_rows(held: Held, path: str, **query: Any) -> None:
    """All pages as one reply; `total` is the number of all rows, also of those that are not here."""
    page = held.look(path, **query, q="")
    if page is None:
        return
    rows, size = page["items"], len(json.dumps(page["items"]))
    following = page
    while following["next"] is not None and size < MAP_BYTES:
        following = held.look(path, **query, q="", cursor=following["next"])
        rows += following["items"]
        size += len(json.dumps(following["items"]))
    body = json.dumps({**page, "items": rows, "next": None}, ensure_ascii=False).encode("utf-8", "replace")
    held.keep(path, query, 200, body)
