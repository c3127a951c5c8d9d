"""Only the calls that patterns mean run otherwise; all else is the same to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from warm_python import warm_python

from capture.proof.conftest import training
from dumpscope_capture import InterventionError, intervene
from dumpscope_capture.interventions import report_path
from dumpscope_capture.proof.substitution import _plain

HERE = Path(__file__).parent


def _same(one: Any, other: Any) -> bool:
    return torch.equal(one[0], other[0]) and all(torch.equal(a, b) for a, b in zip(one[1], other[1], strict=True))


@pytest.mark.parametrize("where", ["cpu", "sim"])
@pytest.mark.parametrize(
    "treatments",
    [
        {"Functional.nothing.*": "cpu"},
        {"Functional.group_norm.7": "float64"},
        {"*": "roundtrip"},
        {"Functional.group_norm.*": lambda function, *args, **kwargs: function(*args, **kwargs)},
    ],
)
def test_what_changes_no_number_leaves_loss_gradients_and_state_the_same_to_the_bit(
    where: str, treatments: Any, sim: Any
) -> None:
    step = training(where)
    plain = step()
    with intervene(treatments):
        assert _same(step(), plain)
    assert _same(step(), plain)


@pytest.mark.parametrize("treatment", ["cpu", "float64", "cpu+float64", "contiguous", "roundtrip"])
def test_every_listed_call_of_a_network_can_be_substituted_or_says_why_not(treatment: str, sim: Any) -> None:
    step = training("sim")
    plain = step()
    with intervene({"Functional.*": treatment}) as done:
        other = step()
    (tally,) = done.tallies.values()
    assert tally.calls == 9
    assert tally.substituted + tally.unchanged >= 8
    assert set(tally.refused) <= {"it draws random numbers, which would be others"}
    assert torch.allclose(plain[0], other[0], rtol=1e-5)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(plain[1], other[1], strict=True))


def test_a_substituted_call_runs_forward_and_backward_on_the_cpu(sim: Any) -> None:
    step = training("sim")
    step()
    sim.kernels.clear()
    step()
    assert sim.kernels.count("native_group_norm") == sim.kernels.count("native_group_norm_backward") == 2
    sim.kernels.clear()
    with intervene({"Functional.group_norm.1": "cpu"}) as done:
        step()
    assert sim.kernels.count("native_group_norm") == sim.kernels.count("native_group_norm_backward") == 1
    assert list(done.tallies["Functional.group_norm.1"].names) == ["Functional.group_norm.1"]


def test_a_wrong_kernel_is_healed_by_substitution_of_its_calls_only(sim: Any) -> None:
    step = training("sim")
    right = step()
    with sim.planted(native_group_norm_backward=sim.Fault(damage=lambda out: (out[0] * 3, *out[1:]))):
        assert not torch.equal(step()[1][0], right[1][0])
        for pattern, healed in (
            ("Functional.group_norm.*", True),
            ("Functional.group_norm.0", False),
            ("Functional.silu", False),
        ):
            with intervene({pattern: "cpu"}):
                assert torch.allclose(step()[1][0], right[1][0], rtol=1e-4, atol=1e-6) == healed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("treatment", ["cpu", "float32", "float64", "cpu+float32"])
def test_results_and_gradients_come_back_in_the_types_and_places_they_would_have_had(
    dtype: torch.dtype, treatment: str, sim: Any
) -> None:
    x = torch.randn(3, 4, dtype=dtype).to("sim").requires_grad_()
    w = torch.randn(5, 4, dtype=dtype).to("sim").requires_grad_()
    with intervene({"*": treatment}):
        y = F.linear(x, w)
        values, places = y.max(dim=1)
        z = F.softmax(values, dim=0, dtype=torch.float32)
        z.sum().backward()
    assert (y.dtype, values.dtype, places.dtype, z.dtype) == (dtype, dtype, torch.int64, torch.float32)
    assert x.grad is not None
    assert w.grad is not None
    assert {x.grad.dtype, w.grad.dtype} == {dtype}
    assert {t.device.type for t in (y, values, places, z, x.grad, w.grad)} == {"sim"}


def test_higher_precision_is_really_used() -> None:
    x = torch.tensor([1e8, 1.0, -1e8])
    assert x.sum() == 0
    with intervene({"Tensor.sum.0": "float64"}):
        assert x.sum() == 1


def test_autocast_is_left_alone_in_what_comes_out() -> None:
    x, w = torch.randn(3, 4), torch.randn(5, 4)
    for treatment in ("float32", "float64"):
        with torch.autocast("cpu", dtype=torch.bfloat16), intervene({"Functional.*": treatment}) as done:
            assert F.linear(x.bfloat16(), w).dtype is torch.bfloat16
        assert done.tallies["Functional.*"].substituted == 1


# -- writing into arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("treatment", ["cpu", "float64", "roundtrip", "cpu+float64"])
def test_in_place_calls_change_the_programs_own_tensors(treatment: str, sim: Any) -> None:
    def work() -> list[torch.Tensor]:
        torch.manual_seed(3)
        leaf = torch.randn(4, 6).to("sim").requires_grad_()
        x = leaf * 1
        view = x[1:3]
        given = view
        view.mul_(2.0)
        view += 1
        out = torch.empty(4, 6).to("sim")
        with torch.no_grad():
            torch.add(x, 1, out=out)
        y = F.relu(x, inplace=True)
        assert view is given
        assert y is x
        y.pow(2).sum().backward()
        assert leaf.grad is not None
        return [part.detach().cpu() for part in (x, view, out, leaf.grad)]

    plain = work()
    patterns = ("Tensor.mul_", "Tensor.__iadd__", "Torch.add", "Functional.relu")
    with intervene(dict.fromkeys(patterns, treatment)) as done:
        other = work()
    assert [tally.substituted for tally in done.tallies.values()] == [1, 1, 1, 1]
    assert all(torch.equal(a, b) for a, b in zip(plain, other, strict=True))


@pytest.mark.parametrize("training_mode", [True, False])
def test_running_statistics_of_a_normalization_are_kept_up(training_mode: bool, sim: Any) -> None:
    def work() -> list[torch.Tensor]:
        torch.manual_seed(3)
        norm = torch.nn.BatchNorm1d(4).train(training_mode).to("sim")
        norm(torch.randn(5, 4).to("sim") + 3)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        return [norm.running_mean.cpu(), norm.running_var.cpu()]

    plain = work()
    with intervene({"Functional.batch_norm": "cpu"}) as done:
        other = work()
    assert done.tallies["Functional.batch_norm"].substituted == 1
    assert all(torch.allclose(a, b) for a, b in zip(plain, other, strict=True))
    assert (plain[0].abs().max() > 0) == training_mode


def test_a_call_whose_result_is_a_view_is_refused_and_stays_a_view(sim: Any) -> None:
    x = torch.zeros(2, 3).to("sim")
    with intervene({"Tensor.*": "cpu"}) as done:
        y = x.transpose(0, 1)
    y.fill_(7)
    assert float(x.cpu().min()) == 7
    assert done.tallies["Tensor.*"].refused == {"its result shares memory with its argument": 1}


def test_a_call_that_draws_random_numbers_is_refused_and_draws_the_same(sim: Any) -> None:
    x = torch.ones(100).to("sim")

    def work() -> torch.Tensor:
        torch.manual_seed(5)
        return torch.cat([F.dropout(x, 0.5).cpu(), torch.rand(3)])

    plain = work()
    with intervene({"Functional.dropout": "cpu"}) as done:
        assert torch.equal(work(), plain)
    assert done.tallies["Functional.dropout"].refused == {"it draws random numbers, which would be others": 1}
    with intervene({"Functional.dropout": "roundtrip"}) as done:
        assert torch.equal(work(), plain)
    assert done.tallies["Functional.dropout"].substituted == 1


@pytest.mark.parametrize(
    ("make_argument", "reason"),
    [
        (lambda: torch.eye(3).to_sparse(), "sparse"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
    ],
)
def test_tensors_of_other_kinds_are_refused(make_argument: Callable[[], torch.Tensor], reason: str) -> None:
    with intervene({"Tensor.*": "float64"}) as done:
        x = make_argument()
        x * 2
    assert any(reason in text for text in done.tallies["Tensor.*"].refused)


def test_a_function_that_the_cpu_cannot_run_in_this_type_runs_as_it_is(sim: Any) -> None:
    x = torch.ones(4).to("sim")

    def only_on_device(function: Any, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("not reached")

    with intervene({"Tensor.mul.0": only_on_device}), pytest.raises(AssertionError):
        x.mul(2)
    with (
        intervene({"Functional.ctc_loss": "float64+cpu"}) as done,
        pytest.raises((RuntimeError, ValueError, TypeError)),
    ):
        F.ctc_loss(x, x, x, x)
    assert done.tallies["Functional.ctc_loss"].substituted == 0


def test_an_error_of_the_program_stays_its_own() -> None:
    with intervene({"Torch.matmul": "float64"}) as done, pytest.raises(RuntimeError, match="mat1 and mat2"):
        torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
    assert "does not run this way" in next(iter(done.tallies["Torch.matmul"].refused))


def test_scalars_are_changed_wherever_they_stand() -> None:
    x = torch.randn(2, 4)
    calls = (
        lambda: F.layer_norm(x, [4]),
        lambda: F.layer_norm(x, [4], None, None, 1e-5),
        lambda: F.layer_norm(x, [4], eps=1e-5),
    )
    for call in calls:
        with intervene({"Functional.layer_norm": {"eps": 3.0}}) as done:
            assert torch.equal(call(), F.layer_norm(x, [4], eps=3.0))
        assert done.tallies["Functional.layer_norm"].substituted == 2
    with intervene({"Functional.layer_norm": {"epsilon": 3.0}}) as done:
        assert torch.equal(F.layer_norm(x, [4]), F.layer_norm(x, [4], eps=1e-5))
    assert set(done.tallies["Functional.layer_norm"].refused) == {"it has no argument 'epsilon'"}


def test_a_contiguous_run_gives_the_backward_contiguous_gradients_as_well(sim: Any) -> None:
    x = torch.randn(4, 6).to("sim").t().requires_grad_()
    layouts: list[bool] = []
    watched = sim.Fault(damage=lambda out: out, when=lambda args: layouts.append(args[0].is_contiguous()) or False)
    with sim.planted(_softmax_backward_data=watched), intervene({"Functional.softmax": "contiguous"}) as done:
        F.softmax(x, 1).backward(torch.randn(4, 6).to("sim").t())
    assert done.tallies["Functional.softmax"].substituted == 1
    assert layouts == [True]


# -- names -------------------------------------------------------------------------------------------------------------


def test_calls_between_a_stop_and_a_step_go_on_with_the_numbers_from_before_the_capture(make: Any) -> None:
    debugger = make(level="L1")
    gelu = torch.nn.functional.gelu
    x = torch.ones(3)
    with intervene({f"Functional.gelu.{number}": "float64" for number in range(5)}) as done:
        gelu(x)  # 0, counted
        debugger.start()
        gelu(x), gelu(x)  # 0 and 1 of the capture
        debugger.stop()
        gelu(x)  # 1, counted
        debugger.step()
        gelu(x)  # 0 again
    assert [tally.calls for tally in done.tallies.values()] == [3, 2, 0, 0, 0]


def test_names_and_numbers_are_those_of_a_capture(make: Any, read: Any) -> None:
    step = training("cpu")
    debugger = make(level="L1")
    with intervene({"Functional.group_norm.1": "float64", "Functional.conv1d.0-1": "roundtrip"}) as done, debugger:
        recorded = step()
    with intervene({"Functional.group_norm.1": "float64", "Functional.conv1d.0-1": "roundtrip"}) as alone:
        counted = step()
    assert [tally.names for tally in done.tallies.values()] == [tally.names for tally in alone.tallies.values()]
    assert _same(recorded, counted)
    data = read().data
    assert not read().errors
    changed = {name: body["substituted"] for name, body in data.items() if "substituted" in body}
    assert changed == {
        "Functional.group_norm.1.forward": "float64",
        "Functional.conv1d.0.forward": "roundtrip",
        "Functional.conv1d.1.forward": "roundtrip",
    }
    assert read().run["interventions"][0]["names"] == ["Functional.group_norm.1"]


@pytest.mark.parametrize("first", ["capture", "intervention"])
def test_a_dump_differs_only_behind_the_substituted_call(first: str, make: Any, read: Any, tmp_path: Path) -> None:
    step = training("cpu")
    debugger = make(level="mix")
    plain, other = (debugger, intervene({"Functional.group_norm.1": {"eps": 0.5}}))
    model = torch.nn.Linear(2, 2)
    plain.start(model)
    step()
    plain.stop()
    plain.step()
    if first == "capture":
        plain.start(model)
        with other:
            step()
    else:
        with other:
            plain.start(model)
            step()
            plain.stop()
    plain.stop()
    plain.step()
    before, after = read(0).data, read(1).data
    assert list(before) == list(after)
    part = next(at for at, name in enumerate(before) if name == "Functional.group_norm.1.forward")
    for name in list(before)[:part]:
        assert before[name] == after[name]
    assert (
        before["Functional.group_norm.1.forward"]["input_args"]
        == after["Functional.group_norm.1.forward"]["input_args"]
    )
    assert before["Functional.group_norm.1.forward"]["output"] != after["Functional.group_norm.1.forward"]["output"]


def test_numbers_start_anew_with_every_step_of_the_debugger(make: Any) -> None:
    step = training("cpu")
    debugger = make(level="L1", step=[1])
    with intervene({"Functional.group_norm.1": "roundtrip"}) as done:
        for _ in range(3):
            debugger.start()
            step()
            debugger.stop()
            debugger.step()
    assert done.tallies["Functional.group_norm.1"].substituted == 3


def test_a_call_that_raised_gives_its_number_back() -> None:
    with intervene({"Torch.matmul.0": "float64"}) as done:
        with pytest.raises(RuntimeError):
            torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
        torch.matmul(torch.ones(2, 3), torch.ones(3, 2))
    assert done.tallies["Torch.matmul.0"].substituted == 1


def test_recomputed_calls_of_a_checkpoint_are_calls_of_their_own() -> None:
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    x = torch.randn(4, 4, requires_grad=True)
    with intervene({"Functional.gelu": "float64"}) as done:
        checkpoint(lambda value: F.gelu(value).pow(2), x, use_reentrant=False).sum().backward()
    assert list(done.tallies["Functional.gelu"].names) == ["Functional.gelu.0", "Functional.gelu.1000000"]


def test_of_two_patterns_the_first_counts_and_of_two_blocks_the_inner() -> None:
    x = torch.randn(4)
    with intervene({"Functional.gelu.0": "float64", "Functional.gelu": "roundtrip"}) as outer:
        F.gelu(x)
        F.gelu(x)
        with intervene({"Functional.gelu": "roundtrip"}) as inner:
            F.gelu(x)
    assert [tally.substituted for tally in outer.tallies.values()] == [1, 1]
    with intervene({"Functional.*": "float64", "Functional.gelu.0": "roundtrip"}) as wide:
        F.gelu(x)
    assert [tally.substituted for tally in wide.tallies.values()] == [1, 0]
    assert [tally.substituted for tally in inner.tallies.values()] == [1]


def test_the_report_says_what_was_done_and_what_was_not() -> None:
    with intervene({"Functional.gelu": "float64", "Functional.relu": "cpu", "Torch.add": "cpu"}) as done:
        F.gelu(torch.randn(4))
        F.relu(torch.randn(4))
    first, second, third = done.report().splitlines()
    assert first.startswith("Functional.gelu as float64: 1 of 1 calls ran differently")
    assert second == "Functional.relu as cpu: 0 of 1 calls ran differently; 1 were so already"
    assert third == "Torch.add as cpu: no call has this name"
    assert json.loads(json.dumps(done.as_json()))[0]["seconds"] > 0


@pytest.mark.parametrize("treatments", [{"Functional.gelu": "gpu"}, {"Functional.gelu.5-2": lambda: None}, {"": "cpu"}])
def test_what_cannot_be_used_is_refused_at_once(treatments: Any) -> None:
    with pytest.raises(InterventionError):
        intervene(treatments)


def _motley(where: str) -> list[torch.Tensor]:
    """A program of many kinds of calls: indices, lists of tensors, slices written to, several results, masks, losses."""
    torch.manual_seed(2)
    table = torch.randn(10, 6).to(where).requires_grad_()
    weight = torch.randn(6, 6).to(where).requires_grad_()
    places = torch.tensor([[1, 2, 9], [4, 4, 0]]).to(where)
    x = F.embedding(places, table)
    y = torch.cat([x, x.flip(1)], dim=1)
    y = y.clone()
    y[:, 1:2] = y[:, :1] * 2
    y[0].masked_fill_(y[0] > 1, 1.0)
    y.index_add_(1, torch.tensor([0, 2]).to(where), torch.ones(2, 2, 6).to(where))
    first, second = torch.split(y, 3, dim=1)
    y = torch.einsum("bij,jk->bik", first + second, weight)
    top, kept = y.topk(2, dim=-1)
    mean = torch.stack([top.mean(-1), y.amax(-1)]).sum(0)
    probabilities = (F.softmax(mean, -1) + 0.01).clamp_(min=0.1)
    loss = F.nll_loss(probabilities.log_(), torch.tensor([0, 2]).to(where), reduction="none")
    sorted_, order = torch.sort(y.reshape(-1))
    total = loss.sum() + torch.where(y > 0, y, y * 0.1).norm() + sorted_[:3].sum() * float(kept.sum().item() > 0)
    total.backward()
    assert table.grad is not None
    assert weight.grad is not None
    return [part.detach().cpu() for part in (total, y, kept, order, table.grad, weight.grad)]


def test_a_program_of_many_kinds_of_calls_gives_the_same_bits_on_a_round_trip(sim: Any) -> None:
    plain = _motley("sim")
    with intervene({"*": "roundtrip"}) as done:
        other = _motley("sim")
    assert all(torch.equal(a, b) for a, b in zip(plain, other, strict=True))
    assert done.tallies["*"].substituted > 20
    assert set(done.tallies["*"].refused) <= {"its result shares memory with its argument", "cpu moves data", "to moves data",
                                              "backward moves data", "requires_grad_ moves data"}  # fmt: skip


@pytest.mark.parametrize("treatment", ["cpu", "float64", "cpu+float64", "contiguous"])
def test_a_program_of_many_kinds_of_calls_runs_otherwise_to_the_same_numbers(treatment: str, sim: Any) -> None:
    plain = _motley("sim")
    with intervene({"*": treatment}):
        other = _motley("sim")
    assert all(a.dtype == b.dtype for a, b in zip(plain, other, strict=True))
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(plain, other, strict=True))


def test_compiled_code_runs_eagerly_so_that_its_calls_can_be_done_otherwise() -> None:
    x = torch.tensor([1e8, 1.0, -1e8])
    compiled = torch.compile(lambda value: value.sum() * 1, backend="eager")
    assert compiled(x) == 0
    with intervene({"Tensor.sum": "float64"}):
        assert compiled(x) == 1
    assert compiled(x) == 0


def test_storage_formats_of_an_npu_are_made_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch_npu and its tensors: only which of its calls are made is tested here."""
    cast: list[Any] = []
    npu = SimpleNamespace(
        get_npu_format=lambda tensor: tensor.form, npu_format_cast=lambda tensor, form: cast.append(form) or "cast"
    )
    monkeypatch.setitem(sys.modules, "torch_npu", npu)  # type: ignore[arg-type]
    plain = SimpleNamespace(device=SimpleNamespace(type="npu"), form=2)
    assert _plain(plain) is plain  # type: ignore[arg-type]
    assert _plain(SimpleNamespace(device=plain.device, form=29)) == "cast"  # type: ignore[arg-type]
    assert cast == [2]


def test_children_of_a_fork_run_everything_as_it_is() -> None:
    x = torch.tensor([1e8, 1.0, -1e8])
    read, write = os.pipe()
    with intervene({"Tensor.sum": "float64"}) as done:
        child = os.fork()
        if child == 0:
            os.write(write, str(float(x.sum())).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert float(x.sum()) == 1
    assert os.read(read, 10) == b"0.0"
    os.close(read)
    os.close(write)
    assert done.tallies["Tensor.sum"].substituted == 1


def test_each_rank_of_a_job_has_a_report_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert report_path("out/report.json") == Path("out/report.json")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert report_path("out/report.json") == Path("out/report.rank3.json")


# -- other programs ----------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import torch
import torch.nn.functional as F

x = torch.tensor([1e8, 1.0, -1e8])
print(sys.argv[1:], __name__, float(x.sum()), float(F.gelu(torch.ones(1))))
sys.exit(int(sys.argv[1]))
"""


def _run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [warm_python(), *arguments], check=False, capture_output=True, text=True, timeout=120, cwd=folder,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_the_runner_runs_a_script_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    plain = _run("train.py", "3", "--lr", folder=tmp_path)
    ran = _run("-m", "dumpscope_capture.run", "train.py", "3", "--lr", folder=tmp_path)
    module = _run("-m", "dumpscope_capture.run", "-m", "train", "3", "--lr", folder=tmp_path)
    assert plain.stdout == ran.stdout == module.stdout
    assert plain.stdout.startswith("['3', '--lr'] __main__")
    assert plain.returncode == ran.returncode == module.returncode == 3


@pytest.mark.parametrize("how", ["option", "environment", "file"])
def test_the_runner_substitutes_calls_and_reports_all_names(how: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    wanted = json.dumps({"Tensor.sum.*": "float64"})
    (tmp_path / "set.json").write_text(wanted, encoding="utf-8")
    options = {
        "option": ["--intervene", wanted, "--report", "out/report.json"],
        "file": ["--intervene", "set.json", "--report", "out/report.json"],
        "environment": [],
    }[how]
    variables = {"DUMPSCOPE_INTERVENE": wanted, "DUMPSCOPE_INTERVENE_REPORT": "out/report.json"}
    environment = variables if how == "environment" else {}
    plain = _run("train.py", "0", folder=tmp_path)
    ran = _run("-m", "dumpscope_capture.run", *options, "train.py", "0", folder=tmp_path, **environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout != plain.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["interventions"][0]["names"] == ["Tensor.sum.0"]
    assert {"Tensor.sum.0", "Functional.gelu.0"} <= set(report["calls"])


@pytest.mark.parametrize("options", [[], ["nothing.py"], ["--intervene", "{", "train.py"]])
def test_the_runner_says_what_it_cannot_use(options: list[str], tmp_path: Path) -> None:
    ran = _run("-m", "dumpscope_capture.run", *options, folder=tmp_path)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


def test_the_three_lines_of_a_debugger_are_enough_to_follow_the_environment(tmp_path: Path) -> None:
    lines = """
from dumpscope_capture import PrecisionDebugger
debugger = PrecisionDebugger(dump_path="dump", level="L1", step=[0])
import torch
for step in range(3):
    debugger.start()
    print(float(torch.tensor([1e8, 1.0, -1e8]).sum()))
    debugger.stop()
    debugger.step()
"""
    (tmp_path / "train.py").write_text(lines, encoding="utf-8")
    plain = _run("train.py", folder=tmp_path)
    ran = _run(
        "train.py", folder=tmp_path, DUMPSCOPE_INTERVENE='{"Tensor.sum": "float64"}',
        DUMPSCOPE_INTERVENE_REPORT="report.json",
    )  # fmt: skip
    assert ran.returncode == plain.returncode == 0, ran.stderr
    assert len(set(ran.stdout.split())) == len(set(plain.stdout.split())) == 1
    assert ran.stdout != plain.stdout
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["interventions"][0]["substituted"] == 3
    assert report["calls"]["Tensor.sum.0"] == 3
