"""What holds of any pair of dumps: a dump is its own equal, roles can be exchanged, and workers change nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st
from same_units import assert_same

from dumpscope.domain.facts import VERDICT_WORDS, Method
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.match import Matched, match
from dumpscope.pipeline.compare import in_process
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover, read_rank
from match.small import Call, dump, linear, relu

REAL = [
    ("target_extra_op", "golden"), ("target_renamed", "golden"), ("target_bf16", "golden"), ("conv_mix_stat", "conv_L1"),
    ("weird_mix", "weird_L1"), ("checkpoint", "golden"), ("cfg_L0_stat", "stat_golden"), ("microbatch", "golden"),
]  # fmt: skip


def rank(folder: Path) -> RankDump:
    return read_rank(discover(folder).ranks[0])


def found(matched: Matched, *, flipped: bool) -> set[tuple[int, int, int, float]]:
    pairs = matched.pairs
    sides = (pairs.golden, pairs.target) if flipped else (pairs.target, pairs.golden)
    columns = (*sides, pairs.method, pairs.confidence)
    return set(zip(*(column.tolist() for column in columns), strict=True))


def found_items(matched: Matched, *, flipped: bool) -> set[tuple[int, int]]:
    items = matched.items
    sides = (items.golden, items.target) if flipped else (items.target, items.golden)
    return set(zip(*(column.tolist() for column in sides), strict=True))


def assert_roles_can_be_exchanged(one: RankDump, other: RankDump) -> None:
    straight, turned = match(one, other, Options()), match(other, one, Options())
    assert found(straight, flipped=False) == found(turned, flipped=True)
    assert found_items(straight, flipped=False) == found_items(turned, flipped=True)


@pytest.mark.parametrize(("one", "other"), REAL)
def test_exchanging_two_real_dumps_exchanges_the_roles_and_nothing_else(dumps: Path, one: str, other: str) -> None:
    assert_roles_can_be_exchanged(rank(dumps / one), rank(dumps / other))


calls = st.builds(
    Call, st.sampled_from(["Functional.linear", "Functional.relu", "Torch.mul"]), st.integers(0, 4), st.booleans()
)


CROSSED = [relu(1), linear(1)], [linear(2), linear(1), relu(2), relu(1)]
"""Either pair could be kept, and as good as each other they are."""


@settings(max_examples=60, deadline=None)
@example(*CROSSED)
@given(st.lists(calls, max_size=14), st.lists(calls, max_size=14))
def test_exchanging_any_two_runs_exchanges_the_roles_and_nothing_else(one: list[Call], other: list[Call]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_roles_can_be_exchanged(dump(Path(folder) / "one", one), dump(Path(folder) / "other", other))


@settings(max_examples=30, deadline=None)
@given(st.lists(calls, min_size=1, max_size=14))
def test_any_run_pairs_with_itself_by_name(run: list[Call]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        side = dump(Path(folder), run)
        pairs = match(side, side, Options()).pairs
    assert (pairs.target == pairs.golden).all()
    assert (pairs.method == Method.EXACT).all()
    assert (pairs.confidence == 1).all()


@pytest.mark.parametrize(
    "name",
    ["golden", "target_nan", "weird_mix", "stat_bf16", "md5_golden", "checkpoint", "conv_L0", "dist2_stat_fault"],
)
def test_a_dump_compared_with_itself_is_yes_throughout(dumps: Path, name: str) -> None:
    layout = discover(dumps / name)
    outcome = compare_layouts(layout, layout, Options(), paths=("", ""), jobs=1)
    counts = outcome.answer.counts
    assert counts.yes > 0
    assert (counts.no, counts.warning, counts.unmatched_target, counts.unmatched_golden) == (0, 0, 0, 0)
    assert outcome.answer.origins == []
    assert {VERDICT_WORDS[code] for unit in outcome.units for code in unit.node_opinions.verdict} <= {"yes", "n/a"}


@pytest.mark.parametrize("kind", ["tensor", "stat"])
def test_the_number_of_workers_changes_nothing(dumps: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "WORTH", 0)
    sides = discover(dumps / f"dist2_{kind}_fault"), discover(dumps / f"dist2_{kind}_golden")
    one, *others = [compare_layouts(*sides, Options(), paths=("", ""), jobs=jobs) for jobs in (1, 2, 3)]
    for other in others:
        assert other.answer == one.answer
        for mine, theirs in zip(one.units, other.units, strict=True):
            assert_same(mine, theirs)
