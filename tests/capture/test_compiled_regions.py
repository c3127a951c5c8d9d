"""Code compiled by torch.compile runs compiled while it is recorded: same numbers, same compilations; each region is a node."""

from __future__ import annotations

import json
import logging
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
import torch.utils.checkpoint
from torch import nn
from warm_python import DUMPSCOPE, warm_python

from dumpscope.cli.commands.info import describe
from dumpscope.readers import discover
from dumpscope_capture.hooks.functions import mode_stack

Numbers = list[list[torch.Tensor]]


class Block(nn.Module):
    """A residual block. drop: share of dropout; breaks: whether the graph breaks inside"""

    def __init__(self, *, drop: float, breaks: bool) -> None:
        super().__init__()
        self.norm, self.fc, self.drop = nn.LayerNorm(8), nn.Linear(8, 8), nn.Dropout(drop)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.fc(self.norm(x)))
        if self.breaks:
            torch._dynamo.graph_break()
        return x + self.drop(y)


class Net(nn.Module):
    def __init__(self, *, drop: float = 0.3, breaks: bool = False, blocks: int = 2) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(drop=drop, breaks=breaks) for _ in range(blocks)))
        self.norm, self.head = nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(x)))


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _train(
    compiled: Callable[[nn.Module], nn.Module], debugger: Any = None, *, steps: int = 3, **options: Any
) -> tuple[Numbers, list[int]]:
    """Loss, gradients, parameters, buffers and generator after each step, and the number of graphs made by then.

    The batch grows with each step, so that graphs are compiled anew.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(7)
    model = Net(**options)
    run = compiled(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    numbers: Numbers = []
    graphs = []
    for step in range(steps):
        x = torch.randn(4 + step, 8)
        if debugger is not None:
            debugger.start(run)
        loss = (run(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        state = [tensor.detach().clone() for tensor in (*model.parameters(), *model.buffers())]
        numbers.append([loss.detach(), *gradients, *state, torch.get_rng_state()])
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    return numbers, graphs


def _same(some: Numbers, others: Numbers) -> bool:
    return all(
        len(one) == len(other) and all(map(torch.equal, one, other)) for one, other in zip(some, others, strict=True)
    )


_CASES = [
    ("eager", "mix", "statistics", {}), ("eager", "L1", "tensor", {"breaks": True}), ("eager", "L0", "tensor", {"drop": 0.0}),
    ("aot_eager", "mix", "tensor", {}), ("aot_eager", "L0", "statistics", {"breaks": True}),
    ("aot_eager", "L1", "statistics", {"drop": 0.0, "breaks": True, "blocks": 1}),
    ("aot_eager", "mix", "md5", {"breaks": True, "blocks": 1}),
    ("inductor", "mix", "tensor", {"breaks": True, "blocks": 1}), ("inductor", "L1", "statistics", {"blocks": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("backend", "level", "task", "options"), _CASES)
def test_a_recorded_step_computes_what_the_compiled_program_computes(
    make: Any, read: Any, backend: str, level: str, task: str, options: dict[str, Any]
) -> None:
    def compiled(model: nn.Module) -> nn.Module:
        return torch.compile(model, backend=backend)

    bare, graphs = _train(compiled, **options)
    md5 = task == "md5"
    debugger = make({"summary_mode": "md5"} if md5 else None, level=level, task="statistics" if md5 else task)
    recorded, recorded_graphs = _train(compiled, debugger, **options)
    assert _same(bare, recorded)
    assert graphs == recorded_graphs
    assert graphs[1] > graphs[0]  # compiled anew for another shape
    blocks = [f"blocks.{number}" for number in range(options.get("blocks", 2))]
    for step in range(3):
        dump = read(step)
        assert not dump.errors
        names = [name for name in dump.data if name.startswith("Compiled.")]
        if options.get("breaks"):
            expected = [*((f"{block}.Block", 2) for block in blocks), ("Net", 1)]
        else:
            expected = [("Net", 1)]
        calls = [f"Compiled.{label}.{number}" for label, count in expected for number in range(count)]
        assert [name for name in names if name.endswith(".forward")] == [f"{call}.forward" for call in calls]
        assert {name for name in names if name.endswith(".backward")} == {f"{call}.backward" for call in calls}
        assert not any(name.startswith("Functional.") for name in dump.data)
        if level != "L1":
            assert {name.split(".parameters_grad")[0] for name in dump.data if "parameters_grad" in name} == {
                *(f"Module.{block}.norm.LayerNorm" for block in blocks), *(f"Module.{block}.fc.Linear" for block in blocks),
                "Module.norm.BatchNorm1d", "Module.head.Linear",
            }  # fmt: skip
        for call in calls:
            region = dump.run["compiled_regions"][call]
            assert region["backend"] == backend
            text = (dump.folder / region["graph"]).read_text(encoding="utf-8")
            assert "class GraphModule(torch.nn.Module)" in text
            assert len(region["inputs"]) == len(dump.data[f"{call}.forward"]["input_args"])
            assert all(name in text.lower() for name in region["inputs"] if len(name) > 3)


def test_a_region_has_its_real_inputs_outputs_and_gradients(make: Any, read: Any) -> None:
    model = nn.Linear(3, 2)
    compiled = torch.compile(model, backend="aot_eager")
    x = torch.randn(4, 3, requires_grad=True)
    debugger = make(task="tensor", level="L0")
    debugger.start(nn.Sequential(compiled))
    y = compiled(x)
    (y**2).sum().backward()
    debugger.stop()
    debugger.step()
    dump = read()

    def tensor(item: str) -> torch.Tensor:
        return torch.load(dump.folder / "dump_tensor_data" / f"{item}.pt")

    assert set(dump.data) == {
        "Compiled.0.Linear.0.forward", "Module.0.Linear.forward.0", "Compiled.0.Linear.0.backward",
        "Module.0.Linear.backward.0", "Module.0.Linear.parameters_grad.0",
    }  # fmt: skip
    region = dump.run["compiled_regions"]["Compiled.0.Linear.0"]
    assert region["whole"] is True
    assert region["module"] == "Module.0.Linear"
    assert dump.construct["Compiled.0.Linear.0.forward"] == "Module.0.Linear.forward.0"
    places = {name: place for place, name in enumerate(region["inputs"])}
    (given,) = [place for name, place in places.items() if "weight" not in name and "bias" not in name]
    (weight,) = [place for name, place in places.items() if "weight" in name]
    assert torch.equal(tensor(f"Compiled.0.Linear.0.forward.input.{given}"), x)
    assert torch.equal(tensor(f"Compiled.0.Linear.0.forward.input.{weight}"), model.weight)
    assert torch.equal(tensor("Compiled.0.Linear.0.forward.output.0"), y)
    assert torch.equal(tensor("Compiled.0.Linear.0.backward.input.0"), 2 * y)
    assert x.grad is not None
    assert model.weight.grad is not None
    assert torch.equal(tensor(f"Compiled.0.Linear.0.backward.output.{given}"), x.grad)
    assert torch.equal(tensor(f"Compiled.0.Linear.0.backward.output.{weight}"), model.weight.grad)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_part_is_a_module_of_the_same_name_as_in_the_uncompiled_program(
    make: Any, read: Any, in_place: bool
) -> None:
    def run(step: int, *, compiled: bool) -> dict[str, Any]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 8), Block(drop=0.0, breaks=False), nn.ReLU())
        if compiled and in_place:
            model[1].compile(backend="eager")
        elif compiled:
            model[1] = torch.compile(model[1], backend="eager")
        debugger.start(model)
        model(torch.ones(2, 8)).sum().backward()
        debugger.stop()
        debugger.step()
        return read(step).data

    debugger = make(level="L0")
    eager = run(0, compiled=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Using `torch.compile")
        compiled = run(1, compiled=True)
    for name in ("Module.1.Block.forward.0", "Module.1.Block.backward.0", "Module.1.fc.Linear.parameters_grad.0"):
        assert eager[name] == {**compiled[name], **({"parameters": {}} if "forward" in name else {})}
    assert "Compiled.1.Block.0.forward" in compiled
    assert read(1).run["compiled_regions"]["Compiled.1.Block.0"]["module"] == "Module.1.Block"
    assert not any("_orig_mod" in name or "OptimizedModule" in name for name in compiled)


def test_a_compiled_function_is_a_node_and_code_around_it_stays_seen(make: Any, read: Any) -> None:
    @torch._dynamo.disable
    def seen(x: torch.Tensor) -> torch.Tensor:
        return F.silu(x)

    @torch.compile(backend="aot_eager")
    def mixed(x: torch.Tensor) -> torch.Tensor:
        return seen(x + 1).tanh()

    debugger = make(level="L1")
    debugger.start()
    y = F.relu(torch.ones(2, requires_grad=True))
    F.gelu(mixed(y)).sum().backward()
    debugger.stop()
    debugger.step()
    assert [name for name in read().data if name.endswith("forward")] == [
        "Functional.relu.0.forward", "Compiled.mixed.0.forward", "Functional.silu.0.forward", "Compiled.mixed.1.forward",
        "Functional.gelu.0.forward", "Tensor.sum.0.forward",
    ]  # fmt: skip


def test_code_compiled_before_the_recording_is_recorded_without_its_text(
    make: Any, read: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from dumpscope_capture.hooks import graphs  # noqa: PLC0415

    compiled = torch.compile(lambda x: F.gelu(x) * 2, backend="aot_eager")
    compiled(torch.ones(2))
    made = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    graphs.GRAPHS._known.clear()
    debugger = make(level="L1")
    debugger.start()
    with caplog.at_level(logging.WARNING, "dumpscope"):
        compiled(torch.ones(2))
    debugger.stop()
    debugger.step()
    assert "Compiled.lambda.0.forward" in read().data
    assert read().run["compiled_regions"]["Compiled.lambda.0"]["graph"] is None
    assert "compiled before the recording" in caplog.text
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == made


def test_a_step_recorded_later_has_the_text_of_graphs_made_before(make: Any, read: Any) -> None:
    compiled = torch.compile(lambda x: F.gelu(x) * 2, backend="aot_eager")
    debugger = make(level="L1", step=[2])
    for _ in range(3):
        debugger.start()
        compiled(torch.ones(2))
        debugger.stop()
        debugger.step()
    region = read(2).run["compiled_regions"]["Compiled.lambda.0"]
    assert "gelu" in (read(2).folder / region["graph"]).read_text(encoding="utf-8")


def test_nothing_of_the_capture_is_left_after_stop(make: Any) -> None:
    frames = torch._dynamo.eval_frame
    names = [name for name in ("set_eval_frame", "_maybe_set_eval_frame") if hasattr(frames, name)]
    before = [getattr(frames, name) for name in names]
    compiled = torch.compile(lambda x: x * 2, backend="aot_eager")
    compiled(torch.ones(2))
    debugger = make()
    debugger.start(nn.ReLU())
    compiled(torch.ones(2))
    compiled(torch.ones(3))
    debugger.stop()
    assert [getattr(frames, name) for name in names] == before
    scope = compiled._torchdynamo_orig_callable.__globals__
    kept = [value for name, value in scope.items() if name.startswith("__compiled_fn")]
    assert kept
    assert all(getattr(value, "_torchdynamo_disable", False) for value in kept)
    assert not mode_stack()


def test_what_raises_inside_a_region_leaves_the_recording_whole(make: Any, read: Any) -> None:
    @torch.library.custom_op("dumpscope_test::fails", mutates_args=())
    def fails(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 2:
            raise ValueError("too much")
        return x.clone()

    fails.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: fails(x) * 2, backend="aot_eager")
    debugger = make(level="L1")
    debugger.start()
    with pytest.raises(ValueError, match="too much"):
        compiled(torch.ones(3))
    F.relu(torch.ones(1))
    compiled(torch.zeros(3))
    debugger.stop()
    debugger.step()
    assert list(read().data) == ["Functional.relu.0.forward", "Compiled.lambda.0.forward"]


def test_a_backward_that_raises_leaves_the_recording_whole(make: Any, read: Any) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            raise ValueError("no gradient")

    compiled = torch.compile(lambda x: x.sin(), backend="aot_eager")
    debugger = make(level="L1")
    debugger.start()
    y = compiled(Fails.apply(torch.ones(2, requires_grad=True)))
    with pytest.raises(ValueError, match="no gradient"):
        y.sum().backward()
    F.relu(torch.ones(1))
    compiled(torch.ones(2, requires_grad=True)).sum().backward()
    debugger.stop()
    debugger.step()
    names = list(read().data)
    assert "Functional.relu.0.forward" in names
    assert "Compiled.lambda.1.backward" in names


def test_graph_is_the_default_and_eager_looks_inside(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.GELU())
    compiled = torch.compile(model, backend="eager")
    debugger = make(compiled="eager")
    debugger.start(compiled)
    compiled(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    assert "Functional.gelu.0.forward" in read().data
    assert "Module.1.GELU.forward.0" in read().data
    assert not any(name.startswith("Compiled.") for name in read().data)


def info_of(folder: Path) -> list[dict[str, Any]]:
    found, _ = describe(folder, discover(str(folder)))
    return list(found["units"])


def _program(kind: str) -> tuple[nn.Module, Any, Callable[[torch.Tensor], torch.Tensor]]:
    """A model, what `start` gets, and a training step with AdamW that returns the loss."""
    model: Any = nn.Sequential(Block(drop=0.2, breaks=False), Block(drop=0.2, breaks=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    run, step = model, optimizer.step
    if kind == "checkpoint around":
        for block in model:
            block.compile(backend="aot_eager")

        def run(x: torch.Tensor) -> Any:
            for block in model:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            return x

    elif kind != "loss too":
        run = torch.compile(model, backend="aot_eager", fullgraph=kind == "fullgraph")
    if kind == "optimizer too":
        step = torch.compile(optimizer.step, backend="aot_eager")

    def loss_of(x: torch.Tensor) -> torch.Tensor:
        return (run(x) ** 2).mean()

    measured = torch.compile(loss_of, backend="aot_eager") if kind == "loss too" else loss_of

    def train(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        if kind == "no_grad too":
            with torch.no_grad():
                x = run(x)
        loss = measured(x)
        loss.backward(retain_graph=kind == "retained")
        if kind == "retained":
            loss.backward()
        elif kind == "accumulated":
            measured(x + 1).backward()
        step()
        return loss.detach()

    return model, run if isinstance(run, nn.Module) else model, train


_KINDS = ["checkpoint around", "optimizer too", "loss too", "no_grad too", "retained", "accumulated", "fullgraph"]


@pytest.mark.parametrize("kind", _KINDS)
def test_other_programs_compute_what_they_compute_without_capture(make: Any, read: Any, kind: str) -> None:
    def train(debugger: Any) -> tuple[Numbers, int]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(1)
        model, given, run = _program(kind)
        numbers: Numbers = []
        for _ in range(2):
            x = torch.randn(4, 8)
            if debugger is not None:
                debugger.start(given)
            loss = run(x)
            if debugger is not None:
                debugger.stop()
                debugger.step()
            gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
            state = [parameter.detach().clone() for parameter in model.parameters()]
            numbers.append([loss, *gradients, *state, torch.get_rng_state()])
        return numbers, torch._dynamo.utils.counters["stats"]["unique_graphs"]

    bare, graphs = train(None)
    recorded, recorded_graphs = train(make())
    assert _same(bare, recorded)
    assert graphs == recorded_graphs
    dump = read(1)
    assert not dump.run["counts"]
    assert any(name.startswith("Compiled.") and name.endswith(".backward") for name in dump.data)
    assert any(name.endswith("parameters_grad.0") for name in dump.data)


def test_calls_that_dynamo_gives_up_are_told_of_and_their_parameters_kept(
    make: Any, read: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Looping(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:  # a graph break in a loop makes dynamo leave the whole function
                x = block(x)
            return self.head(x)

    model = Looping(breaks=True)
    compiled = torch.compile(model, backend="aot_eager")
    debugger = make(level="mix")
    with caplog.at_level(logging.WARNING, "dumpscope"):
        for _ in range(2):
            debugger.start(compiled)
            compiled(torch.ones(2, 8)).sum().backward()
            debugger.stop()
            debugger.step()
    assert "Compiled.blocks.1.Block.1.forward" in read(1).data
    assert "Module.head.Linear.parameters_grad.0" in read(1).data
    assert read(1).run["counts"] == {"calls between compiled regions": 2}
    assert caplog.text.count("calls ran eagerly inside compiled code") == 1
    (unit,) = [one for one in info_of(read(1).folder) if one["compiled"]]
    assert unit["compiled"] == {
        "regions": 4, "graphs": 4, "backends": {"aot_eager": 4}, "graph_breaks": 2, "calls_between": 2,
    }  # fmt: skip


_LEVELS = [("mix", True, 0), ("mix", False, 0), ("L1", False, 0), ("L0", True, 1)]


@pytest.mark.parametrize(("level", "part", "one_sided"), _LEVELS)
def test_a_compiled_run_is_compared_with_an_eager_one(
    make: Any, tmp_path: Path, level: str, part: bool, one_sided: int
) -> None:
    def run(compiled: bool) -> None:
        torch.manual_seed(5)
        model = Net(drop=0.0)
        run_model: Any = model
        if compiled and part:
            model.blocks[1] = torch.compile(model.blocks[1], backend="aot_eager")  # type: ignore[assignment]
        elif compiled:
            run_model = torch.compile(model, backend="aot_eager")
        debugger.start(run_model)
        F.mse_loss(run_model(torch.randn(4, 8)), torch.ones(4, 2)).backward()
        debugger.stop()
        debugger.step()

    debugger = make(level=level)
    run(compiled=True)
    run(compiled=False)
    command = [
        warm_python(DUMPSCOPE),
        "-m",
        "dumpscope",
        "compare",
        tmp_path / "dump" / "step0",
        tmp_path / "dump" / "step1",
        "--json",
        "--pairs",
    ]
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    document = json.loads(answer.stdout)
    assert document["origins"] == []
    assert answer.returncode == 0
    assert not any(pair["verdict"] == "no" for pair in document["pairs"])
    gradients = [pair for pair in document["pairs"] if "parameters_grad" in pair["node"]]
    if level != "L1":
        assert gradients
        assert all(pair["target"] and pair["golden"] for pair in gradients)
    alone = {pair["leftover"] for pair in document["pairs"] if pair["leftover"] not in (None, "inside")}
    assert alone == ({"left_out", "compiled"} if one_sided else set())
    counted = {one["reason"]: one for one in document["coverage"]["reasons"]}
    assert {one["group"] for one in counted.values() if one["missing"]} == set()
    assert ("compiled" in counted) is bool(one_sided)
    if one_sided:
        assert counted["compiled"]["group"] == "left_out"
        assert counted["compiled"]["items"] > 0
    region = "Compiled.blocks.1.Block.0" if part else "Compiled.Net.0"
    fused = [
        pair for pair in document["pairs"] if pair["node"].startswith(region) and pair["target"] and pair["golden"]
    ]
    assert bool(fused) is (level != "L0")
    if (
        level == "mix" and part
    ):  # x, four parameters, the result; the gradients of the four parameters, as x is used twice
        assert len(fused) == 6 + 1 + 4
        assert {pair["verdict"] for pair in fused} == {"yes"}
