"""Builds a rank from calls that come one by one, as the logs of other tools tell them: names, modules, records, producers."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import UNKNOWN_CLASS, Header, RankDump, RankRef, Role
from dumpscope.errors import Problem
from dumpscope.readers.records.leaves import Leaves
from dumpscope.readers.records.node_table import NodeTable
from dumpscope.readers.records.tree import Links, build_tree
from dumpscope.texts import say
from dumpscope_format.naming import DirectionWord, api_name

NOTE_LIMIT: Final = 200


class RankBuilder:
    """One rank while it is read. Calls are numbered in the order in which they are added, each kind by itself."""

    def __init__(self, ref: RankRef) -> None:
        self.ref = ref
        self.problems: list[Problem] = []
        self._muted = 0
        self._table = NodeTable()
        self._leaves = Leaves(self._note_node)
        self._times: Counter[str] = Counter()
        self._parents: dict[str, str | None] = {}
        self._producer = array("i")
        self._current = ""

    def __len__(self) -> int:
        """Calls so far."""
        return len(self._table)

    def add_call(
        self,
        prefix: str,
        name: str,
        *,
        way: DirectionWord = "forward",
        inside: str | None = None,
        stack: Iterable[str] = (),
    ) -> int:
        """Number of the new call `Aten.mm.3.forward`. inside: the module entry (`enter`) that it belongs to
        stack: frames, innermost first"""
        self._current = api_name(prefix, name, self._next(f"{prefix}.{name}.{way}"), way)
        self._parents[self._current] = inside
        return self._table.add(self._current, stack=stack)

    def enter(
        self, path: str, cls: str = UNKNOWN_CLASS, *, way: DirectionWord = "forward", inside: str | None = None
    ) -> str:
        """Begin the call of a module; returns what `inside` is of the calls in it. path: "" for the whole model"""
        label = f"{path}.{cls}" if path else cls
        name = f"Module.{label}.{way}.{self._next(f'{label}.{way}')}"
        self._parents[name] = inside
        return name

    def leave(self, entry: str) -> int:
        """Number of the node of a module that was entered: it has records of its own, and stands behind the calls in it."""
        self._current = entry
        return self._table.add(entry)

    def put(self, node: int, role: Role, path: str, record: Any, *, producer: int = -1) -> int:
        """Add a record as those of dump.json, a scalar or None; returns its number. producer: number of the record whose
        tensor it still is"""
        self._leaves.walk(node, role, path, record, 0)
        self._producer.extend([producer] * (len(self._leaves) - len(self._producer)))
        return len(self._leaves) - 1

    def note(self, kind: str, message: str, loc: str = "") -> None:
        """Report a problem. loc: place in the file of the rank"""
        if len(self.problems) >= NOTE_LIMIT:
            self._muted += 1
            return
        file = os.path.basename(self.ref.dump_json)
        self.problems.append(Problem(loc=f"{file}:{loc}" if loc else file, kind=kind, message=message))

    def build(
        self, *, level: str, framework: str, layout: str, data_dir: str | None = None, told: bool = True
    ) -> RankDump:
        """The rank. told: whether any number or hash was recorded"""
        if self._muted:
            self.problems.append(
                Problem(
                    loc=os.path.basename(self.ref.dump_json),
                    kind="more",
                    message=say("readers.more_problems_kind_not_listed", muted=self._muted),
                )
            )
        filed = self._leaves.name_files()
        header = Header(
            task="tensor" if filed else "statistics" if told else "structure",
            level=level,
            framework=framework,
            summary=self._leaves.summary(),
            data_dir=data_dir if filed else None,
            layout=layout,
        )
        nodes = self._table.nodes()
        known = any(above is not None for above in self._parents.values())
        tree, found = build_tree(nodes, Links(parents=self._parents) if known else None)
        where = os.path.basename(self.ref.dump_json)
        self.problems += [Problem(loc=where, kind=kind, message=message) for kind, message in found]
        items = replace(self._leaves.items(), producer=np.array(self._producer, np.int32))
        return RankDump(ref=self.ref, header=header, nodes=nodes, items=items, tree=tree, problems=self.problems)

    def _next(self, label: str) -> int:
        number = self._times[label]
        self._times[label] += 1
        return number

    def _note_node(self, kind: str, message: str) -> None:
        self.note(kind, say("problem.of", name=self._current, message=message))


def tensor_record(dtype: str | None, shape: Sequence[int] | None, **more: Any) -> dict[str, Any]:
    """A record of a tensor as dump.json holds it, without the keys whose value is None."""
    record: dict[str, Any] = {"type": "torch.Tensor", "dtype": dtype, "shape": None if shape is None else list(shape)}
    return record | {key: value for key, value in more.items() if value is not None}
