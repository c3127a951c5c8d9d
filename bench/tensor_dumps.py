"""Writes dumps that hold tensors, as torch.save and msprobe would, without either: bench data of any size."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from functools import lru_cache
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


@lru_cache
def _checksum_of_zeros(size: int) -> int:
    checksum, block = 0, bytes(1 << 24)
    for start in range(0, size, len(block)):
        checksum = zlib.crc32(block[: size - start], checksum)
    return checksum


def write_sparse_tensor(path: Path, elements: int, last: float = 0.0) -> None:
    """A flat tensor of float32 zeros whose data are a hole: a file of any size that takes a few kilobytes of the disk.

    last: its last number
    """
    end = np.float32(last).tobytes()
    stem = path.name.removesuffix(".pt")
    with path.open("wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(f"{stem}/data.pkl"), _pickle("float32", elements))
        archive.writestr(zipfile.ZipInfo(f"{stem}/byteorder"), "little")
        data = zipfile.ZipInfo(f"{stem}/data/0")
        start = file.tell()
        name = data.filename.encode()
        size = 4 * elements
        wide = b"\x01\x00\x10\x00" + size.to_bytes(8, "little") * 2  # zip64: both sizes
        padding = -(start + 30 + len(name) + len(wide) + 4) % 64
        extra = wide + b"FB" + padding.to_bytes(2, "little") + bytes(padding)
        checksum = zlib.crc32(end, _checksum_of_zeros(size - len(end)))
        fixed = b"PK\x03\x04" + (45).to_bytes(2, "little") + bytes(8) + checksum.to_bytes(4, "little") + b"\xff" * 8
        file.write(fixed + len(name).to_bytes(2, "little") + len(extra).to_bytes(2, "little") + name + extra)
        file.seek(size - len(end), 1)
        file.write(end)
        data.compress_size = data.file_size = size
        data.header_offset = start
        data.CRC = checksum
        archive.filelist.append(data)
        archive.NameToInfo[data.filename] = data
        archive.start_dir = file.tell()
        archive._didModify = True
        archive.writestr(zipfile.ZipInfo(f"{stem}/version"), "3\n")


def write_sparse_dump(root: Path, tensors: int, elements: int, last: float = 0.0) -> Path:
    """As `write_dump`, of so many tensors of zeros that take no room; returns its dump.json. last: number of the last tensor"""
    return _write(root, [np.zeros(1, np.float32)] * tensors, "float32", (elements, last))


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
    return _write(root, tensors, dtype, None)


def _write(root: Path, tensors: list[np.ndarray[Any, Any]], dtype: str, sparse: tuple[int, float] | None) -> Path:
    """sparse: elements of every tensor, which is a hole, and the last number of all; None: the values as they are"""
    folder = root / "step0" / "rank0"
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True)
    nodes = {}
    for number, values in enumerate(tensors):
        name = f"Functional.relu.{number}.forward"
        data_name = f"{name}.output.0.pt"
        leaf = _leaf(values, dtype, data_name)
        if sparse is None:
            write_tensor(data / data_name, values, dtype)
        else:
            elements, last = sparse
            write_sparse_tensor(data / data_name, elements, last if number == len(tensors) - 1 else 0.0)
            leaf["shape"] = [elements]
            if number == len(tensors) - 1:
                leaf.update(Max=last, Mean=last / elements, Norm=last)
        nodes[name] = {"input_args": [], "input_kwargs": {}, "output": [leaf]}
    header = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(data)}
    (folder / "dump.json").write_text(json.dumps({**header, "data": nodes}))
    (folder / "construct.json").write_text(json.dumps(dict.fromkeys(nodes)))
    (folder / "stack.json").write_text("{}")
    return folder / "dump.json"
