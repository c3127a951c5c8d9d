"""A saved call gives the call as it was: bytes, strides, offsets, aliases, state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dumpscope.cli.app import status
from reproduce import run_scripts

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("warm")


def entry(tensor: Any, storage: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "storage": storage, "dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
        "stride": list(tensor.stride()), "offset": tensor.storage_offset(), "device": "npu:0", "requires_grad": False,
        "leaf": True, "contiguous": tensor.is_contiguous(), "memory_format": "contiguous_format", "format": None,
        "alignment": 64, "parameter": False, **more,
    }  # fmt: skip


def save(folder: Path, tensors: list[dict[str, Any]], base: Any, args: list[Any], **more: Any) -> Path:
    """A saved call of one storage, as the format describes it."""
    folder.mkdir(parents=True)
    data = torch.empty(0, dtype=torch.uint8).set_(base.untyped_storage())
    torch.save(data.clone(), folder / "storage.0.pt")
    storage = {
        "file": "storage.0.pt",
        "start": 0,
        "nbytes": data.numel(),
        "total": data.numel(),
        "crc32": "0",
        "exact": True,
    }
    call = {
        "schema": 1, "name": "Functional.group_norm.3",
        "api": {"prefix": "Functional", "name": "group_norm", "target": "torch.nn.functional.group_norm"},
        "tensors": tensors, "storages": [storage], "args": args, "kwargs": {}, "stack": [], "module": None, "step": 0, "rank": 0,
        "modes": {"grad": True}, "autocast": {}, "rng": {}, "versions": {"torch": "2.1.0"}, "devices": ["cpu", "npu:0"],
        "numerics": {}, "seeds": {}, "environment": {}, **more,
    }  # fmt: skip
    (folder / "call.json").write_text(json.dumps(call))
    return folder


def test_arguments_keep_strides_offsets_and_the_memory_they_share(tmp_path: Path) -> None:
    base = torch.arange(400.0)
    given = base.as_strided((2, 4, 5), (60, 1, 9), 7)
    weight = base.as_strided((4,), (1,), 0)
    tensor = {"type": "tensor", "tensor": 0}
    args = [tensor, 2, {"type": "tensor", "tensor": 1}, None, 1e-05]
    saved = save(tmp_path / "saved", [entry(given, requires_grad=True), entry(weight)], base, args)
    assert status(["reproduce", str(saved), "-o", str(tmp_path / "call.py"), "--copy"]) == 0
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import torch\n"
        "real = torch.nn.functional.group_norm\n"
        "seen = []\n"
        "def group_norm(x, groups, weight=None, bias=None, eps=1e-5):\n"
        "    one, other = x.untyped_storage(), weight.untyped_storage()\n"
        "    seen.append((x.stride(), x.storage_offset(), one.data_ptr() == other.data_ptr()))\n"
        "    torch.seen = seen\n"
        "    return real(x, groups, weight, bias, eps)\n"
        "torch.nn.functional.group_norm = group_norm\n"
    )
    before = torch.nn.functional.group_norm
    try:
        found = run_scripts.run(tmp_path / "call.py", "--prelude", probe)
    finally:
        torch.nn.functional.group_norm = before
    assert found["verdict"] == "pass"
    assert torch.seen[0] == ((60, 1, 9), 7, True)
    assert set(found["here"]) == {"output.0", "gradient.input.0"}
    contiguous = run_scripts.run(tmp_path / "call.py", "--layout", "contiguous", "--eps", "0.1")
    assert contiguous["verdict"] == "pass"
    assert any("it ran on npu:0, this on cpu" in one for one in contiguous["said"])
    assert any("did not lie in row-major order" in one for one in contiguous["said"])
    assert any("it ran with torch 2.1.0" in one for one in contiguous["said"])


def test_a_value_that_cannot_be_made_again_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = torch.ones(4)
    opaque = {"type": "opaque", "class": "my.Handle", "text": "<Handle>"}
    saved = save(tmp_path / "saved", [entry(base)], base, [{"type": "tensor", "tensor": 0}, opaque])
    assert status(["reproduce", str(saved)]) == 2
    assert "input.1 is a my.Handle, which cannot be rebuilt" in capsys.readouterr().err


def test_a_damaged_saved_call_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "call.json").write_text('{"schema": 1}')
    assert status(["reproduce", str(tmp_path)]) == 2
    assert "lacks name" in capsys.readouterr().err


def test_a_call_that_the_capture_saved_gives_its_result_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from torch.nn import functional\n"
        "x = torch.randn(2, 3, 8).transpose(0, 1).requires_grad_()\n"
        "w = torch.randn(8, requires_grad=True)\n"
        "with torch.autocast('cpu', torch.bfloat16):\n"
        "    y = functional.linear(x, torch.stack([w, w]))\n"
        "(functional.layer_norm(x, (8,), w, None, 1e-4).sum() + y.sum()).backward()\n"
    )
    command = [sys.executable, "-m", "dumpscope_capture.run", "--output", tmp_path, "--save-call"]
    for name in ("Functional.layer_norm.0", "Functional.linear.0"):
        subprocess.run([*command, name, program], check=True, capture_output=True, timeout=120)
        (saved,) = tmp_path.glob(f"*/saved_calls/{name}")
        assert status(["reproduce", str(saved), "-o", str(tmp_path / "call.py")]) == 0
        found = run_scripts.run(tmp_path / "call.py")
        assert (found["verdict"], found["recorded"], found["grads"]) == ("pass", "pass", "recorded")
        assert found["matches"] == {"output.0": True}


STAND_IN = '''
"""A stand-in for an NPU: the simulated device under that name, and torch_npu with the two calls for storage formats."""
import sys
import types

import torch
from capture.proof import device

device.NAME = "npu"
device.register()


def cast(tensor, form):
    made = device.SimTensor(tensor.raw.clone())
    made.raw.form = form
    return made


sys.modules["torch_npu"] = types.SimpleNamespace(
    get_npu_format=lambda tensor: getattr(tensor.raw, "form", 2), npu_format_cast=cast
)
device.faults["native_group_norm"] = device.Fault(
    damage=lambda out: (out[0] * 1.5, *out[1:]), when=lambda args: getattr(args[0], "form", 2) == 29
)
'''


def test_the_storage_format_of_an_npu_is_a_factor_of_the_matrix(tmp_path: Path) -> None:
    base = torch.randn(48, generator=torch.Generator().manual_seed(0))
    given = entry(base.view(2, 4, 6), requires_grad=True, format=29)
    saved = save(tmp_path / "saved", [given], base, [{"type": "tensor", "tensor": 0}, 2, None, None, 1e-05])
    script, stand_in = tmp_path / "call.py", tmp_path / "stand_in.py"
    stand_in.write_text(STAND_IN)
    assert status(["reproduce", str(saved), "-o", str(script)]) == 0
    command = [sys.executable, script, "--matrix", "--devices", "npu,cpu", "--prelude", stand_in]
    command += ["--save", tmp_path / "matrix.json"]
    tests = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}  # where the stand-in finds the simulated device
    done = subprocess.run(command, env=tests, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout + done.stderr
    cells = json.loads((tmp_path / "matrix.json").read_text())
    assert {(cell["device"], cell["storage"]) for cell in cells["cells"] if cell["verdict"] == "error"} == {
        ("npu", "recorded")
    }
    assert {(cell["device"], cell["storage"]) for cell in cells["cells"] if cell["verdict"] == "pass"} == {
        ("npu", "nd"), ("cpu", "recorded"),
    }  # fmt: skip
    assert any(one.startswith("storage flips the result: fails no more from recorded to nd") for one in cells["said"])
    alone = run_scripts.run(script)
    assert any("storage format 29 of an NPU, here in the plain one" in one for one in alone["said"])
