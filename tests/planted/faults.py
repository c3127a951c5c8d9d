"""Faults and hardware-like noise planted below autograd, on the outputs of single aten kernels. Needs torch.

`Kernels` counts the kernels of the model's own work (not those with which the dumper computes statistics) and knows for each
which API call or which API call's backward it belongs to, so the place of a fault is known without looking at a dump.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from planted.dumpers import Dumper

MOVES = frozenset(
    {
        "t", "transpose", "view", "_unsafe_view", "reshape", "_reshape_alias", "expand", "permute",
        "unsqueeze", "squeeze", "select", "slice", "split", "split_with_sizes", "unbind", "clone",
        "detach", "alias", "copy_", "_to_copy", "lift_fresh", "zeros", "zeros_like", "ones",
        "ones_like", "empty", "empty_like", "empty_strided", "full", "full_like", "arange", "as_strided",
        "as_strided_", "tril", "triu", "scalar_tensor", "new_zeros", "new_ones", "new_empty", "new_full",
        "new_empty_strided", "fill_", "zero_", "_local_scalar_dense", "cat", "stack", "bernoulli_", "rand",
        "rand_like", "randn", "uniform_", "chunk", "item", "is_nonzero", "set_", "resize_",
        "contiguous", "bernoulli",
    }
)  # fmt: skip
"""Kernels that move, make or draw data: never faulty, never noisy."""
EXACT = frozenset(
    {
        "relu", "relu_", "threshold_backward", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
        "where", "masked_fill", "masked_fill_",
        "index", "embedding", "neg", "abs", "sign", "max", "min", "amax",
        "amin", "gt", "lt", "ge", "le", "eq", "ne", "maximum",
        "minimum", "slice_backward", "select_backward", "unsafe_split", "gather", "scatter",
    }
)  # fmt: skip
"""Kernels that give the same bits on every device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kernel: `count`-th call of `op`; owner: "Functional.linear.3.forward" or ""; sizes of its float outputs."""

    op: str
    count: int
    phase: str
    step: int
    owner: str
    elements: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """kind: one of KINDS; strength as the kind reads it; hits output `output` of the call (op, count)."""

    kind: str
    strength: float
    op: str
    count: int
    output: int = 0


def _noise(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
    spread = x.float()
    spread = spread[spread.isfinite()].square().mean().sqrt()
    return x.float() + strength * spread * torch.randn(x.shape, generator=draw)


def _shift(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
    return x.float() + strength * x.float().square().mean().sqrt().clamp(min=1e-6)


def _outlier(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
    y = x.float().clone().reshape(-1)
    at = int(torch.randint(0, y.numel(), (), generator=draw))
    y[at] += strength * y.abs().max().clamp(min=1e-6)
    return y.reshape(x.shape)


def _tail(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
    y = x.float().clone().reshape(-1)
    y[-max(1, int(strength * y.numel())) :] = 0
    return y.reshape(x.shape)


def _permuted(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
    rows = x.float().reshape(-1, x.shape[-1]) if x.dim() > 1 else x.float().reshape(-1, 1)
    return rows.roll(1, 0).reshape(x.shape)


def _coarse(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
    if x.dtype == torch.float32:
        return x.bfloat16().float()
    return x.float().to(torch.float8_e4m3fn).float() if strength else x


def _special(value: float) -> Callable[[Tensor, float, torch.Generator], Tensor]:
    def plant(x: Tensor, strength: float, draw: torch.Generator) -> Tensor:
        y = x.float().clone().reshape(-1)
        y[int(torch.randint(0, y.numel(), (), generator=draw))] = value
        return y.reshape(x.shape)

    return plant


KINDS: dict[str, Callable[[Tensor, float, torch.Generator], Tensor]] = {
    "scale": lambda x, strength, draw: x.float() * strength,
    "noise": _noise,
    "shift": _shift,
    "outlier": _outlier,
    "tail": _tail,
    "permute": _permuted,
    "precision": _coarse,
    "nan": _special(float("nan")),
    "inf": _special(float("inf")),
}


class Kernels(TorchDispatchMode):
    """Records every kernel, adds noise to all and faults to some.

    insert_code: code of an inserted call
    noise: 0 or the seed of the noise; loudness: its strength, 1 for what another device's rounding does
    """

    def __init__(
        self,
        dumper: Dumper,
        *,
        insert_code: Any,
        faults: tuple[Fault, ...] = (),
        noise: int = 0,
        loudness: float = 1.0,
        record: bool = False,
    ) -> None:
        super().__init__()
        self.dumper, self.faults, self.record = dumper, faults, record
        self.insert_code = insert_code
        self.inserted = ""
        self.draw = torch.Generator().manual_seed(noise or 1)
        self.fault_draw = torch.Generator().manual_seed(7)
        self.loudness = loudness if noise else 0.0
        self.counts: dict[str, int] = defaultdict(int)
        self.calls: list[Call] = []
        self.hits: list[Call] = []
        self.phase, self.step = "forward", 0
        self.made_by: dict[int, str] = {}
        self.sequence = torch._C._autograd._get_sequence_nr()  # type: ignore[attr-defined]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if self.dumper.skip():
            return out
        op = func._schema.name.removeprefix("aten::")
        owner = self._owner() if self.record else ""
        if op in MOVES or self.phase == "optimizer":
            return out
        floats = [one for one in _tensors(out) if one.is_floating_point() and one.numel()]
        if not floats:
            return out
        count = self.counts[op]
        self.counts[op] += 1
        call = Call(
            op=op, count=count, phase=self.phase, step=self.step, owner=owner,
            elements=tuple(one.numel() for one in floats),
        )  # fmt: skip
        if self.record:
            self.calls.append(call)
        with self.dumper.hushed():
            if self.loudness and op not in EXACT:
                for one in floats:
                    one.copy_(_rounded(one, self.loudness, self.draw))
            for fault in self.faults:
                if fault.op == op and fault.count == count:
                    one = floats[min(fault.output, len(floats) - 1)]
                    one.copy_(KINDS[fault.kind](one, fault.strength, self.fault_draw))
                    self.hits.append(call)
        return out

    def _owner(self) -> str:
        """The API call that runs (also one that a checkpoint runs again), or "X.backward" of the call whose autograd node
        runs; "" outside both."""
        owner = ""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code is self.dumper.call_code:
                owner = self.dumper.name_of(frame) or owner
            if frame.f_code is self.insert_code:
                self.inserted = self.inserted or owner
            frame = frame.f_back  # type: ignore[assignment]
        now = torch._C._autograd._get_sequence_nr()  # type: ignore[attr-defined]
        for number in range(self.sequence, now):
            self.made_by[number] = owner
        self.sequence = now
        node = torch._C._current_autograd_node()  # type: ignore[attr-defined]
        if owner or node is None:
            return owner
        made_by = self.made_by.get(node._sequence_nr(), "")
        return made_by.removesuffix("forward") + "backward" if made_by else ""


def _rounded(x: Tensor, loudness: float, draw: torch.Generator) -> Tensor:
    """What another device's rounding may do: a relative error of 1e-6, or up to about one unit in the last place."""
    relative = loudness * 1e-6 if x.dtype == torch.float32 else loudness * 2.0**-9
    return x.float() * (1 + relative * torch.randn(x.shape, generator=draw))


def _tensors(out: Any) -> list[Tensor]:
    if isinstance(out, Tensor):
        return [out]
    if isinstance(out, (list, tuple)):
        return [one for each in out for one in _tensors(each)]
    return []
