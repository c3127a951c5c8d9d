"""How a call was written, read from the caller's bytecode: operator or method, positional or keyword arguments.

A function mode receives `Tensor.add` both for `a + b` and for `a.add(b)`, and Python functions pass their arguments on in another
form. The caller's current instruction shows what the program wrote. Nothing is executed or changed; if the code allows two
answers, the more likely one is taken.
"""

from __future__ import annotations

import types
from types import FrameType
from typing import Any, Final

import torch

from dumpscope_capture.calls.bytecode import Site, site

_LEVELS: Final = 4
"""Frames between a function mode and the Python function whose call it receives, at most."""

_UNKNOWN: Final = object()

OPERATORS: Final = {
    "add": "__add__", "add_": "__iadd__", "sub": "__sub__", "sub_": "__isub__", "mul": "__mul__", "mul_": "__imul__",
    "div": "__truediv__", "div_": "__itruediv__", "remainder": "__mod__", "remainder_": "__imod__",
    "floor_divide": "__floordiv__", "floor_divide_": "__ifloordiv__", "matmul": "__matmul__", "neg": "__neg__",
    "abs": "__abs__", "positive": "__pos__", "bitwise_not": "__invert__", "pow": "__pow__", "pow_": "__ipow__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
    "eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__",
}  # fmt: skip
"""Method that torch reports -> the special method behind the operator that was written."""

_MIRRORED: Final = {"__add__": "__radd__", "__mul__": "__rmul__"}


def method_name(name: str, frame: FrameType | None, args: tuple[Any, ...]) -> str:
    """Name of a Tensor method as the program wrote it: `add` stays, `a + b` becomes `__add__`, `2 + a` `__radd__`."""
    special = OPERATORS.get(name)
    if special is None:
        return name
    here = site(frame)
    if here.kind == "other" or frame is None:
        return name
    if here.kind in ("call", "spread"):
        if (here.attribute and here.target[-1] == name and here.target[:-1] != ("operator",)) or (
            not here.target and name in frame.f_code.co_names
        ):
            return name
        mirrored = here.target == ("sum",) and len(args) > 1 and not isinstance(args[1], torch.Tensor)  # 0 + the first
        return _MIRRORED.get(special, special) if mirrored else special
    if (
        special in _MIRRORED
        and len(args) > 1
        and not isinstance(args[1], torch.Tensor)
        and _is_mirrored(here, frame, args)
    ):
        return _MIRRORED[special]
    return special


def namespace(name: str, frame: FrameType | None) -> Any:
    """Object on which a call's function was looked up (`F` in `F.conv2d(...)`), None where unknown."""
    if frame is None:
        return None
    here = site(frame)
    if not here.attribute or here.target[-1] != name:
        return None
    owner = _look_up(here.target[:-1], frame)
    return None if owner is _UNKNOWN else owner


def frame_of(function: types.FunctionType, frame: FrameType | None) -> FrameType | None:
    """The frame in which a Python function runs: `frame` or one of the next few outer ones."""
    for _ in range(_LEVELS):
        if frame is None or frame.f_code is function.__code__:
            return frame
        frame = frame.f_back
    return None


def split_arguments(
    function: types.FunctionType, frame: FrameType, *, method: bool
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """(args, kwargs) as the caller of a Python function wrote them, from the frame of its call. None where unknown.

    method: whether self may come before the call's own arguments
    """
    code = function.__code__
    values = frame.f_locals
    if code.co_flags & 0x04:  # *args
        rest = values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        named = (
            values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount + 1], {})
            if code.co_flags & 0x08
            else {}
        )
        if not isinstance(rest, tuple) or not isinstance(named, dict):
            return None
        return tuple(values[name] for name in code.co_varnames[: code.co_argcount]) + rest, dict(named)
    names = code.co_varnames[: code.co_argcount]
    all_names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    here = site(frame.f_back)
    if here.kind == "call":
        positional = here.count - len(here.keywords)
        for count in (positional + 1, positional) if method else (positional,):
            if 0 <= count <= len(names) and _fits(function, values, names[:count], here.keywords, all_names):
                return tuple(values[name] for name in names[:count]), {name: values[name] for name in here.keywords}
    return _by_default(function, values, names, all_names[code.co_argcount :])


def _fits(
    function: types.FunctionType,
    values: dict[str, Any],
    given: tuple[str, ...],
    keywords: tuple[str, ...],
    names: tuple[str, ...],
) -> bool:
    """Whether every parameter that was not given has its default."""
    if not set(keywords) <= set(names) or set(keywords) & set(given):
        return False
    defaults = _defaults(function)
    return all(
        name in values and name in defaults and _same(values[name], defaults[name])
        for name in names
        if name not in given and name not in keywords
    )


def _by_default(
    function: types.FunctionType, values: dict[str, Any], names: tuple[str, ...], keyword_only: tuple[str, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments up to the last that differs from its default, all positional."""
    if any(name not in values for name in (*names, *keyword_only)):
        return None
    defaults = _defaults(function)
    last = 0
    for place, name in enumerate(names):
        if name not in defaults or not _same(values[name], defaults[name]):
            last = place + 1
    named = {
        name: values[name] for name in keyword_only if name not in defaults or not _same(values[name], defaults[name])
    }
    return tuple(values[name] for name in names[:last]), named


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    code = function.__code__
    plain = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(plain) : code.co_argcount]
    return {**dict(zip(names, plain)), **(function.__kwdefaults__ or {})}


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return (
        type(value) is type(default) and isinstance(default, (bool, int, float, str, tuple)) and bool(value == default)
    )


def _is_mirrored(here: Site, frame: FrameType, args: tuple[Any, ...]) -> bool:
    """Whether the tensor is the right operand: `number (op) tensor`."""
    if here.right.constant:
        return False
    if here.left.constant:
        return True
    for operand, answer in ((here.right, True), (here.left, False)):
        value = _look_up(operand.names, frame)
        if value is args[0]:
            return answer
        if value is not _UNKNOWN and not isinstance(value, torch.Tensor):
            return not answer
    return False


def _look_up(names: tuple[str, ...], frame: FrameType) -> Any:
    """Value of `a.b.c` without running any code of the program: plain attributes of modules and instances only."""
    if not names:
        return _UNKNOWN
    for scope in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if names[0] in scope:
            value = scope[names[0]]
            break
    else:
        return _UNKNOWN
    for name in names[1:]:
        try:
            own = object.__getattribute__(value, "__dict__")
        except (AttributeError, TypeError):
            return _UNKNOWN
        if name not in own:
            return _UNKNOWN
        value = own[name]
    return value
