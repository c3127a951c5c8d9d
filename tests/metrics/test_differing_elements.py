"""Elements that are farther apart than a tolerance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.metrics import differing_elements
from dumpscope.metrics.differing_elements import find_differing

VALUES = st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), max_size=40)


def beyond(one: float, other: float, absolute: float, relative: float) -> bool:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return False
    gap = abs(one - other)
    return not math.isfinite(gap) or gap > absolute + relative * abs(other)


@given(VALUES, VALUES, st.sampled_from([0.0, 0.001, 1.0]), st.sampled_from([0.0, 0.001, 1.0]), st.integers(1, 7))
def test_blocks_find_what_a_loop_over_pairs_finds(
    first: list[float], second: list[float], absolute: float, relative: float, block: int
) -> None:
    size = max(len(first), len(second))
    pairs = list(zip(first + [0.0] * (size - len(first)), second + [0.0] * (size - len(second)), strict=True))
    wanted = [place for place, pair in enumerate(pairs) if beyond(*pair, absolute, relative)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differing_elements, "BLOCK", block)
        found = find_differing(np.array(first), np.array(second), absolute=absolute, relative=relative, limit=3)
    assert (found.total, found.count) == (size, len(wanted))
    assert set(found.places) <= set(wanted)
    assert len(found.places) == min(3, len(wanted))


def test_the_farthest_apart_come_first_and_the_bound_itself_passes() -> None:
    golden = np.array([1.0, 1.0, 0.0, np.nan, np.inf])
    found = find_differing(np.array([1.5, 3.0, np.nan, np.nan, np.inf]), golden, absolute=0.25, relative=0.25, limit=9)
    assert found.places == [2, 1]
    assert found.largest == np.inf
