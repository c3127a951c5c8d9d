"""Finds the function of torch for the name of a call, and lists functions with special results."""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from collections.abc import Callable
from typing import Any, Final

import torch

RANDOM: Final = frozenset((
    "alpha_dropout", "bernoulli", "bernoulli_", "cauchy_", "dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_",
    "exponential_", "feature_alpha_dropout", "feature_dropout", "geometric_", "gumbel_softmax", "log_normal_", "multinomial",
    "normal", "normal_", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random_", "randperm",
    "rrelu", "rrelu_", "uniform_",
))  # fmt: skip
"""Functions whose results are compared by their number of zeros."""
UNWRITTEN: Final = frozenset((
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_with_format", "resize_",
))  # fmt: skip
"""Functions whose results are uninitialised memory."""
CONVERSIONS: Final = frozenset((
    "bfloat16", "bool", "byte", "char", "cpu", "cuda", "double", "float", "half", "int", "long", "npu", "short", "to", "type",
    "type_as",
))  # fmt: skip
"""Functions that choose a type; the reference keeps this type."""
DEVICE_REMEDY: Final = "an NPU needs torch_npu; another Python may have the device; --prelude FILE brings a backend"
_OWNERS: Final = {
    "Functional": "torch.nn.functional",
    "Tensor": "torch.Tensor",
    "VF": "torch._VF",
    "Aten": "torch.ops.aten",
}
_ELSEWHERE: Final = ("linalg", "special", "fft", "nn.functional", "_C._nn", "ops.aten")


def function(target: str) -> Callable[..., Any]:
    """The function for a name: `Functional.softmax`, `Torch.add`, `NPU.npu_rms_norm`... Raises LookupError without one."""
    prefix, _, name = target.rpartition(".")
    if prefix in _OWNERS:
        owners = [_owner(_OWNERS[prefix])]
    elif prefix == "Torch":
        owners = [torch, *(_owner(f"torch.{place}") for place in _ELSEWHERE)]
    elif prefix == "NPU":
        owners = [importlib.import_module("torch_npu"), torch.ops.npu]
    else:
        try:
            owners = [importlib.import_module(prefix)]
        except ImportError as error:
            owners = []
            if "." in prefix or not _has_operator(prefix, name):
                raise LookupError(f"{prefix} is no module that can be imported here; --prelude may bring it") from error
        if "." not in prefix and _has_operator(prefix, name):
            owners.insert(0, getattr(torch.ops, prefix))
    for owner in owners:
        found = getattr(owner, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise LookupError(f"torch {torch.__version__} has no {target}")


def _has_operator(namespace: str, name: str) -> bool:
    """Whether `torch.ops.NAMESPACE.NAME` exists."""
    return hasattr(getattr(torch.ops, namespace), name)


def _owner(path: str) -> Any:
    owner: Any = torch
    for part in path.split(".")[1:]:
        owner = getattr(owner, part)
    return owner


def short_name(target: str) -> str:
    return target.rpartition(".")[2]


def writes(target: str, kwargs: dict[str, Any]) -> bool:
    """Whether a call writes into an argument: `add_`, `__iadd__`, `__setitem__`, `inplace=True`, `out=`."""
    name = short_name(target)
    inside = (
        name.startswith("__i")
        and name.endswith("__")
        and name not in ("__invert__", "__index__", "__int__", "__iter__")
    )
    return (
        inside
        or name == "__setitem__"
        or (name.endswith("_") and not name.endswith("__"))
        or kwargs.get("inplace") is True
        or kwargs.get("out") is not None
    )


def load_npu(asked: list[str]) -> None:
    """Import torch_npu, which registers its device: older versions of torch do not do so themselves. It raises whatever a broken
    installation raises, but only where an NPU is asked for. asked: devices"""
    if importlib.util.find_spec("torch_npu") is None:
        return
    try:
        importlib.import_module("torch_npu")
    except Exception as error:
        if any(one.split(":")[0] == "npu" for one in asked):
            raise
        print(f"torch_npu is installed and cannot be imported: {type(error).__name__}: {error}", file=sys.stderr)


def missing_device(names: list[str]) -> str | None:
    """Why a call cannot run on one of these devices, None where all are there: asked once, or each call would fail for it."""
    for name in names:
        try:
            torch.zeros(1).to(name)
        except Exception as error:
            why = str(error).strip().partition("\n")[0]
            told = f"torch {torch.__version__} has no device {name}"
            return told if why.startswith("Expected one of") else f"{told}: {why}"
    return None


def run_prelude(name: str) -> None:
    if importlib.util.find_spec(name) if name.isidentifier() else False:
        runpy.run_module(name)
    else:
        runpy.run_path(name, run_name="prelude")
