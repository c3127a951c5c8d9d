"""An independent count of the calls that a run makes: what its dump must hold.

Counted is each executed instruction of the program (`torch.rsqrt(x)`, `a + b`, `x[i] = y`, `x *= 2`) under which an operator of
aten, or of a library, ran that gives a tensor. A dispatch mode sees the operators, and tracing of opcodes tells one execution of
an instruction from the next. The program is all Python code but torch's own; of torch, what a model or an optimizer is made of
belongs to it too (torch/nn/modules, torch/nn/utils, torch/optim), so that the calls in nn.Linear.forward and Adam.step count.

Not counted: operators of autograd's backward itself, and of the wrappers of torch.distributed (gathering of shards); operators
that give no tensor (`item()`); reading an attribute that is a view (`x.T`, `x.data`). What a backward runs of the program, such
as a recomputed layer, is counted.

It needs Python 3.11, which tells the columns of an instruction.
"""

from __future__ import annotations

import ast
import builtins
import dis
import json
import linecache
import os
import re
import sys
import sysconfig
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
STANDARD = sysconfig.get_path("stdlib") + os.sep
OWN = os.path.abspath(__file__)
MODELS = tuple(TORCH + os.path.join(*part, "") for part in (("nn", "modules"), ("nn", "utils"), ("optim",)))
CALLERS = tuple(
    TORCH + os.path.join(*part)
    for part in (("nn", "modules", "module.py"), ("optim", "optimizer.py"), ("optim", "lr_scheduler.py"))
)
"""Files of torch that call hooks or other code of the program."""
WRAPPERS = tuple(TORCH + os.path.join(*part, "") for part in (("distributed",), ("nn", "parallel"), ("autograd",)))

Site = tuple[str, int]


def is_program(path: str) -> bool:
    """Whether the code of a file is the program's, not torch's or Python's."""
    if path.startswith(TORCH):
        return path.startswith(MODELS) and path not in CALLERS
    if path.startswith(STANDARD) and "site-packages" not in path:
        return False
    return path != OWN and not path.startswith("<frozen")


@dataclass
class Visit:
    """One executed instruction. name: of what it calls, `__add__` of an operator; ops: operators below it"""

    site: Site
    name: str
    attribute: bool
    ops: set[str] = field(default_factory=set)
    computes: bool = False


class Census(TorchDispatchMode):
    """Counts while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.visits: dict[tuple[int, int], Visit] = {}
        self._before: Any = None
        self._executed = 0
        self._cells: dict[int, list[int]] = {}

    def __enter__(self) -> Census:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if is_program(frame.f_code.co_filename):
                frame.f_trace = self._local(frame)
                frame.f_trace_opcodes = True
            frame = frame.f_back
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        sys.settrace(self._before)
        self._cells.clear()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event != "call" or not is_program(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._local(frame)

    def _local(self, frame: FrameType) -> Callable[[FrameType, str, Any], Any]:
        cell = self._cells[id(frame)] = [self._next()]

        def local(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                cell[0] = self._next()
                self._cells[id(frame)] = cell  # a generator that goes on
            elif event == "return":
                self._cells.pop(id(frame), None)
            return local

        return local

    def _next(self) -> int:
        self._executed += 1
        return self._executed

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = self._innermost(sys._getframe(1))
        if found is not None and gives_tensor(func):
            cell = self._cells.get(id(found))
            # the place is for Python 3.12 and later, which trace the opcodes of a function from its second run on
            key = (cell[0] if cell is not None else -self._next(), found.f_lasti)
            visit = self.visits.get(key)
            if visit is None:
                name, attribute = called(found.f_code, found.f_lasti)
                visit = self.visits[key] = Visit((found.f_code.co_filename, found.f_lineno), name, attribute)
            visit.ops.add(str(func))
            if visit.name == "truediv" and "aten.reciprocal" in str(func):
                visit.name = "reciprocal"  # 1 / x: Python code of torch that calls x.reciprocal()
            visit.computes = visit.computes or computes(func)
        return func(*args, **(kwargs or {}))

    @staticmethod
    def _innermost(frame: FrameType | None) -> FrameType | None:
        """The program's frame below which an operator runs; None for what is not counted."""
        while frame is not None:
            path = frame.f_code.co_filename
            if is_program(path):
                return frame
            if path.startswith(WRAPPERS):
                return None
            frame = frame.f_back
        return None

    def counted(self) -> list[Visit]:
        return [one for one in self.visits.values() if not (one.attribute and not one.computes)]


def gives_tensor(func: Any) -> bool:
    return any("Tensor" in str(one.type) for one in func._schema.returns) or func._schema.is_mutable


_PLAIN = re.compile(
    r"aten\.(clone|_to_copy|copy_|lift_fresh.*|empty.*|new_.*|zeros.*|ones.*|full.*|zero_|fill_|arange|_unsafe_view|resize_|set_|scalar_tensor"
    r"|eye|linspace|cat|stack|index|repeat|rand.*|_pin_memory|_reshape_copy|view.*_copy)(\.|$)"
)


def computes(func: Any) -> bool:
    """Whether an operator makes new numbers of numbers: no view, no copy, no constant."""
    if _PLAIN.match(str(func)):
        return False
    views = any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)
    return not views and any("Tensor" in str(one.type) for one in func._schema.arguments)


_instructions: dict[CodeType, dict[int, dis.Instruction]] = {}

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "bool",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.In: "contains",
    ast.NotIn: "contains",
}  # fmt: skip


_BY_OPCODE = {
    "STORE_SUBSCR": "setitem", "BINARY_SUBSCR": "getitem", "BINARY_SLICE": "getitem", "STORE_SLICE": "setitem",
    "UNPACK_SEQUENCE": "iter", "GET_ITER": "iter", "FOR_ITER": "iter", "FORMAT_VALUE": "format", "CONTAINS_OP": "contains",
}  # fmt: skip


def called(code: CodeType, place: int) -> tuple[str, bool]:
    """(name of what an instruction calls, whether it only reads an attribute)."""
    if code not in _instructions:
        _instructions[code] = {one.offset: one for one in dis.get_instructions(code)}
    one = _instructions[code].get(place)
    if one is None:
        return "?", False
    if one.opname in _BY_OPCODE:
        return _BY_OPCODE[one.opname], False
    if one.opname.startswith("LOAD_ATTR") or one.opname == "STORE_ATTR":
        return str(one.argval), one.opname != "STORE_ATTR"
    return name_of(source(code, one)), False


def source(code: CodeType, one: dis.Instruction) -> str:
    """The text of an instruction."""
    at = one.positions
    if at is None or at.lineno is None or at.end_lineno is None or at.col_offset is None or at.end_col_offset is None:
        return ""
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(at.lineno, at.end_lineno + 1)]
    lines[-1] = lines[-1][: at.end_col_offset]
    lines[0] = lines[0][at.col_offset :]
    return b"".join(lines).decode(errors="replace")


def name_of(text: str) -> str:
    """`torch.rsqrt(x)` -> rsqrt, `a + b` -> add, `x *= 2` -> mul."""
    try:
        node: Any = ast.parse(text.strip()).body[0]
    except (SyntaxError, IndexError, ValueError):
        try:
            node = ast.parse(f"({text.strip()})").body[0]
        except (SyntaxError, IndexError, ValueError):
            return "?"
    node = node.value if isinstance(node, ast.Expr) else node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
        return "?"  # sum(losses) of Python calls an operator
    if isinstance(node, ast.Call):
        return str(getattr(node.func, "attr", None) or getattr(node.func, "id", "?"))
    kind = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    return _OPERATORS.get(type(kind), "?")


def is_built_in(name: str) -> bool:
    """Whether a name is one of an operator or of a built-in function of torch."""
    owners: tuple[Any, ...] = (torch, torch.Tensor, torch.nn.functional)
    found = [getattr(owner, name) for owner in owners if callable(getattr(owner, name, None))]
    return name in _WORDS or (bool(found) and not any(isinstance(one, types.FunctionType) for one in found))


# -- against a dump ----------------------------------------------------------------------------------------------------

_FRAME = re.compile(r"File (.*), line (\d+), in ")


def recorded(folders: Iterable[Path]) -> dict[Site | None, Counter[str]]:
    """Names of the forward nodes of functions, by the innermost place of the program in their stack."""
    found: dict[Site | None, Counter[str]] = {}
    for folder in folders:
        for names, frames in json.loads((folder / "stack.json").read_text(encoding="utf-8")).values():
            site = next(_sites(frames), None)
            for name in names:
                if name.endswith(".forward") and not name.startswith(("Module.", "Compiled.")):
                    found.setdefault(site, Counter())[plain(name.rsplit(".", 3)[-3])] += 1
    return found


def _sites(frames: list[str]) -> Iterator[Site]:
    for text in frames:
        match = _FRAME.match(text)
        if match is not None and is_program(match[1]):
            yield match[1], int(match[2])


def plain(name: str) -> str:
    """A name without what tells an operator, its mirror and its in-place form apart: `__radd__`, `add_` -> add."""
    bare = name.strip("_")
    if name.startswith("__") and bare[:1] in ("r", "i") and bare[1:] in _WORDS:
        bare = bare[1:]
    return {"div": "truediv", "floor_divide": "floordiv", "remainder": "mod"}.get(bare, bare)


_WORDS = set(_OPERATORS.values())


def without_node(visits: Iterable[Visit], nodes: dict[Site | None, Counter[str]]) -> list[Visit]:
    """Calls for which no node stands at their line. A call of a built-in function of torch needs a node of its name. Of the rest,
    whose names are the program's or those of Python functions of torch, as many have one as there are further nodes."""
    left = {site: Counter(names) for site, names in nodes.items()}
    rest = []
    for one in visits:
        names = left.get(one.site)
        if names is not None and names[plain(one.name)] > 0:
            names[plain(one.name)] -= 1
        else:
            rest.append(one)
    missing = []
    for one in sorted(rest, key=lambda one: not one.computes):
        names = +left.get(one.site, Counter())
        if names and not is_built_in(one.name):
            left[one.site][next(iter(names))] -= 1
        else:
            missing.append(one)
    return missing
