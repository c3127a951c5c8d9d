"""The list of calls to look at: who is on it, in which order, and what each stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pipeline.comparing import compare

from dumpscope.analysis.suspects import format_times, growth
from dumpscope.domain.facts import Spread, Suspect
from dumpscope.domain.suspects import EACH, ROWS, blind_of, keep_suspects, list_suspects
from dumpscope.index.pair_queries.reach import follow
from dumpscope.index.store.codec import pack_spread, unpack_spread


def suspect(kind: str, pair: int, step: int = 0) -> Suspect:
    return Suspect(kind=kind, step=step, rank=0, node=f"n{pair}", pair=pair, why="", why_said=[])  # type: ignore[arg-type]


def test_the_error_grows_by_what_is_shown_of_it() -> None:
    errors = np.array([[0.1, 0.5], [-1, 0.5], [0, 0.5], [0.1, np.nan], [-1, -1]])
    found = growth(errors, np.array([9.0, 2, 3, 4, 0]), np.array([9.0, 8, 5, 4, 1]))
    assert found.tolist()[:2] == pytest.approx([5, 4])
    assert np.isnan(found[2:]).all()


def test_numbers_are_written_short() -> None:
    assert [format_times(times) for times in (3.14159, 26.22, 98.22, 143.5)] == ["3.14", "26.2", "98.2", "144"]


def test_the_most_telling_of_each_kind_stay_and_origins_are_not_listed_twice() -> None:
    found = [suspect("amplifier", pair) for pair in range(6)] + [suspect("amplifier", 0, step=1), suspect("blind", 0)]
    kept = keep_suspects(found, {(0, 0, 0)})
    assert [(one.step, one.kind, one.pair) for one in kept] == [
        (0, "amplifier", 1), (0, "amplifier", 2), (0, "amplifier", 3), (1, "amplifier", 0), (0, "blind", 0),
    ]  # fmt: skip
    assert EACH == 3


def test_the_list_has_at_most_ten_rows_and_settings_come_last(dumps: Path) -> None:
    answer, _ = compare(dumps / "stat_fault", dumps / "stat_golden")
    rows = list_suspects(answer, (0, 0))
    assert [one.kind for one in rows[:2]] == ["origin", "amplifier"]
    assert {one.kind for one in rows[2:]} <= {"steep"}
    assert [one.times for one in rows[2:]] == sorted((one.times or 0 for one in rows[2:]), reverse=True)
    assert len(rows) <= ROWS
    assert blind_of(answer, (0, 0)) is None


def test_a_call_that_settings_explain_is_followed_by_them(dumps: Path) -> None:
    answer, _ = compare(dumps / "target_fault", dumps / "stat_golden")
    assert answer.settings
    assert [one.kind for one in list_suspects(answer, (0, 0))][-1] == "setting"


@given(st.integers(1, 40), st.data())
def test_a_reach_is_what_a_walk_from_reader_to_reader_finds(nodes: int, data: st.DataObject) -> None:
    edges = sorted(data.draw(st.sets(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=80)))
    edges = [(reader, maker) for reader, maker in edges if maker < reader]
    columns = np.array(edges, np.int32).reshape(-1, 2)
    differs = np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)), bool)
    spread = Spread(reader=columns[:, 0], maker=columns[:, 1], differs=differs)
    again = unpack_spread(pack_spread(spread))
    assert again.reader.tolist() == spread.reader.tolist()
    assert again.maker.tolist() == spread.maker.tolist()
    assert again.differs.tolist() == spread.differs.tolist()
    start = data.draw(st.integers(0, nodes - 1))
    known = {start}
    while more := {reader for reader, maker in edges if maker in known} - known:
        known |= more
    own = np.zeros(nodes, bool)
    own[start] = True
    assert np.flatnonzero(follow(again, own)).tolist() == sorted(known - {start})
