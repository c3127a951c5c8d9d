"""Memory that holds what was left in it: the results of `empty` and its kin until something is written.

A record of such a tensor gets our own key `uninitialised` where a call cannot have read it: the call writes parts of it, hands on
a view of it, is a module, or an operator of another package that was given a buffer for its result. Memory is recognised by its
storage, which a weak reference keeps apart from later ones at the same address.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from dumpscope_format.schema import UNINITIALISED_KEY

MAKERS: Final = frozenset((
    "empty", "empty_like", "empty_permuted", "empty_strided", "empty_strided_with_format", "empty_with_format",
    "empty_with_swapped_memory", "new_empty", "new_empty_strided",
))  # fmt: skip
"""Functions that return memory as it is."""
_PARTLY: Final = frozenset((
    "__setitem__", "fill_diagonal_", "index_copy_", "index_fill_", "index_put_", "masked_scatter_", "put_", "scatter_",
))  # fmt: skip
_VIEWS: Final = frozenset((
    "__getitem__", "as_strided", "chunk", "detach", "diagonal", "expand", "expand_as", "flatten", "narrow", "permute", "reshape",
    "select", "split", "squeeze", "swapaxes", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view", "view_as",
))  # fmt: skip
_TORCHS: Final = ("Aten", "Functional", "Tensor", "Torch", "VF", "Distributed")
"""Prefixes of calls that read what they are given, unless their name says otherwise."""
_MANY: Final = 256
_WeakReference: Any = StorageWeakRef  # which has no types


class Listed(Protocol):
    """A function whose calls are nodes: `Tensor.copy_`."""

    @property
    def prefix(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def function(self) -> Any: ...


class UninitialisedMemory:
    """Storages to which nothing, or only parts, was written: a weak reference, the version then, and whether a part was."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int, bool]] = {}

    def note(self, result: Any) -> None:
        """A function of MAKERS returned this."""
        if not isinstance(result, torch.Tensor):
            return
        try:
            reference: Any = _WeakReference(result.untyped_storage())
            version = result._version
        except (RuntimeError, NotImplementedError):  # without a storage, or of inference mode
            return
        if len(self._known) >= _MANY:
            self._known = {key: known for key, known in self._known.items() if not known[0].expired()}
        self._known[reference.cdata] = (reference, version, False)

    def mark(self, tensor: torch.Tensor, record: Any, path: str, api: Listed | None) -> None:
        """Mark the record of an argument, if it is such memory, before its call. api: None for a module"""
        if not self._known or type(record) is not dict:
            return
        try:
            key, version = tensor.untyped_storage()._cdata, tensor._version
        except (RuntimeError, NotImplementedError):
            return
        known = self._known.get(key)
        if known is None:
            return
        reference, first, partly = known
        untouched = version == first
        views = api is not None and api.name in _VIEWS and path == "input.0"
        writes = api is not None and _writes(api, path)
        other = api is not None and api.prefix not in _TORCHS
        if (untouched and (api is None or views or writes or other)) or (partly and (writes or views)):
            record[UNINITIALISED_KEY] = True
        whole = api is not None and api.name not in _PARTLY and _fills(tensor)
        if writes and not whole and (untouched or partly):
            self._known[key] = (reference, first, True)
        elif not (views or (api is None and (untouched or partly))):
            del self._known[key]


def _writes(api: Listed, path: str) -> bool:
    """Whether a call writes into this argument, as its name says, or the schema of an operator registered with torch."""
    if api.name in _PARTLY:
        return path == "input.0"
    side, _, place = path.partition(".")
    for number, argument in enumerate(_arguments(api.function)):
        if place == (argument.name if side == "kwargs" else str(number)):
            return argument.alias_info is not None and bool(argument.alias_info.is_write)
    return False


def _arguments(function: Any) -> Any:
    overload: Any = None
    if isinstance(function, torch._ops.OpOverloadPacket):
        packet: Any = function
        overload = getattr(packet, packet.overloads()[0])
    elif isinstance(function, torch._ops.OpOverload):
        overload = function
    return () if overload is None else overload._schema.arguments


def _fills(tensor: torch.Tensor) -> bool:
    """Whether a tensor takes all of its storage."""
    return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()
