"""The device's own dump of one call (`dump_mode="acl"`): checks what it needs before training starts.

This module has not run on an NPU; the tests replace torch_npu by a fake.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from dumpscope_capture.context import LOG, HookErrors
from dumpscope_capture.device.kernels import DumpDevice, KernelDump, ascend
from dumpscope_capture.ptdbg.errors import Code, CompareException, ParameterError
from dumpscope_capture.ptdbg.generations import engine_name

_WANTED: Final = ("synchronize", "init_dump", "set_dump", "finalize_dump")
_CHOICES: Final = {"dump_mode": ("output", "input", "all"), "dump_op_switch": ("off", "on")}


def check(config: str | None) -> None:
    """Raises CompareException: code 15 if this machine cannot make such a dump, code 11 if the dump.json is wrong."""
    device()
    check_plan(config)
    if os.environ.get("TASK_QUEUE_ENABLE") != "0":
        LOG.warning("an acl dump needs TASK_QUEUE_ENABLE=0 in the environment, else it misses queued kernels")


def device() -> DumpDevice:
    """The NPU. Raises CompareException with the reason if no device can dump."""
    found = ascend()
    reason = None if found is not None else _why_not()
    if found is not None:
        lacking = [name for name in _WANTED if not hasattr(found, name)]
        reason = f"this torch_npu has no torch_npu.npu.{lacking[0]}; it needs one that has" if lacking else None
    if reason is not None or found is None:
        raise CompareException(
            Code.DUMP_MODE,
            f"dump_mode='acl' dumps what an Ascend device computes, and there is none to ask: {reason}. "
            "On other devices use dump_mode='api'.",
        )
    return found


def _why_not() -> str:
    if "torch_npu" in sys.modules:
        return (
            "torch_npu.npu.is_available() is false; check the driver, and source CANN's set_env.sh before the program"
        )
    if importlib.util.find_spec("torch_npu") is not None:
        return "torch_npu is installed but not imported; `import torch_npu` first"
    return "torch_npu is not installed, and CANN with it"


def check_plan(config: str | None) -> str:
    """Absolute path of a valid dump.json. Raises ParameterError."""
    path = os.path.abspath(config or "")
    if not path.endswith(".json") or not os.path.isfile(path):
        raise ParameterError("dump_config", config, "an existing .json file")
    try:
        plan: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParameterError("dump_config", config, f"a readable JSON file ({error})") from error
    dump = plan.get("dump") if isinstance(plan, dict) else None
    if not isinstance(dump, dict):
        raise ParameterError("dump_config", plan, 'a JSON object with the key "dump"')
    folder = dump.get("dump_path")
    if not isinstance(folder, str) or not folder:
        raise ParameterError("dump_config: dump_path", folder, "a folder")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise ParameterError("dump_config: dump_path", folder, f"a folder that can be made ({error})") from error
    for key, allowed in _CHOICES.items():
        if dump.get(key, allowed[0]) not in allowed:
            raise ParameterError(f"dump_config: {key}", dump[key], ", ".join(allowed))
    return path


def kernel_dump(config: str | None, scope: str, gradients: Sequence[str], errors: HookErrors) -> KernelDump:
    """The kernel dump of one named call. gradients: .npy files; the first holds the gradient for its backward."""
    name = engine_name(scope)
    if name is None:
        raise ParameterError(
            "scope", [scope], "the whole name of one call, like Functional.relu.0.forward, with mode acl"
        )
    gradient = _loader(gradients[0]) if gradients else None
    return KernelDump(device(), (name,), (), errors, plan=check_plan(config), gradient=gradient)


def reruns(config: str | None, errors: HookErrors) -> KernelDump:
    """The kernel dump of any call that is run again for it."""
    return KernelDump(device(), ("any",), (), errors, plan=check_plan(config))


def _loader(path: str) -> Callable[[], torch.Tensor]:
    return lambda: torch.from_numpy(np.load(path, allow_pickle=False))
