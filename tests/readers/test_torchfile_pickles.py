"""Hostile pickles end in a TensorError: at once, without running anything, within bounded memory."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.readers.tensors import torch_file as torchfile

from .pickles import (
    EMPTY_DICT,
    EMPTY_LIST,
    EMPTY_TUPLE,
    FALSE,
    MARK,
    NONE,
    ORDERED,
    REDUCE,
    TRUE,
    failure,
    items,
    name,
    number,
    numbers,
    storage,
    tensor,
    text,
    torch_file,
)

# ---- code execution


class Touch:
    """A pickle that would create a file when a plain unpickler reads it."""

    def __init__(self, how: str, path: Path) -> None:
        self.how = how
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        if self.how == "os.system":
            return os.system, (f"touch {self.path}",)
        if self.how == "eval":
            return eval, (f"open({str(self.path)!r}, 'w')",)
        return getattr, (Path(self.path), "touch")


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("how", ["os.system", "eval", "getattr"])
def test_a_pickle_that_calls_something_is_refused_by_name_and_runs_nothing(
    tmp_path: Path, how: str, protocol: int
) -> None:
    witness = tmp_path / "witness"
    raw = pickle.dumps(Touch(how, witness), protocol=protocol)
    path = torch_file(tmp_path / "a.pt", raw[:-1])
    error = failure(path)
    assert error.kind == "refused"
    assert how.rsplit(".", maxsplit=1)[-1] in error.detail
    assert not witness.exists()


@pytest.mark.parametrize(
    "attack",
    [
        name("torch.storage", "_load_from_bytes") + items(text("x")) + REDUCE,
        name("builtins", "__import__") + items(text("os")) + REDUCE,
        name("torch.serialization", "load") + items(text("/etc/passwd")) + REDUCE,
        name("numpy.core.multiarray", "_reconstruct") + items() + REDUCE,
        name("torch", "FloatStorage") + items(number(3)) + REDUCE,
        name("torch", "float32") + items() + REDUCE,
        text("a string") + items() + REDUCE,
        name("torch", "Tensor") + EMPTY_TUPLE + b"\x81",
        MARK + name("os", "system") + text("true") + b"o",
        MARK + text("true") + b"ios\nsystem\n",
        text("posix") + text("system") + b"\x93" + items(text("true")) + REDUCE,
        name("collections", "OrderedDict") + EMPTY_DICT + text("__class__") + NONE + b"sb",
        b"\x82\x01",
        b"\x97",
    ],
    ids=range(14),
)  # fmt: skip
def test_a_call_or_class_outside_the_table_is_refused(tmp_path: Path, attack: bytes) -> None:
    assert failure(torch_file(tmp_path / "a.pt", attack)).kind == "refused"


def test_an_attribute_of_a_tensor_is_dropped_and_never_set(tmp_path: Path) -> None:
    state = EMPTY_DICT + text("shape") + number(7) + b"s"
    loaded = torchfile.load(torch_file(tmp_path / "a.pt", tensor((4,), (1,)) + state + b"b"))
    assert loaded.shape == (4,)


# ---- geometry


@pytest.mark.parametrize(
    ("shape", "stride", "offset", "kind"),
    [
        ((5,), (1,), 0, "damaged"),
        ((4,), (1,), 1, "damaged"),
        ((2, 2), (3, 1), 0, "damaged"),
        ((4,), (-1,), 3, "damaged"),
        ((-4,), (1,), 0, "damaged"),
        ((4,), (1,), -1, "damaged"),
        ((2, 2), (1,), 0, "damaged"),
        ((1,) * 65, (1,) * 65, 0, "damaged"),
        ((1 << 33,), (1,), 0, "over_budget"),
        ((1 << 33,), (0,), 0, "over_budget"),
        ((1 << 61, 1 << 61, 1 << 61), (0, 0, 0), 0, "over_budget"),
        ((1 << 63,), (0,), 0, "damaged"),
        ((2,), (1 << 61,), 0, "damaged"),
        ((0, 1 << 61, 1 << 61), (1, 1, 1), 0, "damaged"),
    ],
)
def test_a_geometry_that_leaves_the_storage_is_refused(
    tmp_path: Path, shape: tuple[int, ...], stride: tuple[int, ...], offset: int, kind: str
) -> None:
    assert failure(torch_file(tmp_path / "a.pt", tensor(shape, stride, offset=offset))).kind == kind


def test_a_kilobyte_that_claims_32_gigabytes_ends_at_once(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", tensor((1 << 33,), (1,), count=1 << 33))
    assert failure(path).kind == "over_budget"
    assert failure(path, budget=1 << 40).kind == "truncated"


def test_a_size_one_dimension_may_have_any_stride(tmp_path: Path) -> None:
    loaded = torchfile.load(torch_file(tmp_path / "a.pt", tensor((1, 4), (1 << 61, 1))))
    assert loaded.array.shape == (1, 4)
    assert loaded.array.flags.c_contiguous


def test_bytes_other_than_0_and_1_in_a_bool_storage_read_as_true(tmp_path: Path) -> None:
    pickled = tensor((3, 4), (0, 1), kind="BoolStorage")
    loaded = torchfile.load(torch_file(tmp_path / "a.pt", pickled, bytes([0, 1, 2, 255])))
    assert loaded.array.view(np.uint8).tolist() == [[0, 1, 1, 1]] * 3
    assert loaded.notes


def test_a_storage_keeps_the_device_it_came_from(tmp_path: Path) -> None:
    for device in ("npu:0", "cuda:7"):
        assert torchfile.load(torch_file(tmp_path / "a.pt", tensor((4,), (1,), device=device))).device == device
    assert failure(torch_file(tmp_path / "a.pt", tensor((4,), (1,), device="meta"))).kind == "no_data"


def test_a_tensor_that_the_npu_extension_wrote_is_read(tmp_path: Path) -> None:
    pickled = tensor(
        (2, 2), (2, 1), device="npu:3", builder=name("torch_npu.utils.storage", "_rebuild_npu_tensor"), more=number(29)
    )
    loaded = torchfile.load(torch_file(tmp_path / "a.pt", pickled, np.arange(4, dtype="<f4").tobytes()))
    assert loaded.array.tolist() == [[0, 1], [2, 3]]
    assert loaded.device == "npu:3"


@pytest.mark.parametrize(
    "pickled",
    [
        name("torch._utils", "_rebuild_tensor_v2") + items() + REDUCE,
        name("torch._utils", "_rebuild_tensor_v2")
        + items(NONE, number(0), numbers(4), numbers(1), FALSE, ORDERED)
        + REDUCE,
        name("torch._utils", "_rebuild_tensor_v2")
        + items(storage(4), TRUE, numbers(4), numbers(1), FALSE, ORDERED)
        + REDUCE,
        name("torch._utils", "_rebuild_tensor_v2")
        + items(storage(4), number(0), EMPTY_LIST, EMPTY_LIST, FALSE, ORDERED)
        + REDUCE,
        name("torch._utils", "_rebuild_tensor_v3")
        + items(storage(4), number(0), numbers(4), numbers(1), FALSE, ORDERED, text("f4"))
        + REDUCE,
        name("torch._utils", "_rebuild_parameter") + items(number(1), FALSE, ORDERED) + REDUCE,
        tensor((4,), (1,), kind="UntypedStorage"),
        storage(-1),
        storage(1 << 90),
        storage(4, key="k" * 65),
        text("storage") + b"Q",
        items(text("module"), NONE, NONE, NONE, NONE) + b"Q",
        items(text("storage"), text("FloatStorage"), text("0"), text("cpu"), number(4)) + b"Q",
        name("torch", "device") + items(number(1)) + REDUCE,
        name("torch", "Size") + items(items(text("x"))) + REDUCE,
        ORDERED[:-2] + items(items(items(text("a"), number(1)))) + REDUCE,
        EMPTY_DICT + text("key") + b"u",
        b"R", b"t", b"s", b"u", b"e", b"a", b"b", b"Q", b"h\x05", b"q\x00", b"\x85", b"\x93", b"c\n", b"X\xff\xff\xff\xff",
        b"\x8d" + b"\xff" * 8, b"X\x02\x00\x00\x00\xff\xfe", b"",
    ],
    ids=range(34),
)  # fmt: skip
def test_nonsense_in_the_pickle_is_damaged_or_refused(tmp_path: Path, pickled: bytes) -> None:
    assert failure(torch_file(tmp_path / "a.pt", pickled)).kind in {"damaged", "refused"}


@pytest.mark.parametrize("key", ["1", "../0", "0/../../data.pkl", "/etc/passwd", ""])
def test_a_storage_key_is_a_member_name_and_never_a_path(tmp_path: Path, key: str) -> None:
    pickled = (
        name("torch._utils", "_rebuild_tensor_v2")
        + items(storage(4, key=key), number(0), numbers(4), numbers(1), FALSE, ORDERED)
        + REDUCE
    )
    assert failure(torch_file(tmp_path / "a.pt", pickled)).kind == "truncated"


# ---- bombs


def doubling(levels: int) -> bytes:
    """A list that holds twice a list that holds twice ... : 2**levels leaves in a few bytes a level."""
    return EMPTY_LIST + b"q\x000](h\x00h\x00e" * levels


def test_containers_that_unfold_without_end_are_no_tensor(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", doubling(60))
    assert failure(path).kind == "not_a_tensor"


def test_a_list_that_holds_itself_is_no_tensor(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", EMPTY_LIST + b"q\x00h\x00a")
    assert failure(path).kind == "not_a_tensor"


def test_deep_nesting_is_no_tensor(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", EMPTY_TUPLE + b"\x85" * 100_000)
    assert failure(path).kind == "not_a_tensor"


@pytest.mark.parametrize(
    "key",
    [
        EMPTY_TUPLE + b"q\x00" + b"\x30h\x00h\x00\x86q\x00" * 60,
        number(1 << 61),
        name("torch", "float32"),
        b"C\x01a",
    ],
    ids=["tuples nested 60 deep", "colliding integer", "dtype", "bytes"],
)
def test_a_dict_key_that_could_be_slow_to_hash_is_refused(tmp_path: Path, key: bytes) -> None:
    path = torch_file(tmp_path / "a.pt", EMPTY_DICT + key + NONE + b"s")
    assert failure(path).kind == "refused"


def test_a_memo_slot_numbered_four_billion_costs_one_slot(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", text("x") + b"r\xff\xff\xff\xff0j\xff\xff\xff\xff")
    assert failure(path).kind == "not_a_tensor"


def test_an_integer_of_a_million_digits_is_refused(tmp_path: Path) -> None:
    assert failure(torch_file(tmp_path / "a.pt", b"\x8a\xff" + b"\x7f" * 255)).kind == "refused"
    assert failure(torch_file(tmp_path / "a.pt", b"\x8b\xff\xff\x00\x00" + b"\x7f" * 65535)).kind == "refused"


def test_a_pickle_of_too_many_steps_is_refused(tmp_path: Path) -> None:
    assert failure(torch_file(tmp_path / "a.pt", b"N0" * 1_000_001)).kind == "refused"


def test_a_pickle_larger_than_its_limit_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", b"N" * (33 << 20), packed=True)
    assert path.stat().st_size < 100_000
    assert failure(path).kind == "over_budget"


def test_a_deflated_bomb_is_bounded_by_what_the_tensor_needs(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", tensor((4,), (1,)), b"\0" * (80 << 20), packed=True)
    assert path.stat().st_size < 200_000
    assert failure(path, budget=1 << 20).kind == "refused"
    assert failure(path).kind == "refused"


def test_a_tensor_that_claims_all_of_a_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    count = 20 << 20
    path = torch_file(tmp_path / "a.pt", tensor((count,), (1,), count=count), b"\0" * (4 * count), packed=True)
    assert path.stat().st_size < 200_000
    assert failure(path).kind == "refused"


def test_a_deflated_member_longer_than_declared_is_damaged(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "a.pt", tensor((4,), (1,)), bytes(1 << 20), packed=True)
    raw = bytearray(path.read_bytes())
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = -1
        while (place := raw.find(signature, place + 1)) >= 0:
            if struct.unpack_from("<I", raw, place + at)[0] == 1 << 20:
                struct.pack_into("<I", raw, place + at, 16)
    path.write_bytes(raw)
    assert failure(path).kind == "damaged"
