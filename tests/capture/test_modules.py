"""Module nodes: names, results of every form, exceptions, odd tensors, compiled code."""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from dumpscope.readers import discover, read_rank
from dumpscope_format.naming import parse


def _capture(make: Any, read: Any, model: Any, run: Any, **keys: Any) -> Any:
    debugger = make(**keys)
    debugger.start(model)
    run()
    debugger.stop()
    debugger.step()
    return read()


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...] = ()


class GivesDataclass(nn.Module):
    def forward(self, x: torch.Tensor) -> Output:
        return Output(logits=x * 2, hidden=(x + 1, x + 2))


def test_modules_may_be_called_like_parts_of_names(make: Any, read: Any) -> None:
    model = nn.Module()
    for name in ("output", "backward_lstm", "0", "input_args"):
        model.add_module(name, nn.Linear(2, 2))
    inner = nn.Module()
    inner.add_module("forward_", nn.Linear(2, 2))
    inner._modules["forward"] = inner._modules.pop("forward_")
    model.add_module("kwargs", inner)
    x = torch.ones(1, 2)

    def run() -> None:
        y = x
        for name in ("output", "backward_lstm", "0", "input_args"):
            y = getattr(model, name)(y)
        dict(inner.named_children())["forward"](y).sum().backward()

    dump = _capture(make, read, model, run, task="tensor")
    assert "Module.kwargs.forward.Linear.forward.0" in dump.data
    assert "Module.output.Linear.backward.0" in dump.data
    for node in dump.data:
        assert parse(node).kind in ("module", "gradient", "api")
    for node, record in dump.data.items():
        for item in _leaves(record):
            assert (dump.folder / "dump_tensor_data" / item["data_name"]).is_file(), node


def _leaves(record: Any) -> Any:
    if isinstance(record, dict):
        if "data_name" in record:
            yield record
        for part in record.values():
            yield from _leaves(part)
    elif isinstance(record, list):
        for part in record:
            yield from _leaves(part)


def test_a_dataclass_is_an_object_and_its_gradients_are_recorded(make: Any, read: Any) -> None:
    whole = nn.ModuleDict({"m": GivesDataclass()})
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        out = whole["m"](x)
        (out.logits.sum() + out.hidden[1].sum()).backward()

    data = _capture(make, read, whole, run, level="L0").data
    assert set(data["Module.m.GivesDataclass.forward.0"]["output"]) == {"logits", "hidden"}
    back = data["Module.m.GivesDataclass.backward.0"]
    assert [part and part["Max"] for part in back["input"]] == [1.0, None, 1.0]
    assert back["output"][0]["Max"] == 3.0


def test_an_exception_in_forward_reaches_the_program_and_closes_the_module(make: Any, read: Any) -> None:
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.inner(x)
            raise KeyError("of the program")

    model = nn.ModuleDict({"bad": Fails(), "good": nn.ReLU()})

    def run() -> None:
        with pytest.raises(KeyError, match="of the program"):
            model["bad"](torch.ones(1, 2))
        model["good"](torch.ones(1, 2))

    dump = _capture(make, read, model, run)
    assert dump.data["Module.bad.Fails.forward.0"]["output"] == [None]
    assert dump.construct["Module.good.ReLU.forward.0"] is None
    assert dump.construct["Module.bad.inner.Linear.forward.0"] == "Module.bad.Fails.forward.0"
    assert not dump.errors


def test_a_list_of_models_numbers_them_and_shared_modules_keep_their_first_name(make: Any, read: Any) -> None:
    shared = nn.Linear(2, 2)
    models = [nn.Sequential(shared), nn.Sequential(nn.ReLU(), shared)]
    dump = _capture(make, read, models, lambda: models[1](models[0](torch.ones(1, 2))), level="L0")
    assert list(dump.data) == [
        "Module.0.0.Linear.forward.0",
        "Module.1.0.ReLU.forward.0",
        "Module.0.0.Linear.forward.1",
    ]


def test_hooks_of_the_capture_never_raise_into_training(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dumpscope_capture.values.recorder import Recorder  # noqa: PLC0415

    def broken(self: Any, value: Any, item: str, *, keyword: str | None = None) -> Any:
        raise RuntimeError("of the capture")

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    monkeypatch.setattr(Recorder, "record", broken)
    x = torch.ones(1, 2, requires_grad=True)
    dump = _capture(make, read, model, lambda: model(x).sum().backward())
    assert x.grad is not None
    assert sum(dump.errors.values()) > 3


def test_tensors_without_data_or_of_odd_kinds_are_named_and_harmless(make: Any, read: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415

    def run() -> None:
        torch.ones(2, 2, device="meta") + 1
        torch.eye(3).to_sparse() * 2
        torch.view_as_complex(torch.ones(2, 2)) * 2
        torch.abs(torch.tensor([1 + 2j]))
        F.relu(torch.ones(3).to(torch.float8_e4m3fn).float())
        torch.ones(3).to(torch.float8_e4m3fn).float() + 1
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize() + 1
        torch.ones(0, 3) + 1
        with FakeTensorMode():
            torch.ones(3) + 1

    debugger = make(level="L1", risk_level="ALL", task="tensor", section={"summary_mode": "md5"})
    debugger.start()
    run()
    debugger.stop()
    debugger.step()
    dump = read()
    assert not dump.errors
    assert dump.data["Tensor.__add__.0.forward"]["input_args"][0]["Max"] is None
    assert sum(node.startswith("Tensor.__mul__") for node in dump.data) == 3


def test_a_small_view_of_a_huge_storage_is_a_small_file(make: Any, read: Any) -> None:
    huge = torch.zeros(1_000_000)
    debugger = make(level="L1", task="tensor")
    debugger.start()
    huge[10:20] + 1
    debugger.stop()
    debugger.step()
    files = sorted((read().folder / "dump_tensor_data").iterdir())
    assert len(files) == 2
    assert all(file.stat().st_size < 5_000 for file in files)
    assert torch.equal(torch.load(files[1]), torch.ones(10))


def test_a_compiled_module_is_recorded_as_it_computes_eagerly(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.GELU())
    compiled = torch.compile(model, backend="eager")
    x = torch.ones(1, 2)
    bare = compiled(x)
    debugger = make(compiled="eager")
    debugger.start(compiled)
    captured = compiled(x)
    debugger.stop()
    debugger.step()
    assert torch.equal(bare, captured)
    assert [node for node in read().data if node.startswith("Functional.")] == [
        "Functional.linear.0.forward",
        "Functional.gelu.0.forward",
    ]
    assert any(node.startswith("Module.1.GELU") for node in read().data)
    assert torch.equal(compiled(x), bare)


def test_a_module_compiled_in_place_is_recorded_and_told_of(
    make: Any, read: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.GELU())
    model[1].compile(backend="eager")
    x = torch.ones(1, 2)
    model(x)
    with caplog.at_level(logging.INFO, "dumpscope"):
        dump = _capture(make, read, model, lambda: model(x), compiled="eager")
    assert list(dump.data) == [
        "Functional.linear.0.forward", "Module.0.Linear.forward.0", "Functional.gelu.0.forward", "Module.1.GELU.forward.0",
    ]  # fmt: skip
    assert "torch.compile is OFF while data is recorded: Module.1.GELU runs eagerly" in caplog.text


def _told_of_compiling(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record.getMessage() for record in caplog.records if record.name == "dumpscope"]
    return [text for text in said if "cannot switch torch.compile off" in text]


def test_a_torch_that_cannot_switch_compiling_off_says_so_once_and_only_for_compiled_code(
    make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch 2.1 to 2.5, where AdamW imports the compiler also in a program that compiles nothing."""
    monkeypatch.delattr(torch.compiler, "set_stance")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda x: F.gelu(x) * 2, backend="eager")
    debugger = make(level="L1", compiled="eager")
    for step in range(4):
        debugger.start()
        F.relu(torch.ones(2))
        debugger.stop()
        debugger.step()
        if step == 1:
            assert not _told_of_compiling(caplog)
            compiled(torch.ones(2))
    assert len(_told_of_compiling(caplog)) == 1
    told = [json.loads(path.read_text()).get("skipped_code") for path in sorted(tmp_path.glob("dump/step*/*/run.json"))]
    assert told == [None, None, ["torch.compile"], ["torch.compile"]]


def test_code_compiled_while_recording_is_recorded_too(make: Any, read: Any) -> None:
    debugger = make(level="L1", compiled="eager")
    debugger.start()
    compiled = torch.compile(lambda x: F.gelu(x) * 2, backend="eager")
    result = compiled(torch.ones(2))
    debugger.stop()
    debugger.step()
    assert torch.allclose(result, F.gelu(torch.ones(2)) * 2)
    assert "Functional.gelu.0.forward" in read().data


def test_scripted_and_traced_modules_run(make: Any, read: Any) -> None:
    class Inner(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) + 1

    model = nn.ModuleDict({"traced": torch.jit.trace(Inner(), torch.ones(2)), "plain": nn.ReLU()})
    dump = _capture(make, read, model, lambda: model["plain"](model["traced"](torch.ones(2))), level="L0")
    assert "Module.plain.ReLU.forward.0" in dump.data
    assert not dump.errors
    assert dump.run["skipped_modules"] == ["Module.traced.TopLevelTracedModule"]


def test_a_scripted_model_is_told_of_once_and_named_in_run_json(
    make: Any, read: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU())))
    debugger = make(level="L0")
    for _ in range(2):
        debugger.start(model)
        model(torch.ones(1, 2))
        debugger.stop()
        debugger.step()
    assert sum("TorchScript" in line for line in caplog.messages) == 1
    assert read(1).run["skipped_modules"] == ["Module.RecursiveScriptModule"]


def test_module_dump_records_one_module_and_no_function(make: Any, read: Any) -> None:
    from dumpscope_capture import module_dump, module_dump_end  # noqa: PLC0415

    lone = nn.Sequential(nn.Linear(2, 2))
    debugger = make(level="L1")
    debugger.start()
    F.relu(torch.ones(2))
    module_dump(lone, "mine")
    lone(torch.ones(1, 2)).sum().backward()
    module_dump_end()
    F.gelu(torch.ones(2))
    debugger.stop()
    debugger.step()
    assert list(read().data) == [
        "Functional.relu.0.forward", "Module.mine.Sequential.forward.0", "Module.mine.Sequential.backward.0",
        "Functional.gelu.0.forward",
    ]  # fmt: skip


def test_identity_modules_have_gradients(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Identity(), nn.Dropout(0.5).eval(), nn.Linear(2, 2))
    dump = _capture(make, read, model, lambda: model(torch.ones(1, 2)).sum().backward(), level="L0")
    assert (
        dump.data["Module.1.Identity.backward.0"]["input"][0]["Norm"]
        == dump.data["Module.3.Linear.backward.0"]["output"][0]["Norm"]
    )
    assert "Module.2.Dropout.backward.0" in dump.data


class _Closure:
    """Runs the model in an optimizer's step, as trainers do that wrap what the user wrote."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def __call__(self, scale: float) -> torch.Tensor:
        with torch.no_grad():
            torch.ones(2).neg()
        self.optimizer.zero_grad()
        loss = self.model(torch.ones(1, 2)).mul(scale).sum()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
        return loss


@pytest.mark.parametrize("kept", [True, False])
def test_what_an_optimizer_is_given_to_run_is_not_its_own_computing(make: Any, read: Any, kept: bool) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    step = functools.partial(_Closure(model, optimizer), scale=2.0)
    debugger = make(level="mix", optimizer=kept)
    debugger.start(model)
    optimizer.step(step)
    debugger.stop()
    debugger.step()
    dump = read()
    assert not dump.errors
    parents = dump.construct
    assert parents["Module.0.Linear.forward.0"] is None
    for name in ("Module.0.Linear.forward.1", "Tensor.neg.0.forward", "Tensor.mul.0.forward", "Tensor.sum.0.forward"):
        assert parents[name] is None
        assert name in dump.data
    assert {parent for name, parent in parents.items() if "_foreach_norm" in name} == {"clip_grad"}
    own = [name for name, parent in parents.items() if parent == "optimizer"]
    assert bool(own) == kept
    assert not any(name.startswith("Module") for name in own)


def test_optimizers_and_clipping_are_pseudo_parents(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run() -> None:
        model(torch.ones(1, 2)).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    construct = _capture(make, read, model, run).construct
    assert construct["optimizer"] is None
    assert construct["clip_grad"] is None
    assert construct["Tensor.add_.0.forward"] == "optimizer"
    assert "clip_grad" in construct.values()


def test_a_lazy_module_is_recorded_from_its_first_call_on(
    make: Any, read: Any, caplog: pytest.LogCaptureFixture
) -> None:
    whole = nn.ModuleDict({"m": nn.LazyLinear(3)})
    debugger = make(level="mix")
    for _ in range(2):
        debugger.start(whole)
        whole["m"](torch.ones(2, 4)).sum().backward()
        debugger.stop()
        debugger.step()
    assert "failed" not in caplog.text
    first, second = (read(step=step).data for step in (0, 1))
    (node,) = (name for name in first if name.startswith("Module.m.") and ".forward." in name)
    assert first[node]["parameters"] == {}  # it has none before the call
    assert first[node]["input_args"][0]["shape"] == [2, 4]
    (node,) = (name for name in second if name.startswith("Module.m.") and ".forward." in name)
    assert second[node]["parameters"]["weight"]["shape"] == [3, 4]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"level": "L0"}, "neither the model itself nor functions"),
        ({"level": "mix", "section": {"list": ["softmax"]}}, "list and scope"),
    ],
)
def test_a_step_without_any_node_says_why_in_the_log_and_to_who_reads_it(
    make: Any, read: Any, caplog: pytest.LogCaptureFixture, settings: dict[str, Any], why: str
) -> None:
    model = nn.Linear(4, 2)
    dump = _capture(make, read, model, lambda: model(torch.ones(1, 4)), **settings)
    assert dump.data == {}
    (told,) = (line for line in caplog.messages if "nothing of the step" in line)
    assert why in told
    (rank,) = discover(dump.folder.parents[1]).ranks
    (problem,) = read_rank(rank).problems  # as a reader of the dump is told
    assert "ended as it should" in problem.message
    assert ("neither the model itself" in problem.message) == (settings["level"] == "L0")
