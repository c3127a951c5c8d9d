"""Level L2 on Ascend: the device dumps the kernels of one named call, forward or backward, into the rank's folder.

`DumpDevice` names the four calls of torch_npu that are used; tests replace them by a fake. The kernels of a backward cannot be
told from those of the calls around it. So the call is run again on copies of its arguments when its gradient arrives, and the
backward of this second run is dumped.
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
from torch.utils._pytree import tree_map_only

from dumpscope_capture.calls.held_arguments import writes_in_place
from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import LOG, HookErrors, peek
from dumpscope_capture.older_torch import tree_leaves
from dumpscope_format.older_python import without_suffix


class DumpDevice(Protocol):
    """The calls of a device that a kernel dump uses."""

    def synchronize(self) -> None: ...

    def init_dump(self) -> None: ...

    def set_dump(self, path: str) -> None: ...

    def finalize_dump(self) -> None: ...


def ascend() -> DumpDevice | None:
    """torch_npu's device, None where torch_npu is not in use."""
    module = sys.modules.get("torch_npu")
    npu: Any = peek(module, "npu")
    return npu if npu is not None and npu.is_available() else None


class KernelDump:
    """Dumps one call once a step. Raises ConfigError where not exactly one call is named.

    plan: the user's dump.json, which names the target folder; None to write one
    gradient: gives the gradient of the call; None to wait for the program's
    """

    def __init__(
        self,
        device: DumpDevice,
        names: tuple[str, ...],
        scope: tuple[str, ...],
        errors: HookErrors,
        *,
        plan: str | None = None,
        gradient: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        if len(names) != 1 or scope:
            raise ConfigError(
                "list", list(names), "exactly one whole name of a call, and no scope, with level L2 on Ascend"
            )
        self._device = device
        self._errors = errors
        self._plan = plan
        self._gradient = gradient
        self._backward = names[0].endswith(".backward")
        self._name = without_suffix(without_suffix(names[0], ".backward"), ".forward")
        self._done = False

    def reset(self) -> None:
        self._done = False

    def is_target(self, node: str) -> bool:
        return not self._done and without_suffix(node, ".forward") == self._name

    def run(
        self, node: str, folder: Path, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the named call. Its kernels are dumped now, or those of its backward when its gradient arrives."""
        if not self._backward:
            with self._window(node, folder):
                return function(*args, **kwargs)
        copies = tree_map_only(torch.Tensor, _copy, (args, kwargs))
        result = function(*args, **kwargs)
        first = _first(result)
        if first is None:
            LOG.warning("%s has no result that requires a gradient, so it has no backward to dump", node)
            return result
        self._done = True

        def dump_backward(gradient: torch.Tensor) -> None:
            with self._errors.guard("a kernel dump"):
                self._replay(f"{self._name}.backward", folder, function, copies, gradient)

        if self._gradient is not None:
            with self._errors.guard("a kernel dump"):
                dump_backward(self._gradient().to(device=first.device, dtype=first.dtype))
            return result

        first.register_hook(dump_backward)  # type: ignore[no-untyped-call]
        return result

    def rerun(
        self, node: str, folder: Path, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Run a finished call again inside the device's dump. The program does not notice."""
        copies = tree_map_only(torch.Tensor, _copy, (args, kwargs))
        kinds = [part.device.type for part in tree_leaves(copies) if isinstance(part, torch.Tensor)]
        kind = next((kind for kind in kinds if kind != "cpu"), "cpu")
        with _keep_random_state(kind), torch.no_grad(), self._window(node, folder):
            function(*copies[0], **copies[1])

    def _replay(
        self,
        node: str,
        folder: Path,
        function: Callable[..., Any],
        copies: tuple[tuple[Any, ...], dict[str, Any]],
        gradient: torch.Tensor,
    ) -> None:
        with _keep_random_state(gradient.device.type), torch.enable_grad(), torch._C.DisableTorchFunction():
            args, kwargs = copies
            if writes_in_place(getattr(function, "__name__", ""), kwargs):
                args, kwargs = tree_map_only(torch.Tensor, torch.clone, copies)
            first = _first(function(*args, **kwargs))
            if first is not None:
                with self._window(node, folder):
                    torch.autograd.backward(first, gradient, retain_graph=True)

    @contextmanager
    def _window(self, node: str, folder: Path) -> Iterator[None]:
        """The device dumps the kernels that run in the block."""
        self._done = True
        plan = self._plan or _write_plan(folder)
        self._device.synchronize()
        self._device.init_dump()
        self._device.set_dump(plan)
        try:
            yield
        finally:
            self._device.synchronize()
            self._device.finalize_dump()
        LOG.info("The kernel data of %s is dumped successfully.", node)


def _keep_random_state(kind: str) -> AbstractContextManager[Any]:
    """Keeps the program's random state while the block runs. kind: device type"""
    return torch.random.fork_rng(devices=[]) if kind == "cpu" else torch.random.fork_rng(device_type=kind)


def _write_plan(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"kernel_config_{os.getpid()}.json"
    plan = {"dump": {"dump_list": [], "dump_path": str(folder.absolute()), "dump_mode": "all", "dump_op_switch": "on"}}
    path.write_text(json.dumps(plan, indent=1), encoding="utf-8")
    return str(path)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _first(result: Any) -> torch.Tensor | None:
    """The first result that requires a gradient."""
    return next((part for part in tree_leaves(result) if isinstance(part, torch.Tensor) and part.requires_grad), None)
