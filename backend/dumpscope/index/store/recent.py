"""The values asked for last, kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Keeps the `size` values that were asked for last; threads may share it. Two that ask at once may both load."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key | None, load: Callable[[], Value]) -> Value:
        """The value under this key, loaded where it is not kept. None: it is not to be kept."""
        if key is None:
            return load()
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        loaded = load()
        with self._lock:
            self._values[key] = loaded
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return loaded
