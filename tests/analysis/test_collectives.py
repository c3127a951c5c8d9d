"""Messages of several ranks joined to communications, and the order that they force."""

from __future__ import annotations

import time
from zlib import crc32

from hypothesis import given, strategies as st

from dumpscope.analysis.ranks.collectives import MESSAGE, connect
from dumpscope.analysis.ranks.messages import RECEIVE, SEND, Group, Half, Message

GOOD = Half(verdict=0, score=0.0, bad=False)
BAD = Half(verdict=3, score=9.0, bad=True)


def message(
    pair: int,
    api: str,
    *,
    group: Group = None,
    peer: int | None = None,
    tag: int = 0,
    gives: Half | None = GOOD,
    takes: Half | None = GOOD,
    in_group: bool = False,
) -> Message:
    return Message(
        pair=pair, name=f"Distributed.{api}.{pair}.forward", api=api, group=group, peer=peer, in_group=in_group, tag=tag,
        given=gives, taken=takes,
    )  # fmt: skip


def send(pair: int, to: int, *, group: Group = None, tag: int = 0) -> Message:
    return message(pair, SEND, peer=to, takes=None, group=group, tag=tag)


def receive(pair: int, source: int | None, *, group: Group = None, tag: int = 0) -> Message:
    return message(pair, RECEIVE, peer=source, gives=None, group=group, tag=tag)


def test_calls_of_one_group_meet_in_sequence_and_other_groups_do_not_count() -> None:
    pair, world = (0, 1), (0, 1, 2, 3)
    found = connect(
        0,
        {
            0: [message(1, "all_reduce", group=pair), message(2, "all_reduce"), message(3, "all_reduce", group=pair)],
            1: [message(4, "all_reduce"), message(5, "all_reduce", group=pair), message(6, "all_reduce", group=pair)],
            2: [message(7, "all_reduce")],
            3: [message(8, "all_reduce", group=world)],
        },
    )
    joined = {(one.ranks, one.call): [part.message.pair for part in one.parts] for one in found.collectives}
    assert joined == {(pair, 0): [1, 5], (pair, 1): [3, 6], (world, 0): [2, 4, 7, 8]}
    assert all(not one.missing for one in found.collectives)


def test_a_group_known_by_its_id_is_the_group_that_another_rank_names() -> None:
    name = f"{crc32(b'[1, 2]'):08x}"
    found = connect(0, {1: [send(1, 2, group=name)], 2: [receive(1, 1, group=(1, 2))]})
    assert [one.ranks for one in found.collectives] == [(1, 2)]


def test_messages_are_paired_by_ends_and_tag() -> None:
    found = connect(
        0,
        {
            0: [send(1, 1, tag=7), send(2, 1), send(3, 1)],
            1: [receive(1, 0), receive(2, 0), receive(3, 0, tag=7)],
        },
    )
    assert {one.api for one in found.collectives} == {MESSAGE}
    assert {tuple(part.message.pair for part in one.parts) for one in found.collectives} == {(1, 3), (2, 1), (3, 2)}


def test_a_rank_that_sends_to_itself_receives_it() -> None:
    (one,) = connect(0, {0: [send(1, 0), receive(2, 0)]}).collectives
    assert [part.message.api for part in one.parts] == [SEND, RECEIVE]


def test_a_rank_inside_a_group_is_found_by_its_place() -> None:
    sends = message(1, SEND, peer=1, in_group=True, takes=None, group=(4, 6))
    (one,) = connect(0, {4: [sends], 6: [receive(1, 4, group=(4, 6))]}).collectives
    assert [part.rank for part in one.parts] == [4, 6]


def test_ranks_that_did_not_call_are_missing() -> None:
    (one,) = connect(0, {0: [message(1, "all_gather", group=(0, 1, 2), takes=BAD)], 1: []}).collectives
    assert one.missing == (1, 2)
    assert not one.faulty
    (one,) = connect(0, {1: [receive(1, 0)]}).collectives
    assert one.missing == (0,)


def test_a_result_that_differs_though_all_gave_the_same_is_faulty() -> None:
    def result(gives: Half, takes: Half) -> bool:
        calls = {0: [message(1, "all_reduce")], 1: [message(1, "all_reduce", gives=gives, takes=takes)]}
        return connect(0, calls).collectives[0].faulty

    assert result(GOOD, BAD)
    assert not result(BAD, BAD)
    assert not result(GOOD, GOOD)
    assert not result(Half(verdict=1, score=float("nan"), bad=False), BAD)


def test_four_times_as_many_ranks_take_four_times_as_long() -> None:
    def seconds(ranks: int) -> float:
        group = tuple(range(ranks))
        calls = {rank: [message(pair, "all_reduce", group=group) for pair in range(20)] for rank in group}
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            assert connect(0, calls).clock(ranks - 1, 19) == (20, 0)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(400) < 9 * seconds(100), "sixteen times, were every rank to look at all others"


def test_a_receiver_comes_after_its_sender_and_not_the_other_way_round() -> None:
    found = connect(
        0, {0: [send(10, 1), send(30, 2)], 1: [receive(5, 0), send(8, 2)], 2: [receive(1, 1), receive(2, 0)]}
    )
    assert found.clock(0, 5) == (0, 1)
    assert found.clock(0, 10)[0] < found.clock(1, 6)[0] < found.clock(2, 1)[0]
    assert found.clock(0, 20) == (1, 1), "a sender waits for nobody"


def test_receives_recorded_before_their_sends_do_not_block_the_order() -> None:
    found = connect(0, {0: [receive(1, 1), send(2, 1)], 1: [receive(1, 0), send(2, 0)]})
    assert len(found.collectives) == 2
    assert found.clock(0, 3)[0] == 2


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("all"), st.sets(st.integers(0, 4), min_size=2)),
            st.tuples(st.just("one"), st.lists(st.integers(0, 4), min_size=2, max_size=2, unique=True)),
        ),
        max_size=30,
    )
)
def test_the_order_of_any_program_that_runs_is_that_of_its_events(
    program: list[tuple[str, set[int] | list[int]]],
) -> None:
    """Events of a program in one line: each rank's calls keep their order, and a receiver's clock passes all its givers'."""
    calls: dict[int, list[Message]] = {rank: [] for rank in range(5)}
    for number, (kind, ranks) in enumerate(program):
        if kind == "all":
            for rank in ranks:
                calls[rank].append(message(number, "all_reduce", group=tuple(sorted(ranks))))
        else:
            giver, taker = list(ranks)
            calls[giver].append(send(number, taker))
            calls[taker].append(receive(number, giver))
    found = connect(0, calls)
    assert len(found.collectives) == len(program)
    for one in found.collectives:
        assert {part.message.pair for part in one.parts} == {one.parts[0].message.pair}
        if one.api == MESSAGE:
            giver, taker = one.parts
            before = found.clock(giver.rank, giver.message.pair - 1)[0]
            assert taker.clock > before
        else:
            assert len({part.clock for part in one.parts}) == 1
    for rank, own in calls.items():
        clocks = [found.clock(rank, one.pair)[0] for one in own]
        assert clocks == sorted(set(clocks))
