"""Behind a backward that fails or makes NaN stands a call of the program, and it is named with its place."""

from __future__ import annotations

import gc
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint
from warm_python import warm_python

from capture.proof.conftest import training
from capture.proof.device import Broken
from dumpscope_capture import explain_backward
from dumpscope_capture.proof.backward_failures import HOWS, _frames, _MarkedNode, launch_warning


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Linear(6, 6)
        self.norm = torch.nn.GroupNorm(2, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.norm(self.mix(x)))  # the line of the call


class Net(torch.nn.Module):
    def __init__(self, again: bool | None = None) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.again = again

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x) if self.again is None else checkpoint(block, x, use_reentrant=self.again)
        return x


DATA = torch.randn(3, 4, 6)


def _train(model: Net, **broken: int) -> None:
    with Broken(**broken):
        model(DATA).float().sum().backward()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_a_failing_backward_names_call_node_module_file_and_line(how: Any) -> None:
    with pytest.raises(RuntimeError, match="507011") as caught, explain_backward(how) as explained:
        _train(Net(), native_group_norm_backward=2)
    (failure,) = explained.failures
    assert failure.origin is not None
    assert failure.origin.name == "Functional.group_norm.0"
    assert failure.node == "NativeGroupNormBackward0"
    assert failure.origin.module == "blocks.0.norm (GroupNorm)"
    assert any("the line of the call" in text and __file__ in text for text in failure.origin.stack)
    (note,) = caught.value.__notes__
    assert "Functional.group_norm.0" in note
    assert "blocks.0.norm" in note
    assert failure.launches is None


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_a_node_in_the_midst_of_a_call_of_several_is_that_calls(how: Any) -> None:
    x = torch.randn(5, 4, requires_grad=True)
    with explain_backward(how) as explained:
        loss = F.cross_entropy(x * 2, torch.arange(4).repeat(2)[:5])
        with Broken(_log_softmax_backward_data=0), pytest.raises(RuntimeError):
            loss.backward()
    (failure,) = explained.failures
    assert failure.origin is not None
    assert (failure.origin.name, failure.node) == ("Functional.cross_entropy.0", "LogSoftmaxBackward0")


@pytest.mark.parametrize("how", ["nan", "anomaly"])
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_the_first_call_whose_backward_makes_nan_is_named(how: Any) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with explain_backward(how) as explained:
        loss = (torch.sqrt(x) * 0 + x.exp()).sum()
        if how == "anomaly":
            with pytest.raises(RuntimeError, match="nan values"):
                loss.backward()
        else:
            loss.backward()
    (failure,) = explained.failures
    assert failure.nan
    assert failure.origin is not None
    assert (failure.origin.name, failure.node) == ("Torch.sqrt.0", "SqrtBackward0")


def test_anomaly_mode_is_as_it_was_afterwards() -> None:
    for before in (False, True):
        with torch.autograd.set_detect_anomaly(before):
            with explain_backward("anomaly"):
                assert torch.is_anomaly_enabled()
            assert torch.is_anomaly_enabled() == before
        with explain_backward("table"):
            assert not torch.is_anomaly_enabled()


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 1

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        raise ValueError("not today")


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_a_function_that_is_not_listed_is_told_from_listed_ones() -> None:
    x = torch.ones(2, requires_grad=True)
    for how, known in (("table", False), ("anomaly", True)):
        with pytest.raises(ValueError, match="not today"), explain_backward(how) as explained:  # type: ignore[arg-type]
            (Scale.apply(x.exp()) * 2).sum().backward()
        (failure,) = explained.failures
        assert failure.node == "ScaleBackward"
        assert failure.origin is not None
        assert failure.origin.name is None
        assert (failure.origin.place is not None) == known
        assert not known or "Scale.apply" in str(failure)


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_backward_of_a_recomputed_call_is_named_as_well(reentrant: bool) -> None:
    model = Net(reentrant)
    with explain_backward("table") as explained:
        loss = model(DATA.clone().requires_grad_()).sum()
        with Broken(native_group_norm_backward=0), pytest.raises(RuntimeError):
            loss.backward()
    (failure,) = explained.failures
    assert failure.origin is not None
    assert failure.origin.name is not None
    assert failure.origin.name.startswith("Functional.group_norm.")
    assert failure.origin.module == "blocks.1.norm (GroupNorm)"


def test_each_of_several_failures_that_a_program_survives_is_its_own() -> None:
    x = torch.randn(2, 4, requires_grad=True)
    with explain_backward("table") as explained:
        for function in (F.gelu, F.silu, F.gelu):
            loss = function(x).sum()
            with Broken(gelu_backward=0, silu_backward=0), pytest.raises(RuntimeError):
                loss.backward()
            function(x).sum().backward()
    names = [failure.origin.name for failure in explained.failures if failure.origin is not None]
    assert names == ["Functional.gelu.0", "Functional.silu.0", "Functional.gelu.2"]


def test_a_device_that_gives_a_gradient_of_another_shape_is_explained(sim: Any) -> None:
    x = torch.randn(2, 4, 3).to("sim").requires_grad_()
    wrong = sim.Fault(damage=lambda out: (out[0][:1, :2], *out[1:]))
    with sim.planted(native_group_norm_backward=wrong), explain_backward("table") as explained:
        loss = F.group_norm(x * 2, 2).sum()
        with pytest.raises(RuntimeError, match="invalid gradient"):
            loss.backward()
    (failure,) = explained.failures
    assert failure.origin is not None
    assert (failure.origin.name, failure.node) == ("Functional.group_norm.0", "NativeGroupNormBackward0")


def test_an_error_in_forward_gets_no_note() -> None:
    x = torch.ones(2, requires_grad=True)
    with explain_backward("table") as explained:
        x.exp().sum().backward()
        with pytest.raises(RuntimeError) as caught:
            torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
    assert not explained.failures
    assert not getattr(caught.value, "__notes__", [])


def test_what_autograd_says_of_a_changed_tensor_is_explained() -> None:
    x = torch.ones(2, requires_grad=True)
    with explain_backward("table") as explained:
        y = x.exp()
        y.add_(1)
        loss = y.sum()
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            loss.backward()
    (failure,) = explained.failures
    assert failure.origin is not None
    assert failure.origin.name == "Tensor.exp.0"


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_no_number_changes_while_backward_is_explained(how: Any) -> None:
    step = training("cpu")
    plain = step()
    with explain_backward(how):
        told = step()
    assert torch.equal(plain[0], told[0])
    assert all(torch.equal(a, b) for a, b in zip(plain[1], told[1], strict=True))


def test_what_is_known_of_a_graph_goes_with_the_graph() -> None:
    def known() -> int:
        gc.collect()
        return sum(type(one) is _MarkedNode for one in gc.get_objects())

    x = torch.randn(8, requires_grad=True)
    before = known()
    with explain_backward("table"):
        gc.disable()
        try:
            for _ in range(20):
                (x.exp() * x.sin()).sum().backward()
                (x.exp() * x.sin()).sum()
        finally:
            gc.enable()
        assert known() <= before + 3


@pytest.mark.parametrize(
    ("device", "environment", "warned"),
    [
        ("cuda", {}, True),
        ("cuda", {"CUDA_LAUNCH_BLOCKING": "0"}, True),
        ("cuda", {"CUDA_LAUNCH_BLOCKING": "1"}, False),
        ("npu", {"CUDA_LAUNCH_BLOCKING": "1"}, True),
        ("npu", {"ASCEND_LAUNCH_BLOCKING": "1"}, False),
        ("cpu", {}, False),
    ],
)
def test_a_stack_from_an_asynchronous_launch_is_called_one(
    device: str, environment: dict[str, str], warned: bool
) -> None:
    text = launch_warning(device, environment)
    assert (text is not None) == warned
    assert not warned or f"{'CUDA' if device == 'cuda' else 'ASCEND'}_LAUNCH_BLOCKING=1" in str(text)


def test_the_text_of_anomaly_mode_is_read_as_frames() -> None:
    lines = ['  File "a.py", line 3, in f\n    g(x)\n', '  File "b.py", line 9, in g\n    x.exp()\n']
    assert _frames(lines) == ["File b.py, line 9, in g, \n x.exp()", "File a.py, line 3, in f, \n g(x)"]


@pytest.mark.parametrize("how", ["table", "anomaly"])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_a_capture_names_the_call_by_the_name_it_has_in_the_dump(level: str, how: str, make: Any, read: Any) -> None:
    debugger = make(level=level, explain_backward=how)
    net = Net()
    debugger.start(net)
    with pytest.raises(RuntimeError) as caught:
        _train(net, native_group_norm_backward=1)
    assert "Functional.group_norm.1" in caught.value.__notes__[0]
    debugger.stop()
    debugger.step()
    assert not read().errors
    (failure,) = read().run["backward_failures"]
    assert failure["call"] == "Functional.group_norm.1"
    assert failure["module"] == "blocks.1.norm (GroupNorm)"
    assert failure["node"] == "NativeGroupNormBackward0"
    assert not torch.is_anomaly_enabled()


def test_the_runner_explains_a_script_that_knows_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()\n",
        encoding="utf-8",
    )
    ran = subprocess.run(
        [warm_python(), "-m", "dumpscope_capture.run", "--explain-backward", "table", "--report", "report.json", "train.py"],
        check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=dict(os.environ),
    )  # fmt: skip
    assert ran.returncode == 1
    assert "the backward of Tensor.exp.0 failed" in ran.stderr.rpartition("Traceback")[2]
    (failure,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["backward_failures"]
    assert failure["place"] == "File train.py, line 3, in <module>, \n y = x.exp()"
