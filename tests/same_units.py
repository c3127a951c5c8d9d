"""Whether two units of a comparison hold the same numbers, column by column."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dumpscope.domain.result import Unit


def assert_same(one: Unit, other: Unit) -> None:
    for part in ("pairs", "items", "item_opinions", "node_opinions"):
        _assert_columns(getattr(one, part), getattr(other, part), part)


def _assert_columns(mine: Any, theirs: Any, place: str) -> None:
    for field in dataclasses.fields(mine):
        left, right = getattr(mine, field.name), getattr(theirs, field.name)
        if dataclasses.is_dataclass(left):
            _assert_columns(left, right, f"{place}.{field.name}")
        else:
            np.testing.assert_array_equal(left, right, err_msg=f"{place}.{field.name}")
