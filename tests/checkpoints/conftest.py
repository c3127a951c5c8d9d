"""The checkpoints of tests/data/make_checkpoints.py, unpacked once, and files of safetensors made by hand."""

from __future__ import annotations

import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "checkpoints.tar.xz"
Save = Callable[..., Path]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with one folder for each form, and facts.json."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def facts(saved: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((saved / "facts.json").read_text())
    return found


def place(saved: Path, form: str, state: str) -> Path:
    """The file or folder to name on the command line."""
    folder = saved / form / state
    held = list(folder.iterdir())
    return held[0] if len(held) == 1 else folder


def save_file(path: Path, tensors: dict[str, np.ndarray[Any, Any]], **changes: Any) -> Path:
    """A .safetensors file, byte by byte. changes: parts of the header's entries to replace, by name of a tensor"""
    names = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "bool": "BOOL"}
    header: dict[str, Any] = {}
    data = b""
    for name, array in tensors.items():
        content = array.tobytes()
        header[name] = {
            "dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(content)],
            **changes.get(name, {}),
        }  # fmt: skip
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def weights(**shapes: tuple[int, ...]) -> dict[str, np.ndarray[Any, Any]]:
    """Float32 tensors by name ("__" stands for a dot), each with values of its own."""
    return {
        name.replace("__", "."): np.random.default_rng(place).standard_normal(shape, dtype=np.float32)
        for place, (name, shape) in enumerate(shapes.items())
    }
