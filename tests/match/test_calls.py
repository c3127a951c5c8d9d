"""Matching keeps every pair it can, whatever was inserted, dropped, swapped or renamed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.facts import METHOD_WORDS
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, item_name
from dumpscope.errors import LimitError, UsageError
from dumpscope.match import Matched, match
from dumpscope.match.align import align
from dumpscope.readers import discover, read_rank
from match.small import Call, dump, linear, product, relu


def pairs(matched: Matched, target: RankDump, golden: RankDump) -> list[tuple[str | None, str | None, str]]:
    """(target name, golden name, method) in order."""
    return [
        (
            target.nodes.names[t] if t >= 0 else None,
            golden.nodes.names[g] if g >= 0 else None,
            METHOD_WORDS[method],
        )
        for t, g, method in zip(matched.pairs.target, matched.pairs.golden, matched.pairs.method, strict=True)
    ]


@pytest.mark.parametrize("place", range(11))
def test_ten_linears_against_eleven_give_ten_pairs_and_one_extra(tmp_path: Path, place: int) -> None:
    golden_calls = [linear(seed) for seed in range(10)]
    target_calls = [*golden_calls[:place], linear(99), *golden_calls[place:]]
    target, golden = dump(tmp_path / "t", target_calls), dump(tmp_path / "g", golden_calls)
    found = pairs(match(target, golden, Options()), target, golden)
    assert [name for name, partner, _ in found if partner is None] == [f"Functional.linear.{place}.forward"]
    assert sum(partner is not None for _, partner, _ in found) == 10
    assert all(partner is not None for name, partner, _ in found if name != f"Functional.linear.{place}.forward")


@pytest.mark.parametrize("more", [[product(1, 1.0), product(1, 0.9)], [product(1, 0.9), product(1, 1.0)]])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_call_inserted_beside_one_of_its_operator_is_told_by_its_other_arguments(
    tmp_path: Path, more: list[Call], swapped: bool
) -> None:
    """Both receive the same tensor; the factor 0.9 tells which of them the other side made, whatever their numbers."""
    calls = [linear(0), *more, linear(2)], [linear(0), product(1, 0.9), linear(2)]
    target, golden = (
        dump(tmp_path / side, some) for side, some in zip("tg", calls[:: -1 if swapped else 1], strict=True)
    )
    found = pairs(match(target, golden, Options()), target, golden)
    extra = f"Tensor.__mul__.{[call.factor for call in more].index(1.0)}.forward"
    assert [one or other for one, other, _ in found if one is None or other is None] == [extra]


def test_two_swapped_calls_keep_both_pairs(tmp_path: Path) -> None:
    target = dump(tmp_path / "t", [linear(1), relu(2), linear(3)])
    golden = dump(tmp_path / "g", [relu(2), linear(1), linear(3)])
    found = pairs(match(target, golden, Options()), target, golden)
    assert all(name and partner for name, partner, _ in found)
    assert len(found) == 3


def test_a_missing_call_stands_in_its_place(tmp_path: Path) -> None:
    golden = dump(tmp_path / "g", [linear(1), relu(2), linear(3)])
    target = dump(tmp_path / "t", [linear(1), linear(3)])
    found = pairs(match(target, golden, Options()), target, golden)
    assert [partner for name, partner, _ in found if name is None] == ["Functional.relu.0.forward"]
    assert found[1][1] == "Functional.relu.0.forward"


def test_one_extra_call_a_layer_never_shifts_a_long_run(tmp_path: Path) -> None:
    golden_calls, target_calls = [], []
    for layer in range(400):
        block = [linear(3 * layer), relu(3 * layer + 1), linear(3 * layer + 2)]
        golden_calls += block
        target_calls += [*block[:2], relu(100_000 + layer), block[2]] if layer % 7 == 0 else block
    target, golden = dump(tmp_path / "t", target_calls), dump(tmp_path / "g", golden_calls)
    matched = match(target, golden, Options())
    assert int((matched.pairs.golden < 0).sum()) == len(range(0, 400, 7))
    assert int((matched.pairs.target < 0).sum()) == 0


def rank(folder: Path) -> RankDump:
    return read_rank(discover(folder).ranks[0])


def test_every_node_and_item_of_both_sides_stands_in_the_result_once(dumps: Path) -> None:
    target, golden = rank(dumps / "target_extra_op"), rank(dumps / "golden")
    matched = match(target, golden, Options())
    for column, dump_side in ((matched.pairs.target, target.nodes), (matched.pairs.golden, golden.nodes)):
        assert sorted(column[column >= 0].tolist()) == list(range(len(dump_side)))
    for column, items in ((matched.items.target, target.items), (matched.items.golden, golden.items)):
        assert sorted(column[column >= 0].tolist()) == list(range(len(items)))
    assert (np.diff(matched.items.pair) >= 0).all()


def test_the_tree_holds_every_pair_and_parents_come_first(dumps: Path) -> None:
    target, golden = rank(dumps / "golden"), rank(dumps / "target_extra_op")
    matched = match(target, golden, Options())
    tree = matched.tree
    assert sorted(tree.pair[tree.pair >= 0].tolist()) == list(range(len(matched.pairs)))
    has_parent = tree.parent >= 0
    assert (tree.order[tree.parent[has_parent]] < tree.order[has_parent]).all()
    assert sorted(tree.order.tolist()) == list(range(len(tree)))


@pytest.mark.parametrize("option", ["cell_mapping", "layer_mapping"])
def test_msprobes_own_mapping_files_label_their_pairs_mapped(dumps: Path, option: str) -> None:
    text = (dumps / "peer_results" / f"{option}.yaml").read_text()
    target, golden = rank(dumps / "target_renamed"), rank(dumps / "golden")
    found = pairs(match(target, golden, Options(**{option: text})), target, golden)  # type: ignore[arg-type]
    assert all(name and partner for name, partner, _ in found)
    assert {method for name, _, method in found if name and ".ffn." in name} == {"mapped"}
    assert {method for name, _, method in found if name and ".ffn." not in name} == {"exact"}


def test_a_data_mapping_pairs_the_named_items(dumps: Path) -> None:
    text = (dumps / "peer_results" / "data_mapping.yaml").read_text()
    target, golden = rank(dumps / "target_renamed"), rank(dumps / "golden")
    matched = match(target, golden, Options(data_mapping=text))
    assert not matched.problems
    mapped = {
        item_name(target, t): item_name(golden, g)
        for t, g in zip(matched.items.target.tolist(), matched.items.golden.tolist(), strict=True)
        if t >= 0 and g >= 0
    }
    key = "Module.layers.1.ffn.fc1.Linear.forward.0.output.0"
    assert mapped[key] == "Module.layers.1.mlp.fc1.Linear.forward.0.output.0"


def test_a_data_mapping_that_names_nothing_is_a_problem_not_a_crash(dumps: Path) -> None:
    target, golden = rank(dumps / "golden"), rank(dumps / "golden")
    matched = match(target, golden, Options(data_mapping="nowhere.input.0: elsewhere.input.0"))
    assert "nowhere.input.0" in matched.problems[0].message


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("data_mapping", "a: [", "data_mapping"),
        ("cell_mapping", "- a\n- b", "cell_mapping"),
        ("layer_mapping", "Block: ffn", "Block"),
        ("layer_mapping", "Block: {mlp: [ffn]}", "mlp"),
        ("data_mapping", "a.input.0: [b]", "a.input.0"),
        ("data_mapping", "a: 2001-99-99", "data_mapping"),
        ("cell_mapping", "{a: " * 5000, "cell_mapping"),
    ],
)
def test_a_bad_mapping_file_is_told_by_name(dumps: Path, option: str, text: str, words: str) -> None:
    side = rank(dumps / "golden")
    with pytest.raises((UsageError, LimitError), match=words):
        match(side, side, Options(**{option: text}))  # type: ignore[arg-type]


def test_fuzzy_pairs_what_is_left_by_order(dumps: Path) -> None:
    target, golden = rank(dumps / "target_extra_op"), rank(dumps / "golden")
    exact = match(target, golden, Options())
    fuzzy = match(target, golden, Options(fuzzy=True))
    assert int((fuzzy.pairs.target < 0).sum()) <= int((exact.pairs.target < 0).sum())


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_alignment_only_pairs_equal_keys_in_order_and_as_many_as_possible(a: list[str], b: list[str]) -> None:
    found = align(a, b, lambda _i, _j: 1.0)
    assert all(a[i] == b[j] for i, j in found)
    assert all(x[0] < y[0] and x[1] < y[1] for x, y in pairwise(found))
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)
    if a != b:
        assert len(found) == longest(a, b)


def longest(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_a_long_sequence_is_cut_without_losing_pairs() -> None:
    golden = [f"op{n % 13}" for n in range(4000)]
    target = [key for n, key in enumerate(golden) for key in ([key, "extra"] if n % 50 == 0 else [key])]
    place = dict(align(target, golden, certain(target, golden)))
    kept = [i for i, key in enumerate(target) if key != "extra"]
    assert [place.get(i) for i in kept] == list(range(4000))


def certain(target: list[str], golden: list[str]) -> Callable[[int, int], float]:
    rank_of = {}
    count = 0
    for i, key in enumerate(target):
        if key != "extra":
            rank_of[i] = count
            count += 1
    return lambda i, j: 12.0 if rank_of.get(i) == j else 2.0
