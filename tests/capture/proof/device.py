"""A simulated accelerator, "sim": its own device type for torch, computing on the CPU, with kernels that can be planted wrong.

torch's key for backends outside its tree is given Python factories; every other operator reaches the tensor class. Autograd,
views, in-place writes, `.to("cpu")` and the way back work as on a real one; storages have no bytes to read, as on an NPU.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map_only

NAME = "sim"


@dataclass
class Fault:
    """A kernel that is wrong. when: told from its arguments; damage: what becomes of its result; hits: how often it was wrong.

    It must not raise in a backward: torch 2.13 ends the process when Python code does so in a device's own thread. A result of a
    wrong shape makes the backward fail, and `Broken` raises on the CPU.
    """

    damage: Callable[[Any], Any]
    when: Callable[[Sequence[Any]], bool] = lambda args: True
    hits: int = field(default=0)


faults: dict[str, Fault] = {}
"""By name of the aten operator, `native_group_norm_backward`."""

kernels: list[str] = []
"""Operators the device has run since `clear`, in order."""


class SimTensor(torch.Tensor):
    """A tensor on the device. raw: its content on the CPU, in the same layout."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> SimTensor:
        made: SimTensor = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, raw.shape, strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device=f"{NAME}:0",
        )  # fmt: skip
        made.raw = raw
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self, **unused: Any) -> str:
        return f"SimTensor({self.raw})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with torch._C.DisableTorchFunction():  # a device is below everything that watches functions
            return cls.compute(func, args, dict(kwargs or {}))

    @classmethod
    def compute(cls, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func.overloadpacket.__name__
        target = kwargs.get("device")
        to_host = target is not None and torch.device(target).type == "cpu"
        if target is not None:
            kwargs["device"] = "cpu"
        raw_args, raw_kwargs = tree_map_only(SimTensor, lambda tensor: tensor.raw, (args, kwargs))
        kernels.append(name)
        result = func(*raw_args, **raw_kwargs)
        fault = faults.get(name)
        if fault is not None and fault.when(raw_args):
            fault.hits += 1
            result = fault.damage(result)
        if to_host or (name == "copy_" and not isinstance(args[0], SimTensor)):
            return args[0] if name == "copy_" else result
        result = tree_map_only(torch.Tensor, SimTensor, result)
        return return_and_correct_aliasing(func, args, kwargs, result)


def _empty(
    size: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, **more: Any
) -> Any:
    return SimTensor(torch.empty(size, dtype=dtype, device="cpu", **more))


def _empty_strided(
    size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Any:
    return SimTensor(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
    raw = source.raw if isinstance(source, SimTensor) else source
    (target.raw if isinstance(target, SimTensor) else target).copy_(raw)
    return target


class _Stream:
    """The one queue of the device, which is always empty: torch's own code asks every accelerator for it."""

    def synchronize(self) -> None: ...

    def wait_stream(self, _other: _Stream) -> None: ...


_STREAM = _Stream()


class _Module(backend_registration._DummyBackendModule):  # type: ignore[misc]
    """`torch.sim`."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def current_stream(self) -> _Stream:
        return _STREAM

    def stream(self, _stream: _Stream) -> AbstractContextManager[None]:
        return nullcontext()


class Broken(TorchDispatchMode):
    """While it is entered, kernels of the CPU fail. at: by name, which of their runs, counted from 1; 0 for every one"""

    def __init__(self, **at: int) -> None:
        super().__init__()
        self._at = at
        self._runs: dict[str, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        self._runs[name] = self._runs.get(name, 0) + 1
        if self._at.get(name, -1) in (0, self._runs[name]):
            raise RuntimeError(f"ERR01005 OPS internal error: {name} failed, 507011")
        return func(*args, **(kwargs or {}))


_library: list[torch.library.Library] = []


def register() -> None:
    """Make the device known to torch, once a process."""
    if _library:
        return
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())  # type: ignore[no-untyped-call]
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    _library.append(library)
    atexit.register(_settle)


def _settle(quiet: float = 0.05, longest: float = 10.0) -> None:
    """Wait until the device's own thread has let go of the last graph.

    It needs Python for that, for the kernels here are Python; where the interpreter is ending meanwhile, torch 2.13 ends the
    process with SIGABRT, in more than half of all runs."""
    deadline, idle = time.monotonic() + longest, 0
    while idle < 2 and time.monotonic() < deadline:
        before = time.process_time()
        time.sleep(quiet)
        idle = idle + 1 if time.process_time() - before < quiet / 25 else 0


@contextmanager
def planted(**wrong: Fault) -> Iterator[dict[str, Fault]]:
    """Plant faults for the block: `planted(native_group_norm_backward=Fault(...))`."""
    faults.update(wrong)
    kernels.clear()
    try:
        yield wrong
    finally:
        faults.clear()
        kernels.clear()
