"""Where the keys of a tensor record are: the records of a dump have only a few different orders of keys."""

from __future__ import annotations

from typing import Final

from dumpscope_format.schema import TENSOR_KEYS

KNOWN: Final = frozenset((*TENSOR_KEYS, "md5", "data_name"))
LIMIT: Final = 1000

KeyOrder = tuple[int, int, tuple[tuple[str, int], ...]]
"""Places after the usual keys: of data_name, of md5 (-1 where absent), and of keys that only some tools write."""

_COUNT: Final = len(TENSOR_KEYS)


class KeyOrders(dict[tuple[str, ...], KeyOrder | None]):
    """Orders by the keys of a record; None where the record does not begin with all usual keys in their order."""

    def __missing__(self, keys: tuple[str, ...]) -> KeyOrder | None:
        found = _order(keys)
        if len(self) < LIMIT:
            self[keys] = found
        return found


def _order(keys: tuple[str, ...]) -> KeyOrder | None:
    if keys[:_COUNT] != TENSOR_KEYS:
        return None
    places = {key: place for place, key in enumerate(keys[_COUNT:])}
    rest = tuple((key, place) for key, place in places.items() if key not in KNOWN)
    return places.get("data_name", -1), places.get("md5", -1), rest
