"""Real runs of one model under different splits, compared with each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dumpscope.domain.joined import JoinedUnit
from dumpscope.errors import UsageError
from dumpscope.pipeline.compare.in_process import Outcome

Compare = Callable[..., Outcome]


def only(outcome: Outcome) -> JoinedUnit:
    assert outcome.answer.joined is not None
    (unit,) = outcome.answer.joined.units
    return unit


def causes(outcome: Outcome) -> list[str]:
    return [origin.node for origin in outcome.answer.origins]


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("tp2", "whole"), ("whole", "tp2"), ("tp4", "whole"), ("tp2", "tp4"), ("pp2", "whole"), ("pp2_micro", "whole_micro"),
        ("tp2pp2", "whole"), ("tp2pp2", "tp2"), ("tp2pp2", "tp4"), ("tp2pp2", "pp2"), ("dp2", "whole"), ("dp2", "tp2pp2"),
        ("dp4_same", "whole"), ("tp2_L1", "whole_L1"),
    ],
)  # fmt: skip
def test_healthy_runs_agree_whatever_their_splits(compared: Compare, target: str, golden: str) -> None:
    options = {"parallel": "{}"} if (target, golden) == ("tp2pp2", "tp4") else {}
    outcome = compared(target, golden, steps=(0,), **options)  # one of the runs has a second step
    assert outcome.answer.joined is not None
    counts = outcome.answer.counts
    assert (counts.no, counts.warning, causes(outcome)) == (0, 0, [])
    assert counts.yes > 300
    assert (
        counts.yes > 10 * counts.not_comparable or "dp2" in target
    )  # of replicas' weight gradients statistics say nothing
    assert not outcome.incomplete
    assert [one for one in outcome.answer.problems if one.kind == "odd_rank"] == []


@pytest.mark.parametrize(
    ("target", "golden", "module"),
    [
        ("tp2_fault", "whole", "Module.layers.2.mlp.up."),
        ("tp4_fault", "whole", "Module.layers.1.attention.qkv."),
        ("tp4_fault", "tp2", "Module.layers.1.attention.qkv."),
        ("tp2pp2_fault", "whole", "Module.layers.3.mlp.up."),
        ("dp2_fault", "whole", "Module.layers.1.mlp.down."),
        ("dp4_same_fault", "whole", "Module.layers.1.mlp.down."),
    ],
)
def test_a_fault_on_one_rank_is_found_in_its_module(compared: Compare, target: str, golden: str, module: str) -> None:
    found = causes(compared(target, golden))
    assert len(found) == 1
    assert found[0].startswith(module)


def test_a_fault_of_a_later_stage_is_told_under_the_layer_number_of_the_whole(compared: Compare) -> None:
    (origin,) = compared("pp2_fault", "whole").answer.origins
    assert origin.node.startswith("Tensor.__mul__")  # the fault: a call that the golden does not make
    first = compared("pp2_fault", "whole").answer.first_no
    assert first is not None
    assert first.node.startswith("Module.layers.2.norm2.")  # layers.0 of stage 1


def test_tensors_of_shards_are_joined_in_the_blocks_in_which_they_lie(compared: Compare) -> None:
    """Query, key and value are one weight, of which every shard holds a part each."""
    outcome = compared("tp2", "whole")
    assert outcome.answer.mode == "tensor"
    unit = outcome.units[0]
    pair = unit.target.nodes.names.index("Module.layers.0.attention.qkv.ColumnParallelLinear.forward.0")
    rows = [
        row for row, item in enumerate(unit.items.target.tolist()) if item >= 0 and unit.target.items.node[item] == pair
    ]
    assert len(rows) == 4
    assert (unit.facts.equal[rows[0]], unit.facts.unequal[rows[2]]) == (1, 0)  # the input, and the weight bit by bit
    assert all(unit.facts.elements[row] > 0 for row in rows)


def test_what_was_done_with_the_ranks_is_said(compared: Compare) -> None:
    outcome = compared("tp2pp2", "whole")
    unit = only(outcome)
    assert unit.target.ranks == [[[0, 1], [2, 3]]]
    assert (unit.target.offsets, unit.golden.ranks) == ([0, 2], [[[0]]])
    assert unit.target.shards["dimension 0"] > 0
    assert unit.target.shards["copy"] > 0
    assert unit.target.collectives > 0
    assert outcome.answer.joined is not None
    assert [reason["id"] for reason in outcome.answer.joined.reasons] == ["plan.shards", "plan.stages", "plan.ratio"]


def test_rows_say_what_they_were_joined_from(compared: Compare) -> None:
    target = compared("tp2", "whole").units[0].target
    assert target.ref.joined == (0, 1)
    said = {text for text in target.items.values if "joined" in text}
    assert '{"joined":[{"way":"join","by":"shards","ranks":[0,1],"dimension":0}]}' in said


def test_the_replica_that_strays_is_named(compared: Compare) -> None:
    outcome = compared("dp4_same_fault", "whole")
    stray, extra = only(outcome).target.strays
    assert stray.ranks == extra.ranks == [2]
    assert stray.node == "Module.layers.1.mlp.down.Linear.forward.0"
    assert (extra.node, extra.item) == ("Tensor.__mul__.2.forward", "")
    assert any("rank 2 differs from its copies" in one.message for one in outcome.answer.problems)


def test_gradients_of_replicas_that_share_a_batch_are_averaged(compared: Compare) -> None:
    outcome = compared("dp2", "whole")
    assert only(outcome).gradients == "mean"
    assert only(outcome).target.replicas["dimension 0"] > 0
    assert outcome.answer.counts.not_comparable == 0  # the tensors of sums are there


def test_partial_sums_are_not_judged_by_their_statistics(compared: Compare) -> None:
    outcome = compared("dp2_fault", "whole")
    unit = outcome.units[0]
    names = {unit.target.nodes.names[unit.target.items.node[item]] for item in rows_without_numbers(outcome)}
    assert any(name.endswith("parameters_grad.0") for name in names)
    assert only(outcome).target.replicas["sum"] > 50


def rows_without_numbers(outcome: Outcome) -> list[int]:
    unit = outcome.units[0]
    return [item for item in unit.items.target[unit.item_opinions.verdict == 1].tolist() if item >= 0]


def test_replicas_with_data_of_their_own_are_not_mixed(compared: Compare) -> None:
    outcome = compared("dp2_own", "whole")
    assert only(outcome).target.own_data == [0]
    first = outcome.answer.first_no
    assert first is not None
    assert first.node.startswith("Tensor.add_.")  # the optimizer's: its gradients are the mean over all data


def test_chunks_of_virtual_stages_are_put_in_order(compared: Compare) -> None:
    outcome = compared("vpp2", "whole")
    unit = only(outcome)
    assert (unit.target.chunks, unit.target.offsets) == (2, [0, 1, 2, 3])
    assert (outcome.answer.counts.no, causes(outcome)) == (0, [])
    names = outcome.units[0].target.nodes.names
    assert "Module.layers.3.mlp.down.Linear.forward.0" in names
    assert names.index("Module.layers.1.Block.forward.0") < names.index("Module.layers.2.Block.forward.0")
    assert names.index("Module.layers.2.Block.backward.0") < names.index("Module.layers.1.Block.backward.0")


def test_every_step_is_joined(compared: Compare) -> None:
    outcome = compared("pp2", "pp2", parallel="{target: {pp: 2}, golden: {pp: 2}}")
    assert outcome.answer.joined is not None
    assert [(unit.step, unit.rank) for unit in outcome.answer.joined.units] == [(0, 0), (1, 0)]
    assert outcome.answer.counts.no == 0


def test_a_plan_of_the_users_wins(compared: Compare) -> None:
    text = "units: [{rank: 5, target: {ranks: [[[0, 1]]]}, golden: {ranks: 0}}]"
    outcome = compared("tp2", "whole", parallel=text)
    assert [(unit.step, unit.rank) for unit in outcome.units] == [(0, 5)]
    assert outcome.answer.counts.no == 0


def test_a_dimension_of_the_users_wins(compared: Compare) -> None:
    text = "dimensions: {'Module.*.qkv.*.output.0': skip}"
    units = compared("tp2", "whole", parallel=text)
    assert only(units).target.shards["skip"] > only(compared("tp2", "whole")).target.shards.get("skip", 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{target: {tp: 3}}", "2 ranks cannot be cut into tp 3 times pp 1"),
        ("{target: {ranks: 4}}", "ranks is 4, and its dump has 2"),
        ("units: [{target: {ranks: [[[0, 7]]]}, golden: {ranks: 0}}]", "the target has no rank 7"),
        ("units: [{target: {ranks: [[[0], [1]]]}, golden: {ranks: [[[0, 1]]]}}]", "the golden has no rank 1"),
    ],
)
def test_a_plan_that_does_not_fit_the_dumps_is_refused(compared: Compare, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        compared("tp2", "whole", parallel=text)
    assert said in str(caught.value)


def test_equal_numbers_of_ranks_are_compared_one_by_one(compared: Compare) -> None:
    outcome = compared("dp2", "dp2_fault")
    assert outcome.answer.joined is None
    assert len(outcome.units) == 2


def test_shards_of_uneven_size_are_joined(compared: Compare) -> None:
    """The inner width is 65: one rank has 33 columns, the other 32."""
    outcome = compared("tp2_uneven", "whole_uneven")
    counts = outcome.answer.counts
    assert (counts.no, counts.warning, causes(outcome)) == (0, 0, [])
    assert only(outcome).target.strays == []
    items = outcome.units[0].target.items
    assert any('"sizes":[33,32]' in text for text in items.values)
    names = outcome.units[0].target.nodes.names
    weight = names.index("Module.layers.0.mlp.up.ColumnParallelLinear.forward.0")
    assert (65, 16) in {items.shapes[items.shape[item]] for item in (items.node == weight).nonzero()[0]}


@pytest.mark.parametrize(("target", "golden"), [("tp2_padded", "whole"), ("whole", "tp2_padded")])
def test_a_vocabulary_padded_for_its_shards_is_compared_without_its_padding(
    compared: Compare, target: str, golden: str
) -> None:
    outcome = compared(target, golden)
    unit = only(outcome)
    ways = (unit.target if target == "tp2_padded" else unit.golden).shards
    assert ways["padded"] == 25
    assert (outcome.answer.counts.no, causes(outcome)) == (0, [])
    dump = outcome.units[0].target if target == "tp2_padded" else outcome.units[0].golden
    table = dump.nodes.names.index("Module.embedding.VocabularyParallelEmbedding.forward.0")
    assert (24, 16) in {dump.items.shapes[dump.items.shape[item]] for item in (dump.items.node == table).nonzero()[0]}


def test_a_fault_of_one_shard_of_a_vocabulary_is_found(compared: Compare) -> None:
    assert causes(compared("tp2_padded_fault", "whole"))[0] == "Functional.embedding.0.forward"


@pytest.mark.parametrize("plan", ["{target: {cp: 2}}", "{target: {cp: 2, sequence: zigzag}}", "{}"])
def test_parts_of_a_sequence_are_put_in_its_order(compared: Compare, plan: str) -> None:
    """Rank 0 holds the first and the last quarter of every sequence, rank 1 what lies between."""
    outcome = compared("cp2", "whole_long", parallel=plan)
    counts = outcome.answer.counts
    assert (outcome.answer.mode, counts.no, counts.warning, causes(outcome)) == ("tensor", 0, 0, [])
    assert counts.yes > 800
    unit = only(outcome)
    assert (unit.target.context or unit.target.replicas)["dimension 1"] > 200
    assert unit.gradients == "mean"


def test_a_sequence_in_a_wrong_order_is_no_agreement(compared: Compare) -> None:
    units = "units: [{target: {ranks: [[[1]], [[0]]], context: 2, sequence: zigzag}, golden: {ranks: 0}}]"
    assert compared("cp2", "whole_long", parallel=units).answer.counts.no > 100


def test_a_fault_on_one_part_of_the_sequence_is_found(compared: Compare) -> None:
    (found,) = causes(compared("cp2_fault", "whole_long", parallel="{target: {cp: 2}}"))
    assert found == "Module.layers.1.mlp.down.Linear.forward.0"
