"""Keys of ours beside msprobe's: who made an argument, what contains it, what it is called."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from dumpscope_capture.values.provenance import Provenance

Pair = collections.namedtuple("Pair", ["left", "right"])


class Two(nn.Module):
    def forward(self, pair: Any, *, mask: Any = None) -> Pair:
        return Pair(pair[0] * 2, F.relu(pair[1]))


def test_an_argument_names_the_result_it_is(make: Any, read: Any) -> None:
    debugger = make(level="L1")
    with debugger:
        x = torch.randn(3, 4)
        hidden = F.relu(x)
        F.softmax(hidden.view(4, 3), dim=0)  # a view of it, made by a call that is not recorded
        hidden.mul_(2)
        torch.sigmoid(input=hidden)
        F.gelu(x)
        with torch.no_grad():
            hidden.zero_()
            hidden.data.fill_(1)  # past autograd: nobody can tell
        torch.stack([hidden, torch.tanh(x)])
    data = read().data
    assert "producers" not in data["Functional.relu.0.forward"]
    assert data["Functional.softmax.0.forward"]["producers"] == {"input.0": "Functional.relu.0.forward.output.0"}
    assert data["Tensor.mul_.0.forward"]["producers"] == {"input.0": "Functional.relu.0.forward.output.0"}
    assert data["Torch.sigmoid.0.forward"]["producers"] == {"kwargs.input": "Tensor.mul_.0.forward.output.0"}
    assert "producers" not in data["Functional.gelu.0.forward"]
    assert not read().errors


def test_a_module_hands_on_what_its_function_made(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    debugger = make(level="mix")
    debugger.start(model)
    model(torch.randn(2, 3))
    debugger.stop()
    debugger.step()
    data = read().data
    assert data["Torch.tanh.0.forward"]["producers"] == {"input.0": "Functional.linear.0.forward.output.0"}
    assert data["Module.1.Tanh.forward.0"]["producers"] == {"input.0": "Functional.linear.0.forward.output.0"}


@dataclasses.dataclass
class Shown(collections.OrderedDict):  # type: ignore[type-arg]
    """As the results of transformers: a dataclass that is a dict."""

    whole: Any = None
    first: Any = None

    def __post_init__(self) -> None:
        self.update(whole=self.whole, first=self.first)


class Pooled(nn.Module):
    def forward(self, rows: torch.Tensor) -> Shown:
        return Shown(whole=rows * 2, first=rows.exp()[:, 0])


def test_a_part_of_a_dict_that_a_module_returns_is_named_as_it_is_recorded(make: Any, read: Any) -> None:
    model = nn.Sequential(Pooled())
    debugger = make(level="mix")
    debugger.start(model)
    torch.tanh(model[0](torch.randn(2, 3))["first"])
    debugger.stop()
    debugger.step()
    data = read().data
    name = "Module.0.Pooled.forward.0"
    assert list(data[name]["output"][0]) == ["whole", "first"]
    assert data["Torch.tanh.0.forward"]["producers"] == {"input.0": f"{name}.output.0.first"}


def test_containers_are_named_where_json_cannot_tell_them(make: Any, read: Any) -> None:
    model = nn.ModuleDict({"two": Two()})
    debugger = make(level="mix")
    debugger.start(model)
    x = torch.randn(2, 3)
    model["two"]((x, torch.tanh(x)), mask={"a": (1, 2)})
    torch.max(x, 0)
    debugger.stop()
    debugger.step()
    data = read().data
    module = data["Module.two.Two.forward.0"]
    assert module["containers"] == {"input.0": "tuple", "kwargs.mask.a": "tuple", "output": f"{__name__}.Pair"}
    assert module["producers"] == {"input.0.1": "Torch.tanh.0.forward.output.0"}
    assert data["Torch.max.0.forward"]["containers"] == {"output": "torch.return_types.max"}


def test_an_argument_without_a_record_says_its_type(make: Any, read: Any) -> None:
    with make(level="L1", risk_level="ALL"):
        torch.randperm(3)
        torch.normal(torch.zeros(2), torch.ones(2), generator=torch.Generator())
    assert read().data["Torch.normal.0.forward"]["absent"] == {"kwargs.generator": "torch._C.Generator"}


def test_an_argument_says_where_it_lies_unless_in_plain_host_memory(make: Any, read: Any) -> None:
    with make(level="L1"):
        torch.relu(torch.ones(2).share_memory_())
        torch.relu(torch.ones(2, device="meta"))
        torch.relu(torch.ones(2))
    kinds = [node.get("storage") for node in read().data.values()]
    assert kinds == [{"input.0": "shared memory"}, {"input.0": "meta"}, None]


def test_run_json_names_arguments_versions_and_devices(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    debugger = make(level="mix")
    debugger.start(model)
    torch.matmul(model(torch.randn(2, 3)), torch.randn(3, 1))
    debugger.stop()
    debugger.step()
    run = read().run
    assert run["arguments"]["Functional.linear"] == ["input", "weight", "bias"]
    assert run["arguments"]["Torch.matmul"][:2] == ["input", "other"]
    assert run["arguments"]["Linear"] == ["input"]
    assert run["framework"] == "pytorch"
    assert run["versions"]["torch"] == torch.__version__
    assert run["devices"][0].startswith("cpu")


def test_tensors_are_not_kept_alive_and_their_numbers_are_not_taken_for_others() -> None:
    made = Provenance()
    body = {"input_args": [{}]}
    for _ in range(100):
        gone = torch.ones(2)
        made.of_results(gone, "Torch.ones.0.forward", {})
        number = id(gone)
        del gone
        other = torch.zeros(2)
        assert made.of_arguments((other,), {}, body) == {}
        if id(other) == number:
            break
    else:
        raise AssertionError("no tensor got the number of one that is gone")


def test_tensors_without_a_version_are_told_all_the_same() -> None:
    made = Provenance()
    with torch.inference_mode():
        tensor = torch.ones(2)
        made.of_results((tensor, None), "Torch.split.0.forward", {})
        found = made.of_arguments((tensor,), {}, {"input_args": [{}]})
    assert found == {"producers": {"input.0": "Torch.split.0.forward.output.0"}}


def test_structure_dumps_and_dumps_without_extra_information_have_none(make: Any, read: Any) -> None:
    with make(level="L1", extra_info=False):
        F.relu(torch.tanh(torch.randn(3)))
    assert "producers" not in read().data["Functional.relu.0.forward"]
    assert "arguments" not in read().run
