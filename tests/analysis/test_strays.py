"""Which ranks of a step are odd."""

from __future__ import annotations

from hypothesis import given, strategies as st

from dumpscope.analysis.ranks.strays import find_strays


def test_one_of_64_ranks_strays_where_the_others_agree() -> None:
    (stray,) = find_strays((0, rank, 412 if rank == 37 else 0) for rank in range(64))
    assert (stray.step, stray.rank, stray.no, stray.usual, stray.others) == (0, 37, 412, 0, 63)


def test_a_difference_that_reached_all_ranks_makes_none_odd() -> None:
    assert find_strays((0, rank, 120 if rank == 3 else 100) for rank in range(8)) == []


def test_half_of_the_ranks_are_no_exception() -> None:
    assert find_strays((0, rank, 50 if rank % 2 else 0) for rank in range(8)) == []


def test_of_two_ranks_neither_is_the_odd_one() -> None:
    assert find_strays([(0, 0, 0), (0, 1, 90)]) == []


def test_each_step_is_looked_at_alone_and_the_worst_rank_comes_first() -> None:
    counts = [(step, rank, 0) for step in range(2) for rank in range(20) if (step, rank) not in ((1, 4), (1, 9))]
    found = find_strays([*counts, (1, 4, 7), (1, 9, 70)])
    assert [(one.step, one.rank) for one in found] == [(1, 9), (1, 4)]


@given(st.lists(st.integers(0, 1000), max_size=40))
def test_at_most_a_quarter_of_the_ranks_stray_and_each_is_worse_than_the_rest(counts: list[int]) -> None:
    found = find_strays((0, rank, no) for rank, no in enumerate(counts))
    odd = {one.rank for one in found}
    assert len(odd) <= max(1, len(counts) / 4)
    if odd:
        assert min(counts[rank] for rank in odd) > max(
            (no for rank, no in enumerate(counts) if rank not in odd), default=0
        )
