"""Joins the communication calls of all ranks, and orders what happened on different ranks by them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final
from zlib import crc32

from dumpscope.analysis.ranks.messages import RECEIVE, SEND, Group, Message

MESSAGE: Final = "send_receive"
"""Name of a communication between two ranks."""


GROWS: Final = 3.0
"""A communication may make the error of what it was given so many times as large: a sum can cancel."""

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """clock: place in the order of communication; what happens on two ranks is ordered by it where one can know of the other"""

    rank: int
    message: Message
    clock: int


@dataclass(frozen=True, kw_only=True)
class Collective:
    """One communication of one step. What follows from its parts is found once: every rank of a large job asks for it.

    api: "all_reduce", ..., or MESSAGE; call: how many of its kind its group had before; ranks: of its group
    parts: by rank (of a message the sender first); missing: ranks of the group that are not in the comparison or did not call
    """

    step: int
    api: str
    call: int
    ranks: tuple[int, ...]
    parts: tuple[Part, ...]
    missing: tuple[int, ...]

    @cached_property
    def bad_givers(self) -> list[Part]:
        """Parts that gave something bad."""
        return [part for part in self.parts if part.message.given is not None and part.message.given.bad]

    @cached_property
    def bad_takers(self) -> list[Part]:
        """Parts that took something bad."""
        return [part for part in self.parts if part.message.taken is not None and part.message.taken.bad]

    @cached_property
    def messages(self) -> dict[tuple[int, int], list[Message]]:
        """What each call has in it, by rank and node pair."""
        found: dict[tuple[int, int], list[Message]] = {}
        for part in self.parts:
            found.setdefault((part.rank, part.message.pair), []).append(part.message)
        return found

    def gave_bad(self, rank: int) -> bool:
        """Whether this rank gave something bad."""
        return rank in self._bad_givers

    def took_bad(self, rank: int, pair: int) -> bool:
        """Whether this call took something bad."""
        return any(message.taken is not None and message.taken.bad for message in self.messages.get((rank, pair), ()))

    @cached_property
    def _bad_givers(self) -> frozenset[int]:
        return frozenset(part.rank for part in self.bad_givers)

    @cached_property
    def faulty(self) -> bool:
        """All that was given is known and its verdict is Yes, and what was taken differs."""
        givers = [part.message.given for part in self.parts if part.message.given is not None]
        known = bool(givers) and not self.missing and all(half.score == half.score for half in givers)
        return known and all(half.agrees for half in givers) and bool(self.bad_takers)

    @cached_property
    def explained(self) -> bool:
        """What was given differs, and what was taken by no more than that makes of it."""
        differing = [part.message.given for part in self.parts if part.message.given is not None]
        given = max((half.score for half in differing if not half.agrees and half.score == half.score), default=0.0)
        taken = [part.message.taken for part in self.bad_takers]
        return bool(self.bad_givers) or all(half is not None and half.score <= GROWS * given for half in taken)

    @property
    def other_size(self) -> int:
        """Ranks of the golden's group, where it has more or fewer; 0 else."""
        return max(part.message.other_size for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """All communication of one step."""

    collectives: list[Collective]
    clocks: dict[int, tuple[list[int], list[int]]] = field(repr=False)  # by rank: node pairs that rise, their clocks
    by_call: dict[tuple[int, int], list[Collective]] = field(repr=False)  # by rank and node pair

    def of(self, rank: int, pair: int) -> list[Collective]:
        """The communications that a call takes part in: several for a batch."""
        return self.by_call.get((rank, pair), [])

    def clock(self, rank: int, pair: int) -> tuple[int, int]:
        """Place of a node pair in the order of communication: communications that it may know of, and 0 where it is the last
        of them, 1 where it stands behind."""
        pairs, clocks = self.clocks.get(rank, ([], []))
        at = bisect_left(pairs, pair)
        if at < len(pairs) and pairs[at] == pair:
            return clocks[at], 0
        return (clocks[at - 1] if at else 0), 1


def connect(step: int, messages: Mapping[int, Sequence[Message]]) -> Traffic:
    """Join the messages of all ranks of a step, by group and call sequence. messages: by rank, in the order of its calls"""
    names = _Groups(messages)
    joined: dict[Key, list[tuple[int, Message]]] = {}
    order: dict[int, list[tuple[Key, Message]]] = {rank: [] for rank in messages}
    for rank, own in sorted(messages.items()):
        calls: dict[tuple[Key, str], int] = {}
        for message in own:
            channel = names.channel(rank, message)
            number = calls[channel, message.api] = calls.get((channel, message.api), -1) + 1
            joined.setdefault((*channel, number), []).append((rank, message))
            order[rank].append(((*channel, number), message))
    clocks = _set_clocks(joined, order)
    collectives = []
    by_call: dict[tuple[int, int], list[Collective]] = {}
    for key, members in joined.items():
        one = _join_members(step, key, members, names, clocks)
        collectives.append(one)
        for rank, message in members:
            by_call.setdefault((rank, message.pair), []).append(one)
    collectives.sort(key=lambda one: (min(part.clock for part in one.parts), one.parts[0].rank))
    return Traffic(collectives=collectives, clocks=_clocks_by_rank(order, clocks), by_call=by_call)


class _Groups:
    """Which ranks belong to a group, from all the groups that any rank names."""

    def __init__(self, messages: Mapping[int, Sequence[Message]]) -> None:
        groups = {id(message.group): message.group for own in messages.values() for message in own}
        named = {group for group in groups.values() if isinstance(group, tuple)}
        known = {rank for group in named for rank in group} | set(messages)
        self.world = tuple(range(max(known, default=0) + 1))
        self._ids = {f"{crc32(str(list(ranks)).encode()):08x}": ranks for ranks in (*named, self.world)}
        numbers: dict[tuple[int, ...] | str, int] = {}
        self._numbers = {
            place: numbers.setdefault(self.ranks(group), len(numbers)) for place, group in groups.items()
        }  # a group of 1000 ranks is long as a key; the messages keep these objects alive

    def ranks(self, group: Group) -> tuple[int, ...] | str:
        """Of a group that is known by an id only, and by no rank otherwise, the id."""
        if group is None:
            return self.world
        return self._ids.get(group, group) if isinstance(group, str) else group

    def channel(self, rank: int, message: Message) -> Key:
        """Key that the calls of one communication share on all ranks, without their running number."""
        group = self._numbers[id(message.group)]
        if message.api not in (SEND, RECEIVE):
            return message.api, group
        peer = self.peer(message)
        ends = (rank, peer) if message.api == SEND else (peer, rank)
        return MESSAGE, group, *ends, message.tag

    def peer(self, message: Message) -> int | None:
        ranks = self.ranks(message.group)
        if message.in_group and message.peer is not None and isinstance(ranks, tuple) and message.peer < len(ranks):
            return ranks[message.peer]
        return message.peer


def _join_members(
    step: int, key: Key, members: list[tuple[int, Message]], names: _Groups, clocks: dict[tuple[Key, int, str], int]
) -> Collective:
    ranks = names.ranks(members[0][1].group)
    call = key[-1]
    assert isinstance(call, int)
    if key[0] == MESSAGE:
        expected: Iterable[object] = key[2:4]
        members = sorted(members, key=lambda member: member[1].api != SEND)
    else:
        expected = ranks if isinstance(ranks, tuple) else ()
    present = {rank for rank, _ in members}
    return Collective(
        step=step,
        api=str(key[0]),
        call=call,
        ranks=ranks if isinstance(ranks, tuple) else tuple(sorted(present)),
        parts=tuple(Part(rank=rank, message=m, clock=clocks[key, rank, m.api]) for rank, m in members),
        missing=tuple(rank for rank in expected if isinstance(rank, int) and rank not in present),
    )


def _set_clocks(
    joined: Mapping[Key, Sequence[tuple[int, Message]]], order: Mapping[int, Sequence[tuple[Key, Message]]]
) -> dict[tuple[Key, int, str], int]:
    """A number per communication, rank and side that is larger than those of all that happened before and could be known there.

    A rank that only gives does not wait; a rank that takes waits for those that give. Asynchronous receives are recorded where
    they were called, so ranks may seem to wait for each other: then the rank that is least far goes on without waiting.
    """
    clocks: dict[tuple[Key, int, str], int] = {}
    now, place = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
    steps = {rank: _sort_giving_first(own) for rank, own in order.items()}
    silent = {
        key: len({(rank, message.api) for rank, message in members if message.given is not None})
        for key, members in joined.items()
    }  # givers that have not given yet
    latest = dict.fromkeys(joined, 0)  # when the last one had given; it goes on then if it takes nothing
    waiting: dict[Key, set[int]] = {}
    ready = deque(sorted(order))
    announced: set[tuple[Key, int, str]] = set()

    def advance(rank: int, *, force: bool) -> None:
        while place[rank] < len(steps[rank]):
            key, message = steps[rank][place[rank]]
            own = (key, rank, message.api)
            if message.given is not None and own not in announced:
                announced.add(own)
                latest[key] = max(latest[key], now[rank] + (message.taken is None))
                silent[key] -= 1
                if not silent[key]:
                    ready.extend(sorted(waiting.pop(key, ())))
            if message.taken is not None and silent[key] and not force:
                waiting.setdefault(key, set()).add(rank)
                return
            force = False
            heard = latest[key] if message.taken is not None else 0
            clocks[own] = now[rank] = max(now[rank], heard) + 1
            place[rank] += 1

    while True:
        while ready:
            advance(ready.popleft(), force=False)
        stuck = [rank for rank in sorted(order) if place[rank] < len(steps[rank])]
        if not stuck:
            return clocks
        rank = min(stuck, key=lambda one: now[one])
        for ranks in waiting.values():
            ranks.discard(rank)
        advance(rank, force=True)


def _sort_giving_first(own: Sequence[tuple[Key, Message]]) -> list[tuple[Key, Message]]:
    """The messages of a batch at once: what is given does not wait for what is taken in the same call."""
    return sorted(own, key=lambda one: (one[1].pair, one[1].taken is not None))


def _clocks_by_rank(
    order: Mapping[int, Sequence[tuple[Key, Message]]], clocks: Mapping[tuple[Key, int, str], int]
) -> dict[int, tuple[list[int], list[int]]]:
    found: dict[int, tuple[list[int], list[int]]] = {}
    for rank, own in order.items():
        latest: dict[int, int] = {}
        for key, message in own:
            latest[message.pair] = max(latest.get(message.pair, 0), clocks[key, rank, message.api])
        found[rank] = (list(latest), list(latest.values()))
    return found
