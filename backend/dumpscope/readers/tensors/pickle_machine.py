"""A closed interpreter of the pickle opcodes that tensor files use. It can build data and nothing else.

The standard unpickler imports what the file names and calls it. Here a global is a key into a table of ours, REDUCE calls
only the builders of that table, and everything that could make time or memory grow faster than the file (a memo slot
numbered two billion, a dict key of tuples nested a thousand deep, integers of a million digits) is refused.
Opcodes follow the public description in `pickletools`; the ones of protocols 2 to 5 that plain data needs are here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from dumpscope.errors import TensorError
from dumpscope.texts import say

MAX_BYTES: Final = 32 << 20
MAX_STEPS: Final = 2_000_000
_MAX_GLOBAL: Final = 256
_MAX_LONG: Final = 16  # bytes; the legacy magic number has ten
_MAX_KEY: Final = 1 << 60  # larger integers can be made to hash alike

_FLOAT: Final = struct.Struct(">d")
_INT32: Final = struct.Struct("<i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """The only thing REDUCE may call: a function of ours that checks its arguments and returns inert data."""

    name: str
    build: Callable[..., Any]


def refused(what: str) -> TensorError:
    return TensorError(
        say("readers.pickle_file", what=what),
        kind="refused",
        hint=say("readers.only_tensors_plain_containers_them_read"),
    )


def damaged(what: str) -> TensorError:
    return TensorError(
        say("readers.pickle_file_damaged", what=what), kind="damaged", hint=say("readers.copy_dump_file_again")
    )


def no_global(name: bytes) -> NoReturn:
    """Raise the refusal of a global that no table knows."""
    text = name.decode("ascii", "backslashreplace").replace(" ", ".", 1)
    raise refused(say("readers.asks_which_not_tensor_data", text=text[:120]))


class Machine:
    """State of one run. `globals` maps b"module name" to a Builder or an inert value; `persistent` reads storage ids."""

    __slots__ = ("data", "globals", "marks", "memo", "persistent", "pos", "stack", "unknown")

    def __init__(
        self,
        data: bytes,
        pos: int,
        table: Mapping[bytes, Any],
        persistent: Callable[[Any], Any],
        unknown: Callable[[bytes], Any],
    ) -> None:
        self.data = data
        self.pos = pos
        self.globals = table
        self.persistent = persistent
        self.unknown = unknown
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def take(self, count: int) -> bytes:
        end = self.pos + count
        part = self.data[self.pos : end]
        if len(part) != count:
            raise damaged(say("readers.ends_inside_value"))
        self.pos = end
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def since_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items


def run(
    data: bytes,
    table: Mapping[bytes, Any],
    persistent: Callable[[Any], Any],
    *,
    start: int = 0,
    unknown: Callable[[bytes], Any] = no_global,
    operations: Sequence[Operation | None] = (),
    steps: int = MAX_STEPS,
) -> tuple[Any, int]:
    """Interpret one pickle that begins at `start`; returns its value and the byte after its STOP.

    unknown: what stands for a global that the table lacks; raises TensorError where nothing may
    operations: the function of every opcode, those of tensor files unless given; steps: most opcodes
    Raises TensorError: refused (an opcode, a global or a size that tensor data never has) or damaged.
    """
    machine = Machine(data, start, table, persistent, unknown)
    operations = operations or _OPERATIONS
    try:
        for _ in range(steps):
            code = data[machine.pos]
            machine.pos += 1
            if code == 0x2E:  # STOP
                return machine.stack.pop(), machine.pos
            operation = operations[code]
            if operation is None:
                raise refused(say("readers.uses_opcode_0x_which_tensor_data", code=f"{code:02x}"))
            operation(machine)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, struct.error) as error:
        raise damaged(say("readers.nonsense_byte", pos=machine.pos)) from error
    raise refused(say("readers.takes_more_than_steps", max_steps=f"{steps:,}"))


Operation = Callable[[Machine], None]
"""One opcode."""


def _proto(m: Machine) -> None:
    if m.data[m.pos] > 5:
        raise refused(say("readers.has_protocol", data=m.data[m.pos]))
    m.pos += 1


def _frame(m: Machine) -> None:
    m.take(8)


def _global(m: Machine) -> None:
    data = m.data
    middle = data.index(b"\n", m.pos, m.pos + _MAX_GLOBAL)
    end = data.index(b"\n", middle + 1, middle + _MAX_GLOBAL)
    name = data[m.pos : middle] + b" " + data[middle + 1 : end]
    m.pos = end + 1
    _push_global(m, name)


def _stack_global(m: Machine) -> None:
    name = m.stack.pop()
    module = m.stack.pop()
    if type(name) is not str or type(module) is not str or len(name) + len(module) > 2 * _MAX_GLOBAL:
        raise damaged(say("readers.global_without_name"))
    _push_global(m, f"{module} {name}".encode())


def _push_global(m: Machine, name: bytes) -> None:
    found = m.globals.get(name)
    m.stack.append(m.unknown(name) if found is None else found)


def _reduce(m: Machine) -> None:
    arguments = m.stack.pop()
    called = m.stack[-1]
    if type(called) is not Builder or type(arguments) is not tuple:
        raise refused(say("readers.calls_something_cannot_called"))
    m.stack[-1] = called.build(*arguments)


def _build(m: Machine) -> None:
    """Attributes of an OrderedDict (`_metadata` of a state dict) or a tensor carry no numbers: they are dropped."""
    m.stack.pop()
    if type(m.stack[-1]) in (Builder, type(None), str, int, float, tuple, list, bool, bytes):
        raise refused(say("readers.sets_attributes_object"))


def _persistent(m: Machine) -> None:
    m.stack[-1] = m.persistent(m.stack[-1])


def _mark(m: Machine) -> None:
    m.marks.append(m.stack)
    m.stack = []


def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.since_mark()


def _pop_mark(m: Machine) -> None:
    m.since_mark()


def _duplicate(m: Machine) -> None:
    m.stack.append(m.stack[-1])


def _binput(m: Machine) -> None:
    m.memo[m.data[m.pos]] = m.stack[-1]
    m.pos += 1


def _long_binput(m: Machine) -> None:
    m.memo[m.number(4)] = m.stack[-1]


def _memoize(m: Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _binget(m: Machine) -> None:
    m.stack.append(m.memo[m.data[m.pos]])
    m.pos += 1


def _long_binget(m: Machine) -> None:
    m.stack.append(m.memo[m.number(4)])


def _none(m: Machine) -> None:
    m.stack.append(None)


def _true(m: Machine) -> None:
    m.stack.append(True)


def _false(m: Machine) -> None:
    m.stack.append(False)


def _binint1(m: Machine) -> None:
    m.stack.append(m.data[m.pos])
    m.pos += 1


def _binint2(m: Machine) -> None:
    m.stack.append(m.number(2))


def _binint(m: Machine) -> None:
    m.stack.append(_INT32.unpack(m.take(4))[0])


def _long1(m: Machine) -> None:
    size = m.number(1)
    if size > _MAX_LONG:
        raise refused(say("readers.holds_integer_bytes", size=size))
    m.stack.append(int.from_bytes(m.take(size), "little", signed=True))


def _binfloat(m: Machine) -> None:
    m.stack.append(_FLOAT.unpack(m.take(8))[0])


def _text(width: int) -> Callable[[Machine], None]:
    def operation(m: Machine) -> None:
        m.stack.append(m.take(m.number(width)).decode("utf-8", "surrogatepass"))

    return operation


def _python2_text(width: int) -> Callable[[Machine], None]:
    def operation(m: Machine) -> None:
        m.stack.append(m.take(m.number(width)).decode("latin-1"))

    return operation


def _raw(width: int) -> Callable[[Machine], None]:
    def operation(m: Machine) -> None:
        m.stack.append(m.take(m.number(width)))

    return operation


def _empty_tuple(m: Machine) -> None:
    m.stack.append(())


def _tuple(m: Machine) -> None:
    items = m.since_mark()
    m.stack.append(tuple(items))


def _last(count: int) -> Callable[[Machine], None]:
    def operation(m: Machine) -> None:
        items = tuple(m.stack[-count:])
        if len(items) != count:
            raise damaged(say("readers.tuple_lacks_items"))
        m.stack[-count:] = [items]

    return operation


def _empty_list(m: Machine) -> None:
    m.stack.append([])


def _list(m: Machine) -> None:
    items = m.since_mark()
    m.stack.append(items)


def _append(m: Machine) -> None:
    item = m.stack.pop()
    _target(m, list).append(item)


def _appends(m: Machine) -> None:
    items = m.since_mark()
    _target(m, list).extend(items)


def _empty_dict(m: Machine) -> None:
    m.stack.append({})


def _dict(m: Machine) -> None:
    items = m.since_mark()
    m.stack.append({})
    _fill(m, items)


def _setitem(m: Machine) -> None:
    items = m.stack[-2:]
    del m.stack[-2:]
    _fill(m, items)


def _setitems(m: Machine) -> None:
    _fill(m, m.since_mark())


def _fill(m: Machine, items: list[Any]) -> None:
    target = _target(m, dict)
    if len(items) % 2:
        raise damaged(say("readers.dict_lacks_value"))
    for key, value in zip(items[::2], items[1::2], strict=True):
        kind = type(key)
        if kind is not str and kind is not bool and key is not None and kind is not float:
            if kind is not int:
                raise refused(say("readers.has_dict_key_type", name=kind.__name__))
            if abs(key) > _MAX_KEY:
                raise refused(say("readers.has_integer_too_many_digits_dict"))
        target[key] = value


def _target(m: Machine, kind: type) -> Any:
    target = m.stack[-1]
    if type(target) is not kind:
        raise refused(say("readers.puts_items_into", name=type(target).__name__))
    return target


_BY_CODE: Final[dict[int, Callable[[Machine], None]]] = {
    0x80: _proto, 0x95: _frame, 0x63: _global, 0x93: _stack_global, 0x52: _reduce, 0x62: _build, 0x51: _persistent,
    0x28: _mark, 0x30: _pop, 0x31: _pop_mark, 0x32: _duplicate,
    0x71: _binput, 0x72: _long_binput, 0x94: _memoize, 0x68: _binget, 0x6A: _long_binget,
    0x4E: _none, 0x88: _true, 0x89: _false, 0x4B: _binint1, 0x4D: _binint2, 0x4A: _binint, 0x8A: _long1, 0x47: _binfloat,
    0x58: _text(4), 0x8C: _text(1), 0x8D: _text(8), 0x55: _python2_text(1), 0x54: _python2_text(4),
    0x43: _raw(1), 0x42: _raw(4), 0x8E: _raw(8),
    0x29: _empty_tuple, 0x74: _tuple, 0x85: _last(1), 0x86: _last(2), 0x87: _last(3),
    0x5D: _empty_list, 0x6C: _list, 0x61: _append, 0x65: _appends,
    0x7D: _empty_dict, 0x64: _dict, 0x73: _setitem, 0x75: _setitems,
}  # fmt: skip
_OPERATIONS: Final = tuple(_BY_CODE.get(code) for code in range(256))


def extended(more: Mapping[int, Operation]) -> tuple[Operation | None, ...]:
    """The operations of tensor files, with others beside or in place of them."""
    return tuple(more.get(code, operation) for code, operation in enumerate(_OPERATIONS))
