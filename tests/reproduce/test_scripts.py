"""Scripts made of real dumps run, reproduce what was recorded, and say where it was wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dumpscope.cli.app import status
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.pipeline.operators.reproduce import FoundCall, calls_of, find_call, runtime, tensor_folder, write_script
from dumpscope.readers import discover
from dumpscope_format.replay import REGION_RUNTIME
from reproduce import run_scripts

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("warm")


def written(dump: Path, folder: Path) -> list[str]:
    """A script for every function call of a dump; the names of those that cannot be run alone."""
    refused = []
    for ref in discover(dump).ranks:
        for name, call in calls_of(ref):
            if isinstance(call, UsageError):
                refused.append(f"{name}: {call}")
                continue
            found = FoundCall(ref=ref, call=call, folder=tensor_folder(ref))
            text = write_script(found, origin=dump.name, data=found.folder or "")
            (folder / f"step{ref.step}.{name}.py").write_text(text, encoding="utf-8")
    return refused


def said(dump: Path, folder: Path) -> dict[str, dict[str, Any]]:
    assert written(dump, folder) == []
    return {path.stem: run_scripts.run(path) for path in sorted(folder.glob("*.py"))}


def script_of(dump: Path, node: str, folder: Path, *options: str) -> Path:
    target = folder / f"{node}.py"
    assert status(["reproduce", str(dump), node, "-o", str(target), *options]) == 0
    return target


def run(script: Path, *options: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a Python that finds none of our packages."""
    command = [sys.executable, "-I", script, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, cwd=cwd)


@pytest.mark.parametrize(
    "name", ["golden", "conv_L1", "weird_mix", "types_L1", "microbatch", "checkpoint", "target_bf16"]
)
def test_every_call_of_a_healthy_tensor_dump_runs_and_passes(name: str, dumps: Path, tmp_path: Path) -> None:
    found = said(dumps / name, tmp_path)
    assert len(found) > 3
    for script, one in found.items():
        assert one["error"] == "", script
        assert one["status"] == 0, script
        assert one["verdict"] in ("pass", "SKIP"), script
        assert one["recorded"] in ("pass", "SKIP"), script
        assert one["made_up"] == [] or one["recorded"] == "SKIP", script


@pytest.mark.parametrize("name", ["stat_golden", "conv_mix_stat", "types_L1_stat"])
def test_every_call_of_a_statistics_dump_runs_on_numbers_that_are_made_up(
    name: str, dumps: Path, tmp_path: Path
) -> None:
    found = said(dumps / name, tmp_path)
    assert len(found) > 10
    for script, one in found.items():
        assert one["error"] == "", script
        assert one["verdict"] in ("pass", "SKIP"), script
        assert one["recorded"] == "SKIP", script
    assert sum(bool(one["made_up"]) for one in found.values()) > 10


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("target_fault", "Functional.softmax.1"),
        ("target_fault_bwd", "Functional.layer_norm.3"),
        ("target_nan", "Functional.gelu.0"),
    ],
)
def test_the_one_call_whose_recorded_result_is_wrong_is_told_without_a_golden(
    name: str, wrong: str, dumps: Path, tmp_path: Path
) -> None:
    found = said(dumps / name, tmp_path)
    assert {script.split(".", 1)[1] for script, one in found.items() if one["recorded"] == "error"} == {wrong}
    assert all(one["verdict"] != "error" for one in found.values())


def test_a_script_needs_torch_only_and_tells_what_the_dump_got_wrong(dumps: Path, tmp_path: Path) -> None:
    script = script_of(dumps / "target_fault", "Functional.softmax.1.forward", tmp_path, "--copy")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in tmp_path.glob("*_data"):
        path.rename(moved / path.name)
    script = script.rename(moved / script.name)
    done = run(script, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Not reproduced: the recorded result is wrong" in done.stdout
    assert "Differs from the call in the net: the dump does not say on which device" in done.stdout
    assert "dumpscope" not in "".join(
        line for line in script.read_text().splitlines(True) if line.startswith(("import", "from"))
    )


def test_scalars_dtype_and_layout_are_options_of_the_script(dumps: Path, tmp_path: Path) -> None:
    script = script_of(dumps / "golden", "Functional.layer_norm.0", tmp_path)
    assert "--eps VALUE" in run(script, "--help").stdout
    changed = run_scripts.run(script, "--eps", "0.5")
    assert changed["verdict"] == "pass"
    assert changed["recorded"] == "error"  # another eps gives another result than the recorded one
    half = run_scripts.run(script, "--dtype", "bfloat16", "--layout", "contiguous", "--deterministic")
    assert half["verdict"] == "pass"
    assert half["recorded"] == "SKIP"
    assert run_scripts.run(script, "--no-backward")["grads"] == "none"


def test_statistics_give_the_same_numbers_for_the_same_seed_between_the_recorded_extremes(
    dumps: Path, tmp_path: Path
) -> None:
    script = script_of(dumps / "stat_golden", "Functional.gelu.0", tmp_path)
    assert "MADE UP" in script.read_text()
    one, other, third = (run_scripts.run(script, "--seed", seed)["here"]["output.0"]["measures"] for seed in (1, 1, 2))
    assert one == other != third
    assert any("made up" in sentence for sentence in run_scripts.run(script)["said"])


def test_a_wrong_kernel_is_reproduced_and_the_matrix_names_its_type(dumps: Path, tmp_path: Path) -> None:
    script = script_of(dumps / "golden", "Functional.softmax.1", tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import torch\n"
        "right = torch.nn.functional.softmax\n"
        "def softmax(x, *a, **k):\n"
        "    y = right(x, *a, **k)\n"
        "    return y * 1.02 if x.dtype is torch.float32 else y\n"
        "torch.nn.functional.softmax = softmax\n"
    )
    assert run_scripts.run(script)["verdict"] == "pass"
    done = run(script, "--prelude", wrong)
    assert done.returncode == 1
    assert "Reproduced: this call alone gives a wrong result here." in done.stdout
    table = tmp_path / "matrix.json"
    done = run(script, "--matrix", "--devices", "cpu", "--prelude", wrong, "--save", table)
    assert done.returncode == 1, done.stderr
    kept = json.loads(table.read_text())
    assert {(cell["dtype"], cell["verdict"]) for cell in kept["cells"]} == {("recorded", "error"), ("float64", "pass")}
    assert kept["said"] == ["dtype flips the result: fails no more from recorded to float64 (2x), of 2 failing pairs."]


def test_a_process_that_dies_is_a_cell_of_the_matrix(dumps: Path, tmp_path: Path) -> None:
    script = script_of(dumps / "golden", "Functional.softmax.1", tmp_path)
    wrong = tmp_path / "dies.py"
    wrong.write_text("import os, sys\nif '--deterministic' in sys.argv: os.abort()\n")
    done = run(script, "--matrix", "--devices", "cpu", "--prelude", wrong)
    assert done.returncode == 1
    assert "crash" in done.stdout
    assert "signal 6" in done.stdout
    assert "deterministic flips the result: fails no more from True to False (2x), of 2 failing pairs." in done.stdout


def test_the_command_runs_the_matrix_and_says_when_nothing_fails(
    dumps: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert status(["reproduce", str(dumps / "golden"), "Functional.gelu.0", "--matrix"]) == 0
    assert "No cell fails: not reproduced on this machine." in capfd.readouterr().out


def test_values_of_a_scalar_are_a_factor_and_every_run_keeps_its_own_log(dumps: Path, tmp_path: Path) -> None:
    script = script_of(dumps / "golden", "Functional.layer_norm.0", tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import torch\n"
        "right = torch.nn.functional.layer_norm\n"
        "def layer_norm(x, shape, weight=None, bias=None, eps=1e-5):\n"
        "    y = right(x, shape, weight, bias, eps)\n"
        "    return y * 1.02 if eps < 1e-4 and x.dtype is not torch.float64 else y\n"
        "torch.nn.functional.layer_norm = layer_norm\n"
    )
    done = run(
        script, "--matrix", "--devices", "cpu", "--prelude", wrong, "--eps", "1e-6,1e-3", "--logs", tmp_path / "logs",
        "--save", tmp_path / "matrix.json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    kept = json.loads((tmp_path / "matrix.json").read_text())
    failing = {(cell["dtype"], cell["eps"]) for cell in kept["cells"] if cell["verdict"] == "error"}
    assert failing == {("recorded", "recorded"), ("recorded", "1e-6")}
    assert any(one.startswith("eps flips the result: fails no more from recorded to 1e-3") for one in kept["said"])
    rooms = sorted((tmp_path / "logs").iterdir())
    assert [room.name for room in rooms] == [f"{number:03}" for number in range(len(kept["cells"]))]
    assert all((room / "device_log").is_dir() for room in rooms)
    assert "--eps=1e-3" in (rooms[2] / "output.txt").read_text()
    refused = run(script, "--eps", "1e-6,1e-3")
    assert refused.returncode == 2
    assert "--eps: several values are for --matrix" in refused.stderr


def test_the_command_passes_values_to_the_matrix(
    dumps: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", str(dumps / "golden"), "Functional.layer_norm.0", "--value", "eps=1e-5,1e-3"]
    assert status(command) == 2
    assert "is for --matrix" in capfd.readouterr().err
    assert status([*command, "--matrix", "-o", str(tmp_path / "norm.py")]) == 0
    assert "eps=1e-3" in capfd.readouterr().out
    assert (tmp_path / "norm_logs" / "000" / "output.txt").is_file()


def test_what_cannot_be_run_alone_is_refused_with_the_reason(dumps: Path) -> None:
    weird = discover(str(dumps / "weird_mix"))
    with pytest.raises(UsageError, match="does not hold how this LSTM was built"):
        find_call(weird, "Module.lstm.LSTM.forward.0")
    with pytest.raises(UsageError, match=r"calls inside it: Torch.matmul.0, "):
        find_call(discover(str(dumps / "golden")), "Module.layers.0.attn.Attn.forward.0")
    with pytest.raises(UsageError, match="needs the other ranks"):
        find_call(discover(str(dumps / "dist2_tensor_golden")), "Distributed.all_reduce.0")
    with pytest.raises(NotFoundError, match=r"no call Functional.softmax.99"):
        find_call(weird, "Functional.softmax.99")
    with pytest.raises(UsageError, match="names no call"):
        find_call(weird, "softmax")


def test_a_module_that_a_function_stands_for_runs_with_its_recorded_parameters(dumps: Path, tmp_path: Path) -> None:
    for node in ("Module.rd.l.Linear.forward.0", "Module.rd.l.Linear.0"):
        found = run_scripts.run(script_of(dumps / "weird_mix", node, tmp_path))
        assert found["recorded"] == "pass"
        assert set(found["here"]) == {
            "output.0", "gradient.input.0", "gradient.parameters.weight", "gradient.parameters.bias",
        }  # fmt: skip


def test_calls_of_sparse_tensors_run_on_sparse_tensors(tmp_path: Path) -> None:
    import torch  # noqa: PLC0415
    from healthy.recording import recorded  # noqa: PLC0415

    embedding = torch.nn.Embedding(6, 3, sparse=True)

    def train() -> None:
        torch.nn.functional.softmax(torch.sparse.mm(torch.eye(6).to_sparse(), embedding.weight), -1).sum().backward()
        embedding(torch.tensor([1, 2, 2])).pow(2).sum().backward()

    def block() -> None:
        torch.eye(4).to_sparse_bsr((2, 2)) @ torch.ones(4, 1)

    found = said(recorded(tmp_path / "dump", train, task="tensor"), tmp_path)
    for node in ("Torch._sparse_mm.0", "Functional.embedding.0"):
        (one,) = (report for script, report in found.items() if f".{node}." in f".{script}.")
        assert (one["status"], one["verdict"], one["recorded"]) == (0, "pass", "pass"), one
    blocks = recorded(tmp_path / "blocks", block, task="tensor")
    with pytest.raises(UsageError, match="the size of blocks is not recorded"):
        find_call(discover(str(blocks)), "Tensor.__matmul__.0")


def test_an_archive_gives_a_script_with_its_tensors_beside_it(dumps: Path, tmp_path: Path) -> None:
    import shutil  # noqa: PLC0415

    archive = shutil.make_archive(str(tmp_path / "dump"), "zip", dumps / "target_fault")
    script = script_of(Path(archive), "Functional.softmax.1", tmp_path)
    assert run_scripts.run(script)["recorded"] == "error"


def test_the_runtime_names_every_module_of_the_package() -> None:
    import dumpscope_capture.replay as package  # noqa: PLC0415

    folder = Path(package.__file__).parent
    carried = {name for name, _ in (*runtime(), *runtime(REGION_RUNTIME))}
    assert carried == {path.stem for path in folder.glob("*.py")} - {"__init__"}
