"""Statistics of tensors against a naive reference in float64 (integers: exact), measured at once and on the device's path."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

torch = pytest.importorskip("torch")

from dumpscope_capture.values.statistics import (  # noqa: E402
    SURVEYED,
    Chunk,
    Statistics,
    measure_later,
    measure_now,
    reason_absent,
    scaled_norm,
)

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32]
COMPLEX = [torch.complex64, torch.complex128]


def measured(tensor: Any, *, deferred: bool, high: bool = False) -> Statistics:
    if not deferred:
        return measure_now(tensor, high=high)
    chunk = Chunk()
    found: list[Statistics] = []
    chunk.add(measure_later(tensor, high=high, fill=found.append))
    assert not found
    chunk.resolve()
    assert len(chunk) == 0
    return found[0]


def close(found: Any, expected: float, tolerance: float) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return repr(float(found)) == repr(expected)
    return math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance * 1e-30)


@st.composite
def tensors(draw: st.DrawFn, dtypes: list[Any]) -> Any:
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    count = math.prod(shape)
    if dtype.is_complex:
        numbers = st.complex_numbers(max_magnitude=1e6).map(lambda number: number if abs(number) > 1e-12 else 0j)
    elif dtype.is_floating_point:
        special = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e-15])
        width = st.floats(-1e4, 1e4).map(lambda number: number if abs(number) > 1e-12 else 0.0)  # squares fit float32
        numbers = st.one_of(width, special) if draw(st.booleans()) else width
    else:
        bounds = torch.iinfo(dtype)
        numbers = st.integers(bounds.min, bounds.max)
    kind = torch.float64 if dtype.is_floating_point else dtype
    values = torch.tensor(draw(st.lists(numbers, min_size=count, max_size=count)), dtype=kind)
    tensor = values.to(dtype).reshape(shape)
    if draw(st.booleans()):
        tensor = tensor.transpose(0, -1)
    if draw(st.booleans()) and len(shape) > 1:
        tensor = tensor[:1].expand(3, *tensor.shape[1:])
    return tensor


@settings(max_examples=150, deadline=None)
@given(tensor=tensors(FLOATS), deferred=st.booleans(), high=st.booleans())
def test_floats_agree_with_float64(tensor: Any, deferred: bool, high: bool) -> None:
    found = measured(tensor, deferred=deferred, high=high)
    wide = tensor.double()
    finite = bool(wide.isfinite().all())
    assert close(found.max, wide.max().item(), 0)
    assert close(found.min, wide.min().item(), 0)
    assert close(found.norm, wide.norm().item(), 1e-6)
    scale = wide.abs().mean().item() if finite else 0.0
    assert close(found.mean, wide.mean().item(), 1e-6) or abs(found.mean - wide.mean().item()) <= 1e-6 * scale
    assert found.zeros == int((wide == 0).sum())
    assert found.nan == int(wide.isnan().sum())
    assert (found.pos_inf, found.neg_inf) == (int((wide == math.inf).sum()), int((wide == -math.inf).sum()))


@settings(max_examples=100, deadline=None)
@given(tensor=tensors(INTEGERS), deferred=st.booleans())
def test_integers_are_exact(tensor: Any, deferred: bool) -> None:
    found = measured(tensor, deferred=deferred)
    numbers = [int(number) for number in tensor.flatten().tolist()]
    assert (found.max, found.min) == (max(numbers), min(numbers))
    assert type(found.max) is int
    assert found.zeros == numbers.count(0)
    scale = max(abs(number) for number in numbers)
    assert abs(found.mean - sum(numbers) / len(numbers)) <= 1e-12 * scale
    assert close(found.norm, math.sqrt(sum(number * number for number in numbers)), 1e-12)


@settings(max_examples=60, deadline=None)
@given(tensor=tensors(COMPLEX), deferred=st.booleans())
def test_complex_numbers_are_measured_by_magnitude(tensor: Any, deferred: bool) -> None:
    found = measured(tensor, deferred=deferred)
    size = tensor.abs().double()
    assert close(found.max, size.max().item(), 1e-6)
    assert close(found.min, size.min().item(), 1e-6)
    assert close(found.norm, size.norm().item(), 1e-6)


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_of_short_floats_never_overflow(dtype: Any, deferred: bool) -> None:
    top = torch.finfo(dtype).max
    found = measured(torch.full((1000,), top, dtype=dtype), deferred=deferred)
    assert close(found.norm, top * math.sqrt(1000), 1e-6)
    assert found.max == top


def test_a_norm_without_float64_is_scaled_and_keeps_infinity() -> None:
    for numbers in ([2e38, -2e38, 1.0], [0.0, 0.0], [1e-30, 2e-30], [math.inf, 1.0], [math.nan, 1.0]):
        value = torch.tensor(numbers, dtype=torch.float32)
        assert close(scaled_norm(value, *torch.aminmax(value)).item(), value.double().norm().item(), 1e-6)


@pytest.mark.parametrize("deferred", [False, True])
def test_booleans_have_extremes_and_a_count_but_no_mean(deferred: bool) -> None:
    assert measured(torch.tensor([True, False, False]), deferred=deferred) == Statistics(
        max=True, min=False, mean=None, norm=None, zeros=2
    )
    assert measured(torch.tensor(True), deferred=deferred) == Statistics(max=True, min=True, mean=None, norm=None)


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("value", [-2.5, 7, 0.0, math.inf])
def test_a_tensor_without_dimensions_gives_its_value_four_times(value: float, deferred: bool) -> None:
    found = measured(torch.tensor(value), deferred=deferred)
    assert (found.max, found.min, found.mean, found.norm) == (value,) * 4
    assert type(found.norm) is type(value)
    assert found.zeros == (value == 0)


def test_the_greatest_uint64_is_exact_on_the_cpu() -> None:
    found = measured(torch.tensor([2**64 - 1, 0], dtype=torch.uint64), deferred=False)
    assert (found.max, found.min, found.zeros) == (2**64 - 1, 0, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(70_001,), (3, 5, 40_000)])
def test_large_tensors_in_any_order_of_memory_are_measured_alike(dtype: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    value = (torch.randn(shape) * 3).to(dtype)
    views = [value, value.movedim(0, -1), value[..., ::3], value[..., 1:], value[:1].expand(2, *shape[1:])]
    for view in views:
        wide = view.double()
        found = measured(view, deferred=False)
        assert (found.max, found.min) == (view.max().item(), view.min().item())
        assert found.zeros == int((wide == 0).sum())
        assert close(found.norm, wide.norm().item(), 1e-6 if view.numel() >= SURVEYED else 2e-4)
        assert abs(found.mean - wide.mean().item()) <= 1e-6 * wide.abs().mean().item()
    broken = value.double()
    broken.view(-1)[60_000] = math.nan
    found = measured(broken, deferred=False)
    assert math.isnan(found.max)
    assert math.isnan(found.min)
    assert found.nan == 1


def test_float32_numbers_are_those_torch_gives_bit_for_bit() -> None:
    torch.manual_seed(0)
    for shape in [(3,), (7, 129), (64, 1000)]:
        tensor = torch.randn(shape)
        found = measured(tensor, deferred=False)
        assert found.mean == torch.mean(tensor).item()
        if tensor.numel() < SURVEYED:
            assert found.norm == torch.norm(tensor).item()


@pytest.mark.parametrize("size", [SURVEYED, 65_537, 3_000_001])
@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1.0, 1e15])
def test_norms_of_large_float32_tensors_are_exact_where_torch_is_not(size: int, scale: float) -> None:
    for tensor in (torch.full((size,), 0.1 * scale), torch.randn(size) * scale):
        expected = tensor.double().norm().item()
        theirs = torch.norm(tensor).item()
        found = measured(tensor, deferred=False).norm
        assert found == theirs if scale < 1e-20 else close(found, expected, 1e-6)


def test_many_tensors_of_many_types_come_back_in_order() -> None:
    chunk = Chunk()
    found: list[float] = []
    expected = []
    for number in range(200):
        dtype = [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.float64][number % 5]
        tensor = torch.full((number % 3 + 1,), number % 2 if dtype is torch.bool else number).to(dtype)
        expected.append(float(tensor.double().max()))
        chunk.add(measure_later(tensor, high=False, fill=lambda one: found.append(float(one.max))))
    assert chunk.since is not None
    chunk.resolve()
    assert found == expected
    assert chunk.since is None


def test_tensors_without_numbers_say_why() -> None:
    assert reason_absent(torch.empty(0, 3)) == "empty"
    assert reason_absent(torch.empty(3, device="meta")) == "no data (meta)"
    assert reason_absent(torch.eye(2).to_sparse()) == "layout sparse_coo"
    assert reason_absent(torch.ones(2)) is None
