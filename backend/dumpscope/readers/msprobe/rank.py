"""One rank of a dump in msprobe's format: dump.json (or debug.json), stack.json and construct.json into columns."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Direction, Header, NodeKind, Nodes, RankDump, RankRef, Role
from dumpscope.errors import Problem, UnreadableError
from dumpscope.readers.msprobe.journal import Replayed, is_journal
from dumpscope.readers.msprobe.json_members import Members
from dumpscope.readers.msprobe.producers import Producers
from dumpscope.readers.msprobe.run_file import read_run, was_closed
from dumpscope.readers.records.leaves import Interned, Leaves
from dumpscope.readers.records.tree import Links, build_tree
from dumpscope.readers.regular_file import open_regular, read_head
from dumpscope.texts import say
from dumpscope_format.naming import split
from dumpscope_format.paths import CONSTRUCT_JSON, STACK_JSON, TENSOR_FOLDER, inside, step_number
from dumpscope_format.schema import MICRO_STEP_KEY, NODE_KEYS, WRITTEN_KEY

KIND_CODES: Final = {
    "api": int(NodeKind.API),
    "module": int(NodeKind.MODULE),
    "gradient": int(NodeKind.GRADIENT),
    "debug": int(NodeKind.DEBUG),
    "other": int(NodeKind.OTHER),
}
DIRECTION_CODES: Final = {
    "forward": int(Direction.FORWARD),
    "backward": int(Direction.BACKWARD),
    "none": int(Direction.NONE),
}
ROLES: Final = {
    "input_args": Role.INPUT,
    "input": Role.INPUT,
    "input_kwargs": Role.KWARG,
    "parameters": Role.PARAMETER,
    "output": Role.OUTPUT,
}
NOTE_LIMIT: Final = 200
_RECORDS_ALONE: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"[^"\\]+"\s*:\s*\{\s*"(?:input|input_args)"\s*:\s*[\[{]')


def read_rank(ref: RankRef, *, follow_stored_path: bool = True) -> RankDump:
    """Read everything but tensors. Damaged parts become problems of the result; what is whole is kept.

    follow_stored_path: use the absolute tensor folder written in the JSON when the rank's folder has none
    A journal that a killed run left is read in place of its files.
    Raises UnreadableError only where the JSON file (or journal) cannot be opened.
    """
    return _Reader(ref, follow_stored_path).read()


def holds_records_alone(head: bytes) -> bool:
    """Whether a JSON file holds records without a head, as the forward.json of older versions of the accuracy checker."""
    return _RECORDS_ALONE.match(head) is not None


class _Reader:
    def __init__(self, ref: RankRef, follow_stored_path: bool) -> None:
        self.ref = ref
        self.follow_stored_path = follow_stored_path
        self.problems: list[Problem] = []
        self.muted = 0
        self.names: list[str] = []
        self.table: dict[str, int] = {}
        self.dead: list[int] = []
        self.kind = array("b")
        self.direction = array("b")
        self.label = array("i")
        self.index = array("i")
        self.labels = Interned()
        self.leaves = Leaves(self._note_node)
        self.producers = Producers()
        self.unknown_keys: dict[str, str] = {}
        self.replayed = Replayed(ref.dump_json) if is_journal(ref.dump_json) else None

    def read(self) -> RankDump:
        head = self._read_data()
        links = self._read_construct()
        task = str(head.get("task") or "")
        if not self.names and task == "structure" and links:
            for name in links.parents:
                self._add_node(name)
        self._drop_dead()
        stack, stacks = self._read_stacks()
        header = self._header(head, task)
        nodes = Nodes(
            names=self.names,
            kind=np.frombuffer(self.kind, np.int8),
            direction=np.frombuffer(self.direction, np.int8),
            label=np.frombuffer(self.label, np.int32),
            labels=self.labels.values,
            index=np.frombuffer(self.index, np.int32),
            stack=stack,
            stacks=stacks,
            micro=self._micro(links),
        )
        tree, tree_problems = build_tree(nodes, links)
        where = self._loc(self.ref.construct_json or self.ref.dump_json)
        self.problems += [Problem(loc=where, kind=kind, message=message) for kind, message in tree_problems]
        items = self.producers.resolve(self.leaves.items(self.renumber), self.table, self.renumber)
        if self.producers.problem:
            self._note(self.ref.dump_json, "producers", self.producers.problem)
        if self.muted:
            self._note(self.ref.dump_json, "more", say("readers.more_problems_kind_not_listed", muted=self.muted))
        return RankDump(ref=self.ref, header=header, nodes=nodes, items=items, tree=tree, problems=self.problems)

    # -- dump.json ---------------------------------------------------------------------------------------------------

    def _read_data(self) -> dict[str, Any]:
        with self.replayed.dump() if self.replayed else open_regular(self.ref.dump_json) as stream:
            alone = not self.replayed and holds_records_alone(read_head(self.ref.dump_json))
            members = Members(stream, loc=self._loc(self.ref.dump_json), inside=None if alone else "data")
            for run in members:
                for name, body in run:
                    self._node(name, body, members)
                self.leaves.pack()
        self.problems += members.problems
        if self.replayed:
            self._note_replay(self.replayed)
        for key, name in self.unknown_keys.items():
            self._note(
                self.ref.dump_json,
                "unknown_key",
                say("readers.records_hold_key_not_known_first", key=f"{key!r}", name=f"{name!r}"),
            )
        return members.header

    def _note_replay(self, replayed: Replayed) -> None:
        torn = say("readers.bytes_behind_them_not_whole", damaged=replayed.damaged) if replayed.damaged else ""
        self._note(
            self.ref.dump_json,
            "truncated",
            say("readers.run_killed_still_runs_before_closed", nodes=replayed.nodes, torn=torn),
            records=replayed.nodes,
        )

    def _node(self, name: str, body: Any, members: Members) -> None:
        before = self.table.get(name)
        if before is not None:
            self.dead.append(before)
            self._note(
                self.ref.dump_json, "duplicate_key", say("readers.stands_more_than_once_last_record", name=f"{name!r}")
            )
        node = self._add_node(name)
        if type(body) is dict and "producers" in body and not self.ref.debug:
            self.producers.take(node, name, body["producers"])
        size = len(self.leaves)
        self.leaves.rounded = False
        try:
            self._body(node, body)
            if self.leaves.rounded:
                exact = members.exact(name)
                self.leaves.cut(size)
                self._body(node, exact)
        except RecursionError:
            self.leaves.cut(size)
            self._note(
                self.ref.dump_json, "nesting", say("readers.record_nested_too_deeply_items_skipped", name=f"{name!r}")
            )
        except KeyError:
            self._note(self.ref.dump_json, "number", say("readers.integers_beyond_64_bits_rounded", name=f"{name!r}"))

    def _add_node(self, name: str) -> int:
        node = self.table[name] = len(self.names)
        self.names.append(name)
        kind, direction, label, index, _ = split(name)
        self.kind.append(KIND_CODES[kind])
        self.direction.append(DIRECTION_CODES[direction])
        self.label.append(self.labels.code(label))
        self.index.append(index)
        return node

    def _body(self, node: int, body: Any) -> None:
        if self.ref.debug:
            self.leaves.walk(node, Role.DEBUG, "", body, 0)
            return
        if type(body) is not dict:
            if body is not None:
                self._note_node("wrong_type", f"The record is a {type(body).__name__}, not an object", node)
            return
        if self.kind[node] == KIND_CODES["gradient"]:
            for path, value in body.items():
                lone = type(value) is list and len(value) == 1
                self.leaves.walk(node, Role.GRADIENT, path, value[0] if lone else value, 0)
            return
        for key, value in body.items():
            role = ROLES.get(key)
            if role is not None:
                self.leaves.role(node, role, value)
            elif key == WRITTEN_KEY:
                self.leaves.walk(node, Role.OUTPUT, WRITTEN_KEY, value, 0)
            elif key not in NODE_KEYS and type(value) in (list, dict):
                self.unknown_keys.setdefault(key, self.names[node])

    def _drop_dead(self) -> None:
        """Leave out nodes whose name appeared again later."""
        self.renumber: np.ndarray[Any, np.dtype[np.int32]] | None = None
        if not self.dead:
            return
        keep = np.ones(len(self.names), np.bool_)
        keep[self.dead] = False
        self.renumber = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        self.names = [name for name, good in zip(self.names, keep, strict=True) if good]
        self.table = {name: number for number, name in enumerate(self.names)}
        for column in ("kind", "direction", "label", "index"):
            old = getattr(self, column)
            setattr(self, column, array(old.typecode, [value for value, good in zip(old, keep, strict=True) if good]))

    # -- stack.json and construct.json -------------------------------------------------------------------------------

    def _read_stacks(self) -> tuple[np.ndarray[Any, np.dtype[np.int32]], list[tuple[str, ...]]]:
        stack = np.full(len(self.names), -1, np.int32)
        stacks, frames = Interned(), Interned()
        wrong: list[str] = []

        def take(names: Iterable[Any], lines: Iterable[Any]) -> None:
            code = stacks.code(tuple(frames.values[frames.code(str(line))] for line in lines))
            for name in names:
                node = self.table.get(name) if type(name) is str else None
                if node is not None:
                    stack[node] = code

        for run in self._side_file(self.ref.stack_json, STACK_JSON, say("readers.call_stacks_not_shown")):
            for key, value in run:
                if type(value) is list and len(value) == 2 and type(value[0]) is list and type(value[1]) is list:
                    take(value[0], value[1])
                elif type(value) is list and all(type(line) is str for line in value):
                    take((key,), value)
                else:
                    wrong.append(key)
        if wrong and self.ref.stack_json:
            self._note(
                self.ref.stack_json,
                "wrong_type",
                say("readers.entries_no_call_stacks_first", count=len(wrong), wrong=f"{wrong[0]!r}"),
            )
        return stack, stacks.values

    def _read_construct(self) -> Links | None:
        if self.ref.debug:
            return None
        parents: dict[str, str | None] = {}
        micro: dict[str, int] = {}
        wrong: list[str] = []
        what = say("readers.module_tree_inferred_from_names_stacks")
        for run in self._side_file(self.ref.construct_json, CONSTRUCT_JSON, what):
            for name, value in run:
                if type(value) is list and len(value) == 2 and (value[0] is None or type(value[0]) is str):
                    parents[name] = value[0]
                    if type(value[1]) is int and 0 <= value[1] < 2**31:
                        micro[name] = value[1]
                elif value is None or type(value) is str:
                    parents[name] = value
                elif name != MICRO_STEP_KEY:
                    wrong.append(name)
        if wrong and self.ref.construct_json:
            self._note(
                self.ref.construct_json,
                "wrong_type",
                say("readers.entries_name_no_parent_first", count=len(wrong), wrong=f"{wrong[0]!r}"),
            )
        return Links(parents=parents, micro=micro)

    def _side_file(self, path: str | None, name: str, loss: str) -> Iterable[Iterable[tuple[str, Any]]]:
        if self.ref.debug:
            return
        if self.replayed:
            with self.replayed.stack() if name == STACK_JSON else self.replayed.construct() as stream:
                yield from Members(stream, loc=self._loc(self.ref.dump_json))
            return
        if path is None:
            refused = os.path.lexists(os.path.join(self.ref.folder, name))  # discovery reported it
            if not refused:
                self.problems.append(
                    Problem(loc=self._loc(name), kind="missing", message=say("readers.there_no", name=name, loss=loss))
                )
            return
        try:
            stream = open_regular(path)
        except UnreadableError as error:
            self.problems.append(
                Problem(
                    loc=self._loc(path),
                    kind="unreadable",
                    message=say("problem.lost", name=name, what=error.detail, loss=loss),
                )
            )
            return
        with stream:
            members = Members(stream, loc=self._loc(path))
            yield from members
        self.problems += members.problems

    def _micro(self, links: Links | None) -> np.ndarray[Any, np.dtype[np.int32]]:
        micro = np.full(len(self.names), -1, np.int32)
        for name, number in links.micro.items() if links else ():
            node = self.table.get(name)
            if node is not None:
                micro[node] = number
        return micro

    # -- header ------------------------------------------------------------------------------------------------------

    def _header(self, head: dict[str, Any], task: str) -> Header:
        local = os.path.join(os.path.dirname(self.ref.dump_json), TENSOR_FOLDER)
        stored = head.get("dump_data_dir")
        folder: str | None = None
        if os.path.isdir(local):
            if inside(dump_root(self.ref), local):
                folder = local
            else:
                self._note(local, "refused", say("readers.tensor_folder_link_out_dump_tensors"))
        elif (
            self.follow_stored_path
            and type(stored) is str
            and os.path.basename(stored.rstrip("/")) == TENSOR_FOLDER
            and os.path.isabs(stored)
            and os.path.isdir(stored)
        ):
            folder = stored
        if not self.names and not any(problem.kind in ("empty", "unreadable") for problem in self.problems):
            orphans = _count_files(folder) if folder else 0
            beside = say("readers.tensor_files_lie_beside_without_records", orphans=orphans) if orphans else ""
            level = str(head.get("level") or "")
            if was_closed(self.ref.folder, dump_root(self.ref)):
                what = say("readers.no_node_recorded_step_closed", level=level)
                remedy = say("readers.record_inside_l0" if level == "L0" else "readers.record_step_with_calls")
            else:
                what = say("readers.no_node_recorded_run_probably_ended", beside=beside)
                remedy = say("readers.record_step_again")
            self._note(
                self.ref.dump_json,
                "no_data",
                say("error.with_remedy", what=what, remedy=remedy),
            )
        elif folder is None and self.leaves.name_files() and not os.path.isdir(local):
            self._note(local, "missing", say("readers.records_name_tensor_files_but_their"))
        run, unread = read_run(self.ref.folder, dump_root(self.ref), os.path.dirname(self._loc(self.ref.dump_json)))
        self.problems += unread
        return Header(
            task=task,
            level=str(head.get("level") or ""),
            framework=str(head.get("framework") or ""),
            summary=self.leaves.summary(),
            data_dir=folder,
            run=run,
        )

    # -- problems ----------------------------------------------------------------------------------------------------

    def _loc(self, path: str) -> str:
        name = os.path.basename(path)
        return f"step{self.ref.step}/{self.ref.label}/{name}" if self.ref.label else name

    def _note(self, path: str, kind: str, message: str, *, records: int | None = None) -> None:
        if len(self.problems) >= NOTE_LIMIT and kind != "more":
            self.muted += 1
            return
        self.problems.append(Problem(loc=self._loc(path), kind=kind, message=message, records=records))

    def _note_node(self, kind: str, message: str, node: int | None = None) -> None:
        name = self.names[-1 if node is None else node]
        self._note(self.ref.dump_json, kind, say("problem.of", name=name, message=message))


def dump_root(ref: RankRef) -> str:
    """Outermost folder that belongs to the dump, seen from the rank's own place."""
    parent = os.path.dirname(ref.folder)
    if ref.label and step_number(os.path.basename(parent)) is not None:
        return os.path.dirname(parent)
    return ref.folder


def _count_files(folder: str) -> int:
    with os.scandir(folder) as entries:
        return sum(entry.is_file(follow_symlinks=False) for entry in entries)
