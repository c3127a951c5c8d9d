"""`dumpscope reproduce` of a region of compiled code runs its graph with each backend and names the operation that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
import torch.utils.checkpoint
from reproduce import run_scripts
from torch import nn

from dumpscope.cli.app import status
from dumpscope_capture.hooks.graph_documents import describe_graph
from dumpscope_capture.replay.graphs import find_function

PRELUDE = '''
import contextlib

import torch
import torch._dynamo


def register(backend):
    with contextlib.suppress(AssertionError):  # it is there already
        torch._dynamo.register_backend(backend)
    return backend


def after(gm, node, function, *more):
    """Let `function` change what a node gives."""
    with gm.graph.inserting_after(node):
        changed = gm.graph.call_function(function, (node, *more))
    node.replace_all_uses_with(changed, delete_user_cb=lambda user: user is not changed)


def called(gm, word):
    return [node for node in gm.graph.nodes if node.op in ("call_function", "call_method") and word in str(node.target)]


@register
def wrong_gelu(gm, inputs):
    for node in called(gm, "gelu"):
        after(gm, node, torch.mul, 1.01)
    gm.recompile()
    return gm


@register
def wrong_slope(gm, inputs):
    for node in called(gm, "layer_norm"):
        with gm.graph.inserting_after(node):
            held = gm.graph.call_method("detach", (node,))
        with gm.graph.inserting_after(held):
            changed = gm.graph.call_function(torch.lerp, (node, held, -0.05))
        node.replace_all_uses_with(changed, delete_user_cb=lambda user: user not in (held, changed))
    gm.recompile()
    return gm


@register
def wrong_pair(gm, inputs):
    for node in called(gm, "cos"):
        if node.args[0].op == "call_method":
            after(gm, node, torch.mul, 1.01)
    gm.recompile()
    return gm


@register
def breaks_off(gm, inputs):
    if called(gm, "gelu"):
        raise RuntimeError("no kernel for gelu")
    return gm
'''

NO_COMPILER = """
import torch._inductor.config as config

config.cpp.cxx = ("no-such-compiler",)
"""

WRONG_LOWERING = """
import torch
from torch._inductor import decomposition

decomposition.decompositions[torch.ops.aten.sin.default] = lambda x: x - x * x * x / 6
"""


class Net(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.norm, self.up, self.down, self.drop = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8), nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.up(self.norm(x)))
        y = self.drop(self.down(y))
        return torch.softmax(x + y.sin().cos(), -1)


class Everything(nn.Module):
    """What graphs hold besides plain calls: buffers written to, several results, inner graphs, switches, indices, infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc = nn.BatchNorm1d(8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.norm(self.fc(x))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = y @ y.T
        a, _ = z.chunk(2)
        y = y + torch.utils.checkpoint.checkpoint(lambda t: t.sin() * t, y, use_reentrant=False)
        y[:, 0:2] += torch.tensor([1.0, 2.0])
        with torch.no_grad():
            q = y.abs().mean()
        y = y.masked_fill(y > 2, float("-inf")).softmax(-1)
        return x * x.shape[0] + y * q + a.float().mean(), z.argmax(-1)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def prelude(tmp_path: Path) -> Path:
    path = tmp_path / "backends.py"
    path.write_text(PRELUDE, encoding="utf-8")
    exec(compile(PRELUDE, str(path), "exec"), {})
    return path


@pytest.fixture
def record(make: Any, tmp_path: Path) -> Callable[..., Path]:
    """Records one forward and backward of a compiled model; the dump."""

    def recorded(model: nn.Module, backend: str, *, task: str = "tensor", train: bool = True, **options: Any) -> Path:
        torch.manual_seed(3)
        compiled = torch.compile(model, backend=backend, **options)
        debugger = make(task=task)
        x = torch.randn(6, 8, requires_grad=True)
        debugger.start(compiled)
        with torch.set_grad_enabled(train):
            found = compiled(x)
        first = found[0] if isinstance(found, tuple) else found
        if train:
            (first**2).sum().backward()
        debugger.stop()
        debugger.step()
        return tmp_path / "dump"

    return recorded


def reproduced(dump: Path, folder: Path, *options: object, name: str = "Net") -> dict[str, Any]:
    script = folder / "region.py"
    assert status(["reproduce", str(dump), f"Compiled.{name}.0", "-o", str(script)]) == 0
    return run_scripts.run(script, *options)


def test_the_operation_that_a_backend_gets_wrong_is_named(
    record: Callable[..., Path], prelude: Path, tmp_path: Path
) -> None:
    dump = record(Net(drop=0.3), "wrong_gelu")
    found = reproduced(dump, tmp_path, "--prelude", prelude, "--backends", "aot_eager,wrong_gelu")
    assert found["status"] == 1
    assert {name: one["verdict"] for name, one in found["backends"].items()} == {
        "eager": "pass", "aot_eager": "pass", "wrong_gelu": "error",
    }  # fmt: skip
    assert found["recorded"] == "error"
    assert all(names == ["wrong_gelu"] for item, names in found["matches"].items() if item != "gradient.input.6")
    (narrowed,) = found["narrowed"]
    (operator,) = narrowed["operators"]
    assert (narrowed["backend"], operator["target"]) == ("wrong_gelu", "torch._C._nn.gelu")
    assert operator["place"]["file"] == __file__
    assert operator["place"]["code"] == "y = F.gelu(self.up(self.norm(x)))"
    assert all(one["measures"]["rel_l2"] == pytest.approx(0.01, rel=0.01) for one in narrowed["items"].values())
    assert found["said"][0] == "Reproduced: wrong_gelu disagrees with eager, aot_eager beyond rounding."
    assert any("draws random numbers in" in sentence for sentence in found["said"])


def test_a_healthy_region_is_silent_and_equal_to_the_recording(record: Callable[..., Path], tmp_path: Path) -> None:
    found = reproduced(record(Net(drop=0.3), "aot_eager"), tmp_path, "--backends", "aot_eager")
    assert found["status"] == 0
    assert (found["verdict"], found["recorded"], found["narrowed"]) == ("pass", "pass", [])
    assert set(found["in_dump"]) == {"output.0", *(f"gradient.input.{place}" for place in range(7))}
    assert all("aot_eager" in names for names in found["matches"].values())


def test_a_wrong_gradient_is_named_though_the_result_is_right(
    record: Callable[..., Path], prelude: Path, tmp_path: Path
) -> None:
    found = reproduced(record(Net(), "wrong_slope"), tmp_path, "--prelude", prelude, "--backends", "wrong_slope")
    assert found["recorded"] == "error"
    assert found["in_dump"]["output.0"]["verdict"] == "pass"
    (narrowed,) = found["narrowed"]
    assert [one["target"] for one in narrowed["operators"]] == ["torch.nn.functional.layer_norm"]
    wrong = {item for item, one in narrowed["items"].items() if one["verdict"] == "error"}
    assert wrong
    assert all(item.startswith("gradient.") for item in wrong)


def test_operations_that_are_wrong_only_together_are_named_together(
    record: Callable[..., Path], prelude: Path, tmp_path: Path
) -> None:
    found = reproduced(record(Net(), "wrong_pair"), tmp_path, "--prelude", prelude, "--backends", "wrong_pair")
    (narrowed,) = found["narrowed"]
    assert [one["target"] for one in narrowed["operators"]] == ["sin", "cos"]
    assert "2 operations are wrong together, of" in " ".join(found["said"])


def test_a_backend_that_breaks_off_names_the_operation_and_the_reason(
    record: Callable[..., Path], prelude: Path, tmp_path: Path
) -> None:
    found = reproduced(record(Net(), "eager"), tmp_path, "--prelude", prelude, "--backends", "breaks_off")
    assert found["backends"]["breaks_off"]["verdict"] == "error"
    (narrowed,) = found["narrowed"]
    assert [one["target"] for one in narrowed["operators"]] == ["torch._C._nn.gelu"]
    assert "no kernel for gelu" in narrowed["error"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_with_buffers_inner_graphs_and_switches_runs(
    record: Callable[..., Path], tmp_path: Path, dynamic: bool
) -> None:
    dump = record(Everything(), "aot_eager", dynamic=dynamic)
    found = reproduced(dump, tmp_path, "--backends", "aot_eager", name="Everything")
    assert found["error"] == ""
    assert found["status"] == 0
    assert found["backends"]["aot_eager"]["verdict"] == "pass"
    assert (
        found["backends"]["eager"]["verdict"] != "error"
    )  # rounding alone makes the gradient of the bias before the norm
    assert (found["recorded"], found["narrowed"]) == ("pass", [])
    assert sum(item.startswith("changed.input.") for item in found["in_dump"]) == 3
    assert all("aot_eager" in names for names in found["matches"].values())


@pytest.mark.usefixtures("warm")
@pytest.mark.timeout(900)  # it compiles five times with a C++ compiler
def test_a_wrong_lowering_of_inductor_is_named(make: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def wave(x: torch.Tensor) -> torch.Tensor:
        y = x.relu()
        return y.sin() + 1

    debugger = make(task="tensor", level="L1")
    compiled = torch.compile(wave, backend="eager")
    debugger.start()
    compiled(torch.linspace(-3, 3, 64))
    debugger.stop()
    debugger.step()
    wrong = tmp_path / "lowering.py"
    wrong.write_text(WRONG_LOWERING, encoding="utf-8")
    command = ["reproduce", str(tmp_path / "dump"), "Compiled.wave.0", "--json", "--prelude", str(wrong)]
    assert status(command) == 1
    found = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert {name: one["verdict"] for name, one in found["backends"].items()} == {
        "eager": "pass", "aot_eager": "pass", "inductor": "error",
    }  # fmt: skip
    assert found["recorded"] == "pass"
    assert [one["target"] for one in found["narrowed"][0]["operators"]] == ["sin"]


def test_a_region_without_gradients_runs_without_them(record: Callable[..., Path], tmp_path: Path) -> None:
    found = reproduced(record(Net(), "aot_eager", train=False), tmp_path, "--backends", "aot_eager")
    assert (found["verdict"], found["recorded"]) == ("pass", "pass")
    assert set(found["in_dump"]) == {"output.0"}


def test_what_this_machine_lacks_is_told_and_no_fault(record: Callable[..., Path], tmp_path: Path) -> None:
    dump = record(Net(), "aot_eager")
    lacks = tmp_path / "no_compiler.py"
    lacks.write_text(NO_COMPILER, encoding="utf-8")
    found = reproduced(dump, tmp_path, "--backends", "inductor,never_heard_of", "--prelude", lacks)
    assert found["status"] == 0
    assert [found["backends"][name]["verdict"] for name in ("inductor", "never_heard_of")] == ["SKIP", "SKIP"]
    assert any("inductor does not run here" in sentence for sentence in found["said"])


def test_statistics_say_which_config_records_the_tensors(
    record: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    dump = record(Net(), "aot_eager", task="statistics")
    assert status(["reproduce", str(dump), "Compiled.Net.0"]) == 2
    told = capfd.readouterr().err
    assert "does not hold the tensors of its inputs" in told
    assert '{"task": "tensor", "tensor": {"list": ["Compiled.Net.0"]}}' in told


@pytest.mark.usefixtures("warm")
def test_the_command_runs_a_region_at_once(
    record: Callable[..., Path], prelude: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dump = record(Net(), "wrong_gelu")
    prelude.write_text(PRELUDE + NO_COMPILER, encoding="utf-8")
    assert status(["reproduce", str(dump), "Compiled.Net.0", "--json", "--prelude", str(prelude)]) == 1
    found = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert found["narrowed"][0]["operators"][0]["target"] == "torch._C._nn.gelu"
    assert list(found["backends"]) == ["eager", "aot_eager", "inductor", "wrong_gelu"]
    assert status(["reproduce", str(dump), "Compiled.Net.0", "--matrix"]) == 2


def test_a_dump_without_the_graph_says_so(record: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> None:
    dump = record(Net(), "aot_eager")
    (path,) = dump.glob("step0/*/compiled_graphs/Compiled.Net.0.json")
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "lost": ["a constant of 5 bytes"]}))
    assert status(["reproduce", str(dump), "Compiled.Net.0"]) == 2
    assert "a constant of 5 bytes" in capfd.readouterr().err
    path.unlink()
    assert status(["reproduce", str(dump), "Compiled.Net.0"]) == 2
    assert "an older dumpscope_capture" in capfd.readouterr().err


def test_a_document_keeps_small_constants_and_tells_of_what_it_cannot_keep() -> None:
    class Holds(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(size, dtype=torch.float32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table

    kept = describe_graph(torch.fx.symbolic_trace(Holds(3)))
    assert kept["lost"] == []
    assert kept["constants"]["table"]["shape"] == [3]
    assert "a constant of 4000000 bytes" in describe_graph(torch.fx.symbolic_trace(Holds(1_000_000)))["lost"][0]
    assert (
        "a module of class Linear" in describe_graph(torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2))))["lost"][0]
    )


@pytest.mark.parametrize(
    "name",
    ["torch.load", "os.system", "builtins.exec", "torch.os.system", "subprocess.run", "torch.nothing", "nowhere.at"],
)
def test_a_graph_calls_only_what_computes(name: str) -> None:
    with pytest.raises(LookupError):
        find_function(name)
