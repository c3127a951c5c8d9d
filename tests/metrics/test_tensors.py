from __future__ import annotations

import dataclasses
import importlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.domain.facts import TensorFacts
from dumpscope.errors import TensorError
from dumpscope.metrics import compare_tensors
from dumpscope.metrics.histogram import SAMPLED_FROM
from dumpscope.metrics.native import loader
from dumpscope.metrics.partial import Partial, merge
from dumpscope.metrics.stretches import STRETCH
from dumpscope.readers.tensors.mapped_file import MappedFile

from . import reference

NAMES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu", "int4", "uint4", "float4_e2m1fn",
]  # fmt: skip


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def from_bytes(data: bytes, name: str) -> np.ndarray[Any, Any]:
    dtype = dtype_of(name)
    raw = np.frombuffer(data, dtype=np.uint8)
    if name == "bool":
        return (raw & 1).astype(np.bool_)
    if name in ("int4", "uint4", "float4_e2m1fn"):
        raw = raw & 15
        return (
            (raw.astype(np.int8) - 8).astype(dtype)
            if name == "int4"
            else raw.astype(dtype)
            if name == "uint4"
            else raw.view(dtype)
        )
    return raw[: raw.size // dtype.itemsize * dtype.itemsize].view(dtype)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Any bit patterns of any two dtypes; often of one dtype, often alike."""
    name = draw(st.sampled_from(NAMES))
    other = draw(st.one_of(st.just(name), st.sampled_from(NAMES)))
    first = from_bytes(draw(st.binary(min_size=8, max_size=160)), name)
    if other == name and draw(st.booleans()):
        second = first.copy()
        for place in draw(st.lists(st.integers(0, first.size - 1), max_size=3)) if first.size else []:
            second[place] = first[draw(st.integers(0, first.size - 1))]
        return first, second
    second = from_bytes(draw(st.binary(min_size=8, max_size=160)), other)
    size = min(first.size, second.size)
    return first[:size], second[:size]


def near(ours: float | None, exact: float | None, *, relative: float = 1e-12, absolute: float = 0.0) -> bool:
    if ours is None or exact is None:
        return ours is exact
    if math.isinf(exact) or math.isinf(ours):
        return ours == exact or max(abs(ours), abs(exact)) > 1.79e308
    return abs(ours - exact) <= max(relative * abs(exact), absolute, 5e-324)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_every_number_is_that_of_exact_arithmetic(pair: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    target, golden = pair
    facts = compare_tensors(target, golden)
    exact = reference.measure(target, golden)
    for field in ("elements", "unequal", "nonfinite_target", "nonfinite_golden", "nonfinite_disagree"):
        assert getattr(facts, field) == exact[field], field
    for field in ("euclidean", "rel_l2"):
        assert near(getattr(facts, field), exact[field]), (field, getattr(facts, field), exact[field])
    narrow = all(reference.is_float(side.dtype) and side.dtype.itemsize <= 4 for side in pair)
    for field in ("max_abs", "max_rel"):  # the largest in float32 arithmetic where that is what both sides have
        ours, wanted = getattr(facts, field), exact[field]
        precision = {"relative": 2**-22, "absolute": 2**-149} if narrow else {}
        assert near(ours, wanted, **precision), (field, ours, wanted)
    assert near(facts.cosine, exact["cosine"], absolute=1e-14)
    near_an_edge = facts.abs_histogram != tuple(exact["abs_histogram"]) or facts.rel_histogram != tuple(
        exact["rel_histogram"]
    )
    if facts.elements and not near_an_edge:
        assert facts.ratio_1e3 == exact["ratio_1e3"]
        assert facts.ratio_5e3 == exact["ratio_5e3"]
    assert sum(facts.abs_histogram) == sum(exact["abs_histogram"])
    assert sum(facts.rel_histogram) == sum(exact["rel_histogram"])
    for ours, wanted, lowered in (
        (facts.abs_histogram, "abs_histogram", "abs_lowered"),
        (facts.rel_histogram, "rel_histogram", "rel_lowered"),
    ):
        if ours:  # edges of float32 errors are up to 0.8 % lower, and an error may be rounded onto its edge
            below, least, most = (np.cumsum(bins) for bins in (ours, exact[lowered], exact[wanted]))
            assert ((least <= below) & (below <= most)).all(), (wanted, ours)
    if exact["ulps"] is not None:
        ulps = exact["ulps"]
        assert facts.max_ulp == float(ulps[-1])
        middle = ulps[(len(ulps) - 1) // 2]
        assert facts.median_ulp == middle if middle < 64 else near(facts.median_ulp, middle, relative=1 / 32)
    if facts.worst_index is None:
        assert not facts.max_abs
    else:
        sides = zip(*(reference.exact(reference.scalars(side)[facts.worst_index[0]]) for side in pair), strict=True)
        assert near(facts.max_abs, float(reference.root(sum(((p - q) ** 2 for p, q in sides), Fraction(0)))))


FLOATS = {"float32": (4, 0x7F800000), "bfloat16": (2, 0x7F80), "float16": (2, 0x7C00)}


def forced(target: np.ndarray[Any, Any], golden: np.ndarray[Any, Any], threads: int = 1) -> TensorFacts:
    """compare_tensors with the compiled kernel, however small the pair."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "SMALLEST", 0)
        patch.setattr(loader, "LOAD_AT", 0)
        patch.setattr(loader, "COMPILE_AT", 0)
        assert loader.kernel_for(target.reshape(-1), golden.reshape(-1)) is not None
        return compare_tensors(target, golden, threads=threads)


def by_numpy(target: np.ndarray[Any, Any], golden: np.ndarray[Any, Any]) -> TensorFacts:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "SMALLEST", 1 << 62)
        assert loader.kernel_for(target.reshape(-1), golden.reshape(-1)) is None
        return compare_tensors(target, golden)


def assert_same(one: TensorFacts, other: TensorFacts) -> None:
    for field in TensorFacts.__dataclass_fields__:
        first, second = getattr(one, field), getattr(other, field)
        if field in ("cosine", "euclidean", "rel_l2"):
            assert near(first, second, absolute=1e-13 if field == "cosine" else 0.0), field
        else:
            assert first == second, (field, first, second)


@st.composite
def float_pairs(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A few thousand numbers of small floats: noise of any size, equal runs, and any bit patterns strewn in."""
    names = draw(
        st.sampled_from([*((name, name) for name in FLOATS), ("float32", "bfloat16"), ("bfloat16", "float32")])
    )
    size = draw(st.integers(1, 3000))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = random.standard_normal(size) * 10.0 ** draw(st.integers(-8, 4))
    noisy = values * (1 + 10.0 ** draw(st.integers(-8, 1)) * random.standard_normal(size))
    begin = draw(st.integers(0, size))
    noisy[begin : begin + draw(st.integers(0, size))] = draw(st.sampled_from([0.0, 1e-6, 3e4]))
    with np.errstate(all="ignore"):
        first, second = values.astype(dtype_of(names[0])), noisy.astype(dtype_of(names[1]))
    if draw(st.booleans()):
        second = first.astype(second.dtype)
    for side in (first, second):
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, size - 1))
            side[at] = from_bytes(draw(st.binary(min_size=4, max_size=4)), side.dtype.name)[0]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, size - 1))
        first[at], second[at] = draw(st.sampled_from([
            (math.nan, math.nan), (math.inf, math.inf), (math.inf, -math.inf), (math.nan, math.inf), (0.0, -0.0), (1.0, math.nan),
        ]))  # fmt: skip
    return first, second


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(float_pairs())
def test_the_compiled_kernel_gives_the_numbers_of_the_numpy_kernel(
    pair: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
) -> None:
    assert_same(forced(*pair), by_numpy(*pair))


@pytest.mark.parametrize("name", FLOATS)
def test_every_sixteen_bit_pattern_is_decoded_like_numpy_does(name: str) -> None:
    codes = np.arange(1 << 16, dtype=np.uint32)
    patterns = (codes << 16 | codes).astype(np.uint32) if name == "float32" else codes.astype(np.uint16)
    target = patterns.view(dtype_of(name))
    golden = np.roll(target, 77)
    assert_same(forced(target, golden), by_numpy(target, golden))
    assert_same(forced(target, target.copy()), by_numpy(target, target.copy()))


def test_a_difference_beyond_float32_leaves_the_largest_errors_exact() -> None:
    target = np.full(3000, 1.0, np.float32)
    golden = np.full(3000, 1.5, np.float32)
    target[5], golden[5] = 3e38, -3e38
    target[2000], golden[2000] = 7.0, 2.0
    facts = forced(target, golden)
    assert facts.max_abs == 2 * float(np.float32(3e38))
    assert (facts.max_rel, facts.worst_index) == (2.5, (5,))
    assert_same(facts, by_numpy(target, golden))


def test_the_first_of_the_largest_errors_that_float32_cannot_tell_apart_is_named_with_its_exact_size() -> None:
    target = np.zeros(5000, np.float32)
    golden = np.zeros(5000, np.float32)
    target[2000:], golden[2000:] = 1.0, -1e-9
    golden[3000] = -1.5e-9
    facts = forced(target, golden)
    assert facts.worst_index == (2000,)
    assert facts.max_abs == 1.0 + float(np.float32(1e-9))
    assert_same(facts, by_numpy(target, golden))


@pytest.mark.parametrize("name", FLOATS)
def test_zeros_or_a_constant_shift_on_one_side_are_measured_alike_by_both_kernels(name: str) -> None:
    values = np.random.default_rng(2).standard_normal(4097).astype(dtype_of(name))
    zeros = np.where(np.arange(values.size) % 2, values, dtype_of(name).type(0))
    for golden in (zeros, np.ones_like(values)):
        assert_same(forced(values, golden), by_numpy(values, golden))
        assert_same(forced(golden, values), by_numpy(golden, values))


@pytest.fixture(scope="module")
def large() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Over a million numbers, so that threads and the sampled ULP histogram come in, with a few that are not finite."""
    random = np.random.default_rng(7)
    target = random.standard_normal(STRETCH * 2 + 12345, dtype=np.float32)
    golden = target * (1 + np.float32(1e-3) * random.standard_normal(target.size, dtype=np.float32))
    golden[-3:] = target[-3:] * 3
    target[[5, 600_000, -1]] = np.nan
    golden[[5, 600_001]] = [np.nan, np.inf]
    return target, golden


@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_and_thread_counts_agree_on_large_pairs(
    large: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]], threads: int
) -> None:
    whole = by_numpy(*large)
    assert_same(forced(*large, threads=threads), whole)
    assert whole.nonfinite_disagree == 3
    assert whole.worst_index == (int(np.nanargmax(np.where(np.isinf(large[1]), 0, np.abs(large[0] - large[1])))),)


def test_a_sampled_median_of_ulps_is_near_the_median_of_all(
    large: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
) -> None:
    some = slice(1000, 1000 + SAMPLED_FROM - 8)
    first, second = large[0][some], large[1][some]
    every = compare_tensors(first, second).median_ulp
    sampled = compare_tensors(large[0], large[1]).median_ulp
    assert every is not None
    assert sampled == pytest.approx(every, rel=0.05)


def load_again(module: ModuleType | None) -> loader.FusedKernel | None:
    """What a fresh process gets whose compiled module is this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "LOAD_AT", 0)
        patch.setattr(loader, "COMPILE_AT", 0)
        patch.setattr(loader, "_loader", loader._Loader())
        patch.setitem(sys.modules, "dumpscope.metrics.native.fused", module)
        return loader.kernel_for(np.ones(9999, np.float32), np.ones(9999, np.float32))


def test_a_compiled_kernel_is_trusted_only_if_it_reproduces_numpy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fused = importlib.import_module("dumpscope.metrics.native.fused")
    assert load_again(fused) is not None
    assert not caplog.records
    true_compare = fused.compare

    def wrong(*arguments: Any) -> None:
        true_compare(*arguments)
        arguments[-1][fused.REL_DECADES + 5] += 1

    monkeypatch.setattr(fused, "compare", wrong)
    assert load_again(fused) is None
    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert "does not give the numbers of the numpy kernel" in said.message


@dataclass
class Compiler:
    """Another process that compiles the kernel. ended: its exit status, None while it runs"""

    ended: int | None = None

    def poll(self) -> int | None:
        return self.ended


def test_a_kernel_that_was_never_compiled_is_compiled_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, started = Compiler(), []
    stored: list[bool] = []
    monkeypatch.setattr(loader, "is_compiled", lambda: bool(stored))
    monkeypatch.setattr(loader, "_import_kernel", lambda: sys)
    monkeypatch.setattr(loader, "_start_compiler", lambda: started.append(compiler) or compiler)
    ours = loader._Loader()
    assert [ours.module(loader.LOAD_AT) for _ in range(3)] == [None] * 3, "numpy measures meanwhile"
    assert started == [compiler], "it is started once"
    compiler.ended = 1
    assert ours.module(loader.LOAD_AT) is None, "it could not store anything"
    assert started == [compiler], "it is started once"
    stored.append(True)
    assert [ours.module(loader.LOAD_AT - 1), ours.module(1)] == [None, sys]
    stored.clear()
    assert loader._Loader().module(loader.COMPILE_AT) is sys, "numpy would take longer than compiling"


def test_machine_code_is_looked_for_where_numba_stores_it(tmp_path: Path) -> None:
    script = (
        "from dumpscope.metrics.native import fused, loader\n"
        "from dumpscope.numba_support import code_folder\n"
        "folder = code_folder(fused.compare)\n"
        "print(folder, loader.is_compiled(), loader._is_alone(folder), loader._is_alone(folder))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    folder, *said = done.stdout.split()
    assert Path(folder).parent == tmp_path
    assert said == ["False", "True", "False"], "not compiled yet; the first process alone compiles"


def test_every_field_of_a_stretch_is_merged() -> None:
    random = np.random.default_rng(5)
    stretches = [
        Partial(
            **{
                one.name: random.integers(1, 99, len(one.default_factory()))
                if callable(one.default_factory)
                else type(one.default)(random.integers(1, 99))
                for one in dataclasses.fields(Partial)
            }
        )
        for _ in range(3)
    ]
    whole = merge(stretches)
    nothing = Partial()
    for one in dataclasses.fields(Partial):
        values = [getattr(part, one.name) for part in stretches]
        expected: Any = sum(values)
        if one.name.startswith("max_"):
            expected = max(values)
        if one.name == "max_at":
            expected = max(stretches, key=lambda part: part.max_abs).max_at
        assert np.array_equal(getattr(whole, one.name), expected), one.name
        assert not np.array_equal(getattr(whole, one.name), getattr(nothing, one.name)), one.name


def test_without_numba_the_numpy_kernel_does_the_work() -> None:
    assert load_again(None) is None  # None in sys.modules makes the import fail


def test_numba_is_not_imported_before_there_is_much_to_compare() -> None:
    code = (
        "import sys, numpy as np\n"
        "from dumpscope.metrics import compare_tensors\n"
        "compare_tensors(np.ones(100_000, np.float32), np.ones(100_000, np.float32))\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def views() -> Iterator[Any]:
    base = np.random.default_rng(3).standard_normal((4, 5, 6)).astype(np.float32)
    near_base = base + np.float32(1e-3) * np.random.default_rng(4).standard_normal(base.shape).astype(np.float32)
    big = np.dtype(np.float32).newbyteorder(">")
    yield pytest.param(base.T, near_base.T, id="transposed both")
    yield pytest.param(base.transpose(1, 0, 2), near_base.transpose(1, 0, 2), id="transposed middle")
    yield pytest.param(base[::2, ::-1], near_base[::2, ::-1], id="steps and negative strides")
    yield pytest.param(np.broadcast_to(base[:1], (4, 5, 6)), near_base, id="stride zero on one side")
    yield pytest.param(np.asfortranarray(base), near_base, id="fortran against c")
    yield pytest.param(base.astype(big), near_base.astype(big), id="other byte order")
    yield pytest.param(np.frombuffer(b"x" + base.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(4, 5, 6), near_base,
                       id="not aligned")  # fmt: skip


@pytest.mark.parametrize(("target", "golden"), list(views()))
def test_the_layout_in_memory_changes_nothing(target: np.ndarray[Any, Any], golden: np.ndarray[Any, Any]) -> None:
    plain = compare_tensors(
        np.ascontiguousarray(target).astype(target.dtype.newbyteorder("=")),
        np.ascontiguousarray(golden).astype(golden.dtype.newbyteorder("=")),
    )
    assert_same(compare_tensors(target, golden), plain)


def test_unaligned_data_goes_through_the_compiled_kernel() -> None:
    values = np.arange(1, 5001, dtype=np.float32)
    unaligned = np.frombuffer(b"x" + values.tobytes(), dtype=np.uint8)[1:].view(np.float32)
    assert not unaligned.flags.aligned
    assert_same(forced(unaligned, values + 1), by_numpy(values, values + 1))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("begin", [0, 1])
def test_several_chunks_of_either_sign_with_odd_ends_and_starts_are_measured_alike(name: str, begin: int) -> None:
    random = np.random.default_rng(8)
    values = random.standard_normal(40_003)
    noisy = values * (1 + 1e-2 * random.standard_normal(values.size))
    noisy[20_000:30_000] = -noisy[20_000:30_000]
    noisy[[3, 17_000, 40_001]] = np.nan
    values[[4, 17_000]] = np.inf
    target, golden = values.astype(dtype_of(name))[begin:], noisy.astype(dtype_of(name))[begin:]
    assert_same(forced(target, golden), by_numpy(target, golden))
    assert_same(forced(target[:20_001], golden[:20_001]), by_numpy(target[:20_001], golden[:20_001]))


@pytest.mark.parametrize("names", [("float32", "float32"), ("bfloat16", "bfloat16"), ("float32", "bfloat16")])
def test_machine_code_reads_files_as_the_interpreter_does(
    names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(9).standard_normal(700_001, dtype=np.float32)
    sides = [values.astype(dtype_of(names[0])), (values * np.float32(1.01)).astype(dtype_of(names[1]))]
    for place, side in enumerate(sides):
        (tmp_path / str(place)).write_bytes(b"xx" + side.tobytes())
    mapped = [
        np.frombuffer(MappedFile(file.fileno(), 2 + side.nbytes), np.uint8)[2:].view(side.dtype)
        for place, side in enumerate(sides)
        for file in [(tmp_path / str(place)).open("rb")]
    ]
    found = [forced(mapped[0], mapped[1], threads) for threads in (1, 2)]
    found += [forced(mapped[0], sides[1]), forced(sides[0], mapped[1])]
    monkeypatch.setattr(importlib.import_module("dumpscope.metrics.native.fused"), "READS", False)
    found.append(forced(mapped[0], mapped[1]))
    for facts in found:
        assert_same(facts, by_numpy(*sides))


def test_a_large_pair_that_is_not_contiguous_is_measured_in_index_order() -> None:
    base = np.arange(300 * 200, dtype=np.int32).reshape(300, 200)
    other = base.copy()
    other[123, 45] += 7
    facts = compare_tensors(base[:, ::-1], other[:, ::-1])
    assert (facts.unequal, facts.worst_index) == (1, (123, 154))
    assert (facts.worst_target, facts.worst_golden) == (24645, 24652)


def test_shapes_are_never_broadcast() -> None:
    for first, second in (((), (1,)), ((1,), (2,)), ((2, 3), (3, 2)), ((0,), (0, 1))):
        with pytest.raises(ValueError, match="shapes differ"):
            compare_tensors(np.zeros(first), np.zeros(second))


def test_a_dtype_without_numbers_is_refused() -> None:
    for values in (np.array(["a"]), np.array([object()]), np.zeros(2, dtype=[("a", "f4")]), np.zeros(1, "M8[s]")):
        with pytest.raises(ValueError, match="holds no numbers"):
            compare_tensors(values, values)


def test_an_empty_pair_has_no_numbers() -> None:
    facts = compare_tensors(np.zeros((3, 0), np.float32), np.zeros((3, 0), np.float32))
    assert facts.elements == facts.unequal == 0
    assert (facts.cosine, facts.euclidean, facts.max_abs, facts.max_rel, facts.ratio_1e3, facts.rel_l2) == (None,) * 6
    assert (facts.max_ulp, facts.median_ulp, facts.worst_index) == (None,) * 3


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_has_errors_but_no_direction_distance_or_shares(shape: tuple[int, ...]) -> None:
    facts = compare_tensors(np.full(shape, 3.0, np.float32), np.full(shape, 2.0, np.float32))
    assert (facts.cosine, facts.euclidean, facts.ratio_1e3, facts.ratio_5e3) == (None,) * 4
    assert (facts.max_abs, facts.max_rel, facts.rel_l2) == (1.0, 0.5, 0.5)
    assert facts.worst_index == (0,) * len(shape)


def test_extremes_of_64_bit_integers_neither_wrap_nor_round_away() -> None:
    low, high = -(2**63), 2**63 - 1
    facts = compare_tensors(np.array([low, high, 5]), np.array([high, high - 1, 5]))
    assert (facts.max_abs, facts.unequal, facts.worst_index) == (2.0**64, 2, (0,))
    assert (facts.worst_target, facts.worst_golden) == (low, high)
    one_off = compare_tensors(np.array([high, high]), np.array([high - 1, high]))
    assert (one_off.max_abs, one_off.unequal, one_off.euclidean) == (1.0, 1, 1.0)
    unsigned = compare_tensors(np.array([2**64 - 1, 0], np.uint64), np.array([-1, -1], np.int64))
    assert (unsigned.max_abs, unsigned.unequal) == (2.0**64, 2)
    assert compare_tensors(np.array([0, 255], np.uint8), np.array([255, 0], np.uint8)).max_abs == 255.0


def test_an_integer_beside_a_float_is_compared_exactly() -> None:
    integers = np.array([2**53 + 1, 2**62, -(2**63)])
    facts = compare_tensors(integers, np.array([2.0**53, 2.0**62, -(2.0**63)]))
    assert (facts.unequal, facts.max_abs) == (1, 1.0)


def test_not_finite_numbers_agree_only_where_they_are_the_same() -> None:
    nan, inf = math.nan, math.inf
    agree = compare_tensors(np.array([nan, inf, -inf, 1.0]), np.array([nan, inf, -inf, 1.0]))
    assert (agree.nonfinite_disagree, agree.unequal, agree.max_abs, agree.ratio_1e3) == (0, 0, 0.0, 1.0)
    assert (agree.nonfinite_target, agree.nonfinite_golden) == (3, 3)
    differ = compare_tensors(np.array([inf, nan, nan, 1.0, 2.0]), np.array([-inf, inf, 3.0, nan, 1.0]))
    assert (differ.nonfinite_disagree, differ.unequal, differ.max_abs) == (4, 5, 1.0)
    assert (differ.nonfinite_target, differ.nonfinite_golden) == (3, 3)


def test_where_nothing_can_be_measured_there_are_no_numbers() -> None:
    facts = compare_tensors(np.array([math.nan, math.inf]), np.array([1.0, 1.0]))
    assert (facts.cosine, facts.euclidean, facts.max_abs, facts.max_rel, facts.ratio_1e3) == (None,) * 5
    assert (facts.nonfinite_disagree, facts.max_ulp, facts.median_ulp) == (2, None, None)


def test_two_zero_vectors_agree_and_a_single_one_has_no_direction() -> None:
    zeros, ones = np.zeros(4, np.float32), np.ones(4, np.float32)
    both = compare_tensors(zeros, -zeros)
    assert (both.cosine, both.unequal, both.rel_l2, both.max_ulp) == (1.0, 0, 0.0, 0.0)
    assert compare_tensors(zeros, ones).cosine is None
    assert compare_tensors(ones, zeros).rel_l2 == math.inf


def test_tiny_vectors_keep_their_direction() -> None:
    tiny = np.array([1e-30, 2e-30], np.float32)
    assert compare_tensors(tiny, -tiny).cosine == pytest.approx(-1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_nothing_overflows_at_the_ends_of_a_float_type(name: str) -> None:
    dtype = dtype_of(name)
    largest = np.array([float(ml_dtypes.finfo(dtype).max)] * 3, dtype)
    facts = compare_tensors(largest, (largest.astype(np.float64) * 0.5).astype(dtype))
    assert facts.cosine == pytest.approx(1.0, abs=1e-12)
    assert facts.rel_l2 == pytest.approx(1.0, rel=0.02)
    assert facts.euclidean == pytest.approx(math.sqrt(3) / 2 * float(largest[0]), rel=0.02)


def test_float64_near_its_limits_keeps_its_norms() -> None:
    huge = np.array([1e308, -1e308, 1.0])
    facts = compare_tensors(huge, -huge)
    assert (facts.cosine, facts.rel_l2, facts.max_rel) == (-1.0, 2.0, 2.0)
    assert facts.max_abs == math.inf  # 2e308 is beyond float64
    small = np.array([3e-200, 4e-200])
    facts = compare_tensors(small, np.zeros(2))
    assert facts.euclidean == pytest.approx(5e-200, rel=1e-12)
    assert compare_tensors(small, small * 2).cosine == pytest.approx(1.0, abs=1e-12)


def test_a_relative_error_against_zero_divides_by_the_step_at_one() -> None:
    assert compare_tensors(np.float32([2.0, 1.0]), np.float32([0.0, 1.0])).max_rel == 2.0 / 2.0**-23
    assert compare_tensors(np.array([2.0, 1.0]), np.array([0.0, 1.0])).max_rel == 2.0 / 2.0**-52


def test_complex_errors_are_absolute_values_of_differences() -> None:
    facts = compare_tensors(np.complex64([3 + 4j, 1j]), np.complex64([0, 1j]))
    assert (facts.max_abs, facts.worst_target, facts.worst_golden) == (5.0, "(3+4j)", "0j")


def test_distance_in_units_of_the_coarser_type_across_zero_and_types() -> None:
    one_up = np.nextafter(np.float32(1), np.float32(2))
    assert compare_tensors(np.float32([1, -0.0]), np.array([one_up, 0.0], np.float32)).max_ulp == 1.0
    smallest = np.float32(1e-45)
    assert compare_tensors(np.float32([smallest, 1]), np.float32([-smallest, 1])).max_ulp == 2.0
    bf16 = np.array([1.0, 1.0078125], ml_dtypes.bfloat16)
    assert compare_tensors(np.float32([1.001, 1.0]), bf16).max_ulp == 1.0


def test_ulps_of_complex_numbers_are_those_of_the_worse_component() -> None:
    up = np.nextafter(np.float32(1), np.float32(2))
    facts = compare_tensors(
        np.complex64([1 + 1j, 2j]), np.array([complex(up, np.nextafter(up, np.float32(2))), 2j], np.complex64)
    )
    assert (facts.max_ulp, facts.median_ulp) == (2.0, 0.0)


def test_without_detail_only_the_histograms_are_missing() -> None:
    target, golden = np.float32([1, 2, 3]), np.float32([1, 2.5, 3])
    full, short = compare_tensors(target, golden), compare_tensors(target, golden, detail=False)
    assert short.abs_histogram == short.rel_histogram == ()
    assert sum(full.abs_histogram) == 3
    assert (full.max_abs, full.median_ulp, full.worst_index) == (short.max_abs, short.median_ulp, short.worst_index)


def mapped_array(path: Path, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    with path.open("rb") as file:
        return np.frombuffer(MappedFile(file.fileno(), path.stat().st_size), dtype)


def test_a_mapped_tensor_is_read_without_its_pages_staying_in_memory(tmp_path: Path) -> None:
    values = np.random.default_rng(5).standard_normal(1 << 23, dtype=np.float32)
    (tmp_path / "target").write_bytes(values.tobytes())
    values[-3:] += 1
    (tmp_path / "golden").write_bytes(values.tobytes())
    target, golden = mapped_array(tmp_path / "target"), mapped_array(tmp_path / "golden")
    before = mapped_kib()
    for threads in (1, 2):
        facts = compare_tensors(target, golden, threads=threads)
        assert (facts.unequal, facts.worst_index is not None and facts.worst_index[0] >= values.size - 3) == (3, True)
    assert mapped_kib() - before < 8 * 1024
    assert_same(facts, compare_tensors(target.copy(), golden.copy()))
    assert_same(facts, compare_tensors(target, golden.copy()))
    assert compare_tensors(target[4096:], golden[4096:]).unequal == 3


def test_a_file_cut_while_it_is_compared_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 24))
    array = mapped_array(path)
    os.truncate(path, 1 << 22)
    with pytest.raises(TensorError, match="cut off while it was read"):
        compare_tensors(array, np.zeros(1 << 22, np.float32))


def mapped_kib() -> int:
    """File pages this process has in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssFile:"):
            return int(line.split()[1])
    pytest.skip("this system does not tell")
