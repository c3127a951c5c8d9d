"""The three generations of ptdbg's files: names, lines and folders. Works on texts only; nothing is read or written here.

          2.3                                    4.0                                    6.0
folder    {tag}_v2.3/rank0/                      {tag}_v4.0/[step0/]rank0/              {tag}_v6.0/step0/rank0/
file      {stem}.pkl, api_stack_{stem}.pkl       {mode}_dump.pkl                        {mode}_dump.pkl
name      Functional_relu_0_forward_input.0      Functional_relu_0_forward_input.0      Functional.relu.0.forward.input.0
flag      1, or dump_step                        0                                      0
numbers   max, min, mean                         and l2norm                             and l2norm
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dumpscope_format.naming import NodeName, parse, split_item
from dumpscope_format.older_python import dataclass

GENERATIONS: Final = ("2.3", "4.0", "6.0")
MODULE_FLAG: Final = 1
OVERFLOW_FLAG: Final = 101
STACK_MODES: Final = frozenset(("list", "range", "stack", "acl", "api_stack"))
"""Modes of the switch whose files have stack lines."""

_FRAME: Final = re.compile(r"File (.*), line (\d+), in (.*), \n (.*)", re.DOTALL)
_BARE: Final = ("torch.bool",)
_UNDERSCORED: Final = re.compile(r"([A-Za-z]+)_(.+?)_(\d+)(?:_(forward|backward)(?:_.*)?)?", re.DOTALL)
_DOTTED: Final = re.compile(r"([^.]+)\.(.+?)\.(\d+)(?:\.(forward|backward)(?:\..*)?)?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """File format of one generation."""

    generation: str

    @property
    def dotted(self) -> bool:
        return self.generation == "6.0"

    @property
    def one_file(self) -> bool:
        """Whether the path that a program gives is that of the .pkl file."""
        return self.generation == "2.3"

    # -- folders -------------------------------------------------------------------------------------------------------

    def folders(self, tag: str, *, step: int, steps: bool, rank: str) -> tuple[str, ...]:
        """Folder names below the root. steps: the program selected steps"""
        head = f"{tag}_v{self.generation}"
        if self.generation == "6.0" or (self.generation == "4.0" and steps):
            return head, f"step{step}", rank
        return head, rank

    def stem(self, mode: str, name: str) -> str:
        """File name without .pkl, which is the folder of the .npy files too. name: file name that the program gave"""
        if self.one_file:
            return f"api_stack_{name}" if mode == "api_stack" else name
        return "dump" if mode == "all" else f"{mode}_dump"

    def finding(self, node: str, number: int, *, stamp: str) -> str:
        """File name, without .pkl, of one overflow. number: from 1; stamp: UTC, 20230610_101500"""
        if self.one_file:
            return f"Overflow_info_{stamp}_{number}"
        return f"{node.replace('.', '_')}_{number}"

    # -- lines ---------------------------------------------------------------------------------------------------------

    def stack_first(self, mode: str, *, overflow: bool) -> bool:
        return self.one_file and (overflow or mode in ("list", "range", "acl"))

    def stack_name(self, node: str) -> str:
        return f"{node}.stack_info" if self.dotted else f"{node}_stack_info"

    def stack_line(self, node: str, stack: Sequence[str]) -> str:
        return _line([self.stack_name(node), [frame(text) for text in stack]])

    def tensor_line(self, name: str, record: Mapping[str, Any], flag: int) -> str:
        """A tensor's line. record: the engine's record, complete"""
        dtype, shape, check = record["dtype"], record["shape"], record.get("md5")
        if self.one_file and flag == OVERFLOW_FLAG:
            return _line([name, flag, [], dtype, shape])
        numbers = [] if isinstance(check, str) else self._statistics(record)
        return _line([name, flag, check if isinstance(check, str) else [], dtype, shape, numbers])

    def number_line(self, name: str, value: float, flag: int) -> str:
        """The line of a Python number."""
        kind = next(kind for kind in (bool, int, float) if isinstance(value, kind))
        numbers = [kind(value)] * (3 if self.one_file else 4)
        return _line([name, flag, [], f"<class '{kind.__name__}'>", "[]", numbers])

    def _statistics(self, record: Mapping[str, Any]) -> list[Any]:
        high, low, mean, norm = (record.get(key) for key in ("Max", "Min", "Mean", "Norm"))
        whole = not record["dtype"].startswith(("torch.float", "torch.bfloat", "torch.complex"))
        if record["dtype"] in _BARE or high is None:
            found: list[Any] = [[], [], [], "Nan"]
        elif not record["shape"]:
            found = [high, low, mean, "Nan" if whole else abs(high)]
        else:
            found = [float(high), float(low or 0), float(mean or 0), float(norm or 0)]
        return found[:3] if self.one_file else found


def frame(text: str) -> list[str | None] | str:
    """`[path, line, function, source]` of a frame text of the engine; source is None if unknown."""
    found = _FRAME.fullmatch(text)
    return [found[1], found[2], found[3], found[4] or None] if found else ""


def _line(fields: list[Any]) -> str:
    return json.dumps(fields) + "\n"


class Spelling:
    """Converts the engine's names to the spelling of one generation. Remembers the numbers of modules.

    dumped: labels of modules under `module_dump`, with the names that the program gave them
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self.dumped: dict[str, str] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._counts: dict[str, int] = {}

    def item(self, item: str) -> str | None:
        """Name of an argument, result or gradient; None if this generation has no such name."""
        found = split_item(item)
        if found is None or found[1] in ("kwargs", "parameters"):
            return None
        node, category, path = found
        text = self.node(node) + ("." if self._form.dotted else "_") + category
        return f"{text}.{path}" if path else text

    def node(self, node: str) -> str:
        """Name of a call or module, direction included."""
        parts = parse(node)
        if parts.kind == "module":
            return self._module(parts)
        if parts.kind != "api" or self._form.dotted:
            return node
        prefix, _, name = parts.label.partition(".")
        return f"{prefix}_{name}_{parts.index}_{parts.direction}"

    def _module(self, parts: NodeName) -> str:
        separator = "." if self._form.dotted else "_"
        label = f"{parts.prefix}.{parts.label}"
        name, number = self.dumped.get(label), parts.index
        if name is None:
            path, _, kind = parts.label.rpartition(".")
            name = f"{path}.{kind}" if self._form.dotted else f"Module_{kind}"
            number = number if self._form.dotted else self._shared_number(parts.label, kind, parts.index)
        return separator.join((name, str(number), parts.direction))

    def _shared_number(self, label: str, kind: str, index: int) -> int:
        """Number of a module's call, if all modules of a class are counted together."""
        number = self._numbers.get((label, index))
        if number is None:
            number = self._numbers[label, index] = self._counts.get(kind, 0)
            self._counts[kind] = number + 1
        return number


def engine_name(entry: str, default: str = "forward") -> str | None:
    """The engine's name for a call that the program named in either spelling; None if it is not one call."""
    found = _DOTTED.fullmatch(entry) or _UNDERSCORED.fullmatch(entry)
    return f"{found[1]}.{found[2]}.{found[3]}.{found[4] or default}" if found else None
