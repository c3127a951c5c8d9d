"""The field note from end to end, with the commands an engineer would give, over a simulated device.

A net of group norms is cast to float and trained; with 32 groups the device's backward of float32 is broken. From the failing
backward to the archive in its owner's hands, nothing is known but what the step before has said.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from reproduce import run_scripts
from warm_python import COLD

from dumpscope.cli.app import status
from dumpscope.reproduce.bisection import budget
from dumpscope_capture import prove

TESTS = Path(__file__).parents[2]

FAULT = """
import torch
from capture.proof import device

device.register()
device.faults["native_group_norm_backward"] = device.Fault(
    damage=lambda out: (out[0][:1], *out[1:]), when=lambda args: args[8] == 32 and args[1].dtype is torch.float32
)
"""

TRAINING = """
import torch
import torch.nn.functional as F

EPS = 1e-6


class Block(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups
        self.weight, self.bias = (torch.nn.Parameter(torch.randn(64)) for _ in range(2))

    def forward(self, x):
        return x + F.silu(F.group_norm(x.float(), self.groups, self.weight, self.bias, EPS)).to(x.dtype)


def train(where, steps=1):
    torch.manual_seed(7)
    net = torch.nn.Sequential(*(Block(groups) for groups in (8, 32, 16, 32))).to(where)
    x = torch.randn(2, 64, 6, dtype=torch.bfloat16).to(where)
    for _ in range(steps):
        net.zero_grad()
        net(x).sum().backward()
        with torch._C.DisableTorchFunction(), torch.no_grad():  # no calls of the net
            for parameter in net.parameters():
                parameter.copy_((parameter.cpu() - 0.01 * parameter.grad.cpu()).to(where))
            loss = sum(float(parameter.cpu().double().sum()) for parameter in net.parameters())
    return loss


if __name__ == "__main__":
    import fault
    print("loss", train("sim"))
"""


def bare_python(folder: Path) -> list[str]:
    """A Python whose path holds its own library, torch, numpy and what these two require: nothing else that is installed."""
    folder.mkdir()
    wanted, seen = ["torch", "numpy"], set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        wanted += [re.split(r"[^\w.-]", one)[0] for one in found.requires or () if "extra ==" not in one]
        for top in {path.parts[0] for path in found.files or () if not path.parts[0].startswith(("..", "__pycache__"))}:
            if not (folder / top).exists():
                (folder / top).symlink_to(found.locate_file(top))
    start = (
        "import runpy, sys; sys.path.append(sys.argv[1]); sys.argv = sys.argv[2:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return [COLD, "-I", "-S", "-c", start, str(folder)]


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("warm")
def test_from_a_failing_backward_to_the_archive_of_its_operator(
    sim: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fault, program = tmp_path / "fault.py", tmp_path / "train.py"
    fault.write_text(FAULT)
    program.write_text(TRAINING)
    paths = [str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    runner = [sys.executable, "-m", "dumpscope_capture.run"]

    # 1: the backward fails; which call stands behind it?
    failed = run(*runner, "--recipe", tmp_path / "runs", "--explain-backward", "table", program, cwd=tmp_path)
    assert failed.returncode == 1
    named = re.search(
        r"the backward of (\S+) failed, in NativeGroupNormBackward0\n  called in module (\S+)", failed.stderr
    )
    assert named is not None, failed.stderr
    call = named[1]
    assert (call, named[2]) == ("Functional.group_norm.3", "3")  # the last of the forward is the first of the backward
    (room,) = (tmp_path / "runs").iterdir()
    assert call in json.loads((room / "recipe.json").read_text())["error"]

    # 2: keep what it is given, before it runs
    run(*runner, "--save-call", call, "--output", tmp_path / "kept", program, cwd=tmp_path)
    (saved,) = (tmp_path / "kept").glob(f"*/saved_calls/{call}")

    # 3: alone: it fails on the device, and with its 32 groups and eps there as options it does not without them
    script = tmp_path / "call.py"
    assert status(["reproduce", str(saved), "-o", str(script), "--copy"]) == 0
    runpy.run_path(str(fault))  # from here on the device is wrong in this process too
    there = run_scripts.run(script, "--device", "sim")
    assert (there["verdict"], there["status"]) == ("error", 1)
    assert "invalid gradient" in there["error"]
    assert run_scripts.run(script, "--device", "sim", "--num_groups", "16")["verdict"] == "pass"
    assert run_scripts.run(script, "--device", "sim", "--eps", "1e-3")["verdict"] == "error"
    assert run_scripts.run(script, "--device", "sim", "--no-backward")["verdict"] == "pass"

    # 4: which factor is it?
    matrix = tmp_path / "matrix.json"
    words = ["--matrix", "--devices", "sim,cpu", "--prelude", fault, "--save", matrix, "--logs", tmp_path / "logs"]
    assert run(sys.executable, script, *words, cwd=tmp_path).returncode == 1
    found = json.loads(matrix.read_text())
    assert {(cell["device"], cell["dtype"]) for cell in found["cells"] if cell["verdict"] == "error"} == {
        ("sim", "recorded")
    }
    assert [one.partition(" ")[0] for one in found["said"]] == ["device", "dtype"]

    # 5: in the net: substituted it trains, with every control it does not
    train = runpy.run_path(str(program))["train"]
    healed = train("cpu", 3)
    proof = prove(
        "Functional.group_norm.*",
        lambda: train("sim", 3),
        lambda loss: abs(loss - healed) < 1e-3 * abs(healed),
        scalars={"eps": 1e-5},
    )
    assert proof.judgement.blamed, str(proof)
    assert proof.judgement.helped == ("substitute",)
    assert {one.trial.kind for one in proof.outcomes if one.touched} == {
        "substitute", "neighbour", "roundtrip", "scalar",
    }  # fmt: skip
    controls = tmp_path / "controls.txt"
    controls.write_text(str(proof))

    # 6: exactly which calls must move?
    capfd.readouterr()
    folder, right = str(tmp_path / "bisect"), str(train("cpu"))
    search = ["bisect", "--metric", r"loss (\S+)", "--expect", right, "-o", folder, "--json"]
    assert status([*search, "--", sys.executable, str(program)]) == 0
    searched = json.loads(capfd.readouterr().out)
    assert searched["needed"] == ["Functional.group_norm.1", "Functional.group_norm.3"]
    assert len(searched["runs"]) - 1 <= budget(searched["calls"])

    # 7: its owner unpacks one archive and runs it, with torch and numpy alone
    archive, clean = tmp_path / "finding.zip", tmp_path / "clean"
    attached = [word for path in (controls, matrix, room / "recipe.json") for word in ("--attach", str(path))]
    assert status(["handover", str(saved), "-o", str(archive), "--no-run", *attached]) == 0
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(clean)
    python = bare_python(tmp_path / "site")
    assert run(*python, "/dev/null", cwd=clean).returncode == 0
    lacks = tmp_path / "lacks.py"
    lacks.write_text(
        "import importlib.util, sys\nsys.exit(any(map(importlib.util.find_spec, ('dumpscope', 'dumpscope_capture'))))\n"
    )
    assert run(*python, lacks, cwd=clean).returncode == 0
    owned = run(*python, "reproduce.py", "--json", cwd=clean)
    assert owned.returncode == 0, owned.stderr
    answer = json.loads(owned.stdout.splitlines()[-1])
    assert (answer["name"], answer["verdict"], answer["made_up"]) == (call, "pass", [])
    assert any("it ran on sim:0, this on cpu" in one for one in answer["said"]), answer["said"]
    assert "confirmed" in (clean / "attached" / "controls.txt").read_text()
    told = json.loads((clean / "call.json").read_text())
    assert (told["args"][1], told["args"][4]) == (32, 1e-6)
    assert told["args"][0]["dtype"] == "float32"
    assert torch.load(clean / "tensors" / told["args"][0]["file"], weights_only=True).numel() == 2 * 64 * 6 * 4
