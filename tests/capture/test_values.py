"""Records of values: msprobe's forms (seen in its dumps of the same values), and nothing that odd values could break."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dumpscope_capture.context import Unobserved  # noqa: E402
from dumpscope_capture.values.recorder import DEPTH_LIMIT, Recorder  # noqa: E402
from dumpscope_capture.values.tensor_subclasses import outside_transforms  # noqa: E402

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    x: Any
    y: int


class Whole(enum.IntEnum):
    ONE = 1


class Word(enum.Enum):
    ONE = 1


def record(value: Any, *, keyword: str | None = None, **options: Any) -> Any:
    recorder = Recorder(task=options.pop("task", "statistics"), **options)
    found = recorder.record(value, "Torch.f.0.forward.input.0", keyword=keyword)
    recorder.resolve()
    json.dumps(found)
    return found


PLAIN = [
    (None, None),
    (3, {"type": "int", "value": 3}),
    (True, {"type": "bool", "value": True}),
    ("x\ud800", {"type": "str", "value": "x\ud800"}),
    (10**30, {"type": "int", "value": 10**30}),
    (slice(1, None, 2), {"type": "slice", "value": [1, None, 2]}),
    (slice(torch.tensor(1), 2), {"type": "slice", "value": [1, 2, None]}),
    (Ellipsis, {"type": "ellipsis", "value": "..."}),
    (torch.Size([1, 2]), {"type": "torch.Size", "value": [1, 2]}),
    (torch.channels_last, {"type": "torch.memory_format", "format": "channels_last"}),
    (np.float32(3.5), {"type": "float32", "value": 3.5}),
    (np.float64(3.5), {"type": "float64", "value": 3.5}),
    (np.int64(2), {"type": "int64", "value": 2}),
    (np.bool_(True), {"type": type(np.bool_(True)).__name__, "value": True}),
    (Whole.ONE, {"type": "Whole", "value": 1}),
    (Word.ONE, None),
    (1 + 2j, None),
    (b"x", None),
    ({1, 2}, None),
    (torch.strided, None),
    (len, None),
    (range(3), None),
    (np.datetime64("2020"), None),
    (torch.float32, {}),
    (torch.device("cpu"), {}),
    ((), []),
    ([], []),
    ({}, {}),
    (
        {"a": {"b": [1, None]}, 3: 4},
        {"a": {"b": [{"type": "int", "value": 1}, None]}, "3": {"type": "int", "value": 4}},
    ),
    (collections.OrderedDict(a=1), {"a": {"type": "int", "value": 1}}),
    (Pair(1, None), {"a": {"type": "int", "value": 1}, "b": None}),
    (Point([1], 3), {"x": [{"type": "int", "value": 1}], "y": {"type": "int", "value": 3}}),
]


@pytest.mark.parametrize(("value", "expected"), PLAIN, ids=[str(number) for number in range(len(PLAIN))])
def test_values_that_are_no_tensors_have_the_form_msprobe_gives_them(value: Any, expected: Any) -> None:
    assert record(value) == expected


def test_dtypes_and_devices_are_named_only_where_their_keyword_says_so() -> None:
    assert record(torch.float32, keyword="dtype") == {"type": "torch.dtype", "value": "torch.float32"}
    assert record(torch.int8, keyword="output_dtype") == {"type": "torch.dtype", "value": "torch.int8"}
    assert record(torch.device("cuda:1"), keyword="device") == {"type": "torch.device", "value": "cuda:1"}
    assert record("cpu", keyword="device")["value"] == "cpu"
    assert record(torch.float16, keyword="other") == {}


def test_a_tensor_record_has_the_keys_of_msprobe_in_its_order() -> None:
    value = torch.tensor([[1.5, -2.0]], requires_grad=True)
    assert list(record(value).items()) == [
        ("type", "torch.Tensor"), ("dtype", "torch.float32"), ("shape", [1, 2]), ("Max", 1.5), ("Min", -2.0),
        ("Mean", -0.25), ("Norm", 2.5), ("requires_grad", True),
    ]  # fmt: skip
    hashed = record(value, task="tensor", summary="md5", wants_tensor=lambda item: True)
    assert list(hashed)[7:10] == ["requires_grad", "data_name", "md5"]
    assert hashed["data_name"] == "Torch.f.0.forward.input.0.pt"
    assert list(record(value, summary="xor")) == ["type", "dtype", "shape", "md5", "requires_grad"]


def test_parameters_are_tensors_and_nested_items_get_their_path() -> None:
    wanted: list[str] = []

    def wants(item: str) -> bool:
        wanted.append(item)
        return False

    value = [torch.nn.Parameter(torch.ones(1)), {"k": (torch.ones(1), Pair(torch.ones(1), 2))}]
    found = record(value, wants_tensor=wants)
    assert found[0]["type"] == "torch.Tensor"
    start = "Torch.f.0.forward.input.0"
    assert wanted == [f"{start}.0", f"{start}.1.k.0", f"{start}.1.k.1.a"]


CRCS = [
    (torch.tensor(True), "a505df1b"),
    (torch.tensor(3 + 4j), "7fd65497"),
    (torch.tensor(2.5, dtype=torch.float64), "77925bfd"),
    (torch.tensor(7), "6fe7d670"),
    (torch.tensor([1.5, -2], dtype=torch.float16), "94d5d536"),
    (torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn), "209aef94"),
    (torch.tensor([1.0]).expand(4), "e8681456"),
    (torch.empty(0), "00000000"),
]


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize(("value", "crc"), CRCS, ids=[crc for _, crc in CRCS])
def test_hashes_are_those_msprobe_gave_for_the_same_values(value: Any, crc: str, deferred: bool) -> None:
    assert record(value, summary="md5", deferred=deferred)["md5"] == crc


def test_xor_folds_words_of_eight_bytes() -> None:
    words = torch.tensor([0x0123456789ABCDEF, 0x1111111111111111])
    assert record(words, summary="xor")["md5"] == "0x1032547698badcfe"
    assert record(torch.tensor([1, 2, 3], dtype=torch.uint8), summary="xor")["md5"] == "0x0000000000030201"
    assert record(torch.tensor(2.5), summary="xor")["md5"] == 2.5


def test_the_dumps_of_msprobe_hold_the_same_statistics(dumps: Path) -> None:
    """Every tensor file that msprobe wrote, recorded again, gives the record that msprobe wrote beside it."""
    count = 0
    for folder in ("golden", "types_L1", "conv_L1"):
        (path,) = (dumps / folder / "step0").glob("*/dump.json")
        for leaf in leaves(json.loads(path.read_text())["data"]):
            value = torch.load(path.parent / "dump_tensor_data" / leaf["data_name"], weights_only=True)
            found = record(value, summary="md5")
            assert found["shape"] == leaf["shape"]
            for key in ("Max", "Min", "Mean", "Norm"):
                theirs, ours = leaf[key], found[key]
                if theirs is not None and not (
                    value.dtype in (torch.float16, torch.bfloat16) and key in ("Mean", "Norm")
                ):
                    assert type(ours) is type(theirs)
                    assert math.isclose(ours, theirs, rel_tol=1e-6) or repr(ours) == repr(theirs), (leaf, found)
            count += 1
    assert count > 300


def leaves(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        if "data_name" in value and value["type"] == "torch.Tensor":
            return [value]
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else []


def test_arrays_have_all_four_statistics() -> None:
    assert record(np.array([1, 2])) == {
        "type": "numpy.ndarray", "dtype": "int64", "shape": [2], "Max": 2, "Min": 1, "Mean": 1.5, "Norm": 5**0.5,
    }  # fmt: skip
    assert record(np.array([True, False]))["Mean"] == 0.5
    assert record(np.array("x"))["absent"] == "not numbers"
    assert record(np.zeros((0, 2)))["Max"] is None


def test_containers_that_hold_themselves_or_nest_for_ever_end() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    assert record(cycle)[1] == {"type": "list", "value": "holds itself"}
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert json.dumps(record(deep)).count("[") == DEPTH_LIMIT
    shared = [torch.ones(1)]
    assert len(record([shared, shared])[1]) == 1


def test_counts_tell_of_zeros_nans_and_infinities_and_are_absent_without_any() -> None:
    assert "counts" not in record(torch.ones(3))
    assert record(torch.tensor([0.0, math.nan, math.inf, -math.inf, -math.inf]))["counts"] == {
        "zeros": 1, "nan": 1, "inf": 1, "-inf": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (torch.empty(2, device="meta"), "no data (meta)"),
        (torch.sparse_coo_tensor([[0]], [1.0], (1 << 26,)), "layout sparse_coo"),
        (torch.empty(0, 2), "empty"),
    ],
    ids=["meta", "large sparse", "empty"],
)
def test_tensors_without_numbers_say_why(value: Any, reason: str) -> None:
    found = record(value, summary="md5")
    assert found["absent"] == reason
    assert found["Max"] is None
    assert found["shape"] == list(value.shape)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_a_sparse_tensor_is_recorded_with_its_zeros(layout: str) -> None:
    plain = torch.tensor([[0.0, 3.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]])
    block = {"blocksize": (1, 2)} if layout.startswith("sparse_bs") else {}
    found = record(plain.to_sparse(layout=getattr(torch, layout), **block), summary="md5")
    assert found.pop("layout") == layout
    assert found == record(plain, summary="md5")


def test_entries_of_one_place_of_a_sparse_tensor_are_added_up_and_it_stays_as_it_is() -> None:
    sparse = torch.sparse_coo_tensor([[1, 1, 2]], [2.0, 3.0, -1.0], (4,))
    found = record(sparse)
    assert (found["Max"], found["Min"], found["Mean"], found["counts"]) == (5.0, -1.0, 1.0, {"zeros": 2})
    assert not sparse.is_coalesced()
    assert sparse._nnz() == 3


def test_memory_of_a_tensor_that_only_stands_for_one_in_a_graph_is_not_read() -> None:
    # What `torch.export` of torch 2.1 hands to modules: its address is no memory, and reading it ended the process.
    found = record(torch._to_functional_tensor(torch.ones(3)))
    assert found["absent"] == "inside a graph capture"
    assert found["shape"] == [3]


def test_fake_tensors_are_recorded_as_such() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415

    with FakeTensorMode():
        found = record(torch.ones(3))
    assert found["type"] == "torch._subclasses.fake_tensor.FakeTensor"
    assert found["absent"] == "no data (fake)"


def test_tensors_inside_function_transforms_have_the_values_of_all_that_is_mapped() -> None:
    found: list[Any] = []
    constant = torch.tensor([1.0, 2.0])

    def square(value: Any) -> Any:
        found.extend((record(value), record(constant)))
        return (value * value).sum()

    mapped = torch.arange(6.0).reshape(3, 2)
    torch.func.vmap(square, in_dims=1)(mapped)
    torch.func.grad(square)(torch.arange(3.0))
    batched, plain, tracked, _ = found
    keys = ("type", "shape", "Max", "Min", "Mean", "Norm")
    assert [batched[key] for key in keys] == ["torch.func.BatchedTensor", [2, 3], 5.0, 0.0, 2.5, pytest.approx(55**0.5)]
    assert [tracked[key] for key in keys[:4]] == ["torch.func.GradTrackingTensor", [3], 2.0, 0.0]
    assert not any("absent" in one for one in found)
    assert plain["Max"] == 2.0


def test_the_dimensions_that_vmap_maps_over_come_first_the_outermost_first() -> None:
    seen: list[tuple[str, torch.Tensor]] = []

    def inner(value: Any) -> Any:
        with Unobserved():
            found = outside_transforms(value)
            assert found is not None
            seen.append(found)
        return value.sum()

    values = torch.arange(120.0).reshape(2, 3, 4, 5)
    torch.func.vmap(torch.func.vmap(torch.func.grad(inner), in_dims=1), in_dims=3)(
        values
    )  # over 5, then over 3 of (2, 3, 4)
    ((kind, found),) = seen
    assert kind == "torch.func.BatchedTensor"
    assert torch.equal(found, values.permute(3, 1, 0, 2))


def test_what_is_wrapped_in_another_way_has_no_values() -> None:
    found: list[Any] = []
    torch.func.functionalize(lambda value: found.append(record(value)) or value * 1)(torch.ones(2))
    assert [one["absent"] for one in found] == ["inside a function transform"]


def test_nested_tensors_are_measured_over_all_their_parts() -> None:
    for layout in (torch.strided, torch.jagged):
        value = torch.nested.nested_tensor([torch.ones(2), torch.full((3,), 3.0)], layout=layout)
        found = record(value)
        assert (found["Max"], found["Min"], found["Mean"]) == (3.0, 1.0, pytest.approx(2.2))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensors_are_measured_by_what_they_stand_for() -> None:
    value = torch.quantize_per_tensor(torch.tensor([0.0, 1.0]), 0.5, 0, torch.quint8)
    assert record(value, summary="md5")["Max"] == 1.0


def test_recording_leaves_gradients_random_state_and_versions_alone() -> None:
    value = torch.randn(4, requires_grad=True)
    result = value * 2
    before = torch.get_rng_state()
    version, node = result._version, result.grad_fn
    for task, deferred in (("statistics", True), ("tensor", False)):
        record([value, result], task=task, summary="md5", deferred=deferred, wants_tensor=lambda item: True)
    assert torch.equal(torch.get_rng_state(), before)
    assert result._version == version
    assert result.grad_fn is node
    result.sum().backward()
    assert torch.equal(value.grad, torch.full((4,), 2.0))
    with torch.inference_mode():
        assert record(torch.ones(2))["Max"] == 1.0


@pytest.mark.parametrize("deferred", [False, True])
def test_a_record_shows_the_value_at_the_time_of_the_call(deferred: bool) -> None:
    recorder = Recorder(task="statistics", summary="md5", deferred=deferred)
    value = torch.ones(100)
    found = recorder.record(value, "x")
    expected = record(value, summary="md5")
    value.zero_()
    recorder.resolve()
    assert found == expected


def test_a_structure_dump_records_nothing() -> None:
    assert record(torch.ones(3), task="structure") is None
