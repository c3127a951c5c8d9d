"""Hashes of a tensor's bytes: CRC-32 under summary mode "md5", XOR under "xor".

Both read the bytes as they are at the time of the call, in the tensor's own dtype and in row-major order.
"""

from __future__ import annotations

import numpy as np
import torch


def raw(tensor: torch.Tensor) -> memoryview:
    """Row-major bytes of a plain strided CPU tensor, copied only where it is not contiguous."""
    flat = tensor.contiguous().view(-1)
    if tensor.is_quantized:
        flat = flat.int_repr()
    if tensor.is_conj() or tensor.is_neg():
        flat = flat.resolve_conj().resolve_neg()
    return flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def digits(check: int) -> str:
    """8 lowercase hex digits, as records have a CRC-32."""
    return f"{check:08x}"


def xor(tensor: torch.Tensor, data: memoryview) -> str | float | int | bool:
    """`0x` and 16 hex digits: the XOR of all 8-byte words, the last padded with zeros. 0-dim: the value; empty: 0."""
    if tensor.dim() == 0:
        value: float | int | bool | complex = tensor.item()
        return str(value) if isinstance(value, complex) else value
    if not data.nbytes:
        return 0
    whole = data.nbytes - data.nbytes % 8
    words = np.frombuffer(data[:whole], np.uint64)
    result = int(np.bitwise_xor.reduce(words)) if len(words) else 0
    if whole < data.nbytes:
        result ^= int.from_bytes(bytes(data[whole:]), "little")
    return f"0x{result:016x}"
