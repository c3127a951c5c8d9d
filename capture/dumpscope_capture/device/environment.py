"""Facts about a run for run.json: versions, devices, seeds, and the switches that change how numbers are computed."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import torch

from dumpscope_capture import seeding
from dumpscope_capture.config import Config
from dumpscope_capture.context import peek
from dumpscope_capture.optional_numpy import np
from dumpscope_format.older_python import without_prefix

FRAMEWORK: Final = "pytorch"

ENVIRONMENT: Final = (
    "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_ALGO", "NCCL_PROTO", "NVTE_ALLOW_NONDETERMINISTIC_ALGO", "NVTE_FLASH_ATTN",
    "NVTE_FUSED_ATTN", "FLASH_ATTENTION_DETERMINISTIC", "HCCL_DETERMINISTIC", "LCCL_DETERMINISTIC",
    "CLOSE_MATMUL_K_SHIFT", "ATB_MATMUL_SHUFFLE_K_ENABLE", "ATB_LLM_LCOC_ENABLE", "INF_NAN_MODE_ENABLE",
    "INF_NAN_MODE_FORCE_DISABLE", "ASCEND_LAUNCH_BLOCKING", "TASK_QUEUE_ENABLE", "MKL_CBWR",
)  # fmt: skip
"""Variables that choose kernels, the order of sums or the treatment of infinities. None of them holds a path or a secret."""

_LIBRARIES: Final = (
    "torch_npu", "mindspeed", "megatron.core", "deepspeed", "transformers", "triton", "flash_attn", "apex",
)  # fmt: skip


def describe_run(config: Config, number: int | None, step: int) -> dict[str, Any]:
    """The content of run.json about a run, as it is now. Nothing is imported, started or changed."""
    return {"rank": number, "step": step, "pid": os.getpid(), "host": platform.node(), "framework": FRAMEWORK,
            "versions": versions(), "devices": _devices(), "settings": config.non_defaults(), "numerics": _numerics(),
            "seeds": {"seed": torch.initial_seed(), **seeding.switches}, "environment": _environment()}  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of Python, torch and the libraries in use. Nothing is imported that the program has not imported."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    if np is not None:
        found["numpy"] = np.__version__
    for name, version in (("cuda", torch.version.cuda), ("hip", torch.version.hip), ("cann", _cann())):
        if version is not None:
            found[name] = version
    for name in _LIBRARIES:
        version = peek(sys.modules.get(name), "__version__")
        if isinstance(version, str):
            found[name] = version
    return found


@lru_cache(maxsize=None)
def _cann() -> str | None:
    """Version of the Ascend toolkit that the environment names; None where there is none."""
    home = os.environ.get("ASCEND_TOOLKIT_HOME") or os.environ.get("ASCEND_HOME_PATH")
    if not home:
        return None
    for place in (f"{platform.machine()}-linux", "."):
        try:
            text = Path(home, place, "ascend_toolkit_install.info").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "version" and value.strip():
                return value.strip()
    return None


def _devices() -> list[str]:
    """Devices of this process. A device that has not been used is not initialised."""
    found = [f"cpu x{os.cpu_count()}"]
    for kind in ("cuda", "npu", "xpu"):
        backend = peek(torch, kind)
        with contextlib.suppress(Exception):  # a backend that is broken
            if backend is not None and backend.is_available() and backend.is_initialized():
                found.append(f"{kind}: {backend.get_device_name()}")
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}


def _numerics() -> dict[str, Any]:
    """Switches of torch that change results. Those that this version lacks or refuses to read are left out."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, tell in _SWITCHES.items():
            try:
                found[name] = tell()
            except Exception:  # torch forbids reading the old switches where a program used the new ones
                continue
    return found


def _tf32(old: Callable[[], Any], new: Callable[[], Any]) -> bool:
    try:
        return bool(old())
    except Exception:
        return bool(new() == "tf32")


def _npu() -> Any:
    """The NPU in use. Raises AttributeError where none is: reading its switches would initialise it."""
    npu: Any = peek(sys.modules.get("torch_npu"), "npu")
    if npu is None or not npu.is_initialized():
        raise AttributeError("the NPU is not in use")
    return npu


_CUDA: Final[Any] = torch.backends.cuda
_CUDNN: Final[Any] = torch.backends.cudnn
_SWITCHES: Final[dict[str, Callable[[], Any]]] = {
    "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "cudnn_deterministic": lambda: _CUDNN.deterministic,
    "cudnn_benchmark": lambda: _CUDNN.benchmark,
    "float32_matmul_precision": torch.get_float32_matmul_precision,
    "matmul_tf32": lambda: _tf32(lambda: _CUDA.matmul.allow_tf32, lambda: _CUDA.matmul.fp32_precision),
    "cudnn_tf32": lambda: _tf32(lambda: _CUDNN.allow_tf32, lambda: _CUDNN.conv.fp32_precision),
    "jit_compile": lambda: not _npu().is_jit_compile_false(),
    "matmul_hf32": lambda: bool(_npu().matmul.allow_hf32),
    "conv_hf32": lambda: bool(_npu().conv.allow_hf32),
    "fp16_reduced_sums": lambda: _CUDA.matmul.allow_fp16_reduced_precision_reduction,
    "bf16_reduced_sums": lambda: _CUDA.matmul.allow_bf16_reduced_precision_reduction,
    "flash_attention": _CUDA.flash_sdp_enabled,
    "memory_efficient_attention": _CUDA.mem_efficient_sdp_enabled,
    "default_dtype": lambda: without_prefix(str(torch.get_default_dtype()), "torch."),
    "threads": torch.get_num_threads,
    "cpu_capability": torch.backends.cpu.get_cpu_capability,
}
