"""Records of tensors are read by one of two ways, and both see the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from dumpscope.domain.records import Items, Role
from dumpscope.readers.msprobe.json_decode import MARK
from dumpscope.readers.records.leaves import Leaves
from dumpscope_format.schema import TENSOR_KEYS

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([f"{MARK}NaN", f"{MARK}Infinity", f"{MARK}-Infinity"]),
)
EXTRA = st.dictionaries(
    st.sampled_from(["data_name", "md5", "counts", "stride", "absent", "device_mesh", "other"]),
    st.one_of(
        st.text(max_size=4),
        st.lists(st.integers(-5, 2**62), max_size=3),
        st.dictionaries(st.sampled_from(["zeros", "nan", "inf"]), st.integers(1, 9), max_size=2),
        st.just([f"{MARK}NaN", 1.5]),
        st.none(),
    ),
    max_size=4,
)


def _columns(items: Items) -> dict[str, Any]:
    """All columns, codes replaced by what they stand for."""
    return {
        "stats": [
            None if math.isnan(number) else number for number in np.where(items.stat_state < 4, items.stats, 0).ravel()
        ],
        "state": items.stat_state.tolist(),
        "hash": [items.hashes[code] if code >= 0 else None for code in items.hash],
        "value": [items.values[code] if code >= 0 else None for code in items.value],
        "data_name": [items.data_names[code] if code >= 0 else None for code in items.data_name],
        "path": [items.paths[code] for code in items.path],
        "dtype": [items.dtypes[code] for code in items.dtype],
        "shape": [items.shapes[code] for code in items.shape],
        "grad": items.requires_grad.tolist(),
    }


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), EXTRA, st.booleans())
def test_the_fast_way_and_the_slow_one_read_the_same(
    numbers: tuple[Any, ...], extra: dict[str, Any], grad: bool
) -> None:
    record = dict(zip(TENSOR_KEYS, ("torch.Tensor", "torch.float32", [2, 3], *numbers, grad), strict=True)) | extra
    fast, slow = Leaves(lambda kind, message: None), Leaves(lambda kind, message: None)
    for _ in range(2):  # the first of a kind is always read the slow way
        fast.role(0, Role.INPUT, [record])
        slow.walk(0, Role.INPUT, "0", record, 1)
    assert _columns(fast.items()) == _columns(slow.items())


def test_records_of_our_own_dumps_are_read_the_fast_way() -> None:
    record = dict(zip(TENSOR_KEYS, ("torch.Tensor", "torch.float32", [2, 3], 1.0, 0.0, 0.5, 2.0, False), strict=True))
    forms = [
        {},
        {"data_name": "a.pt"},
        {"counts": {"zeros": 3}},
        {"stride": [1, 2]},
        {"data_name": "a.pt", "md5": "00"},
    ]
    leaves = Leaves(lambda kind, message: None)
    leaves.role(0, Role.INPUT, [record])
    for extra in forms:
        assert leaves._tensor(0, Role.INPUT, -1, 0, record | extra), extra


@given(st.lists(NUMBERS, min_size=4, max_size=4))
def test_a_negative_zero_is_read_as_the_zero_that_a_database_keeps(numbers: list[Any]) -> None:
    record = dict(zip(TENSOR_KEYS, ("torch.Tensor", "torch.float32", [2], -0.0, *numbers[1:], False), strict=True))
    leaves = Leaves(lambda kind, message: None)
    for _ in range(2):
        leaves.role(0, Role.INPUT, [record])
    stats = leaves.items().stats
    assert not np.signbit(stats[stats == 0]).any()
