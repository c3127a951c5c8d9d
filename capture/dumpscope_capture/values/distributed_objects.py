"""Records of torch.distributed objects: process groups, reductions, point-to-point operations."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist


def is_operation(value: Any) -> bool:
    """Whether a value is a `P2POp`."""
    return dist.is_available() and isinstance(value, dist.P2POp)


def distributed_record(value: Any) -> dict[str, Any] | None:
    """Record of a process group or reduction, None for anything else."""
    if not dist.is_available():
        return None
    if isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
        return {"type": "torch.distributed.ReduceOp", "value": str(getattr(value, "op", value))}
    if isinstance(value, dist.ProcessGroup):
        ranks = group_ranks(value)
        return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": group_id(ranks)}
    return None


def operation_record(value: Any, tensor: Any) -> dict[str, Any]:
    """Record of a P2POp. tensor: the record of its tensor."""
    return {
        "class_type": "torch.distributed.P2POp",
        "tensor": tensor,
        "op": getattr(value.op, "__name__", str(value.op)),
        "peer": value.peer,
        "tag": value.tag,
        "group_id": group_id(group_ranks(value.group)),
    }


def group_ranks(group: Any) -> list[int] | None:
    """Global ranks of a process group, in its order; None where this process is not in it."""
    try:
        return dist.get_process_group_ranks(group if group is not None else torch.distributed.group.WORLD)
    except (KeyError, ValueError, RuntimeError, TypeError):
        return None


def group_id(ranks: list[int] | None) -> str | None:
    """8 hex digits that identify a group: the CRC-32 of the text of its list of ranks."""
    return None if ranks is None else f"{crc32(str(ranks).encode()):08x}"
