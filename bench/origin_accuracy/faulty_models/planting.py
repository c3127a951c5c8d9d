"""Faults planted below autograd: one aten call (or message of a process group) of a run gives something else.

`Planting` counts the calls of the model's own work. For each it knows the API call that runs, or the one whose autograd node
runs, so where a fault stands is known without looking at a dump.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture.record.recording import Recording

Change = Callable[..., Any]
"""(func, args, kwargs) -> what the call gives instead"""

COMPUTATION: Final = ("computation",)
OVERFLOW: Final = ("overflow",)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One planted fault and its truth.

    case: name of a program; node: the call that must be named first; kinds: kinds of cause that are right
    op: the aten call, without overload, that goes wrong; nth: which of those that run inside `node`, from 0, in this part of
        the run. owned: false for a message of a process group, which no call owns; there `nth` counts all of `op`
    also: other nodes that are as right
    rank: the rank that is broken, None for all of them
    weight: a parameter that is 5 % too large from the beginning of `part` on; op is "" then, and node the first call that uses it
    beside: names of other faults of the program that strike in the same run; each must be among the causes
    """

    name: str
    family: str
    case: str
    op: str
    node: str
    change: Change | None = None
    nth: int = 0
    part: int = 0
    kinds: tuple[str, ...] = COMPUTATION
    also: tuple[str, ...] = ()
    owned: bool = True
    rank: int | None = None
    weight: str = ""
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Visit:
    """One call below autograd: `nth` of `op`, in the API call or backward `owner`; shapes of what it gave."""

    op: str
    nth: int
    owner: str
    shapes: tuple[tuple[int, ...], ...]
    part: int


class Planting(TorchDispatchMode):
    """visits: all calls, where `listing`; struck: nodes of the modules that run around each fault that struck, innermost first"""

    def __init__(self, faults: tuple[Fault, ...], rank: int, *, listing: bool = False) -> None:
        super().__init__()
        self.faults = [one for one in faults if one.rank in (None, rank)]
        self.listing = listing
        self.part = 0
        self.visits: list[Visit] = []
        self.struck: dict[str, list[str]] = {}
        self._counts: Counter[Any] = Counter()
        self._names: dict[int, str] = {}
        self._handle: Any = None
        self._made_by: dict[int, str] = {}
        self._sequence = torch._C._autograd._get_sequence_nr()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = func.overloadpacket.__name__
        owner = self._owner()
        place = self.part, owner, op
        nth, everywhere = self._counts[place], self._counts[op]
        self._counts[place] += 1
        self._counts[op] += 1
        with torch._C.DisableTorchFunction():
            for fault in self.faults:
                if (
                    fault.change
                    and (fault.part, fault.op) == (self.part, op)
                    and (everywhere == fault.nth if not fault.owned else (fault.node, fault.nth) == (owner, nth))
                ):
                    self.struck[fault.name] = self._modules()
                    return fault.change(func, args, kwargs)
            made = func(*args, **kwargs)
        if self.listing:
            shapes = tuple(tuple(one.shape) for one in tensors(made))
            self.visits.append(Visit(op, everywhere, owner, shapes, self.part))
        return made

    def watch(self, *models: nn.Module) -> None:
        """Note the calls of these models' modules, from here on numbered from 0."""
        self._names = {
            id(one): f"Module.{name}.{type(one).__name__}" for model in models for name, one in model.named_modules()
        }
        self._module_calls: Counter[int] = Counter()
        for fault in self.faults:
            if fault.weight and fault.part == self.part:
                with torch.no_grad():
                    models[0].get_parameter(fault.weight).mul_(1.05)
                self.struck[fault.name] = []

        def note(module: nn.Module, arguments: Any) -> None:
            self._module_calls[id(module)] += 1

        if self._handle is None:
            self._handle = nn.modules.module.register_module_forward_pre_hook(note)

    def _modules(self) -> list[str]:
        """Nodes of the modules that run, innermost first."""
        found = []
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code is nn.Module._call_impl.__code__:
                module = id(frame.f_locals["self"])
                if module in self._names:
                    found.append(f"{self._names[module]}.forward.{self._module_calls[module] - 1}")
            frame = frame.f_back  # type: ignore[assignment]
        return list(dict.fromkeys(found))

    def _owner(self) -> str:
        """The API call that runs, or "X.backward" of the call whose autograd node runs; "" outside both."""
        owner = ""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code is Recording.run.__code__:
                name = str(frame.f_locals["call"].name)
                if not name.startswith("Module."):
                    owner = name or owner
            frame = frame.f_back  # type: ignore[assignment]
        now = torch._C._autograd._get_sequence_nr()
        for number in range(self._sequence, now):
            self._made_by[number] = owner
        self._sequence = now
        node = torch._C._current_autograd_node()
        if owner or node is None:
            return owner
        made_by = self._made_by.get(node._sequence_nr(), "")
        return made_by.removesuffix("forward") + "backward" if made_by else ""


def tensors(made: Any) -> list[Tensor]:
    if isinstance(made, Tensor):
        return [made]
    if isinstance(made, (list, tuple)):
        return [one for each in made for one in tensors(each)]
    return []


# -- changes -----------------------------------------------------------------------------------------------------------


def result(change: Callable[[Tensor], Tensor], at: int = 0) -> Change:
    """Another content of a result."""

    def changed(func: Any, args: Any, kwargs: Any) -> Any:
        made = func(*args, **kwargs)
        one = tensors(made)[at]
        one.copy_(change(one.clone()))
        return made

    return changed


def argument(at: int, change: Callable[[Any], Any]) -> Change:
    """The kernel reads another argument than it was given."""

    def changed(func: Any, args: Any, kwargs: Any) -> Any:
        given = list(args)
        given[at] = change(given[at])
        return func(*given, **kwargs)

    return changed


def keyword(name: str, change: Callable[[Any], Any]) -> Change:
    def changed(func: Any, args: Any, kwargs: Any) -> Any:
        return func(*args, **{**kwargs, name: change(kwargs.get(name))})

    return changed


def inplace(at: int, change: Callable[[Tensor], Tensor]) -> Change:
    """The kernel leaves something else in the argument that it writes."""

    def changed(func: Any, args: Any, kwargs: Any) -> Any:
        made = func(*args, **kwargs)
        args[at].copy_(change(args[at].clone()))
        return made

    return changed


def scaled(by: float, at: int = 0) -> Change:
    return result(lambda one: one * by, at)


def in_bfloat16(at: int = 0) -> Change:
    """The kernel rounds its result to bfloat16."""
    return result(lambda one: one.bfloat16().to(one.dtype), at)


def row(number: int, change: Callable[[Tensor], Tensor], at: int = 0) -> Change:
    """A result of which one row (of all but the last dimension) differs."""

    def changed(one: Tensor) -> Tensor:
        rows = one.reshape(-1, one.shape[-1]).clone()
        rows[number] = change(rows[number])
        return rows.reshape(one.shape)

    return result(changed, at)


def one_element(value: float, number: int = 0, at: int = 0) -> Change:
    def changed(one: Tensor) -> Tensor:
        flat = one.reshape(-1).clone()
        flat[number] = value
        return flat.reshape(one.shape)

    return result(changed, at)
