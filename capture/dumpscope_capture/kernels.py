"""Level L2 on Ascend: the device dumps the kernels of one named call into the rank's folder.

`Device` is the seam: three calls of torch_npu. Tests put a fake in its place.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import LOG


class Device(Protocol):
    """What a kernel dump needs of a device."""

    def synchronize(self) -> None: ...

    def init_dump(self) -> None: ...

    def set_dump(self, path: str) -> None: ...

    def finalize_dump(self) -> None: ...


def ascend() -> Device | None:
    """torch_npu's device, None where it is not in use."""
    module = sys.modules.get("torch_npu")
    npu: Any = getattr(module, "npu", None)
    return npu if npu is not None and npu.is_available() else None


class KernelDump:
    """Dumps one call once a step. Raises ConfigError where not exactly one call is named."""

    def __init__(self, device: Device, names: tuple[str, ...], scope: tuple[str, ...]) -> None:
        if len(names) != 1 or scope:
            raise ConfigError(
                "list", list(names), "exactly one whole name of a call, and no scope, with level L2 on Ascend"
            )
        self._device = device
        self._name = names[0].removesuffix(".backward").removesuffix(".forward")
        self._done = False

    def reset(self) -> None:
        self._done = False

    def wanted(self, node: str) -> bool:
        return not self._done and node.removesuffix(".forward") == self._name

    @contextmanager
    def around(self, node: str, folder: Path) -> Iterator[None]:
        """Have the device dump what runs in the block."""
        self._done = True
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"kernel_config_{os.getpid()}.json"
        plan = {
            "dump": {"dump_list": [], "dump_path": str(folder.absolute()), "dump_mode": "all", "dump_op_switch": "on"}
        }
        path.write_text(json.dumps(plan, indent=1), encoding="utf-8")
        self._device.synchronize()
        self._device.init_dump()
        self._device.set_dump(str(path))
        try:
            yield
        finally:
            self._device.synchronize()
            self._device.finalize_dump()
        LOG.info("The kernel data of %s is dumped successfully.", node)
