"""What the instruction is that a frame is at: an operator or a call, of what, and how its arguments were written.

Read from the bytecode of CPython 3.8 to 3.14. Nothing is executed or changed; if the code allows two answers, the more likely one
is taken.
"""

from __future__ import annotations

import dis
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Final, Literal

from dumpscope_format.older_python import dataclass

_LOADS: Final = (
    "LOAD_FAST",
    "LOAD_NAME",
    "LOAD_GLOBAL",
    "LOAD_DEREF",
    "LOAD_FAST_BORROW",
    "LOAD_FAST_CHECK",
    "LOAD_CLASSDEREF",
)
_CONSTANTS: Final = ("LOAD_CONST", "LOAD_SMALL_INT")
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
_CALLS_WITH_NAMES: Final = ("CALL_KW", "CALL_FUNCTION_KW")
"""From 3.13 on and up to 3.10, a tuple of the keywords lies on the stack."""

_CALLS: Final = ("CALL", "CALL_FUNCTION", "CALL_METHOD", *_CALLS_WITH_NAMES)
_OPERATORS: Final = ("BINARY_", "INPLACE_", "COMPARE_OP", "UNARY_")
"""Up to 3.10 each operator has an instruction, such as BINARY_ADD and INPLACE_ADD; from 3.11 on all share BINARY_OP."""

_NOT_OPERATORS: Final = ("BINARY_SUBSCR", "BINARY_SLICE")
_UNARY_POSITIVE: Final = 5
_EMPTY: Final = ("CACHE", "EXTENDED_ARG", "RESUME", "NOP")
_FUSED: Final = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST_BORROW", "LOAD_FAST_BORROW"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}

Kind = Literal["operator", "call", "spread", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One side of an operator: a constant, a name with attributes, or unknown."""

    constant: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The instruction that a caller is at.

    kind: "operator", "call", "spread" (`f(*args)`) or "other"
    count: number of arguments of a call, without self; keywords: names of the last of them
    target: what is called, `("F", "softmax")`; only the last name after an expression, empty where unknown
    attribute: whether it was looked up on an object
    """

    kind: Kind
    count: int = 0
    keywords: tuple[str, ...] = ()
    left: Operand = Operand()
    right: Operand = Operand()
    target: tuple[str, ...] = ()
    attribute: bool = False


_sites: dict[tuple[CodeType, int], Site] = {}
_codes: dict[CodeType, tuple[list[dis.Instruction], list[int]]] = {}
_OTHER: Final = Site(kind="other")


def site(frame: FrameType | None) -> Site:
    """The instruction that a frame is at, from a cache."""
    if frame is None:
        return _OTHER
    key = (frame.f_code, frame.f_lasti)
    found = _sites.get(key)
    if found is None:
        try:
            found = _read(*key)
        except (IndexError, ValueError, TypeError, AttributeError):
            found = _OTHER
        _sites[key] = found
    return found


def _read(code: CodeType, offset: int) -> Site:
    if code not in _codes:
        listed = [
            part
            for instruction in dis.get_instructions(code)
            if instruction.opname not in _EMPTY
            for part in _parts(instruction)
        ]
        _codes[code] = listed, [instruction.offset for instruction in listed]
    instructions, offsets = _codes[code]
    place = bisect_right(offsets, offset) - 1  # a frame may be at a cache entry after its instruction
    while instructions[place].opname == "PRECALL":  # Python 3.11 makes a call it has specialised from there
        place += 1
    now = instructions[place]
    if _is_operator(now):
        start = _start(instructions, place)
        left = _operand(instructions, start) if start > 0 else Operand()
        return Site(kind="operator", left=left, right=_operand(instructions, place))
    if now.opname == "CALL_FUNCTION_EX":
        return Site(kind="spread")
    if now.opname in _CALLS:
        named = now.opname in _CALLS_WITH_NAMES
        keywords: tuple[str, ...] = ()
        names = place - 1
        while instructions[names].opname == "PRECALL":
            names -= 1
        before = instructions[names]
        if now.opname == "CALL" and before.opname == "KW_NAMES":
            keywords = before.argval if isinstance(before.argval, tuple) else code.co_consts[before.arg or 0]
        elif named and isinstance(before.argval, tuple):
            keywords = before.argval
        target, attribute = _target(instructions, names + 1, (now.arg or 0) + named)
        return Site(kind="call", count=now.arg or 0, keywords=keywords, target=target, attribute=attribute)
    return _OTHER


def _is_operator(instruction: dis.Instruction) -> bool:
    name = instruction.opname
    if name == "CALL_INTRINSIC_1":  # what `+a` is from 3.12 on
        return instruction.arg == _UNARY_POSITIVE
    return name.startswith(_OPERATORS) and not name.startswith(_NOT_OPERATORS)


def _parts(instruction: dis.Instruction) -> list[dis.Instruction]:
    """Split a fused instruction, such as LOAD_FAST_LOAD_FAST from Python 3.13 on, into its two instructions."""
    names = _FUSED.get(instruction.opname)
    if names is None or not isinstance(instruction.argval, tuple):
        return [instruction]
    return [
        instruction._replace(opname=name, opcode=dis.opmap[name], arg=0, argval=value)
        for name, value in zip(names, instruction.argval)
    ]


def _target(instructions: list[dis.Instruction], end: int, count: int) -> tuple[tuple[str, ...], bool]:
    """What a call with `count` arguments before `end` calls, and whether it is an attribute of an object."""
    start = _start(instructions, end, count) if count else end
    place = start - 1
    while place >= 0 and instructions[place].opname in ("PUSH_NULL", "KW_NAMES", "PRECALL"):
        place -= 1
    if start < 0 or place < 0:
        return (), False
    now = instructions[place]
    if now.opname in _ATTRIBUTES:
        return (*_operand(instructions, place).names, str(now.argval)), True
    return ((str(now.argval),), False) if now.opname in _LOADS else ((), False)


def _operand(instructions: list[dis.Instruction], end: int) -> Operand:
    """What the instructions just before `end` put on the stack, where that is a constant or a dotted name."""
    names: list[str] = []
    for now in range(end - 1, -1, -1):
        instruction = instructions[now]
        if instruction.opname in _CONSTANTS:
            return Operand(constant=not names)
        if instruction.opname in _LOADS:
            return Operand(names=(str(instruction.argval), *reversed(names)))
        if instruction.opname not in _ATTRIBUTES:
            break
        names.append(str(instruction.argval))
    return Operand()


def _start(instructions: list[dis.Instruction], end: int, count: int = 1) -> int:
    """Index of the first instruction of the `count` values pushed before `end`; -1 where code branches between."""
    missing = count
    for now in range(end - 1, -1, -1):
        instruction = instructions[now]
        if "JUMP" in instruction.opname:
            return -1
        missing -= dis.stack_effect(instruction.opcode, instruction.arg)
        if missing == 0 and instruction.opname not in _INNER:
            return now
    return -1


_INNER: Final = ("CALL", "PRECALL", "KW_NAMES", "BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP", "LOAD_ATTR", "COPY", "SWAP")
"""Instructions that take values from the stack, and so never begin a value."""
