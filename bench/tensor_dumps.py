"""Writes dumps that hold tensors, as torch.save and msprobe would, without either: bench data of any size."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

STORAGES = {"float32": "FloatStorage", "bfloat16": "BFloat16Storage", "float16": "HalfStorage"}


def _integer(number: int) -> bytes:
    return b"\x8a\x08" + number.to_bytes(8, "little", signed=True)


def _text(word: str) -> bytes:
    return b"X" + len(word).to_bytes(4, "little") + word.encode()


def _pickle(dtype: str, size: int) -> bytes:
    """The pickle of a flat contiguous tensor over storage 0."""
    storage = b"(" + _text("storage") + f"ctorch\n{STORAGES[dtype]}\n".encode() + _text("0") + _text("cpu")
    storage += _integer(size) + b"tQ"
    place = _integer(0) + _integer(size) + b"\x85" + _integer(1) + b"\x85"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + place + b"\x89ccollections\nOrderedDict\n)RtR."


def write_tensor(path: Path, values: np.ndarray[Any, Any], dtype: str) -> None:
    """One flat tensor as a torch zip: entries stored, data on a multiple of 64 bytes. At most 2 GiB.

    It is written in one piece, as torch.save does: how a file was written decides how its pages lie in the page cache, and with
    that how fast anybody reads it.
    """
    stem = path.name.removesuffix(".pt")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(
            zipfile.ZipInfo(f"{stem}/data.pkl"), _pickle(dtype, values.size)
        )  # without a date, as in torch's
        archive.writestr(zipfile.ZipInfo(f"{stem}/byteorder"), "little")
        data = zipfile.ZipInfo(f"{stem}/data/0")
        header = archive.fp.tell() + 30 + len(data.filename) + 4  # type: ignore[union-attr]
        padding = -header % 64
        data.extra = b"FB" + padding.to_bytes(2, "little") + bytes(padding)
        data.file_size = values.nbytes
        with archive.open(data, "w") as file:
            for start in range(0, values.size, 1 << 22):
                file.write(values[start : start + (1 << 22)].tobytes())
        archive.writestr(zipfile.ZipInfo(f"{stem}/version"), "3\n")
    path.write_bytes(whole.getbuffer())


def _leaf(values: np.ndarray[Any, Any], dtype: str, data_name: str) -> dict[str, Any]:
    sample = values[:1024].astype(np.float64)
    return {
        "type": "torch.Tensor",
        "dtype": f"torch.{dtype}",
        "shape": [values.size],
        "Max": float(sample.max()),
        "Min": float(sample.min()),
        "Mean": float(sample.mean()),
        "Norm": float(np.linalg.norm(sample)),
        "requires_grad": False,
        "data_name": data_name,
    }


def write_dump(root: Path, tensors: list[np.ndarray[Any, Any]], dtype: str) -> Path:
    """A one-rank dump whose nodes put out one tensor each; returns its dump.json."""
    folder = root / "step0" / "rank0"
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True)
    nodes = {}
    for number, values in enumerate(tensors):
        name = f"Functional.relu.{number}.forward"
        data_name = f"{name}.output.0.pt"
        write_tensor(data / data_name, values, dtype)
        nodes[name] = {"input_args": [], "input_kwargs": {}, "output": [_leaf(values, dtype, data_name)]}
    header = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(data)}
    (folder / "dump.json").write_text(json.dumps({**header, "data": nodes}))
    (folder / "construct.json").write_text(json.dumps(dict.fromkeys(nodes)))
    (folder / "stack.json").write_text("{}")
    return folder / "dump.json"
