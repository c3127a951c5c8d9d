"""numpy and PyYAML may be missing where torch trains: every value is recorded as with them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from warm_python import COLD, warm_python

CAPTURE = Path(__file__).resolve().parents[2] / "capture"
PROGRAM = """
import json, pathlib, sys

for name in sys.argv[2:]:
    sys.modules[name] = None

import torch
from dumpscope_capture import PrecisionDebugger, seed_all
from dumpscope_capture.seeding import random_save

folder = pathlib.Path(sys.argv[1])
seed_all(1234, mode=True)
torch.set_num_threads(1)
places = torch.arange(300_000)
many = torch.sin(places * 0.37)
many[::7] = 0
few = torch.tensor([1.5, 0.0, -2.25, float("nan"), float("inf")])
whole = places.view(-1, 3) % 11 - 5
with_long = torch.tensor([0, 2, 5], dtype=torch.uint8)
wide = [torch.tensor([0, 1, 7], dtype=torch.int64).view(torch.uint64)] if hasattr(torch, "uint64") else []
for task, section in (
    ("statistics", {}), ("statistics", {"summary_mode": "md5"}), ("statistics", {"summary_mode": "xor"}), ("tensor", {}),
):
    name = section.get("summary_mode", task)
    config = folder / f"{name}.json"
    config.write_text(json.dumps({"task": task, "dump_path": str(folder / name), "level": "L1", task: section}))
    debugger = PrecisionDebugger(str(config))
    debugger.start()
    torch.relu(few)
    torch.add(many, many, alpha=2)
    torch.add(many.double()[1:], 1)
    torch.abs(whole)
    torch.abs(whole[:, 1])
    torch.neg(with_long)
    torch.cumsum(few > 0, 0)
    for tensor in wide:
        torch.clone(tensor)
    debugger.stop()
    debugger.step()
    PrecisionDebugger._instance = None
"""


def run(folder: Path, *without: str) -> dict[str, Any]:
    """Content of every dump.json, and the bytes of every tensor file."""
    folder.mkdir()
    command = [COLD if without else warm_python(), "-c", PROGRAM, str(folder), *without]
    env = {**os.environ, "PYTHONPATH": str(CAPTURE), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*/step0/*/dump.json")):
        found[path.parents[2].name] = json.loads(path.read_text(encoding="utf-8"))["data"]
    for path in sorted(folder.glob("tensor/step0/*/dump_tensor_data/*.pt")):
        found[path.name] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("numpy") / "with")


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("numpy") / "without"
    return folder, run(folder, "numpy", "yaml")


def test_every_value_is_recorded_as_with_numpy(plain: dict[str, Any], without: tuple[Path, dict[str, Any]]) -> None:
    _, bare = without
    assert set(bare) == set(plain)
    assert {"statistics", "md5", "xor", "tensor"} < set(plain)
    for name, content in plain.items():
        assert json.dumps(bare[name]) == json.dumps(content) if isinstance(content, dict) else bare[name] == content, (
            name
        )


def test_the_run_names_numpy_only_where_it_is(without: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = without
    (path,) = folder.glob("statistics/step0/*/run.json")
    assert "numpy" not in json.loads(path.read_text(encoding="utf-8"))["versions"]


def test_words_are_folded_as_numpy_folds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from dumpscope_capture.values import hashing  # noqa: PLC0415

    datas = [bytes(range(1, 1 + 8 * words)) for words in (1, 2, 3, 7, 8)]
    wanted = [hashing._xor_words(memoryview(data)) for data in datas]
    monkeypatch.setattr(hashing, "np", None)
    assert [hashing._xor_words(memoryview(data)) for data in datas] == wanted
    large = bytes(range(256)) * 8192
    assert hashing.crc(memoryview(large)) == __import__("zlib").crc32(large)


def test_arrays_are_recorded_also_where_torch_was_built_for_another_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    np = pytest.importorskip("numpy")
    import torch  # noqa: PLC0415

    from dumpscope_capture import optional_numpy  # noqa: PLC0415

    arrays = [np.arange(6, dtype="float32").reshape(2, 3)[:, ::2], np.array(3), np.zeros((0, 2)), np.array([True])]
    wanted = [optional_numpy.tensor_of(array) for array in arrays]

    def refuse(array: Any) -> None:
        raise RuntimeError("Numpy is not available")

    monkeypatch.setattr(torch, "from_numpy", refuse)
    found = [optional_numpy.tensor_of(array) for array in arrays]
    assert all(torch.equal(one, other) and one.dtype is other.dtype for one, other in zip(found, wanted, strict=True))
    assert optional_numpy.zero_bytes(16).tolist() == [0] * 16
    with pytest.raises(TypeError):
        optional_numpy.tensor_of(np.array(["a"]))
