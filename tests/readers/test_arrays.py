"""The dtype table is complete both ways, and strided views never leave their storage."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.errors import TensorError
from dumpscope.readers.tensors.arrays import ELEMENT_TYPES, strided, torch_name


@pytest.mark.parametrize("name", sorted({kind.name for kind in ELEMENT_TYPES.values()}))
def test_a_torch_name_and_its_numpy_dtype_lead_to_each_other(name: str) -> None:
    dtype = ELEMENT_TYPES[name].array
    expected = "torch.complex64" if name == "torch.complex32" else name
    assert torch_name(dtype) == expected
    assert torch_name(dtype.newbyteorder()) == expected


def test_aliases_of_torch_mean_the_same_type() -> None:
    assert ELEMENT_TYPES["torch.half"] is ELEMENT_TYPES["torch.float16"]
    assert ELEMENT_TYPES["torch.long"] is ELEMENT_TYPES["torch.int64"]
    assert ELEMENT_TYPES["torch.chalf"] is ELEMENT_TYPES["torch.complex32"]


def test_types_without_a_partner_have_no_name() -> None:
    assert "torch.quint8" not in ELEMENT_TYPES
    assert "torch.uint4" not in ELEMENT_TYPES
    assert torch_name(np.dtype("U3")) is None
    assert torch_name(np.dtype(np.longdouble)) is None
    assert torch_name(np.dtype(ml_dtypes.float8_e4m3b11fnuz)) is None


@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    stride=st.lists(st.integers(0, 7), min_size=4, max_size=4),
    offset=st.integers(0, 40),
    stored=st.integers(0, 60),
    swapped=st.booleans(),
    name=st.sampled_from(["torch.int16", "torch.bfloat16", "torch.complex64", "torch.complex32", "torch.bool"]),
    start=st.integers(0, 9),
)
def test_an_element_is_the_one_its_index_names_or_the_view_is_refused(
    shape: list[int], stride: list[int], offset: int, stored: int, swapped: bool, name: str, start: int
) -> None:
    element = ELEMENT_TYPES[name]
    steps = tuple(stride[: len(shape)])
    raw = bytes(start) + np.random.default_rng(1).integers(0, 64, stored * element.size, np.uint8).tobytes()
    inside = offset + sum((size - 1) * step for size, step in zip(shape, steps, strict=True)) < stored
    arguments: dict[str, Any] = {"element": element, "shape": tuple(shape), "stride": steps, "offset": offset}
    if not inside and 0 not in shape:
        with pytest.raises(TensorError):
            strided(raw, start, stored, swapped=swapped, **arguments)
        return
    array, _ = strided(raw, start, stored, swapped=swapped, **arguments)
    assert array.shape == tuple(shape)
    assert array.dtype == element.array
    assert array.flags.aligned
    for index in np.ndindex(*shape):
        place = start + element.size * (offset + sum(i * step for i, step in zip(index, steps, strict=True)))
        stored_bytes = raw[place : place + element.size]
        if swapped:
            parts = [stored_bytes[at : at + element.unit][::-1] for at in range(0, element.size, element.unit)]
            stored_bytes = b"".join(parts)
        if name == "torch.complex32":
            real, imaginary = np.frombuffer(stored_bytes, "<f2").astype(np.float32)
            assert array[index] == complex(real, imaginary)
        elif name == "torch.bool":
            assert array[index].tobytes() == (b"\1" if stored_bytes[0] else b"\0")
        else:
            assert array[index].tobytes() == stored_bytes


def test_a_copy_is_held_to_the_budget_even_when_the_tensor_is_small() -> None:
    raw = bytes(4000)
    arguments: dict[str, Any] = {"element": ELEMENT_TYPES["torch.float32"], "shape": (2,), "stride": (999,)}
    assert strided(raw, 0, 1000, budget=8, **arguments)[0].tolist() == [0, 0]
    with pytest.raises(TensorError) as caught:
        strided(raw, 0, 1000, budget=8, neg=True, **arguments)
    assert caught.value.kind == "over_budget"


@pytest.mark.parametrize("place", [0, 3, (1 << 20) - 1, 1 << 20, (3 << 20) - 1])
def test_one_odd_bool_byte_anywhere_is_noticed(place: int) -> None:
    raw = bytearray(3 << 20)
    raw[place] = 128
    array, notes = strided(bytes(raw), 0, len(raw), element=ELEMENT_TYPES["torch.bool"], shape=(len(raw),), stride=(1,))
    assert notes
    assert np.flatnonzero(array).tolist() == [place]
    assert array.view(np.uint8)[place] == 1
