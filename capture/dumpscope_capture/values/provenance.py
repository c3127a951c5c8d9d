"""Where arguments come from: our own keys in the records, which msprobe ignores.

    producers   {"input.0": "Functional.linear.3.forward.output.0"}: the result that is this tensor, if unchanged since
    containers  {"input.1": "tuple", "output": "torch.return_types.max"}: other than list and dict; "output" also for a list, as
                the record of a lone result is a list too
    absent      {"input.2": "torch._C.Generator"}: type of an argument that has no record
    storage     {"input.0": "cuda:0"}: device of an argument that is not in this process's own host memory

The record of an argument that is uninitialised memory is marked, too (`values.uninitialised`).

Tensors are recognised by identity and version. Only weak references are held.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch

from dumpscope_capture.older_torch import stand_ins
from dumpscope_capture.values.uninitialised import MAKERS, Listed, UninitialisedMemory

if TYPE_CHECKING:
    from typing import TypeAlias

Extra: TypeAlias = "dict[str, dict[str, str]]"

_PLAIN: Final = frozenset((int, float, bool, str, type(None)))
_DEPTH: Final = 8


class Provenance:
    """Producers of the tensors of the current step. Safe for threads."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], int, str]] = {}
        self._names: dict[str, list[str]] = {}
        self.uninitialised = UninitialisedMemory()

    def reset(self) -> None:
        """The step ends. Argument names are kept, as they do not change."""
        self._made.clear()

    def argument_names(self) -> dict[str, list[str]]:
        """Names of the arguments of all functions (`Functional.linear`) and classes of modules (`Linear`) met so far."""
        return dict(self._names)

    def meet(self, label: str, function: Callable[..., Any]) -> None:
        """Note the argument names of a function."""
        if label not in self._names:
            self._names[label] = parameter_names(function)

    def of_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], body: dict[str, Any], api: Listed | None = None
    ) -> Extra:
        """Extra keys of a call's arguments, before it runs. body: their records; api: None for a module"""
        extra: Extra = {}
        records = body["input_args"]
        for place, value in enumerate(args):
            if type(value) not in _PLAIN:
                self._describe(value, records[place], f"input.{place}", extra, api)
        if kwargs:
            records = body["input_kwargs"]
            for key, value in kwargs.items():
                if type(value) not in _PLAIN:
                    self._describe(value, records[key], f"kwargs.{key}", extra, api)
        return extra

    def of_results(self, result: Any, name: str, extra: Extra, api: Listed | None = None) -> None:
        """Note a call as the producer of its results, and the types of their containers. name: of the node."""
        if api is not None and api.name in MAKERS:
            self.uninitialised.note(result)
        if isinstance(result, torch.Tensor):
            self._note(result, f"{name}.output.0")
        elif type(result) not in _PLAIN:
            # A dataclass that is a dict, as results of transformers are, is recorded as a dict.
            spread = isinstance(result, (tuple, list)) or (
                hasattr(result, "__dataclass_fields__") and not isinstance(result, dict)
            )
            self._walk_results(result, f"{name}.output" if spread else f"{name}.output.0", len(name) + 1, extra, 0)

    def note_written(self, tensor: torch.Tensor, item: str) -> None:
        """Note a call as the last that wrote into a tensor."""
        self._made[id(tensor)] = (weakref.ref(tensor), _version(tensor), item)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _describe(self, value: Any, record: Any, path: str, extra: Extra, api: Listed | None, depth: int = 0) -> None:
        if isinstance(value, torch.Tensor):
            self.uninitialised.mark(value, record, path, api)
            maker = self._maker(value)
            if maker is not None:
                extra.setdefault("producers", {})[path] = maker
            if maker is None or not value.is_cpu:  # a result of a call on the host lies in this process's memory
                kind = storage_kind(value)
                if kind is not None:
                    extra.setdefault("storage", {})[path] = kind
            return
        members = _members(value)
        if members is None:
            if record is None and value is not None:
                extra.setdefault("absent", {})[path] = type_name(value)
            return
        if type(value) is not list and type(value) is not dict:
            extra.setdefault("containers", {})[path] = type_name(value)
        if depth < _DEPTH:
            for key, part in members:
                if type(part) not in _PLAIN:
                    self._describe(part, _part(record, key), f"{path}.{key}", extra, api, depth + 1)

    def _walk_results(self, value: Any, item: str, head: int, extra: Extra, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            self._note(value, item)
            return
        members = _members(value)
        if members is None:
            return
        if depth == 0 or (type(value) is not list and type(value) is not dict):
            extra.setdefault("containers", {})[item[head:]] = type_name(value)
        if depth < _DEPTH:
            for key, part in members:
                if type(part) not in _PLAIN:
                    self._walk_results(part, f"{item}.{key}", head, extra, depth + 1)

    def _note(self, tensor: torch.Tensor, item: str) -> None:
        """Note a producer, but keep an earlier one: a module returns what its last function made."""
        version = _version(tensor)
        known = self._made.get(id(tensor))
        if known is None or known[1] != version or known[0]() is not tensor:
            self._made[id(tensor)] = (weakref.ref(tensor), version, item)

    def _maker(self, tensor: torch.Tensor) -> str | None:
        found = self._made.get(id(tensor))
        if found is None or found[0]() is not tensor:
            base = _base(tensor)
            found = self._made.get(id(base)) if base is not None else None
            if found is None or found[0]() is not base:
                return None
        return found[2] if found[1] == _version(tensor) else None


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except (RuntimeError, NotImplementedError):  # inference tensors have none
        return -1


def _base(tensor: torch.Tensor) -> torch.Tensor | None:
    try:
        return tensor._base
    except (RuntimeError, NotImplementedError):
        return None


def storage_kind(tensor: torch.Tensor) -> str | None:
    """Device of a tensor, `shared memory` on the host (batches of loader workers); None for ordinary host memory."""
    try:
        if not tensor.is_cpu:
            return str(tensor.device)
        return "shared memory" if tensor.untyped_storage().is_shared() else None
    except (RuntimeError, NotImplementedError):  # tensors without a storage
        return None


def _members(value: Any) -> list[tuple[Any, Any]] | None:
    """(key, part) of a container, None for anything else."""
    if isinstance(value, torch.Size):
        return None
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return list(zip(fields, value)) if type(fields) is tuple else list(enumerate(value))
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, dict):
        return list(value.items())
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return [(field, getattr(value, field, None)) for field in value.__dataclass_fields__]
    return None


def _part(record: Any, key: Any) -> Any:
    if isinstance(record, list) and isinstance(key, int) and key < len(record):
        return record[key]
    return record.get(str(key)) if isinstance(record, dict) else None


def type_name(value: Any) -> str:
    """`tuple`, `torch.return_types.max`, `package.module.Class`."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


_stand_ins: dict[Any, Callable[..., Any]] = {}


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """Names of a function's parameters; those of built-in functions as torch's own table of overridable functions has them."""
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        if not _stand_ins:
            _stand_ins.update(stand_ins())
        function = _stand_ins.get(function, function)
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
