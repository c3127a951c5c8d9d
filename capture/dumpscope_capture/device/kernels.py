"""Level L2 on Ascend: the device dumps the kernels of one named call, forward or backward, into the rank's folder.

`Device` is the seam: four calls of torch_npu. Tests put a fake in its place. Kernels of a backward cannot be told from those of
the calls around it: the call is run once more on copies of its arguments when its gradient arrives, and that backward is dumped.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from dumpscope_capture.calls.held_arguments import writes_in_place
from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import LOG, Faults


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
    """Dumps one call once a step. Raises ConfigError where not exactly one call is named.

    plan: a dump.json of the user's, which says where the data goes; gradient: the call's, to be used instead of waiting for it
    """

    def __init__(
        self,
        device: Device,
        names: tuple[str, ...],
        scope: tuple[str, ...],
        faults: Faults,
        *,
        plan: str | None = None,
        gradient: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        if len(names) != 1 or scope:
            raise ConfigError(
                "list", list(names), "exactly one whole name of a call, and no scope, with level L2 on Ascend"
            )
        self._device = device
        self._faults = faults
        self._plan = plan
        self._gradient = gradient
        self._backward = names[0].endswith(".backward")
        self._name = names[0].removesuffix(".backward").removesuffix(".forward")
        self._done = False

    def reset(self) -> None:
        self._done = False

    def wanted(self, node: str) -> bool:
        return not self._done and node.removesuffix(".forward") == self._name

    def run(
        self, node: str, folder: Path, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the named call, and have its kernels dumped now, or those of its backward as its gradient arrives."""
        if not self._backward:
            with self._window(node, folder):
                return function(*args, **kwargs)
        copies = tree_map_only(torch.Tensor, _copy, (args, kwargs))
        result = function(*args, **kwargs)
        first = _first(result)
        if first is None:
            LOG.warning("%s has no result that requires a gradient: there is no backward to dump", node)
            return result
        self._done = True

        def arrived(gradient: torch.Tensor) -> None:
            with self._faults.guard("a kernel dump"):
                self._replay(f"{self._name}.backward", folder, function, copies, gradient)

        if self._gradient is not None:
            with self._faults.guard("a kernel dump"):
                arrived(self._gradient().to(device=first.device, dtype=first.dtype))
            return result

        first.register_hook(arrived)  # type: ignore[no-untyped-call]
        return result

    def rerun(
        self, node: str, folder: Path, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Run a call that is over once more inside the device's dump; nothing of it reaches the program."""
        copies = tree_map_only(torch.Tensor, _copy, (args, kwargs))
        kinds = [part.device.type for part in tree_leaves(copies) if isinstance(part, torch.Tensor)]
        kind = next((kind for kind in kinds if kind != "cpu"), "cpu")
        with _kept_random(kind), torch.no_grad(), self._window(node, folder):
            function(*copies[0], **copies[1])

    def _replay(
        self,
        node: str,
        folder: Path,
        function: Callable[..., Any],
        copies: tuple[tuple[Any, ...], dict[str, Any]],
        gradient: torch.Tensor,
    ) -> None:
        with _kept_random(gradient.device.type), torch.enable_grad(), torch._C.DisableTorchFunction():
            args, kwargs = copies
            if writes_in_place(getattr(function, "__name__", ""), kwargs):
                args, kwargs = tree_map_only(torch.Tensor, torch.clone, copies)
            first = _first(function(*args, **kwargs))
            if first is not None:
                with self._window(node, folder):
                    torch.autograd.backward(first, gradient, retain_graph=True)

    @contextmanager
    def _window(self, node: str, folder: Path) -> Iterator[None]:
        """Have the device dump what runs in the block."""
        self._done = True
        plan = self._plan or _written_plan(folder)
        self._device.synchronize()
        self._device.init_dump()
        self._device.set_dump(plan)
        try:
            yield
        finally:
            self._device.synchronize()
            self._device.finalize_dump()
        LOG.info("The kernel data of %s is dumped successfully.", node)


def _kept_random(kind: str) -> AbstractContextManager[Any]:
    """What runs in the block uses up no random numbers of the program's. kind: of the device it runs on"""
    return torch.random.fork_rng(devices=[]) if kind == "cpu" else torch.random.fork_rng(device_type=kind)


def _written_plan(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"kernel_config_{os.getpid()}.json"
    plan = {"dump": {"dump_list": [], "dump_path": str(folder.absolute()), "dump_mode": "all", "dump_op_switch": "on"}}
    path.write_text(json.dumps(plan, indent=1), encoding="utf-8")
    return str(path)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _first(result: Any) -> torch.Tensor | None:
    """The first result that a gradient can come to."""
    return next((part for part in tree_leaves(result) if isinstance(part, torch.Tensor) and part.requires_grad), None)
