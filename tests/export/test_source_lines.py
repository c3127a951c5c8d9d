"""The lines around a call, of one side and of two beside each other."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from dumpscope.export.source_lines import (
    AROUND,
    ROWS,
    LineRow,
    find_line,
    lines_alone,
    side_by_side,
)

LINES = st.lists(st.sampled_from(["", "a = 1", "b = f(a)", "    return b", "x", "y "]), min_size=1, max_size=90)


@st.composite
def placed(draw: st.DrawFn) -> tuple[list[str], int]:
    lines = draw(LINES)
    return lines, draw(st.integers(1, len(lines)))


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[str], int, list[str], int]:
    """A text and what became of it: some lines inserted, removed or changed, the call's line still there."""
    lines, at = draw(placed())
    other: list[str] = []
    place = 0
    for number, line in enumerate(lines, start=1):
        what = draw(st.sampled_from(["keep"] * 8 + ["insert", "remove", "change"]))
        if what == "insert":
            other += ["inserted"]
        if number == at or what in ("keep", "insert"):
            other.append(line)
        elif what == "change":
            other.append(line + " # changed")
        if number == at:
            place = len(other)
    return lines, at, other, place


@given(placed(), placed())
def test_rows_hold_each_line_around_the_calls_once_in_order_and_pair_only_equal_lines(
    one: tuple[list[str], int], two: tuple[list[str], int]
) -> None:
    check(*one, *two)


@given(edited())
def test_so_do_the_rows_of_a_text_and_of_what_became_of_it(pair: tuple[list[str], int, list[str], int]) -> None:
    check(*pair)


def check(target: list[str], target_at: int, golden: list[str], golden_at: int) -> None:
    rows = side_by_side(target, target_at, golden, golden_at)
    (call,) = [row for row in rows if row.at]
    assert (call.target, call.golden) == (target_at, golden_at)
    for numbers in ([row.target for row in rows], [row.golden for row in rows]):
        shown = [number for number in numbers if number is not None]
        assert shown == list(range(shown[0], shown[-1] + 1))
    place = rows.index(call)
    assert place <= ROWS
    assert len(rows) - place - 1 <= ROWS
    for row in rows:
        assert row.kind in ("same", "changed", "target", "golden")
        if row.target is not None and row.golden is not None:
            equal = target[row.target - 1].rstrip() == golden[row.golden - 1].rstrip()
            assert (row.kind == "same") == equal
            assert equal or row.kind == "changed"
        else:
            assert row.kind == ("golden" if row.target is None else "target")


@given(placed())
def test_equal_texts_are_the_lines_of_one_with_eight_around(one: tuple[list[str], int]) -> None:
    lines, at = one
    rows = side_by_side(lines, at, lines, at)
    alone = lines_alone(lines, at, "target")
    assert {row.kind for row in rows} == {"same"}
    assert [(row.target, row.at) for row in rows] == [(row.target, row.at) for row in alone]
    assert [row.target for row in rows] == list(range(max(1, at - AROUND), min(len(lines), at + AROUND) + 1))


def test_a_line_inserted_above_shifts_nothing_else() -> None:
    target = [f"line {number}" for number in range(1, 30)]
    golden = [*target[:15], "inserted", *target[15:]]
    rows = side_by_side(target, 20, golden, 21)
    assert [(row.target, row.golden) for row in rows if row.kind != "same"] == [(None, 16)]
    assert rows[0] == LineRow(kind="same", target=12, golden=12)
    assert rows[-1] == LineRow(kind="same", target=28, golden=29)


def test_many_lines_of_one_side_do_not_push_the_others_out_of_reach() -> None:
    target = [*["before"] * 3, *[f"new {number}" for number in range(40)], "call", "after"]
    golden = [*["before"] * 3, "call", "after"]
    rows = side_by_side(target, 44, golden, 4)
    assert len(rows) == ROWS + 2
    assert rows[-2:] == [
        LineRow(kind="same", target=44, golden=4, at=True),
        LineRow(kind="same", target=45, golden=5),
    ]


@pytest.mark.parametrize(
    ("line", "code", "found"),
    [
        (2, "b = 2", (2, True)),
        (1, "b = 2", (2, False)),
        (5, "b = 2", (4, False)),
        (3, "gone()", (3, False)),
        (99, "gone()", (None, False)),
        (2, "", (2, None)),
        (0, "", (None, None)),
        (99, "", (None, None)),
    ],
)
def test_the_line_of_a_call_is_found_again_by_its_text(
    line: int, code: str, found: tuple[int | None, bool | None]
) -> None:
    assert find_line(["a = 1", "  b = 2", "c = 3", "b = 2 "], line, code) == found
