"""Tensor subclasses: what is recorded of them, and the plain tensor inside if there is one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import torch

from dumpscope_capture.context import peek
from dumpscope_format.older_python import without_prefix
from dumpscope_format.schema import TENSOR_TYPE

if TYPE_CHECKING:
    from typing import TypeAlias

FAKE_TYPE: Final = "torch._subclasses.fake_tensor.FakeTensor"
DTENSOR_TYPE: Final = "torch.distributed.tensor.DTensor"
ASYNC_TYPE: Final = "torch.distributed._functional_collectives.AsyncCollectiveTensor"
BATCHED_TYPE: Final = "torch.func.BatchedTensor"
TRACKED_TYPE: Final = "torch.func.GradTrackingTensor"

DENSE_LIMIT: Final = 1 << 27
"""Bytes of a sparse tensor with its zeros, up to which it is recorded so."""

_SPARSE: Final = frozenset((torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc))

Unwrapped: TypeAlias = "tuple[str, torch.Tensor, dict[str, Any], str | None]"
"""(type, tensor, extra keys, why it has no statistics)."""


def unwrap(tensor: torch.Tensor) -> Unwrapped:
    """Unwrap an object of a tensor subclass: a DTensor to its local shard, a pending collective to its result."""
    kind = type(tensor)
    if _is(tensor, "torch._subclasses.fake_tensor", "FakeTensor"):
        return FAKE_TYPE, tensor, {}, "no data (fake)"
    if _is(tensor, "torch.distributed.tensor", "DTensor"):
        mesh, placements = tensor.device_mesh, tensor.placements  # type: ignore[attr-defined]
        extra = {
            "requires_grad": tensor.requires_grad,
            "device_mesh": mesh.mesh.tolist(),
            "placements": [_placement(placement) for placement in placements],
        }
        local = tensor._local_tensor  # type: ignore[attr-defined]
        if type(local) not in (torch.Tensor, torch.nn.Parameter):
            _, local, _, absent = unwrap(local)
            return DTENSOR_TYPE, local, extra, absent
        return DTENSOR_TYPE, local, extra, None
    if _is(tensor, "torch.distributed._functional_collectives", "AsyncCollectiveTensor"):
        return ASYNC_TYPE, tensor.trigger_wait(), {"requires_grad": tensor.requires_grad}, None  # type: ignore[attr-defined]
    if tensor.is_nested:
        return TENSOR_TYPE, tensor, {}, None
    if hasattr(tensor, "__tensor_flatten__") or kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return TENSOR_TYPE, tensor, {}, f"wrapper {kind.__name__}"
    return TENSOR_TYPE, tensor, {}, None


def outside_transforms(tensor: torch.Tensor) -> tuple[str, torch.Tensor] | None:
    """Type name and values of a tensor that `torch.func` wraps (vmap, grad), None for others.

    The first dimensions of the values are those that `vmap` maps over, the outermost `vmap` first. What is wrapped in another
    way is returned as it is. To be called outside of all transforms.
    """
    functorch = torch._C._functorch
    if functorch.maybe_get_level(tensor) == -1:
        return None
    kind, places = TRACKED_TYPE, []
    while functorch.maybe_get_level(tensor) != -1:
        if functorch.is_batchedtensor(tensor):
            kind = BATCHED_TYPE
            places.append(functorch.maybe_get_bdim(tensor))
        elif not functorch.is_gradtrackingtensor(tensor):
            return kind, tensor
        tensor = functorch.get_unwrapped(tensor)
    if not places:
        return kind, tensor
    left = list(range(tensor.dim()))
    mapped = [left.pop(place) for place in reversed(places)]
    return kind, tensor.permute(*mapped, *left)


def components(tensor: torch.Tensor) -> torch.Tensor:
    """All numbers of a nested tensor, with one dimension less."""
    values: torch.Tensor = tensor.values()
    return values


def with_zeros(tensor: torch.Tensor) -> torch.Tensor:
    """A sparse tensor as a plain one, entries of the same place added up; as it is where that takes more than DENSE_LIMIT."""
    if tensor.layout not in _SPARSE or tensor.is_meta or tensor.numel() * tensor.element_size() > DENSE_LIMIT:
        return tensor
    return tensor.to_dense()


def shape_of(tensor: torch.Tensor) -> list[int] | None:
    """Sizes as whole numbers; None for a nested tensor, whose rows differ."""
    if tensor.is_nested:
        return None
    return list(tensor.shape) if type(tensor) is torch.Tensor else [int(size) for size in tensor.shape]


def _is(tensor: torch.Tensor, module: str, name: str) -> bool:
    """Whether a tensor is of a class, without importing its module (an object of it cannot exist before)."""
    loaded = sys.modules.get(module)
    kind = peek(loaded, name)
    return isinstance(kind, type) and isinstance(tensor, kind)


def _placement(placement: Any) -> dict[str, Any]:
    name = without_prefix(type(placement).__name__, "_")
    if hasattr(placement, "dim"):
        return {"Shard": {"dim": placement.dim}}
    if hasattr(placement, "reduce_op"):
        return {"Partial": {"reduce_op": str(placement.reduce_op)}}
    return {name: {}}
