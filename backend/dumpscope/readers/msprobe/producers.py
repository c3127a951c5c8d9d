"""Which record made an argument, as our own capture says (`producers` of a forward node's body), by record number."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Int32, Int64, Items, Role
from dumpscope.readers.msprobe.json_decode import short
from dumpscope.texts import say

ROLES: Final = {"input": Role.INPUT, "kwargs": Role.KWARG}
OUTPUT: Final = ".output."


class Producers:
    """Collects the keys; `resolve()` finds the records they name. problem: what is wrong with some, "" for nothing"""

    def __init__(self) -> None:
        self.problem = ""
        self._node = array("i")
        self._places: list[str] = []
        self._made: list[str] = []
        self._wrong: list[str] = []

    def take(self, node: int, name: str, named: Any) -> None:
        """Keep what node number `node` says of its arguments."""
        if type(named) is not dict:
            self._wrong.append(f"{name}: {short(named)}")
            return
        for place, made in named.items():
            if type(made) is str:
                self._node.append(node)
                self._places.append(place)
                self._made.append(made)
            else:
                self._wrong.append(f"{name}.{place}: {short(made)}")

    def resolve(self, items: Items, nodes: dict[str, int], renumber: Int32 | None) -> Items:
        """The items with their producers. nodes: number of each name; renumber: as `Leaves.items` takes it."""
        if not len(self._node):
            self._tell()
            return items
        takers = np.frombuffer(self._node, np.int32)
        takers = takers if renumber is None else renumber[takers]
        paths = {path: code for code, path in enumerate(items.paths)}
        taken, made = _Keys(len(paths)), _Keys(len(paths))
        for node, place, name in zip(takers.tolist(), self._places, self._made, strict=True):
            word, _, path = place.partition(".")
            taken.add(node, ROLES.get(word, -1), paths.get(path, -1))
            maker, path = _split(name, nodes)
            made.add(maker if maker < node else -1, Role.OUTPUT, paths.get(path, -1))
        there, order = _places(items, len(paths))
        rows, sources = (_found(keys.numbers(), there, order) for keys in (taken, made))
        known = (rows >= 0) & (sources >= 0)
        makers = np.array(made.nodes)
        half = (makers >= 0) & ~np.isin(
            makers, items.node[items.role == Role.OUTPUT]
        )  # recorded by its arguments alone
        lost = ~known & (takers >= 0) & ~half
        self._wrong += [
            f"{self._places[row]} made by {short(self._made[row])}" for row in np.flatnonzero(lost).tolist()
        ]
        self._tell()
        producer = items.producer.copy()
        producer[rows[known]] = sources[known]
        return replace(items, producer=producer)

    def _tell(self) -> None:
        if self._wrong:
            self.problem = say(
                "readers.arguments_name_no_record_earlier_call", count=len(self._wrong), wrong=self._wrong[0]
            )


class _Keys:
    """Places of records as numbers: node, role and path."""

    def __init__(self, paths: int) -> None:
        self.nodes = array("i")
        self._paths = paths
        self._numbers = array("q")

    def add(self, node: int, role: int, path: int) -> None:
        self.nodes.append(node)
        self._numbers.append((node * len(Role) + role) * self._paths + path if min(node, role, path) >= 0 else -1)

    def numbers(self) -> Int64:
        return np.frombuffer(self._numbers, np.int64)


def _split(name: str, nodes: dict[str, int]) -> tuple[int, str]:
    """(number of the node, path of the output) of a record's name; -1 for a node that there is not."""
    at = name.rfind(OUTPUT)
    while at > 0:
        node = nodes.get(name[:at])
        if node is not None:
            return node, name[at + len(OUTPUT) :]
        at = name.rfind(OUTPUT, 0, at + 1)  # the dot between two may be shared
    return -1, ""


def _places(items: Items, paths: int) -> tuple[Int64, Int64]:
    """The place of every record as a number, sorted, and the records in that order."""
    place = (items.node.astype(np.int64) * len(Role) + items.role) * paths + items.path
    order = np.argsort(place, kind="stable")
    return place[order], order


def _found(wanted: Int64, place: Int64, order: Int64) -> Int64:
    """Number of the record at each place, -1 where none is."""
    if not len(place):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(place, wanted), len(place) - 1)
    return np.where(place[at] == wanted, order[at], -1)
