"""Orders: how tensors of the whole are made from the members' tensors. They are executed by code that may read files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

import numpy as np

from dumpscope.domain.records import Float64, Int8, Int32, Items, RankDump
from dumpscope.parallel.aligned import Aligned
from dumpscope.parallel.replicas import Odd

ORDER: Final = "joined:"
"""Prefix of the data name of a tensor that is still to be made; no path begins with it."""


class Way(IntEnum):
    """How the members' values of an item become one."""

    COPY = 0  # all are equal: taken once
    JOIN = 1  # each is a part: concatenated along a dimension
    SUM = 2  # each is a part of a sum
    ODD = 3  # they should be equal and are not: the odd one is taken
    SKIP = 4  # they cannot be joined: nothing is compared


WAY_WORDS: Final = ("copy", "join", "sum", "odd", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A tensor to be made from the members' tensors (paths, or orders): joined along `dimension`, or summed if that is None.

    factor: the result is multiplied by it; like: tensor of the other side from which the blocks of the parts are found
    sequence: the parts are shares of a sequence, in this order (plan.SEQUENCES); None: found like the blocks
    length: length of the whole along the dimension, without its padding
    Of passes of a model: grown: dimension along which a part holds what all parts so far hold; blocks: that many runs
    along the dimension are continued by every part; order: which rows of the whole are taken, each of `times` places, None: all
    as they are
    ends: the place of each part along the dimension, where parts do not follow each other
    moved: elements may stand elsewhere than in the other side's tensor `like`; then there is no whole
    widths: by place along the dimension, how many places along `grown` both sides made; the others are left at zero
    tail: of the only part that many of the last places along the dimension are taken, in each of `blocks` runs; None: all
    """

    parts: tuple[str | Order, ...]
    dimension: int | None
    factor: float = 1.0
    like: str | None = None
    sequence: str | None = None
    length: int | None = None
    grown: int | None = None
    blocks: int = 1
    order: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None
    times: int = 1
    moved: bool = False
    widths: tuple[int, ...] | None = None
    tail: int | None = None

    @property
    def changes_statistics(self) -> bool:
        """Whether the statistics of the whole cannot be told from those of its parts."""
        if any(isinstance(part, Order) and part.tail is not None for part in self.parts):
            return True
        return self.dimension is None or any(
            one is not None for one in (self.length, self.grown, self.ends, self.order)
        )


def order_tensors(
    items: Items,
    aligned: Aligned,
    known: Sequence[Mapping[str, Order]],
    way: Int8,
    dimension: Int32,
    factor: Float64,
    partner: Int32,
    rival: RankDump,
    odd: Sequence[Odd],
    sequence: str | None,
    orders: dict[str, Order],
) -> Items:
    """Data names of the whole: a member's name if its tensor is taken, else the name of an order. known: orders of the members"""
    table: list[str] = []
    codes: dict[str, int] = {}
    found = np.full(len(items), -1, np.int32)
    taken = {one.item: next(iter(one.members), 0) for one in odd}
    for item in np.flatnonzero(aligned.named).tolist():
        if way[item] == Way.SKIP:
            continue
        names = aligned.data_names(item)
        if way[item] in (Way.JOIN, Way.SUM):
            if None in names:
                continue
            like = None
            if partner[item] >= 0 and (code := int(rival.items.data_name[partner[item]])) >= 0:
                like = rival.items.data_names[code]
            name = f"{ORDER}{item}"
            orders[name] = Order(
                parts=tuple(own.get(part, part) for own, part in zip(known, names, strict=True) if part is not None),
                dimension=int(dimension[item]) if way[item] == Way.JOIN else None,
                factor=float(factor[item]),
                like=like if like is not None and not like.startswith(ORDER) else None,
                sequence=sequence,
            )
        else:
            member = taken.get(item, 0)
            chosen = names[member]
            if chosen is None:
                continue
            made = known[member].get(chosen, chosen)
            name = chosen
            if isinstance(made, Order):
                name = f"{ORDER}{item}"
                orders[name] = made
        code = codes.setdefault(name, len(table))
        if code == len(table):
            table.append(name)
        found[item] = code
    return replace(items, data_name=found, data_names=table)
