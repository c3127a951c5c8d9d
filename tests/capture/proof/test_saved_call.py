"""A call on disk is the call that ran: the same bits, views, aliases and state, written before it executes."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings, strategies as st
from warm_python import warm_python

from capture.proof.conftest import training
from dumpscope.readers.tensors import torch_file
from dumpscope_capture import ConfigError, intervene
from dumpscope_capture.proof import packing
from dumpscope_capture.proof.packing import Packer
from dumpscope_capture.proof.unpacking import Unpacker
from dumpscope_capture.saved_call import Opaque, SavedCallError, load
from dumpscope_format.saved_call import find

Pair = namedtuple("Pair", ["first", "second"])


def _again(value: Any, folder: Path, device: str | None = "cpu") -> Any:
    """A value packed, sent through JSON text, and unpacked."""
    folder.mkdir(exist_ok=True)
    packer = Packer(folder, "storage")
    form = packer.value(value)
    packer.write()
    form, tables = json.loads(json.dumps([form, packer.tables], allow_nan=False))
    return Unpacker(tables, lambda name, check: torch.load(folder / name, weights_only=True), device).value(form)


def _bits(tensor: torch.Tensor) -> bytes:
    row = torch.empty(tensor.numel(), dtype=tensor.dtype)
    return row.copy_(tensor.detach().reshape(-1)).view(torch.uint8).numpy().tobytes()


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=5) | st.floats() | st.complex_numbers()
    | st.binary(max_size=4) | st.just(...) | st.just(torch.Size([2, 3]))
    | st.sampled_from([torch.float16, torch.channels_last, torch.strided])
    | st.builds(slice, st.none() | st.integers(-9, 9), st.none() | st.integers(-9, 9), st.none() | st.integers(1, 9)),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    | st.builds(Pair, inner, inner),
    max_leaves=12,
)  # fmt: skip


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, complex):
        return _equal([one.real, one.imag], [other.real, other.imag])
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    return bool(one == other)


@given(value=plain)
@settings(deadline=None, max_examples=150)
def test_every_value_comes_back_as_it_was(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert _equal(_again(value, tmp_path_factory.mktemp("value")), value)


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64, torch.bool, torch.complex64,
          torch.uint16, torch.float8_e4m3fn]  # fmt: skip


@given(data=st.data(), dtype=st.sampled_from(DTYPES), sizes=st.lists(st.integers(0, 4), max_size=3))
@settings(deadline=None, max_examples=150)
def test_views_keep_bits_stride_and_offset_and_share_their_memory(
    data: Any, dtype: torch.dtype, sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, 4096, np.uint8)
    if dtype is torch.bool:
        raw &= 1
    base = torch.from_numpy(raw).view(dtype)
    strides = [data.draw(st.sampled_from([0, 1, 2, 5, 12])) for _ in sizes]
    views = [base.as_strided(sizes, strides, data.draw(st.integers(0, 40))) for _ in range(2)]
    one, (two, again) = _again([views[0], (views[1], views[0])], tmp_path_factory.mktemp("views"))
    assert again is one
    for view, back in zip(views, (one, two), strict=True):
        assert (back.dtype, back.shape, back.stride(), back.storage_offset()) == (
            view.dtype, view.shape, view.stride(), view.storage_offset(),
        )  # fmt: skip
        assert _bits(back) == _bits(view)
    assert one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
    assert one.untyped_storage().nbytes() == base.untyped_storage().nbytes()


def test_lazy_bits_layouts_and_kinds_of_tensors_come_back(tmp_path: Path) -> None:
    x = torch.randn(2, 3, dtype=torch.complex64)
    conjugate = _again(x.conj(), tmp_path / "conj")
    assert conjugate.is_conj()
    assert torch.equal(conjugate, x.conj())
    assert torch.equal(_again(x.conj().imag, tmp_path / "neg"), x.conj().imag)
    parameter = _again(torch.nn.Parameter(torch.ones(2), requires_grad=False), tmp_path / "parameter")
    assert isinstance(parameter, torch.nn.Parameter)
    assert not parameter.requires_grad
    pixels = _again(torch.randn(1, 3, 4, 4).to(memory_format=torch.channels_last), tmp_path / "pixels")
    assert pixels.is_contiguous(memory_format=torch.channels_last)
    scalar = _again(np.float32(0.1), tmp_path / "scalar")
    assert type(scalar) is np.float32
    assert np.array_equal(_again(np.arange(6).reshape(2, 3)[:, ::2], tmp_path / "array"), [[0, 2], [3, 5]])
    generator = torch.Generator().manual_seed(5)
    assert torch.equal(_again(generator, tmp_path / "generator").get_state(), generator.get_state())
    assert isinstance(_again(torch.eye(2).to_sparse(), tmp_path / "sparse"), Opaque)
    assert type(_again(torch.ones(2).max(0), tmp_path / "max")).__name__ == "max"


def test_only_the_part_of_a_great_storage_that_a_call_touches_is_written(tmp_path: Path) -> None:
    great = torch.zeros(40 << 20)
    part = great[30 << 20 : (30 << 20) + 10]
    part.copy_(torch.arange(10))
    back = _again(part, tmp_path)
    assert torch.equal(back, part)
    assert (tmp_path / "storage.0.pt").stat().st_size < 2000
    assert back.untyped_storage().nbytes() < 1000


def test_a_device_without_readable_storages_gives_the_elements_at_their_places(sim: Any, tmp_path: Path) -> None:
    base = torch.randn(6, 8).to("sim")
    views = [base.t()[1:4], base[2:3].expand(4, 8)]
    one, two = _again(views, tmp_path)
    for view, back in zip(views, (one, two), strict=True):
        assert (back.stride(), back.storage_offset()) == (view.stride(), view.storage_offset())
        assert torch.equal(back, view.cpu())
    assert one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
    there = _again(views[0], tmp_path, device=None)
    assert there.device.type == "sim"
    assert torch.equal(there.cpu(), views[0].cpu())


def test_a_private_storage_format_is_noted_and_the_content_kept_in_plain_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for an NPU's format number: its bytes must not be taken as they lie."""
    plain = packing.describe
    monkeypatch.setattr(packing, "describe", lambda tensor: {**plain(tensor), "format": 29})
    x = torch.randn(4, 5).t()
    packer = Packer(tmp_path, "storage")
    packer.value(x)
    packer.write()
    assert packer.tables["tensors"][0]["format"] == 29
    assert packer.tables["storages"][0]["exact"] is False
    back = _again(x, tmp_path / "again")
    assert torch.equal(back, x)
    assert back.stride() == x.stride()


# -- calls -------------------------------------------------------------------------------------------------------------


def _saved(folder: Path, name: str, step: int = 0) -> Path:
    (found,) = (path for path in find(folder / "dump" / f"step{step}") if path.name == name)
    return found


@pytest.mark.parametrize("where", ["cpu", "sim"])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_a_saved_call_runs_again_to_the_same_bits(level: str, where: str, sim: Any, make: Any, tmp_path: Path) -> None:
    step = training(where)
    debugger = make(level=level, save_calls=["Functional.group_norm.*", "Functional.relu"])
    debugger.save_call("Functional.dropout.0")
    debugger.start(torch.nn.Linear(1, 1))
    step()
    debugger.stop()
    debugger.step()
    names = {path.name for path in find(tmp_path)}
    assert names == {"Functional.group_norm.0", "Functional.group_norm.1", "Functional.relu.0", "Functional.dropout.0"}
    for name in names:
        call = load(_saved(tmp_path, name), device=None)
        assert call.returned
        result = call.run()
        assert result.device.type == where
        assert torch.equal(result.detach().cpu(), call.result.cpu())
        assert all(gradient is not None for gradient in call.backward(result))


def test_the_gradients_of_a_replay_are_those_of_the_run(make: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 6).t().requires_grad_()
    w = torch.randn(5, 4, requires_grad=True)
    make(level="L1", save_calls=["Functional.linear.0"]).start()
    F.linear(x, w).pow(2).sum().backward()
    call = load(_saved(tmp_path, "Functional.linear.0"))
    assert call.args[0].stride() == x.stride()
    assert [torch.equal(a, b) for a, b in zip(call.backward(call.run()), (x.grad, w.grad), strict=True)] == [True, True]


def test_the_state_a_call_ran_in_is_put_back_for_its_replay_only(make: Any, tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    w = torch.randn(2, 4)
    debugger = make(level="L1", save_calls=["Functional.linear.0", "Functional.dropout.0", "Torch.rand_like.0"])
    torch.use_deterministic_algorithms(True)
    debugger.start()
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            low = F.linear(x, w)
        dropped = F.dropout(x, 0.5)
    finally:
        torch.use_deterministic_algorithms(False)
    debugger.stop()
    before = torch.get_rng_state()
    call = load(_saved(tmp_path, "Functional.linear.0"))
    assert call.documents.call["modes"]["grad"] is False
    assert call.documents.call["modes"]["deterministic_algorithms"] is True
    again = call.run()
    assert again.dtype is torch.bfloat16
    assert torch.equal(again, low)
    assert torch.equal(load(_saved(tmp_path, "Functional.dropout.0")).run(), dropped)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_call_of_a_device_that_torch_does_not_know_here_runs_on_the_cpu(make: Any, tmp_path: Path) -> None:
    x, w = torch.randn(3, 4), torch.randn(2, 4)
    debugger = make(level="L1", risk_level="ALL", save_calls=["Functional.linear.0", "Torch.full_like.0"])
    debugger.start()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = F.linear(x, w)
    torch.full_like(x, 2.0, device=torch.device("cpu"))
    debugger.stop()
    for name in ("Functional.linear.0", "Torch.full_like.0"):
        path = _saved(tmp_path, name) / "call.json"
        document = json.loads(path.read_text(encoding="utf-8").replace('"device": "cpu"', '"device": "npu:0"'))
        document["rng"]["npu:0"] = "rng.npu.0.pt"
        if "cpu" in document["autocast"]:
            document["autocast"]["npu"] = document["autocast"].pop("cpu")
        for value in document["kwargs"].values():
            assert value == {"type": "device", "value": "cpu"}
            value["value"] = "npu:0"
        path.write_text(json.dumps(document), encoding="utf-8")
    call = load(_saved(tmp_path, "Functional.linear.0"))
    assert call.documents.call["tensors"][0]["device"] == "npu:0"
    assert torch.equal(call.run(), low)
    assert load(_saved(tmp_path, "Torch.full_like.0")).run().shape == (3, 4)


def test_arguments_that_share_memory_and_in_place_calls_are_replayed_as_they_were(make: Any, tmp_path: Path) -> None:
    leaf = torch.randn(4, 4, requires_grad=True)
    x = leaf * 1
    debugger = make(level="L1", risk_level="ALL", save_calls=["Tensor.add_.0", "Tensor.mul_.0"])
    debugger.start()
    x[:2].add_(x[2:], alpha=2)
    with torch.no_grad():
        leaf.mul_(leaf)
    debugger.stop()
    call = load(_saved(tmp_path, "Tensor.add_.0"))
    assert call.kwargs == {"alpha": 2}
    assert torch.equal(call.run(), x[:2])
    assert call.args[0].untyped_storage().data_ptr() == call.args[1].untyped_storage().data_ptr()
    square = load(_saved(tmp_path, "Tensor.mul_.0"))
    assert square.args[0] is square.args[1]
    assert torch.equal(square.run(), leaf)


def test_a_saved_call_says_where_it_stood_and_what_it_ran_on(make: Any, tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.GroupNorm(2, 4))
    debugger = make(level="mix", save_calls=["Functional.group_norm"])
    with intervene({"Functional.group_norm.0": "float64"}):
        debugger.start(model)
        model(torch.randn(2, 4))
        debugger.stop()
    call = load(_saved(tmp_path, "Functional.group_norm.0"))
    document = call.documents.call
    assert document["api"]["target"] == "torch.nn.functional.group_norm"
    assert document["module"] == "Module.0.GroupNorm.forward.0"
    assert any("test_saved_call.py" in text for text in document["stack"])
    assert document["versions"]["torch"] == torch.__version__
    assert call.documents.results is not None
    assert call.documents.results["substituted"] == "float64"
    assert [value for value in call.args if not isinstance(value, torch.Tensor)] == [2, 1e-5]


def test_a_call_with_an_argument_that_cannot_be_saved_says_so_when_it_is_run(make: Any, tmp_path: Path) -> None:
    debugger = make(level="L1", save_calls=["Torch.matmul"])
    debugger.start()
    torch.matmul(torch.eye(2).to_sparse(), torch.ones(2, 2))
    debugger.stop()
    with pytest.raises(SavedCallError, match="sparse"):
        load(_saved(tmp_path, "Torch.matmul.0")).run()


def test_a_damaged_file_is_noticed(make: Any, tmp_path: Path) -> None:
    debugger = make(level="L1", save_calls=["Functional.gelu"])
    debugger.start()
    F.gelu(torch.ones(64))
    debugger.stop()
    folder = _saved(tmp_path, "Functional.gelu.0")
    path = folder / "storage.0.pt"
    path.write_bytes(path.read_bytes().replace(bytes(torch.ones(2).numpy().data), b"\0" * 8, 1))
    with pytest.raises(SavedCallError, match=r"damaged|cannot be read"):
        load(folder)
    path.unlink()
    with pytest.raises(SavedCallError, match="cannot be read"):
        load(folder)


def test_a_server_without_torch_reads_the_tensors(make: Any, tmp_path: Path) -> None:
    x = torch.randn(3, 5, dtype=torch.float16).t()
    debugger = make(level="L1", save_calls=["Functional.gelu"])
    debugger.start()
    F.gelu(x)
    debugger.stop()
    folder = _saved(tmp_path, "Functional.gelu.0")
    document = json.loads((folder / "call.json").read_text(encoding="utf-8"))
    entry = document["tensors"][document["args"][0]["tensor"]]
    storage = document["storages"][entry["storage"]]
    raw = np.asarray(torch_file.load(folder / storage["file"]).array).view(np.float16)
    strides = [step * raw.itemsize for step in entry["stride"]]
    first = entry["offset"] - storage["start"] // raw.itemsize
    found = np.lib.stride_tricks.as_strided(raw[first:], entry["shape"], strides)
    assert np.array_equal(found, x.numpy())


@pytest.mark.parametrize("name", ["", "Functional.linear.5-2", 3])
def test_a_name_that_cannot_be_one_is_refused(name: Any, make: Any) -> None:
    with pytest.raises(ConfigError):
        make(save_calls=[name])


CRASH = """
import os, sys
import torch
import torch.nn.functional as F
from dumpscope_capture import PrecisionDebugger

library = torch.library.Library("broken", "DEF")
library.define("kernel(Tensor x) -> Tensor")
library.impl("kernel", lambda x: os._exit(7) if sys.argv[1] == "forward" else x.clone(), "CPU")

class Broken(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        os._exit(7)

def operator(x):
    return Broken.apply(torch.ops.broken.kernel(x))

class Place: pass
place = Place()
place.operator = operator
debugger = PrecisionDebugger(sys.argv[2])
debugger.register_custom_api(place, "operator", "Custom")
debugger.start()
x = torch.arange(6.0).view(2, 3).t().requires_grad_()
(place.operator(x) * torch.arange(6.0).view(3, 2)).sum().backward()
"""


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_a_call_that_takes_the_process_down_has_left_all_it_was_given(when: str, tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text(CRASH, encoding="utf-8")
    config = {
        "task": "statistics",
        "dump_path": str(tmp_path / "dump"),
        "level": "L1",
        "save_calls": ["Custom.operator.0"],
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ran = subprocess.run(
        [warm_python(), "crash.py", when, "config.json"], check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env=dict(os.environ),
    )  # fmt: skip
    assert ran.returncode == 7, ran.stderr
    call = load(_saved(tmp_path, "Custom.operator.0"))
    assert torch.equal(call.args[0], torch.arange(6.0).view(2, 3).t())
    assert call.args[0].stride() == (1, 3)
    assert call.returned == (when == "backward")
    if when == "backward":
        (gradient,) = call.gradients
        assert gradient is not None
        assert torch.equal(gradient, torch.arange(6.0).view(3, 2))


def test_the_runner_saves_calls_of_a_script_that_knows_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nfor _ in range(3):\n    torch.nn.functional.gelu(torch.ones(3, requires_grad=True)).sum().backward()\n",
        encoding="utf-8",
    )
    ran = subprocess.run(
        [warm_python(), "-m", "dumpscope_capture.run", "--save-call", "Functional.gelu.1", "--save-call", "Functional.gelu.3",
         "--output", "out", "train.py"],
        check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=dict(os.environ),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "no call matched Functional.gelu.3" in ran.stderr  # the last of three has the number 2
    assert "matched Functional.gelu.1" not in ran.stderr
    (folder,) = find(tmp_path / "out")
    call = load(folder)
    assert torch.equal(call.run(), F.gelu(torch.ones(3)))
    assert call.gradients[0] is not None
