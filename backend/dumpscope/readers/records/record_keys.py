"""Where the keys of a tensor record are: the records of a dump have only a few different orders of keys."""

from __future__ import annotations

import re
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


_MINDSPORE: Final = re.compile(r"(?:mindspore\.)?((?:B?Float|Complex|U?Int)[0-9]{1,3}|Bool)", re.IGNORECASE)


def torch_dtype(name: str) -> str:
    """The name of a dtype as torch writes it: MindSpore's `Float32`, `BFloat16` and `mindspore.int8` are the same types.

    numpy's names (`float32`) and names that are not known stay as they are.
    """
    found = _MINDSPORE.fullmatch(name)
    if found is None or (name == name.lower() and "." not in name):
        return name
    return f"torch.{found[1].lower()}"
