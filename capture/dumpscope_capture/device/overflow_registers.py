"""Overflow registers of an Ascend device, for the modes in which its overflows end in the largest number and not in infinity.

`torch_npu` is reached through `sys.modules` only: where the program does not use it there are no registers. Tests put a stand-in
there; none of this has run on an NPU.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, Protocol

import torch

from dumpscope_capture.context import LOG, Quiet

DEBUG_MODE: Final = "OVERFLOW_DEBUG_MODE_ENABLE"
_STATUS_SIZE: Final = 8


class Registers(Protocol):
    """What overflow detection needs of a device."""

    def raised(self) -> bool: ...

    def clear(self) -> None: ...


def overflow_registers() -> Registers | None:
    """The registers of the NPU in use; None where there is none, or where it computes infinities and NaN.

    Raises RuntimeError where no device is set and none can be.
    """
    module: Any = sys.modules.get("torch_npu")
    npu = getattr(module, "npu", None)
    if npu is None or not npu.is_available():
        return None
    _set_device(npu)
    enable = getattr(module._C, "_enable_overflow_npu", None)
    if enable is None:
        LOG.warning("this torch_npu has no switch for overflow detection; it may not work on this platform")
    else:
        enable()
    infinities = getattr(module._C, "_npu_is_support_inf_nan", None)
    if infinities is not None and infinities():
        return None
    return _StatusRegisters(module) if os.environ.get(DEBUG_MODE) == "1" else _FlagRegisters(module)


def _set_device(npu: Any) -> None:
    """Registers of a process without a device cannot be read (error 107002)."""
    if npu.is_initialized():
        return
    number = int(os.environ.get("LOCAL_RANK", "0"))
    try:
        npu.set_device(number)
    except Exception as error:
        raise RuntimeError(
            f"no NPU is set in this process, and npu:{number} cannot be (107002): call "
            f"torch_npu.npu.set_device(local_rank) before the overflow check begins ({error})"
        ) from error


class _FlagRegisters:
    def __init__(self, module: Any) -> None:
        self._calls = module._C

    def raised(self) -> bool:
        return bool(self._calls._check_overflow_npu())

    def clear(self) -> None:
        self._calls._clear_overflow_npu()


class _StatusRegisters:
    """Reads that leave alone what dynamic loss scaling reads."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def raised(self) -> bool:
        with Quiet():
            found = self._module.npu_get_float_status(_blank(), 1)
            return bool(found.cpu()[0] != 0)

    def clear(self) -> None:
        with Quiet():
            self._module.npu_clear_float_status(_blank(), 1)


def _blank() -> torch.Tensor:
    return torch.zeros(_STATUS_SIZE, device="npu")
