"""Writes tensors.zip: files of torch.save and the values torch itself sees in them. Needs torch; the tests do not.

    python tests/data/make_tensors.py

index.json maps a file name to {"dtype", "shape", "sha256" of the contiguous little-endian bytes, "requires_grad", "parameter"},
to {"refused": kind} for files a reader has to turn down, or to {"tree": ...} for containers.
"""

from __future__ import annotations

import collections
import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu, torch.complex64, torch.complex128, torch.complex32,
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
]  # fmt: skip


def values(dtype: torch.dtype, count: int) -> torch.Tensor:
    """Every bit pattern is as likely as any other, so that NaN, infinities and subnormals occur; bool holds both values."""
    generator = torch.Generator().manual_seed(7)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    raw = torch.randint(0, 256, (count * dtype.itemsize,), generator=generator, dtype=torch.uint8)
    if dtype == torch.complex32:  # widening keeps a NaN a NaN but not its payload
        half = raw.view(torch.float16)
        half[half.isnan()] = torch.inf
    return raw.view(dtype)


def expected(tensor: torch.Tensor) -> dict[str, object]:
    plain = tensor.detach()
    if plain.dtype == torch.complex32:
        plain = torch.view_as_complex(torch.view_as_real(plain).float())
    flat = plain.resolve_conj().resolve_neg().contiguous().reshape(-1).clone()
    raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return {
        "dtype": str(tensor.dtype), "shape": list(tensor.shape), "sha256": hashlib.sha256(raw).hexdigest(),
        "requires_grad": tensor.requires_grad, "parameter": isinstance(tensor, torch.nn.Parameter),
    }  # fmt: skip


def tree(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return {"tensor": expected(value)}
    if isinstance(value, dict):
        return {"dict": [[key, tree(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [tree(item) for item in value]}
    if isinstance(value, (torch.dtype, torch.device)):
        return {"value": str(value)}
    return {"value": value}


def tensors() -> dict[str, torch.Tensor]:
    cases: dict[str, torch.Tensor] = {}
    for dtype in DTYPES:
        word = str(dtype).removeprefix("torch.")
        cases[f"dense_{word}"] = values(dtype, 24).reshape(2, 3, 4)
        cases[f"scalar_{word}"] = values(dtype, 5)[3]
        cases[f"strided_{word}"] = values(dtype, 60).reshape(6, 10)[1::2, 2:9:3].T
        cases[f"expanded_{word}"] = values(dtype, 3).reshape(3, 1).expand(3, 1000)
        cases[f"empty_{word}"] = torch.empty(0, 3, dtype=dtype)
    base = values(torch.float32, 4096)
    cases["small_view_of_large_storage"] = base[4000:4010]
    cases["overlapping_windows"] = base[:64].as_strided((10, 8), (3, 1), 2)
    cases["empty_slice_at_the_end"] = base[4096:]
    complex_ = values(torch.complex64, 30).reshape(5, 6)
    cases["conj"] = complex_.conj()
    cases["conj_transposed"] = complex_.mH
    cases["conj_expanded"] = complex_[:, :1].conj().expand(5, 700)
    cases["neg"] = complex_.conj().imag
    cases["neg_complex128"] = values(torch.complex128, 8).conj().imag
    cases["requires_grad"] = torch.arange(5.0, requires_grad=True)
    cases["parameter"] = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    cases["frozen_parameter"] = torch.nn.Parameter(torch.arange(6.0), requires_grad=False)
    attributed = torch.arange(4.0)
    attributed.note = "kept by Python only"  # type: ignore[attr-defined]
    cases["with_attribute"] = attributed
    cases["many_dimensions"] = values(torch.int16, 64).reshape(1, 2, 1, 2, 2, 1, 2, 2, 1, 2)
    cases["channels_last"] = (
        values(torch.float16, 2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    )
    cases["megabyte"] = torch.arange(300_000, dtype=torch.int32) % 7
    cases["view_dtype"] = values(torch.float32, 16).view(torch.int32)
    return cases


def containers() -> dict[str, object]:
    shared = torch.arange(6.0)
    linear = torch.nn.Linear(2, 2)
    with torch.no_grad():
        linear.weight.copy_(torch.arange(4.0).reshape(2, 2))
        linear.bias.copy_(torch.arange(2.0))
    return {
        "state_dict": linear.state_dict(),
        "list_of_views": [shared, shared[2:], shared.reshape(2, 3).T],
        "nested": {"a": (1, -2, 3.5, None, True, "text"), "b": [{"c": shared}, torch.Size([2, 3])], 7: torch.bfloat16},
        "ordered": collections.OrderedDict([("z", shared), ("a", torch.device("cuda:1"))]),
        "number": 12345678901234567,
        "nothing": None,
    }


class Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def refused() -> dict[str, tuple[str, bytes]]:
    files: dict[str, tuple[str, bytes]] = {}

    def add(name: str, kind: str, value: object) -> None:
        buffer = io.BytesIO()
        torch.save(value, buffer)
        files[name] = (kind, buffer.getvalue())

    add("sparse", "unsupported", torch.eye(3).to_sparse())
    add("sparse_csr", "unsupported", torch.eye(3).to_sparse_csr())
    add("nested_tensor", "unsupported", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    add("packed_dtype", "unsupported", torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2))
    add("meta", "no_data", torch.zeros(3, device="meta"))
    add("numpy_array", "refused", np.ones(3))
    add("module", "refused", Module())
    add("a_set", "refused", {1, 2})
    add("bare_storage", "not_a_tensor", torch.ones(3).untyped_storage())
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Module()), buffer)
    files["torchscript"] = ("refused", buffer.getvalue())
    return files


def main() -> None:
    index: dict[str, object] = {}
    with zipfile.ZipFile(HERE / "tensors.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def put(name: str, data: bytes, about: object) -> None:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            index[name] = about

        def save(value: object, **options: object) -> bytes:
            buffer = io.BytesIO()
            torch.save(value, buffer, **options)
            return buffer.getvalue()

        for name, tensor in tensors().items():
            put(f"{name}.pt", save(tensor), expected(tensor))
            if name != "megabyte":
                put(f"{name}.legacy.pt", save(tensor, _use_new_zipfile_serialization=False), expected(tensor))
        for protocol in (3, 4, 5):
            put(f"protocol_{protocol}.pt", save(torch.arange(7), pickle_protocol=protocol), expected(torch.arange(7)))
        for name, value in containers().items():
            put(f"{name}.pt", save(value), {"tree": tree(value)})
            put(f"{name}.legacy.pt", save(value, _use_new_zipfile_serialization=False), {"tree": tree(value)})
        for name, (kind, data) in refused().items():
            put(f"{name}.pt", data, {"refused": kind})
        archive.writestr(zipfile.ZipInfo("index.json"), json.dumps(index, indent=0), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
