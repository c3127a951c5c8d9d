"""Runs a call forward and backward: on a device, and in higher precision on the CPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from dumpscope_capture.replay.arguments import Case, Tensors, in_format, lay_out, rebuild, tensor_specs, view_of
from dumpscope_capture.replay.targets import CONVERSIONS, function, short_name, writes

HALVES: Final = (torch.float16, torch.bfloat16)


@dataclass
class Outcome:
    """Results of a run, tensors on the CPU by item: `output.0`, and of the backward `gradient.input.0`.

    grads: start of the backward: "recorded", "sum" or "none"; error: why the run ended early, else ""
    node: if the backward is one autograd node, the argument of each of its gradients; else empty
    """

    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    grads: str = "none"
    node: list[str | None] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Side:
    """Types of one run. raised: one precision higher than the call; shaken: change inputs by half a unit of this type"""

    raised: bool = False
    shaken: torch.dtype | None = None


def run(call: dict[str, Any], tensors: Tensors, case: Case, side: Side | None = None) -> Outcome:
    """Run a call; what torch raises is the outcome's error."""
    side = side or Side()
    done = Outcome()
    start = time.perf_counter()
    try:
        with switches(call, case, side):
            _forward_and_backward(call, tensors, case, side, done)
            synchronize(case.device)
    except Exception as error:
        done.error = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    done.seconds = time.perf_counter() - start
    return done


def reference_dtype(call: dict[str, Any], case: Case) -> torch.dtype:
    """float64 for a call with float32 or wider, float32 for one of 16 bits and less."""
    wide = any(spec["dtype"] in ("float32", "float64", "complex64", "complex128") for spec in _own(call))
    if case.dtype != "recorded" and any(spec["dtype"].startswith(("float", "bfloat")) for spec in _own(call)):
        wide = case.dtype in ("float32", "float64")
    return torch.float64 if wide or not any(tensor_specs(call["args"])) else torch.float32


def _own(call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from tensor_specs([call["args"], call["kwargs"]])


def _forward_and_backward(call: dict[str, Any], tensors: Tensors, case: Case, side: Side, done: Outcome) -> None:
    target = call["target"]
    raised = reference_dtype(call, case) if side.raised and short_name(target) not in CONVERSIONS else None
    leaves: dict[str, torch.Tensor] = {}
    held: dict[str, torch.Tensor] = {}
    changes = writes(target, call["kwargs"])
    differentiates = call["backward"] != "none" and torch.is_grad_enabled()

    storages: dict[str, torch.Tensor] = {}
    as_it_lay = raised is None and case.dtype == "recorded" and case.layout == "recorded"

    def make_tensor(spec: dict[str, Any]) -> torch.Tensor:
        item = spec["tensor"]
        if item in held:
            return held[item]
        if as_it_lay and "total" in spec and tensors.path(spec) is not None:
            if spec["file"] not in storages:
                storages[spec["file"]] = tensors.storage(spec).to(case.device)
            tensor = view_of(storages[spec["file"]], spec)
        else:
            tensor = to_type(tensors(spec), case, raised)
            if side.shaken is not None:
                tensor = shake(tensor, side.shaken, case.seed)
            tensor = lay_out(tensor, spec, case.layout).to(case.device)
        tensor = in_format(tensor, spec, case.storage)
        if differentiates and spec.get("requires_grad") and (tensor.is_floating_point() or tensor.is_complex()):
            leaves[item] = tensor.requires_grad_()
            tensor = tensor.clone() if changes else tensor  # a leaf must not be written in place
        held[item] = tensor
        return tensor

    dtype = _raise_dtype(raised) if raised is not None else None
    args = rebuild(call["args"], make_tensor, case, dtype=dtype)
    kwargs = {key: rebuild(value, make_tensor, case, dtype=dtype) for key, value in call["kwargs"].items()}
    torch.manual_seed(case.seed)
    result = function(target)(*args, **kwargs)
    outputs = dict(_tensors(result, "output", nested=isinstance(result, (list, tuple, dict))))
    if not outputs and changes:
        outputs = {f"changed.{item}": tensor for item, tensor in held.items()}
    done.outputs = {item: to_cpu(tensor) for item, tensor in outputs.items()}
    if differentiates and leaves:
        _backward(call, list(outputs.values()), leaves, tensors, case, raised, side, done)


def _backward(
    call: dict[str, Any],
    outputs: list[torch.Tensor],
    leaves: dict[str, torch.Tensor],
    tensors: Tensors,
    case: Case,
    raised: torch.dtype | None,
    side: Side,
    done: Outcome,
) -> None:
    begins: list[tuple[torch.Tensor, torch.Tensor]] = []
    known = call["grads"]
    fits = len(known) <= len(outputs) and any(known)
    for spec, output in zip(known, outputs):
        if spec is not None and output.requires_grad:
            fits = fits and list(output.shape) == spec["shape"]
            if fits:
                grad = tensors(spec).to(output.dtype)
                if side.shaken is not None:
                    grad = shake(grad, side.shaken, case.seed + 1)
                begins.append((output, lay_out(grad, spec, case.layout).to(output.device)))
    done.grads = "recorded"
    if not fits or not begins:
        if call["backward"] == "recorded" and any(known):
            done.grads = "sum, as no recorded gradient has the shape of the result"
        else:
            done.grads = "sum"
        begins = [(output, _ones(output, side, case)) for output in outputs if output.requires_grad]
    if not begins:
        done.grads = "none"
        return
    ends, starts = zip(*begins)
    done.node = _lone_node(ends[0], leaves)
    found = torch.autograd.grad(ends, list(leaves.values()), starts, allow_unused=True)
    done.gradients = {f"gradient.{item}": to_cpu(grad) for item, grad in zip(leaves, found) if grad is not None}


def _ones(output: torch.Tensor, side: Side, case: Case) -> torch.Tensor:
    """The gradient of the sum of a result. Shaken too, as a gradient may consist of rounding only, for softmax for example."""
    ones = torch.ones_like(output)
    return ones if side.shaken is None else shake(ones, side.shaken, case.seed + 1)


def _lone_node(output: torch.Tensor, leaves: dict[str, torch.Tensor]) -> list[str | None]:
    """Arguments in the order of the gradients of the autograd node behind a result, if it is the only node."""
    items = {id(leaf): item for item, leaf in leaves.items()}
    found: list[str | None] = []
    for node, _ in output.grad_fn.next_functions if output.grad_fn is not None else ():
        item = None if node is None else items.get(id(getattr(node, "variable", None)))
        if node is not None and item is None:
            return []
        found.append(item)
    return found


def to_type(tensor: torch.Tensor, case: Case, raised: torch.dtype | None) -> torch.Tensor:
    """The tensor in the type of the case, then in that of the reference."""
    if tensor.is_complex():
        return tensor.to(torch.complex128) if raised is torch.float64 else tensor
    if not tensor.is_floating_point():
        return tensor
    if case.dtype != "recorded":
        tensor = tensor.to(getattr(torch, case.dtype))
    return tensor.to(raised) if raised is not None else tensor


def _raise_dtype(raised: torch.dtype) -> Any:
    """Maps a dtype argument of the reference: at least as wide as its tensors."""
    return lambda dtype: raised if dtype.is_floating_point and dtype is not torch.float64 else dtype


def shake(tensor: torch.Tensor, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Change every number by half a unit in the last place of `dtype`, up or down at random; only floating-point tensors."""
    if not tensor.is_floating_point():
        return tensor
    source = torch.Generator().manual_seed(seed ^ tensor.numel())
    signs = torch.randint(2, tensor.shape, generator=source).to(tensor.dtype) * 2 - 1
    return tensor * (1 + signs * (torch.finfo(dtype).eps / 2))


def _tensors(value: Any, path: str, *, nested: bool) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield (path if nested and "." in path else f"{path}.0"), value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _tensors(part, f"{path}.{key}", nested=True)
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from _tensors(part, f"{path}.{place}", nested=True)


def to_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU, of a sparse tensor with its zeros, as the recorded ones are."""
    copied = tensor.detach().to("cpu", copy=True)
    return copied if copied.layout is torch.strided else copied.to_dense()


@contextlib.contextmanager
def switches(call: dict[str, Any], case: Case, side: Side) -> Iterator[None]:
    """Grad mode and autocast of the call, deterministic kernels of the case; restored afterwards."""
    modes = call.get("modes") or {}
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = torch.backends.cudnn.deterministic
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(bool(modes.get("grad", call["backward"] != "none"))))
        autocast = modes.get("autocast")
        if autocast and not side.raised and case.dtype == "recorded":
            kind = torch.device(case.device).type
            stack.enter_context(torch.autocast(kind, dtype=getattr(torch, autocast)))
        try:
            if case.deterministic:
                torch.use_deterministic_algorithms(True)
                torch.backends.cudnn.deterministic = True
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            torch.backends.cudnn.deterministic = cudnn


def synchronize(device: str) -> None:
    """Wait for a device, so that the error of a kernel is raised here."""
    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).synchronize()
