"""Which keys a tensor record has, and where: few forms are common to all records of a dump."""

from __future__ import annotations

from typing import Final

from dumpscope_format.schema import TENSOR_KEYS

KNOWN: Final = frozenset((*TENSOR_KEYS, "md5", "data_name"))
LIMIT: Final = 1000

Layout = tuple[int, int, tuple[tuple[str, int], ...]]
"""Places behind the usual keys: of data_name and of md5, -1 where there is none, and of keys that only some tool writes."""

_COUNT: Final = len(TENSOR_KEYS)


class Layouts(dict[tuple[str, ...], Layout | None]):
    """Layouts by the keys of a record; None where it does not begin with all the usual ones, in their order."""

    def __missing__(self, keys: tuple[str, ...]) -> Layout | None:
        found = _layout(keys)
        if len(self) < LIMIT:
            self[keys] = found
        return found


def _layout(keys: tuple[str, ...]) -> Layout | None:
    if keys[:_COUNT] != TENSOR_KEYS:
        return None
    places = {key: place for place, key in enumerate(keys[_COUNT:])}
    rest = tuple((key, place) for key, place in places.items() if key not in KNOWN)
    return places.get("data_name", -1), places.get("md5", -1), rest
