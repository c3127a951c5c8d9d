"""Reading a tensor leaves its storage as it was: it can be resized, moved and freed."""

from __future__ import annotations

import ast
import gc
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

import dumpscope_capture
from dumpscope_capture.values import live_memory
from dumpscope_capture.values.live_memory import is_freed
from dumpscope_capture.values.recorder import Recorder

PACKAGE: Final = Path(dumpscope_capture.__file__).parent

OWN_MEMORY: Final = {
    "ptdbg/files.py": 2,  # a snapshot, for numpy.save
    "ptdbg/acl.py": 1,  # a file of numpy
    "optional_numpy.py": 2,  # a copy of an array of the program; fresh zeros
    "proof/unpacking.py": 1,  # a saved call, read back
    "replay/arguments.py": 1,  # a file of numpy
    "proof/packing.py": 1,  # an array of the program, which numpy owns
}
"""Places that exchange memory with numpy: none of it belongs to a tensor of the program."""

EXCHANGES: Final = ("numpy", "from_numpy", "__array__", "asarray", "as_tensor", "from_dlpack", "to_dlpack")

RUNS: Final = [
    *((level, task, mode) for level in ("L0", "L1", "mix", "L2") for task in ("statistics", "tensor")
      for mode in ("statistics", "md5", "xor")),
    *((level, task, "statistics") for level in ("L0", "L1", "mix") for task in ("structure", "overflow_check")),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _collected() -> None:
    """Each collection of these tests then looks at what came since, not at all that other tests left."""
    gc.collect()
    gc.freeze()


class Mixed(nn.Module):
    """Values of many sizes, types and layouts; the last call overflows."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 4)
        self.large = nn.Linear(8, 600)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.norm(self.first(x))
        wide = self.large(x)
        half = torch.relu(x.half().t())
        counts = torch.add(torch.arange(-4, 4), 1)
        truths = torch.logical_not(x > 0)
        steps = torch.mul(wide[:, ::3], 2)
        return (
            kept.sum()
            + wide.sum()
            + half.float().sum()
            + counts.sum()
            + truths.sum()
            + torch.exp(steps * 0 + 1e3).sum()
        )


def _storages(values: list[torch.Tensor]) -> list[Any]:
    return [value.untyped_storage() for value in values]


@pytest.mark.parametrize(("level", "task", "mode"), RUNS)
def test_a_recorded_storage_can_be_resized_moved_and_freed(
    make: Any, read: Any, level: str, task: str, mode: str
) -> None:
    torch.manual_seed(0)
    model = Mixed()
    x = torch.randn(8, 8, requires_grad=True)
    debugger = make(
        {"summary_mode": mode} if mode != "statistics" else {"overflow_nums": -1} if task == "overflow_check" else {},
        level=level, task=task, save_calls=["*relu*"], risk_level="ALL",
    )  # fmt: skip
    debugger.start(model)
    model(x).backward()
    touched = [*model.parameters(), *model.buffers(), *(value.grad for value in model.parameters()), x, x.grad]
    _free_and_refill(touched)  # within the step, as sharded training does
    model(x).backward()
    debugger.stop()
    debugger.step()
    assert not read().errors
    assert task == "overflow_check" or read().data
    _free_and_refill(touched)
    for storage in _storages(touched):
        storage.share_memory_()
        assert storage.is_shared()
    alive = [StorageWeakRef(storage) for storage in _storages(touched)]
    del model, x, touched, storage
    gc.collect()
    assert [reference.expired() for reference in alive] == [True] * len(alive)


def _free_and_refill(values: list[Any]) -> None:
    for storage in _storages(values):
        content = storage.clone()
        assert storage.resizable()
        storage.resize_(0)
        storage.resize_(content.nbytes())
        storage.copy_(content)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.uint64])
@pytest.mark.parametrize("summary", ["statistics", "md5", "xor"])
@pytest.mark.parametrize("size", [(), (3,), (70, 100), (1 << 21,)])
def test_every_type_and_size_stays_resizable(kind: torch.dtype, summary: str, size: tuple[int, ...]) -> None:
    for layout in ("whole", "turned", "part"):
        value = torch.randn(size).mul(9).to(torch.int64 if kind is torch.uint64 else kind).to(kind)
        value = value.t() if layout == "turned" and value.dim() == 2 else value
        value = value[1:] if layout == "part" and value.dim() == 1 else value
        record = Recorder(task="tensor", summary=summary, wants_tensor=lambda item: True).record(value, "x")
        assert "absent" not in record
        value.untyped_storage().resize_(0)


def test_a_debugged_value_stays_resizable(make: Any) -> None:
    x = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)
    debugger = make({"summary_mode": "md5"}, level="debug")
    debugger.save(x, "x")
    (x * 2).sum().backward()
    debugger.step()
    for value in (x, x.grad):
        value.untyped_storage().resize_(0)


def test_a_tensor_whose_storage_is_freed_is_not_read() -> None:
    value = torch.ones(6, 4)
    rows, spread = value[1:], torch.ones(1).expand(5)
    assert not any(is_freed(part) for part in (value, rows, spread, torch.empty(0)))
    parts = (value, rows, value.t())
    for summary in ("statistics", "md5", "xor"):
        for part in parts:
            record = Recorder(task="tensor", summary=summary, wants_tensor=lambda item: True).record(part, "x")
            assert "absent" not in record
    value.untyped_storage().resize_(0)
    for part in parts:
        record = Recorder(task="tensor", wants_tensor=lambda item: True).record(part, "x")
        assert record["absent"] == "storage is freed"
        assert record["Max"] is None
        assert "data_name" not in record


def test_bytes_are_read_from_where_a_tensor_begins() -> None:
    value = torch.arange(10, dtype=torch.uint8)
    assert live_memory.read(value[3:], bytes) == bytes(range(3, 10))
    assert live_memory.read(value[:0], bytes) == b""
    assert live_memory.read(value[3:], lambda data, more: data.nbytes + more, 5) == 12


def test_no_other_code_exchanges_memory_with_numpy() -> None:
    found: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            word = getattr(called, "attr", getattr(called, "id", ""))
            if word in EXCHANGES:
                name = path.relative_to(PACKAGE).as_posix()
                found[name] = found.get(name, 0) + 1
    assert found == OWN_MEMORY
