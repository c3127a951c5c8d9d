"""Plans as users write them, and as they are written for users."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.errors import UsageError
from dumpscope.parallel.evidence import Evidence
from dumpscope.parallel.plan import Plan, SidePlan, Sizes, UnitPlan, parse_plan, sizes_ranks, write_plan
from dumpscope.parallel.rank_layout import lay_out


@st.composite
def sides(draw: st.DrawFn, first: int) -> SidePlan:
    replicas, stages, shards, chunks = (draw(st.integers(1, 3)) for _ in range(4))
    context = draw(st.sampled_from([1, replicas]))
    ranks = iter(draw(st.permutations(range(first, first + replicas * stages * shards))))
    return SidePlan(
        ranks=tuple(tuple(tuple(next(ranks) for _ in range(shards)) for _ in range(stages)) for _ in range(replicas)),
        chunks=chunks,
        context=context,
        sequence=draw(st.sampled_from([None, "plain", "zigzag"])) if context > 1 else None,
        experts=draw(st.sampled_from([1, replicas])),
        offsets=tuple(draw(st.lists(st.integers(0, 99), min_size=stages * chunks, max_size=stages * chunks)))
        if stages * chunks > 1
        else (0,),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(1, 3))
    return Plan(
        units=tuple(
            UnitPlan(rank=place, target=draw(sides(100 * place)), golden=draw(sides(100 * place))) for place in range(count)
        ),
        gradients=draw(st.sampled_from([None, "mean", "sum"])),
        dimensions=draw(st.dictionaries(st.text("abc.*_0", min_size=1, max_size=9), st.sampled_from([0, 2, "sum", "skip"]))),
    )  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_a_written_plan_reads_back_as_itself(plan: Plan) -> None:
    given_back = parse_plan(write_plan(plan))
    assert given_back.units == plan.units
    assert (given_back.gradients, given_back.dimensions) == (plan.gradients, plan.dimensions)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.permutations(["tp", "dp", "pp"]))
def test_sizes_place_every_rank_once_in_their_order(tp: int, pp: int, dp: int, order: list[str]) -> None:
    ranks = sizes_ranks(Sizes(tp=tp, pp=pp, order=tuple(order)), range(tp * pp * dp), "target")
    assert sorted(rank for replica in ranks for stage in replica for rank in stage) == list(range(tp * pp * dp))
    extent = {"tp": tp, "pp": pp, "dp": dp}
    fastest = next((name for name in order if extent[name] > 1), None)
    ahead = {
        "tp": lambda: ranks[0][0][1], "pp": lambda: ranks[0][1][0], "dp": lambda: ranks[1][0][0], None: lambda: 1,
    }  # fmt: skip
    assert ahead[fastest]() == 1


def test_orders_of_launchers_are_taken_with_their_unused_words() -> None:
    text = "target: {tp: 2, pp: 2, cp: 1, ep: 1, order: tp-cp-ep-dp-pp}"
    assert parse_plan(text).target == Sizes(tp=2, pp=2, order=("tp", "cp", "dp", "pp"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("units: [", "is no yaml"),
        ("[]x", "is no yaml"),
        ("- 1", "the file is no mapping"),
        ("{tp: 2}", "the file: 'tp' is not one of target, golden, units"),
        ("{target: {tq: 2}}", "target: 'tq' is not one of ranks, tp, cp"),
        ("{target: {tp: 0}}", "target.tp: 0 is no number from 1"),
        ("{target: {tp: true}}", "target.tp: True is no number"),
        ("{target: {sequence: zigzag}}", "sequence needs ranks that share one"),
        ("{target: {vpp: 2}}", "vpp needs pp above 1"),
        ("{target: {order: tp-pp}}", "target.order: 'tp-pp' does not name tp, dp and pp once"),
        ("{target: {tp: 2}, units: [{target: {ranks: 0}, golden: {ranks: 0}}]}", "gives both units and sizes"),
        ("{gradients: median}", "gradients: 'median' is not one of sum, mean"),
        ("{dimensions: {x: -1}}", "is neither a dimension nor one of copy, sum, skip"),
        ("{dimensions: [1]}", "dimensions is no mapping"),
        ("units: 3", "units is no list"),
        ("units: [{target: {ranks: [0]}, golden: {ranks: 0}}]", "is no list of replicas, each a list of stages"),
        ("units: [{target: {ranks: [[[0], [1, 2]]]}, golden: {ranks: 0}}]", "replicas or stages of different size"),
        ("units: [{target: {ranks: [[[0], [1]]], offsets: [0]}, golden: {ranks: 0}}]", "does not list 2 numbers"),
        ("units: [{target: {ranks: [[[0, 0]]]}, golden: {ranks: 0}}]", "target rank 0 is in it twice"),
        ("units: [{golden: {ranks: 0}}]", "units[0].target is no mapping"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_plan_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_plan(text)
    assert said in caught.value.detail
    assert caught.value.hint


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60))
def test_any_text_is_a_plan_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        assert parse_plan(text) == parse_plan(f"{text}\n")


def test_a_unit_of_as_many_shards_on_both_sides_is_refused() -> None:
    ranks = [Evidence(rank=rank, modules=frozenset(), numbers={}, weights={}, first=None) for rank in (0, 1)]
    given_plan = parse_plan("units: [{target: {ranks: [[[0, 1]]]}, golden: {ranks: [[[0, 1]]]}}]")
    with pytest.raises(UsageError, match="unit 0 joins 2 shards on both sides"):
        lay_out(given_plan, ranks, ranks)


def test_replicas_that_share_a_sequence_follow_one_another() -> None:
    sizes = Sizes(tp=2, cp=2, order=("tp", "cp", "dp", "pp"))
    assert sizes_ranks(sizes, range(8), "target") == (((0, 1),), ((2, 3),), ((4, 5),), ((6, 7),))
    sizes = Sizes(tp=2, cp=2, order=("tp", "dp", "cp", "pp"))
    assert sizes_ranks(sizes, range(8), "target") == (((0, 1),), ((4, 5),), ((2, 3),), ((6, 7),))


def bare(count: int) -> list[Evidence]:
    return [Evidence(rank=rank, modules=frozenset(), numbers={}, weights={}, first=None) for rank in range(count)]


@pytest.mark.parametrize(
    ("text", "ranks", "units"),
    [
        ("{target: {cp: 2}}", (4, 2), [(2, 1), (2, 1)]),
        ("{target: {cp: 2}, golden: {cp: 2}}", (4, 4), [(1, 1)] * 4),
        ("{target: {cp: 2}, golden: {cp: 4}}", (4, 4), [(4, 4)]),
        ("{target: {ep: 2}}", (4, 2), [(2, 1), (2, 1)]),
        ("{target: {ep: 2}, golden: {ep: 2}}", (4, 4), [(1, 1)] * 4),
        ("{target: {cp: 2, ep: 4}}", (8, 2), [(4, 1), (4, 1)]),
    ],
)
def test_what_shares_a_sequence_or_experts_stays_together(
    text: str, ranks: tuple[int, int], units: list[tuple[int, int]]
) -> None:
    plan = lay_out(parse_plan(text), *map(bare, ranks))
    assert [(unit.target.replicas, unit.golden.replicas) for unit in plan.units] == units


def test_as_many_parts_of_a_sequence_on_both_sides_are_refused() -> None:
    side = "{ranks: [[[0]], [[1]]], context: 2}"
    with pytest.raises(UsageError, match="unit 0 joins 2 parts of a sequence on both sides"):
        lay_out(parse_plan(f"units: [{{target: {side}, golden: {side}}}]"), bare(2), bare(2))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{target: {cp: 2}}", "3 ranks cannot be cut into tp 1 times pp 1 times cp 2"),
        ("{target: {ep: 2}}", "3 replicas cannot share experts among ep 2"),
        ("{target: {cp: 3, order: tp-dp-pp}}", "does not name tp, cp, dp and pp once"),
        ("{target: {cp: 3, sequence: spiral}}", "'spiral' is not one of plain, zigzag"),
        ("units: [{target: {ranks: [[[0]], [[1]], [[2]]], context: 2}, golden: {ranks: 0}}]", "2 does not divide 3 replicas"),
    ],
)  # fmt: skip
def test_shares_that_do_not_come_out_even_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        lay_out(parse_plan(text), bare(3), bare(3))
    assert said in caught.value.detail
    assert caught.value.hint
