"""Alignment of long sequences: it ends, keeps order and equal keys, and finds what moved, however little is sure."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.match import align as module
from dumpscope.match.align import align

Pairs = list[tuple[int, int]]
LAYER = ["linear", "view", "matmul", "softmax", "dropout", "add", "layer_norm"]


def sound(a: list[str], b: list[str], pairs: Pairs) -> bool:
    rising = all(i < k and j < n for (i, j), (k, n) in itertools.pairwise(pairs))
    return rising and all(a[i] == b[j] for i, j in pairs)


@pytest.mark.parametrize("weight", [4.0, 12.0], ids=["calls that look unlike", "calls that look alike"])
def test_a_call_more_in_front_of_thousands_shifts_them_by_one(weight: float) -> None:
    b = LAYER * 500
    a = ["extra", *b]
    begin = time.process_time()
    pairs = align(a, b, lambda _i, _j: weight)
    assert time.process_time() - begin < 20
    assert sound(a, b, pairs)
    assert len(pairs) >= 0.98 * len(b)


def test_sequences_that_have_little_in_common_are_aligned_in_bounded_time() -> None:
    b = LAYER * 500
    a = list(b)
    random.Random(3).shuffle(a)
    begin = time.process_time()
    pairs = align(a, b, lambda i, j: 1.0 + (i * 7 + j) % 5)
    assert time.process_time() - begin < 20
    assert sound(a, b, pairs)
    assert len(pairs) > len(b) // 4


def test_a_short_side_beside_a_very_long_one_is_aligned() -> None:
    b = LAYER * 5000
    a = b[20_000:20_030]
    assert sound(a, b, pairs := align(a, b, lambda _i, _j: 3.0))
    assert len(pairs) == len(a)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from("abc"), max_size=60),
    st.lists(st.sampled_from("abc"), max_size=60),
    st.lists(st.sampled_from([1.0, 4.0, 6.0, 12.0]), min_size=1, max_size=7),
)
def test_any_two_sequences_end_in_rising_pairs_of_equal_keys(a: list[str], b: list[str], weights: list[float]) -> None:
    """With limits so small that every path is taken."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("EXACT_CELLS", 24), ("WINDOW", 8), ("LOOKAHEAD", 5), ("RUN", 2)):
            patch.setattr(module, name, value)
        pairs = align(a, b, lambda i, j: weights[(3 * i + 5 * j) % len(weights)])
    assert sound(a, b, pairs)
