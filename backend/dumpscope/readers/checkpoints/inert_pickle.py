"""The pickles of checkpoints: the closed interpreter of tensor files, in which anything foreign becomes an inert note.

A checkpoint holds settings, schedulers and random states beside its tensors, as objects of classes that are not known here.
None is imported or called: a `Foreign` keeps the name of the class, its arguments and its attributes, as data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import torch_globals
from dumpscope.readers.tensors.arrays import ElementType
from dumpscope.readers.tensors.pickle_machine import Builder, Machine, Operation, damaged, extended, refused
from dumpscope.readers.tensors.torch_file import Dialect
from dumpscope.texts import say

MAX_STEPS: Final = 30_000_000
"""Opcodes of one pickle: the table of a checkpoint with some hundred thousand shards."""
_MAX_INTEGER: Final = 1 << 60
_DTYPES: Final = 2


class ForeignType:
    """A class or function that is not known; calling it gives a Foreign."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Foreign:
    """An object of a class that is not known. Compared and hashed by identity: no text of a file decides what that costs.

    name: "module Class"; arguments: it was called with; state: its attributes, None without any
    error: why a tensor could not be described, None for other objects
    """

    __slots__ = ("arguments", "error", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...] = (), error: TensorError | None = None) -> None:
        self.name = name
        self.arguments = arguments
        self.state: Any = None
        self.error = error

    @property
    def attributes(self) -> dict[Any, Any]:
        """What its state names, {} where that is no dict."""
        state = self.state[0] if type(self.state) is tuple and self.state else self.state
        return state if type(state) is dict else {}


def _unknown(name: bytes) -> ForeignType:
    return ForeignType(name.decode("utf-8", "replace"))


def _call(called: Any, arguments: Any) -> Any:
    if type(arguments) is not tuple:
        raise damaged(say("readers.calls_something_cannot_called"))
    if type(called) is Builder:
        try:
            return called.build(*arguments)
        except TensorError as error:
            return Foreign(called.name, arguments, error)
        except TypeError:
            return Foreign(called.name, arguments)
    if type(called) in (ForeignType, Foreign):
        return Foreign(called.name, arguments)
    raise refused(say("readers.calls_something_cannot_called"))


def _reduce(m: Machine) -> None:
    arguments = m.stack.pop()
    m.stack[-1] = _call(m.stack[-1], arguments)


def _new_object_with_words(m: Machine) -> None:
    m.stack.pop()
    _reduce(m)


def _build(m: Machine) -> None:
    state = m.stack.pop()
    if type(m.stack[-1]) is Foreign:
        m.stack[-1].state = state


def _set_item(m: Machine) -> None:
    items = m.stack[-2:]
    del m.stack[-2:]
    _fill(m, items)


def _set_items(m: Machine) -> None:
    _fill(m, m.since_mark())


def _dict(m: Machine) -> None:
    items = m.since_mark()
    m.stack.append({})
    _fill(m, items)


def _fill(m: Machine, items: list[Any]) -> None:
    """Items whose keys could cost more than their bytes are dropped: no tensor has such a name."""
    target = m.stack[-1]
    if len(items) % 2:
        raise damaged(say("readers.dict_lacks_value"))
    if type(target) is Foreign:
        if type(target.state) is not dict:
            target.state = {}
        target = target.state
    if type(target) is not dict:
        raise refused(say("readers.puts_items_into", name=type(target).__name__))
    for key, value in zip(items[::2], items[1::2], strict=True):
        kind = type(key)
        if kind in (str, bool, float, Foreign) or key is None or (kind is int and abs(key) < _MAX_INTEGER):
            target[key] = value
        elif kind is tuple and len(key) == _DTYPES and all(type(one) is ElementType for one in key):
            target[key] = value  # Megatron's buffers: dtype of the parameters and of their gradients


def _append(m: Machine) -> None:
    item = m.stack.pop()
    _extend(m, [item])


def _appends(m: Machine) -> None:
    items = m.since_mark()
    _extend(m, items)


def _extend(m: Machine, items: list[Any]) -> None:
    target = m.stack[-1]
    if type(target) is list:
        target.extend(items)
    elif type(target) is not Foreign:
        raise refused(say("readers.puts_items_into", name=type(target).__name__))


def _frozen(m: Machine) -> None:
    items = m.since_mark()
    m.stack.append(items)


def _empty_list(m: Machine) -> None:
    m.stack.append([])


def _byte_array(m: Machine) -> None:
    m.stack.append(m.take(m.number(8)))


_MORE: Final[Mapping[int, Operation]] = {
    0x52: _reduce, 0x81: _reduce, 0x92: _new_object_with_words, 0x62: _build, 0x73: _set_item, 0x75: _set_items, 0x64: _dict,
    0x61: _append, 0x65: _appends, 0x8F: _empty_list, 0x90: _appends, 0x91: _frozen, 0x96: _byte_array,
}  # fmt: skip


def _plain_dict(*_: Any) -> dict[Any, Any]:
    return {}


def _plain_list(items: Any = ()) -> list[Any]:
    return list(items) if type(items) in (list, tuple) else []


DIALECT: Final = Dialect(
    table={
        **torch_globals.TABLE,
        b"collections defaultdict": Builder(name="collections defaultdict", build=_plain_dict),
        b"builtins dict": Builder(name="builtins dict", build=_plain_dict),
        b"builtins set": Builder(name="builtins set", build=_plain_list),
        b"builtins list": Builder(name="builtins list", build=_plain_list),
    },
    unknown=_unknown,
    operations=extended(_MORE),
    steps=MAX_STEPS,
)
"""How the pickle of a checkpoint is read."""
