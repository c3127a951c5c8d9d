"""Values that a program printed with `str`: literals of Python, and `nan`, `inf` and `tensor(...)`, which are none."""

from __future__ import annotations

import ast
import math
from typing import Any, Final

LIMIT: Final = 1 << 20
"""Longest text that is read as a value, in letters."""
_NAMES: Final = {"nan": math.nan, "inf": math.inf, "None": None, "True": True, "False": False}
_QUOTES: Final = ("'", '"')
_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


def read_literal(text: str) -> Any:
    """The value; `tensor(1.5)` is 1.5. Raises ValueError where the text is something else."""
    if len(text) > LIMIT:
        raise ValueError
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError from error


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(_value(part) for part in node.elts)
    if isinstance(node, ast.List):
        return [_value(part) for part in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {_value(key): _value(part) for key, part in zip(node.keys, node.values, strict=True) if key is not None}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        if type(value) in (int, float):
            return -value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tensor" and node.args:
        return _value(node.args[0])
    raise ValueError


def split_arguments(text: str) -> list[str]:
    """The arguments of a printed call, by the commas outside of brackets and quotes."""
    parts: list[str] = []
    closing: list[str] = []
    quote = ""
    start = 0
    escaped = False
    for place, letter in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif letter == "\\":
                escaped = True
            elif letter == quote:
                quote = ""
        elif letter in _QUOTES:
            quote = letter
        elif letter in _OPEN:
            closing.append(_OPEN[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter == "," and not closing:
            parts.append(text[start:place].strip())
            start = place + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest or parts else []
