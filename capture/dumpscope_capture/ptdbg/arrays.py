"""Tensors as .npy files, for numpy alone. bfloat16 and the 8-bit floats go to float32, which holds all their numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from dumpscope_capture.values.snapshots import Snapshot

FILE_MODE: Final = 0o640


def write_array(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot and let it go. Raises OSError."""
    try:
        snapshot.wait()
        array = as_array(snapshot.tensor())
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as out:
            np.save(out, array, allow_pickle=False)
    finally:
        snapshot.release()


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The same numbers in a type that numpy has."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    try:
        array: np.ndarray[Any, Any] = tensor.numpy()
    except TypeError:
        array = tensor.float().numpy()
    return array
