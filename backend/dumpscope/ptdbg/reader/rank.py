"""One rank of a ptdbg dump: `.pkl` files of lines and folders of `.npy` files into the columns of any other dump.

Names stay as they are written; kind, label and call index are those of the same call in an msprobe dump. A name that stands
twice (the file was appended to, or a module was called twice under one number) is kept each time, the second as `name#2`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from dumpscope.domain.records import Header, NodeKind, Nodes, RankDump, RankRef, Role
from dumpscope.errors import Problem, TensorError
from dumpscope.ptdbg.reader.files import TENSOR_SUFFIX, tensor_folder
from dumpscope.ptdbg.reader.lines import Data, Stack, clean, read_lines
from dumpscope.readers.msprobe.run_file import read_run
from dumpscope.readers.records.leaves import Leaves
from dumpscope.readers.records.node_table import NodeTable
from dumpscope.readers.records.tree import build_tree
from dumpscope.readers.regular_file import open_regular
from dumpscope.readers.tensors import npy_file
from dumpscope.texts import say
from dumpscope_format.naming import split_ptdbg, split_ptdbg_item, split_ptdbg_stack
from dumpscope_format.paths import natural_key, step_number

NOTE_LIMIT: Final = 200
_SCALAR: Final = re.compile(r"<class '(?:[\w]+\.)*(\w+)'>")
_SLOTS: Final = ("Max", "Min", "Mean", "Norm")
_WIDENED: Final = ("torch.bfloat16", "torch.float16")
"""Types whose files may hold float32, as the copy from the device or numpy had it."""
_ROLES: Final = {"input": Role.INPUT, "output": Role.OUTPUT}


@dataclass(slots=True, eq=False)
class _Node:
    """A call as it comes together. items: (role, path) -> (record, name of its file)"""

    name: str
    written: str
    items: dict[tuple[Role, str], tuple[dict[str, Any], str]] = field(default_factory=dict)
    stack: tuple[str, ...] | None = None


def read_ptdbg(ref: RankRef) -> RankDump:
    """Read everything but tensors; damaged parts become problems. Raises UnreadableError where no file can be opened."""
    return _Reader(ref).read()


class _Reader:
    def __init__(self, ref: RankRef) -> None:
        self.ref = ref
        self.problems: list[Problem] = []
        self.muted = 0
        self.nodes: list[_Node] = []
        self.open: dict[str, _Node] = {}
        self.times: Counter[str] = Counter()
        self.forms: Counter[str] = Counter()
        self.many = bool(ref.parts)
        self.root = ref.folder if self.many else ref.tensors
        self.absent = 0
        self.unrecorded = 0
        self.overflow = False
        self.current = ""
        self.leaves = Leaves(self._note_node)

    def read(self) -> RankDump:
        if os.path.isdir(self.ref.dump_json):
            self._arrays(self.ref.dump_json, "", set())
        else:
            for path in (self.ref.dump_json, *self.ref.parts):
                self._file(path, tensor_folder(path, self.ref.folder) if self.many else self.ref.tensors)
        self._tell()
        nodes = self._columns()
        tree, tree_problems = build_tree(nodes, None)
        where = self._loc(self.ref.dump_json)
        self.problems += [Problem(loc=where, kind=kind, message=message) for kind, message in tree_problems]
        header = self._header(nodes)
        if self.muted:
            self.problems.append(
                Problem(loc=where, kind="more", message=say("readers.more_problems_kind_not_listed", muted=self.muted))
            )
        items = self.leaves.items()
        return RankDump(ref=self.ref, header=header, nodes=nodes, items=items, tree=tree, problems=self.problems)

    # -- files -------------------------------------------------------------------------------------------------------

    def _file(self, path: str, tensors: str | None) -> None:
        self.open = {}
        seen: set[str] = set()
        with open_regular(path) as stream:
            note = lambda place, kind, message: self._note(f"{self._loc(path)}:{place}", kind, message)  # noqa: E731
            for line in read_lines(stream, note):
                if isinstance(line, Stack):
                    self._stack(line)
                else:
                    self._value(line)
                    seen.add(line.name)
        if tensors is not None:
            self._arrays(tensors, os.path.relpath(tensors, self.root) if self.many and self.root else "", seen)

    def _value(self, line: Data) -> None:
        parts = split_ptdbg_item(line.name)
        place = (Role.DEBUG, "") if parts is None else (_ROLES[parts[1]], parts[2])
        node = self._node(line.name if parts is None else parts[0], place)
        node.items[place] = (_record(line), line.name)
        self.overflow = self.overflow or line.overflow
        self.forms["." if node.written.endswith((".forward", ".backward")) else "_"] += 1
        if line.stats:
            self.forms[str(len(line.stats))] += 1

    def _node(self, name: str, place: tuple[Role, str]) -> _Node:
        node = self.open.get(name)
        return self._begin(name) if node is None or place in node.items else node

    def _begin(self, written: str) -> _Node:
        self.times[written] += 1
        times = self.times[written]
        node = _Node(written if times == 1 else f"{written}#{times}", written)
        self.nodes.append(node)
        self.open[written] = node
        return node

    def _stack(self, line: Stack) -> None:
        name = split_ptdbg_stack(line.name) or line.name
        node = self.open.get(name)
        if node is None or node.stack is not None:
            node = self._begin(name)
        node.stack = line.frames

    def _arrays(self, folder: str, below: str, seen: set[str]) -> None:
        """Give records their files; a file without a record becomes one by its name."""
        try:
            with os.scandir(folder) as entries:
                files = {
                    entry.name.removesuffix(TENSOR_SUFFIX): entry.stat(follow_symlinks=False).st_mtime_ns
                    for entry in entries
                    if entry.name.endswith(TENSOR_SUFFIX)
                }
        except OSError as error:
            self._note(
                self._loc(folder), "unreadable", say("readers.tensor_folder_cannot_listed", reason=error.strerror)
            )
            return
        for node in self.open.values():
            for record, name in node.items.values():
                if "shape" not in record:
                    continue
                if name in files:
                    self._attach(record, folder, below, name)
                else:
                    self.absent += 1
        stray = [name for name in files if name not in seen and split_ptdbg_item(clean(name)) is not None]
        self.unrecorded += len(stray)
        for name in sorted(stray, key=lambda one: (files[one], natural_key(one))):
            self._stray(folder, below, name)

    def _attach(self, record: dict[str, Any], folder: str, below: str, name: str) -> None:
        file = f"{name}{TENSOR_SUFFIX}"
        record["data_name"] = os.path.join(below, file)
        if record["dtype"] in _WIDENED:
            try:
                stored = npy_file.load(os.path.join(folder, file), root=folder).dtype
            except TensorError:
                return  # comparing the tensor reports it
            if stored != record["dtype"]:
                record["file_dtype"] = stored

    def _stray(self, folder: str, below: str, name: str) -> None:
        file = f"{name}{TENSOR_SUFFIX}"
        try:
            array = npy_file.load(os.path.join(folder, file), root=folder)
        except TensorError as error:
            self._note(self._loc(os.path.join(folder, file)), "tensor_unreadable", say("problem.sentence", what=error))
            return
        record: dict[str, Any] = {
            "type": "torch.Tensor", "dtype": array.dtype, "shape": list(array.shape), "data_name": os.path.join(below, file)
        }  # fmt: skip
        parts = split_ptdbg_item(clean(name))
        assert parts is not None
        place = (_ROLES[parts[1]], parts[2])
        node = self._node(parts[0], place)
        node.items[place] = (record, clean(name))
        self.forms["." if node.written.endswith((".forward", ".backward")) else "_"] += 1

    # -- result ------------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        where = self._loc(self.ref.tensors or self.ref.dump_json)
        if os.path.isdir(self.ref.dump_json):
            self._note(
                where,
                "missing",
                say("readers.there_no_pkl_beside_these_npy", unrecorded=self.unrecorded),
            )
        elif self.unrecorded:
            self._note(where, "missing", say("readers.tensor_files_have_no_record_they", unrecorded=self.unrecorded))
        if self.absent:
            self._note(where, "missing", say("readers.records_have_no_tensor_file_them", absent=self.absent))
        again = sum(times - 1 for times in self.times.values())
        if again and not self.many:
            self._note(
                self._loc(self.ref.dump_json),
                "repeated",
                say("readers.calls_stand_here_again_under_names", again=again),
            )
        if not self.nodes:
            self._note(
                self._loc(self.ref.dump_json),
                "no_data",
                say(
                    "error.with_remedy",
                    what=say("readers.no_call_recorded_run_probably_ended"),
                    remedy=say("readers.run_step_again"),
                ),
            )

    def _columns(self) -> Nodes:
        table = NodeTable(split_ptdbg)
        for node in self.nodes:
            number = table.add(node.name, written=node.written, stack=node.stack or ())
            self.current = node.name
            for (role, path), (record, _) in node.items.items():
                self.leaves.walk(number, role, path, record, 0)
        return table.nodes()

    def _header(self, nodes: Nodes) -> Header:
        root = os.path.dirname(self.ref.folder) if self.ref.label else self.ref.folder
        if step_number(os.path.basename(root)) is not None:
            root = os.path.dirname(root)
        run, unread = read_run(self.ref.folder, root, os.path.dirname(self._loc(self.ref.dump_json)))
        self.problems += unread
        filed = self.leaves.name_files()
        modules, calls = bool((nodes.kind == NodeKind.MODULE).any()), bool((nodes.kind == NodeKind.API).any())
        task = "tensor" if filed else "statistics" if len(self.leaves) else "structure"
        return Header(
            task="overflow_check" if self.overflow else task,
            level="mix" if modules and calls else "L0" if modules else "L1",
            framework="pytorch",
            summary=self.leaves.summary(),
            data_dir=self.root if filed else None,
            run=run,
            layout=f"ptdbg{self._version()}",
        )

    def _version(self) -> str:
        """Whose form it is; names and records tell, the number in a folder's name does not."""
        if self.forms["."] > self.forms["_"]:
            return " 6.0"
        if self.forms["3"] or (self.overflow and not self.forms["4"]):
            return " 2.3"
        return " 4.0" if self.forms["4"] else ""

    # -- problems ----------------------------------------------------------------------------------------------------

    def _loc(self, path: str) -> str:
        if not self.ref.label:
            return os.path.basename(path)
        return f"step{self.ref.step}/{self.ref.label}/{os.path.relpath(path, self.ref.folder)}"

    def _note(self, loc: str, kind: str, message: str) -> None:
        if len(self.problems) >= NOTE_LIMIT:
            self.muted += 1
        else:
            self.problems.append(Problem(loc=loc, kind=kind, message=message))

    def _note_node(self, kind: str, message: str) -> None:
        self._note(self._loc(self.ref.dump_json), kind, say("problem.of", name=self.current, message=message))


def _record(line: Data) -> dict[str, Any]:
    """A line as a record of dump.json."""
    scalar = _SCALAR.fullmatch(line.dtype)
    if scalar:
        value = line.stats[0] if line.stats else None
        return {"type": scalar[1], "value": None if value == [] else value}
    record: dict[str, Any] = {
        "type": "torch.Tensor", "dtype": line.dtype, "shape": None if line.shape is None else list(line.shape)
    }  # fmt: skip
    for slot, value in zip(_SLOTS, line.stats, strict=False):
        record[slot] = None if value in ([], "Nan") else value
    if line.check is not None:
        record["md5"] = line.check
    return record
