"""One rank of what ptdbg's `need_replicate` leaves: arguments of calls that overflowed, into the columns of any other dump.

The calls have arguments and no results. Tensors of forward calls are in files, from which type, shape and statistics are
computed; of gradients that came into backward calls only the extremes are known.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Header, Nodes, RankDump, RankRef, Role
from dumpscope.errors import Problem, TensorError, UnreadableError
from dumpscope.ptdbg.reader.case_files import DATA_FOLDER
from dumpscope.ptdbg.reader.lines import clean, frame_text
from dumpscope.readers.msprobe.rank import ROLES
from dumpscope.readers.records.leaves import DEPTH_LIMIT, Leaves
from dumpscope.readers.records.node_table import NodeTable
from dumpscope.readers.records.tree import build_tree
from dumpscope.readers.regular_file import open_regular
from dumpscope.readers.tensors import npy_file
from dumpscope.texts import say
from dumpscope_format.naming import split_ptdbg

SIZE_LIMIT: Final = 64 << 20
"""Bytes of a JSON file; a real one has some thousand a call."""
MEASURED_LIMIT: Final = 4 << 30
"""Bytes of tensors that statistics are computed of."""
NOTE_LIMIT: Final = 200
BLOCK: Final = 1 << 20

_RANK_FOLDER: Final = re.compile(r"rank[0-9]{1,9}")
_ENDING: Final = re.compile(r"[._](?:forward|backward)")
_DOTTED: Final = re.compile(r"\.[0-9]+(?:\.|$)")


def read_cases(ref: RankRef) -> RankDump:
    """Read everything but tensors; damaged parts become problems. Raises UnreadableError where no file can be opened."""
    return _Reader(ref).read()


class _Reader:
    def __init__(self, ref: RankRef) -> None:
        self.ref = ref
        self.problems: list[Problem] = []
        self.names: dict[str, Any] = {}
        self.measured = 0
        self.files: dict[str, dict[str, Any] | None] = {}
        self.current = ""
        self.leaves = Leaves(self._note_node)

    def read(self) -> RankDump:
        for path in (self.ref.dump_json, *self.ref.parts):
            way = "forward" if os.path.basename(path).startswith("forward") else "backward"
            for api, record in self._object(path).items():
                self.names[_node(api, way)] = record
        nodes = self._columns(self._stacks())
        tree, problems = build_tree(nodes, None)
        for kind, message in problems:
            self._note(self.ref.dump_json, kind, message)
        if not len(nodes):
            self._note(self.ref.dump_json, "no_data", say("readers.no_call_recorded"))
        header = Header(
            task="overflow_check",
            level="L1",
            framework="pytorch",
            summary=self.leaves.summary(),
            data_dir=self.ref.folder if self.leaves.name_files() else None,
            run=None,
            layout="ptdbg need_replicate",
        )
        items = self.leaves.items()
        return RankDump(ref=self.ref, header=header, nodes=nodes, items=items, tree=tree, problems=self.problems)

    def _object(self, path: str) -> dict[str, Any]:
        """The JSON object of a file; what is none is noted."""
        with open_regular(path) as stream:
            text = stream.read(SIZE_LIMIT + 1)
        try:
            if len(text) > SIZE_LIMIT:
                raise UnreadableError(say("readers.larger_than_mib", size_limit=SIZE_LIMIT >> 20))
            found = json.loads(text)
            if type(found) is not dict:
                raise UnreadableError(say("readers.holds_not_object", name=type(found).__name__))
        except (UnreadableError, ValueError, RecursionError) as error:
            why = getattr(error, "detail", f"is no whole JSON ({error})")
            self._note(path, "unreadable", say("problem.file", name=os.path.basename(path), why=why))
            return {}
        return found

    def _stacks(self) -> dict[str, tuple[str, ...]]:
        if self.ref.stack_json is None:
            return {}
        try:
            stacks = self._object(self.ref.stack_json)
        except UnreadableError as error:
            self._note(self.ref.stack_json, "unreadable", say("problem.sentence", what=error))
            return {}
        return {
            _node(api, "forward"): tuple(text for frame in frames if (text := frame_text(frame)))
            for api, frames in stacks.items()
            if type(frames) is list
        }

    def _columns(self, stacks: dict[str, tuple[str, ...]]) -> Nodes:
        table = NodeTable(split_ptdbg)
        for name, body in self.names.items():
            self.current = name
            self._arguments(table.add(name, stack=stacks.get(name, ())), body)
        return table.nodes()

    def _arguments(self, node: int, body: Any) -> None:
        """Positions, or positions and names; or a record as in msprobe's dumps, which has results too."""
        parts: dict[Role, Any] = {}
        if type(body) is list:
            parts = {Role.INPUT: body}
        elif type(body) is dict and type(body.get("args")) is list:
            parts = {Role.INPUT: body["args"], Role.KWARG: body.get("kwargs") or {}}
        elif type(body) is dict and type(body.get("input_args")) is list:
            parts = {role: body[key] for key, role in ROLES.items() if key in body}
        if not parts or type(parts.get(Role.KWARG, {})) is not dict:
            self._note_node("wrong_type", say("readers.record_no_list_arguments"))
            return
        size = len(self.leaves)
        try:
            for role, value in parts.items():
                self.leaves.role(node, role, self._with_files(value, 0))
        except RecursionError:
            self.leaves.cut(size)
            self._note_node("nesting", say("readers.record_nested_too_deeply_items_skipped_2"))

    # -- tensors -----------------------------------------------------------------------------------------------------

    def _with_files(self, value: Any, depth: int) -> Any:
        """A value with the records of its tensor files in place of their paths."""
        if depth > DEPTH_LIMIT:
            raise RecursionError
        if type(value) is list:
            return [self._with_files(part, depth + 1) for part in value]
        if type(value) is not dict:
            return value
        if type(value.get("datapath")) is str:
            path = clean(value["datapath"])
            if path not in self.files:
                self.files[path] = self._tensor(path)
            found = self.files[path]
            return value if found is None else {key: part for key, part in value.items() if key != "datapath"} | found
        if "type" in value:
            return value
        return {key: self._with_files(part, depth + 1) for key, part in value.items()}

    def _tensor(self, path: str) -> dict[str, Any] | None:
        """The record of a tensor file, None where it cannot be read. The end of its path is looked for in the JSON's folder."""
        place = path.replace("\\", "/").split("/")[-3:]
        if len(place) < 3 or not DATA_FOLDER.fullmatch(place[0]) or not _RANK_FOLDER.fullmatch(place[1]):
            self._note_node("refused", say("readers.does_not_end_forward_real_data_time_rankn_file", path=f"{path!r}"))
            return None
        file = "/".join(place)
        try:
            loaded = npy_file.load(os.path.join(self.ref.folder, file), root=self.ref.folder)
        except TensorError as error:
            self._note_node("tensor_unreadable", f"{error}")
            return None
        record = {"dtype": loaded.dtype, "shape": list(loaded.shape), "data_name": file}
        self.measured += loaded.nbytes
        if self.measured <= MEASURED_LIMIT:
            record |= _statistics(np.ravel(loaded.array))
        return record

    # -- problems ----------------------------------------------------------------------------------------------------

    def _note(self, path: str, kind: str, message: str) -> None:
        if len(self.problems) < NOTE_LIMIT:
            self.problems.append(Problem(loc=os.path.basename(path), kind=kind, message=message))

    def _note_node(self, kind: str, message: str) -> None:
        self._note(self.ref.dump_json, kind, say("problem.of", name=self.current, message=message))


def _node(api: str, way: str) -> str:
    """Name of the call in a direction, which the name of a forward call lacks."""
    name = clean(api)
    if _ENDING.fullmatch(name[-8:]) or _ENDING.fullmatch(name[-9:]):
        return name
    return f"{name}.{way}" if _DOTTED.search(name) else f"{name}_{way}"


def _statistics(flat: NDArray[Any]) -> dict[str, Any]:
    """Max, Min, Mean and Norm, of magnitudes where the numbers are complex; none of no number or of truth values."""
    if not flat.size or flat.dtype.kind == "b":
        return {}
    high, low, total, squares = [], [], 0.0, 0.0
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            part = flat[start : start + BLOCK]
            values = np.abs(part) if part.dtype.kind == "c" else part
            wide = values.astype(np.float64)
            high.append(values.max())
            low.append(values.min())
            total += float(wide.sum())
            squares += float(np.square(wide).sum())
        return {
            "Max": np.max(high).item(), "Min": np.min(low).item(), "Mean": total / flat.size, "Norm": float(np.sqrt(squares)),
        }  # fmt: skip
