"""Overflow registers of an Ascend device, for the modes in which an overflow gives the largest number and not infinity.

`torch_npu` is looked up in `sys.modules` only: if the program does not use it, there are no registers. Tests put a fake there;
this module has not run on an NPU.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, Protocol

import torch

from dumpscope_capture.context import LOG, Unobserved, peek

DEBUG_MODE: Final = "OVERFLOW_DEBUG_MODE_ENABLE"
_STATUS_SIZE: Final = 8


class Registers(Protocol):
    """The registers of a device: whether an overflow was raised, and clearing."""

    def raised(self) -> bool: ...

    def clear(self) -> None: ...


def overflow_registers() -> Registers | None:
    """The registers of the NPU in use; None where there is none, or where it computes infinities and NaN.

    Raises RuntimeError where no device is set and setting one fails.
    """
    module: Any = sys.modules.get("torch_npu")
    npu = peek(module, "npu")
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
    """Set a device if none is set: without one the registers cannot be read (error 107002)."""
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
    """Uses the status calls, which do not disturb dynamic loss scaling."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def raised(self) -> bool:
        with Unobserved():
            found = self._module.npu_get_float_status(_status_buffer(), 1)
            return bool(found.cpu()[0] != 0)

    def clear(self) -> None:
        with Unobserved():
            self._module.npu_clear_float_status(_status_buffer(), 1)


def _status_buffer() -> torch.Tensor:
    return torch.zeros(_STATUS_SIZE, device="npu")
