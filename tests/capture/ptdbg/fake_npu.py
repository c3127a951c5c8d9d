"""A stand-in for torch_npu: notes the calls it gets, and its overflow registers say what a test scripts."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest
import torch


class Npu(types.ModuleType):
    """torch_npu.npu. device: the one that is set, None for none; broken: it cannot be set"""

    def __init__(self, calls: list[str]) -> None:
        super().__init__("torch_npu.npu")
        self.calls = calls
        self.available = True
        self.device: int | None = 0
        self.broken = False

    def is_available(self) -> bool:
        return self.available

    def is_initialized(self) -> bool:
        return self.device is not None

    def set_device(self, number: int) -> None:
        if self.broken:
            raise RuntimeError("107002")
        self.device = number
        self.calls.append(f"set_device {number}")

    def manual_seed_all(self, seed: int) -> None:
        self.calls.append(f"seed {seed}")

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def init_dump(self) -> None:
        self.calls.append("init_dump")

    def set_dump(self, path: str) -> None:
        with open(path, encoding="utf-8") as stream:
            self.calls.append(f"set_dump {json.load(stream)['dump'].get('dump_mode', 'output')}")

    def finalize_dump(self) -> None:
        self.calls.append("finalize_dump")


class Registers(types.ModuleType):
    """torch_npu._C. flag: what the overflow register holds; infinities: the device computes them, and needs no register"""

    def __init__(self, calls: list[str]) -> None:
        super().__init__("torch_npu._C")
        self.calls = calls
        self.flag = False
        self.infinities = False

    def _enable_overflow_npu(self) -> None:
        self.calls.append("enable")

    def _npu_is_support_inf_nan(self) -> bool:
        return self.infinities

    def _check_overflow_npu(self) -> bool:
        self.calls.append("check")
        return self.flag

    def _clear_overflow_npu(self) -> None:
        self.calls.append("clear")
        self.flag = False


class FakeNpu(types.ModuleType):
    """torch_npu itself."""

    def __init__(self) -> None:
        super().__init__("torch_npu")
        self.calls: list[str] = []
        self.__version__ = torch.__version__.split("+")[0]
        self.npu = Npu(self.calls)
        self._C = Registers(self.calls)

    def npu_get_float_status(self, status: torch.Tensor, mode: int) -> torch.Tensor:
        self.calls.append(f"get_status {mode}")
        return torch.full_like(status, float(self._C.flag))

    def npu_clear_float_status(self, status: torch.Tensor, mode: int) -> torch.Tensor:
        self.calls.append(f"clear_status {mode}")
        self._C.flag = False
        return status


def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put the stand-in where the program's torch_npu would be."""
    module = FakeNpu()
    monkeypatch.setitem(sys.modules, "torch_npu", module)
    return module
