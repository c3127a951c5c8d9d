"""Buffers of collectives whose contents are undefined and must not be judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Bool, Direction, Kind, RankDump, Role

PREFIX: Final = "Distributed."
SENDING: Final = frozenset({"send", "isend", "send_object_list"})
RECEIVING: Final = frozenset({"recv", "irecv", "recv_object_list"})
FROM_ROOT: Final = {"broadcast": ("1", "src"), "scatter": ("2", "src"), "broadcast_object_list": ("1", "src")}
TO_ROOT: Final = {"reduce": ("1", "dst"), "gather": ("2", "dst"), "gather_object": ("2", "dst")}
"""Calls with a rank that they start or end at: the argument that names it, by position and by keyword."""
DEFAULT_ROOT: Final = frozenset({"gather", "scatter", "gather_object"})
"""Those in which it is rank 0 where nothing is passed."""
OPERATION_TYPE: Final = "torch.distributed.P2POp"
GROUP_TYPE: Final = "torch.ProcessGroup"

_WRITTEN: Final = {
    "recv": ("0", "tensor"), "irecv": ("0", "tensor"), "recv_object_list": ("0", "object_list"),
    "all_gather": ("0", "tensor_list"), "all_gather_object": ("0", "object_list"),
    "all_gather_coalesced": ("0", "output_tensor_lists"), "all_gather_into_tensor": ("0", "output_tensor"),
    "_all_gather_base": ("0", "output_tensor"), "reduce_scatter": ("0", "output"),
    "reduce_scatter_tensor": ("0", "output"), "_reduce_scatter_base": ("0", "output"),
    "all_to_all": ("0", "output_tensor_list"), "all_to_all_single": ("0", "output"), "scatter": ("0", "tensor"),
    "scatter_object_list": ("0", "scatter_object_output_list"), "gather": ("1", "gather_list"),
    "gather_object": ("1", "object_gather_list"),
}  # fmt: skip
"""Arguments that a call only writes to, on every rank."""
_READ_AT_ROOT: Final = {
    "broadcast": ("0", "tensor"), "broadcast_object_list": ("0", "object_list"), "scatter": ("1", "scatter_list"),
}  # fmt: skip
"""Arguments that a call reads on the rank it starts at, and nowhere else."""


def unread(dump: RankDump) -> Bool:
    """Per item: whether it is a communication's buffer whose content is undefined.

    Such are buffers to be received into, whatever a broadcast or scatter is handed on the ranks that it does not start at,
    and what a reduce leaves on the ranks that it does not end at.
    """
    found = np.zeros(len(dump.items), bool)
    labels, nodes = dump.nodes.labels, dump.nodes
    codes = [code for code, label in enumerate(labels) if label.startswith(PREFIX)]
    calls = np.flatnonzero(np.isin(nodes.label, codes) & (nodes.direction == Direction.FORWARD))
    for node in calls.tolist():
        for item in _Call(dump, node, labels[nodes.label[node]].removeprefix(PREFIX)).unread():
            found[item] = True
    return found


class _Call:
    """One communication of one rank."""

    def __init__(self, dump: RankDump, node: int, api: str) -> None:
        self.dump, self.api = dump, api
        first, last = np.searchsorted(dump.items.node, [node, node + 1]).tolist()
        self.rows = range(first, last)

    def unread(self) -> Iterator[int]:
        places = [_WRITTEN[self.api]] if self.api in _WRITTEN else []
        away = self._away_from_root()
        if away and self.api in _READ_AT_ROOT:
            places.append(_READ_AT_ROOT[self.api])
        items = self.dump.items
        received = [
            self._path(row) for row in self.rows
            if self._type(row) == OPERATION_TYPE and self._value_table(row).get("op") in RECEIVING
        ]  # fmt: skip
        for row in self.rows:
            role, path = int(items.role[row]), self._path(row)
            if items.kind[row] == Kind.NONE:
                continue
            if role == Role.OUTPUT:
                if away and self.api == "reduce" and items.kind[row] == Kind.TENSOR:
                    yield row
            elif any(path.split(".")[0] == place[role == Role.KWARG] for place in places) or any(
                path.startswith(f"{one}.") for one in received
            ):
                yield row

    def _away_from_root(self) -> bool:
        """This rank is known to be another one than that which the call starts or ends at."""
        place = FROM_ROOT.get(self.api) or TO_ROOT.get(self.api)
        rank = self.dump.ref.rank
        if place is None or rank is None or self.dump.ref.joined:
            return False
        root = self._number(*place)
        if root is None:
            root = self._in_group(self._number("", f"group_{place[1]}"))
        if root is None and self.api in DEFAULT_ROOT:
            root = 0
        return root is not None and root != rank

    def _in_group(self, place: int | None) -> int | None:
        """Global rank of a place in the call's group."""
        if place is None:
            return None
        for row in self.rows:
            if self._type(row) == GROUP_TYPE:
                ranks = self._value_table(row).get("group_ranks")
                return ranks[place] if isinstance(ranks, list) and 0 <= place < len(ranks) else None
        return place

    def _number(self, position: str, word: str) -> int | None:
        items = self.dump.items
        for row in self.rows:
            role = items.role[row]
            if (role == Role.INPUT and self._path(row) == position) or (role == Role.KWARG and self._path(row) == word):
                code = int(items.value[row])
                value = json.loads(items.values[code]) if code >= 0 else None
                return value if isinstance(value, int) else None
        return None

    def _path(self, row: int) -> str:
        code = int(self.dump.items.path[row])
        return self.dump.items.paths[code] if code >= 0 else ""

    def _type(self, row: int) -> str:
        return self.dump.items.types[int(self.dump.items.type[row])]

    def _value_table(self, row: int) -> dict[str, Any]:
        """What the dump says of an object; empty where that is nothing or no table."""
        code = int(self.dump.items.value[row])
        told = json.loads(self.dump.items.values[code]) if code >= 0 else None
        return told if isinstance(told, dict) else {}
