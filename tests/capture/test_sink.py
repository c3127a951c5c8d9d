"""The folder of a step: JSON files as msprobe writes them, tensor files once each, and no trouble that reaches training."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warm_python import warm_python  # noqa: E402

from dumpscope.readers import discover, read_rank  # noqa: E402
from dumpscope.readers.tensors.torch_file import load  # noqa: E402
from dumpscope_capture.values.hashing import raw  # noqa: E402
from dumpscope_capture.values.recorder import Recorder  # noqa: E402
from dumpscope_capture.write.sink import StepSink  # noqa: E402
from dumpscope_format.journal import JOURNAL  # noqa: E402

HEADER = {"task": "tensor", "level": "mix", "framework": "pytorch"}


class Step:
    """A sink with its recorder; `call` records one function call."""

    def __init__(
        self,
        folder: Path,
        *,
        deferred: bool = False,
        level: str = "mix",
        task: str = "tensor",
        number: int = 0,
        **options: Any,
    ) -> None:
        self.folder = folder / f"step{number}" / "rank0"
        files: dict[str, Any] = {"wants_tensor": lambda item: True} if task == "tensor" else {}
        self.recorder = Recorder(task=task, deferred=deferred, **files)
        header = {**HEADER, "level": level, "task": task}
        self.sink = StepSink(self.folder, header, recorder=self.recorder, **options)

    def call(self, number: int, value: Any, **places: Any) -> str:
        name = f"Torch.f.{number}.forward"
        body = {"input_args": [self.recorder.record(value, f"{name}.input.0")], "input_kwargs": {}, "output": []}
        self.sink.add(name, body, **places)
        return name

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def tensors(self) -> dict[str, Path]:
        return {path.name: path for path in (self.folder / "dump_tensor_data").iterdir()}


def test_a_closed_step_is_what_msprobe_would_have_written(tmp_path: Path) -> None:
    step = Step(tmp_path)
    first = step.call(0, torch.ones(2), stack=("frame a",), parent="Module.a.A.forward.0")
    step.sink.parent("Torch.low.0.forward", "Module.a.A.forward.0")
    second = step.call(1, [3, None], stack=("frame a",), parent=None)
    step.sink.close()
    text = (step.folder / "dump.json").read_text()
    assert text == json.dumps(json.loads(text), indent=1)
    dump = json.loads(text)
    assert list(dump) == ["task", "level", "framework", "dump_data_dir", "data"]
    assert dump["dump_data_dir"] == str(step.folder / "dump_tensor_data")
    assert list(dump["data"]) == [first, second]
    assert step.json("stack.json") == {"0": [[first, second], ["frame a"]]}
    assert step.json("construct.json") == {
        first: "Module.a.A.forward.0", "Torch.low.0.forward": "Module.a.A.forward.0", second: None,
    }  # fmt: skip
    assert sorted(path.name for path in step.folder.iterdir()) == [
        "construct.json", "dump.json", "dump_tensor_data", "run.json", "stack.json",
    ]  # fmt: skip


def test_an_empty_step_has_all_its_files(tmp_path: Path) -> None:
    step = Step(tmp_path, task="statistics", run={"device": "cpu"})
    step.sink.close()
    assert step.json("dump.json") == {**HEADER, "task": "statistics", "dump_data_dir": None, "data": {}}
    assert step.json("stack.json") == step.json("construct.json") == {}
    assert step.json("run.json")["device"] == "cpu"


def test_level_l1_has_no_parents_and_debug_has_one_file(tmp_path: Path) -> None:
    step = Step(tmp_path / "a", level="L1")
    step.call(0, 1, parent="x")
    step.sink.close()
    assert step.json("construct.json") == {}
    step = Step(tmp_path / "b", level="debug", task="statistics")
    step.sink.add("h.0.debug", step.recorder.record(torch.ones(1), "h.0.debug"))
    step.sink.add("h_grad.0.debug", None)
    step.sink.add("h_grad.0.debug", step.recorder.record(torch.ones(1), "h_grad.0.debug"))
    step.sink.close()
    assert {path.name for path in step.folder.iterdir()} == {"debug.json", "run.json"}
    assert list(step.json("debug.json")["data"]) == ["h.0.debug", "h_grad.0.debug"]
    assert step.json("debug.json")["data"]["h_grad.0.debug"]["Max"] == 1.0
    step = Step(tmp_path / "c", extra_info=False, task="statistics")
    step.sink.close()
    assert {path.name for path in step.folder.iterdir()} == {"dump.json", "run.json"}


@pytest.mark.parametrize("deferred", [False, True])
def test_a_flush_brings_all_to_disk_and_more_may_follow(tmp_path: Path, deferred: bool) -> None:
    step = Step(tmp_path, deferred=deferred)
    step.call(0, torch.ones(2))
    step.sink.flush()
    assert len(step.json("dump.json")["data"]) == 1
    assert len(step.tensors()) == 1
    step.call(1, torch.ones(3))
    (ref,) = discover(tmp_path).ranks
    assert len(read_rank(ref).nodes) == (1 if deferred else 2)
    before = (step.folder / "dump.json").stat().st_mtime_ns
    step.sink.flush()
    assert len(step.json("dump.json")["data"]) == 2
    step.sink.flush()
    step.sink.close()
    step.sink.close()
    step.call(2, 1)
    assert len(step.json("dump.json")["data"]) == 2
    assert (step.folder / "dump.json").stat().st_mtime_ns >= before
    (ref,) = discover(tmp_path).ranks
    assert read_rank(ref).problems == []


def test_statistics_on_a_device_are_fetched_in_chunks_not_node_by_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dumpscope_capture.write.sink.CHUNK", 10)
    step = Step(tmp_path, deferred=True, task="statistics")
    fetched = []
    real = step.recorder.chunk.resolve
    monkeypatch.setattr(step.recorder.chunk, "resolve", lambda: (fetched.append(len(step.recorder.chunk)), real()))
    for number in range(25):
        step.call(number, torch.full((2,), float(number)))
    step.sink.close()
    assert fetched == [10, 10, 5]
    tops = [body["input_args"][0]["Max"] for body in step.json("dump.json")["data"].values()]
    assert tops == [float(number) for number in range(25)]


def test_equal_contents_are_linked_and_unequal_ones_are_not(tmp_path: Path) -> None:
    step = Step(tmp_path)
    same = torch.randn(50)
    for number, value in enumerate(
        [same, same.clone(), same.view(5, 10), same + 1, same.double(), same.view(torch.int32)]
    ):
        step.call(number, value)
    step.sink.close()
    inodes = [path.stat().st_ino for _, path in sorted(step.tensors().items())]
    assert inodes[0] == inodes[1]
    assert len(set(inodes)) == 5
    sizes = {path.stat().st_ino: path.stat().st_size for path in step.tensors().values()}
    assert step.json("run.json")["tensor_files"] == {"written": 5, "linked": 1, "bytes": sum(sizes.values())}


def test_equal_checksums_of_unequal_bytes_are_not_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dumpscope_capture.write.tensor_files.crc", lambda data: 0)
    step = Step(tmp_path)
    values = [torch.zeros(9), torch.ones(9), torch.zeros(9)]
    for number, value in enumerate(values):
        step.call(number, value)
    step.sink.close()
    for number, value in enumerate(values):
        assert (
            load(step.folder / "dump_tensor_data" / f"Torch.f.{number}.forward.input.0.pt").array == value.numpy()
        ).all()


def two_steps(tmp_path: Path, first: list[Any], between: Any, second: list[Any]) -> tuple[Step, Step]:
    """Two steps of one run. between: called with the first one when it is closed."""
    one = Step(tmp_path)
    for number, value in enumerate(first):
        one.call(number, value)
    one.sink.close()
    between(one)
    other = Step(tmp_path, number=1, earlier=one.sink.step_files())
    for number, value in enumerate(second):
        other.call(number, value)
    other.sink.close()
    assert other.sink.counts == {}
    for number, value in enumerate(second):
        path = other.folder / "dump_tensor_data" / f"Torch.f.{number}.forward.input.0.pt"
        again = torch.load(path, weights_only=True)
        assert torch.equal(again, value)
        assert again.requires_grad == value.requires_grad
    return one, other


def test_what_the_step_before_left_is_linked_in_the_next(tmp_path: Path) -> None:
    weight, state = torch.nn.Parameter(torch.randn(40)), torch.randn(30)
    one, other = two_steps(tmp_path, [state, weight], lambda step: None, [weight, weight, state + 1, weight.detach()])
    first, second = one.tensors(), other.tensors()
    assert first["Torch.f.1.forward.input.0.pt"].samefile(second["Torch.f.0.forward.input.0.pt"])
    assert first["Torch.f.1.forward.input.0.pt"].samefile(second["Torch.f.1.forward.input.0.pt"])
    told = other.json("run.json")["tensor_files"]
    assert (told["written"], told["linked"]) == (2, 2)  # without gradient it is another file
    third = Step(tmp_path, number=2, earlier=other.sink.step_files())
    third.call(0, state)
    third.call(1, weight)
    third.sink.close()
    assert third.json("run.json")["tensor_files"]["linked"] == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda step: [path.unlink() for path in step.tensors().values()],
        lambda step: [torch.save(torch.zeros(40), path) for path in step.tensors().values()],
        lambda step: [torch.save(torch.load(path).view(5, 8), path) for path in step.tensors().values()],
        lambda step: [path.write_bytes(path.read_bytes()[:-1]) for path in step.tensors().values()],
        lambda step: [path.write_bytes(path.read_bytes() + b"0") for path in step.tensors().values()],
        lambda step: step.folder.rename(step.folder.with_name("moved")),
    ],
)
def test_a_step_that_was_changed_or_removed_is_not_linked_to(tmp_path: Path, change: Any) -> None:
    value = torch.randn(40)
    _, other = two_steps(tmp_path, [value], change, [value, value])
    assert other.json("run.json")["tensor_files"]["written"] == 1


DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
    "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_files_are_read_by_torch_and_without_torch(tmp_path: Path, dtype: str) -> None:
    step = Step(tmp_path)
    base = (torch.arange(24) % 2 if dtype == "bool" else torch.arange(24)).to(getattr(torch, dtype))
    values = [base, base.view(4, 6).t(), base[:1].expand(7), base[3], base.view(2, 3, 4)[:, 1:2]]
    if base.is_complex():
        values.append(base.conj())
    for number, value in enumerate(values):
        step.call(number, value)
    step.sink.close()
    assert step.sink.counts == {}
    for number, value in enumerate(values):
        path = step.folder / "dump_tensor_data" / f"Torch.f.{number}.forward.input.0.pt"
        again = torch.load(path, weights_only=True)
        assert again.dtype == value.dtype
        assert again.shape == value.shape
        assert torch.equal(raw(again), raw(value.resolve_conj()))
        ours = load(path)
        assert ours.shape == tuple(value.shape)
        assert ours.dtype == f"torch.{dtype}"


def test_requires_grad_is_kept_in_the_file(tmp_path: Path) -> None:
    step = Step(tmp_path)
    step.call(0, torch.ones(2, requires_grad=True) * 2)
    step.sink.close()
    assert torch.load(*step.tensors().values(), weights_only=True).requires_grad


def test_a_view_of_a_huge_storage_writes_a_small_file(tmp_path: Path) -> None:
    step = Step(tmp_path)
    step.call(0, torch.zeros(5_000_000)[100:110])
    step.call(1, torch.ones(1).expand(1 << 20))
    step.sink.close()
    assert [path.stat().st_size < 1000 for path in step.tensors().values()] == [True, True]
    assert (
        torch.load(step.folder / "dump_tensor_data" / "Torch.f.1.forward.input.0.pt", weights_only=True).sum()
        == 1 << 20
    )


@pytest.mark.parametrize("deferred", [False, True])
def test_a_file_shows_the_tensor_before_it_was_changed_in_place(tmp_path: Path, deferred: bool) -> None:
    step = Step(tmp_path, deferred=deferred)
    value = torch.zeros(100_000)
    for number in range(30):
        step.call(number, value)
        value.add_(1)
    step.sink.close()
    for number in range(30):
        path = step.folder / "dump_tensor_data" / f"Torch.f.{number}.forward.input.0.pt"
        assert torch.equal(torch.load(path, weights_only=True), torch.full((100_000,), float(number)))


def test_memory_of_waiting_tensors_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dumpscope_capture.write.sink.ASYNC_QUEUE_BYTES", 1 << 20)
    step = Step(tmp_path, async_dump=True)
    files = step.sink._files
    most = 0
    for number in range(60):
        step.call(number, torch.full((1 << 16,), float(number)))
        most = max(most, files._bytes)
    step.sink.close()
    assert most <= (1 << 20) + (1 << 18)
    assert len(step.tensors()) == 60


def test_threads_may_record_at_the_same_time(tmp_path: Path) -> None:
    step = Step(tmp_path, deferred=True)

    def work(first: int) -> None:
        for number in range(first, first + 50):
            step.call(number, torch.full((3,), float(number)))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 200, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    step.sink.close()
    data = step.json("dump.json")["data"]
    assert len(data) == 200
    for name, body in data.items():
        assert body["input_args"][0]["Max"] == float(name.split(".")[2])
    assert len(step.tensors()) == 200


def test_the_folder_may_be_renamed_when_the_rank_is_known(tmp_path: Path) -> None:
    step = Step(tmp_path)
    step.call(0, torch.ones(1))
    step.sink.move(tmp_path / "step0" / "rank3")
    step.folder = tmp_path / "step0" / "rank3"
    step.call(1, torch.zeros(1))
    step.sink.close()
    assert step.json("dump.json")["dump_data_dir"] == str(step.folder / "dump_tensor_data")
    assert len(step.tensors()) == 2
    assert [path.name for path in (tmp_path / "step0").iterdir()] == ["rank3"]


# -- a disk that fails -------------------------------------------------------------------------------------------------


def test_a_full_disk_costs_one_log_line_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    step = Step(tmp_path)
    step.call(0, torch.ones(3))
    step.sink.flush()

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "dumpscope"):
        patch.setattr(os, "pwrite", full)
        patch.setattr(os, "writev", full)
        for number in range(1, 20):
            step.call(number, torch.full((3,), number + 1.0))
        step.sink._files.drain()
        told = [line for line in caplog.records if "No space left" in line.message]
        assert len(told) == 2  # one for the journal, one for tensor files
    step.call(20, torch.ones(3))
    step.sink.close()
    assert list(step.json("dump.json")["data"]) == ["Torch.f.0.forward", "Torch.f.20.forward"]
    counts = step.json("run.json")["counts"]
    assert (counts["lost_records"], counts["failed_tensor_files"]) == (19, 19)
    assert all(path.stat().st_size > 500 for path in step.tensors().values())


def test_a_disk_too_full_for_the_json_leaves_a_journal_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step(tmp_path)
    step.call(0, torch.ones(3))

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    step.sink.close()
    monkeypatch.undo()
    assert sorted(path.name for path in step.folder.iterdir()) == [JOURNAL, "dump_tensor_data", "run.json"]
    assert step.json("run.json")["ended"] is None
    (ref,) = discover(tmp_path).ranks
    dump = read_rank(ref)
    assert dump.nodes.names == ["Torch.f.0.forward"]
    assert [problem.kind for problem in dump.problems] == ["truncated"]


def test_a_folder_that_cannot_be_made_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "step0").write_text("in the way")
    with caplog.at_level(logging.WARNING, "dumpscope"):
        step = Step(tmp_path)
        step.call(0, torch.ones(1))
        step.sink.flush()
        step.sink.close()
    assert len([line for line in caplog.records if "journal" in line.message]) == 1
    assert step.sink.counts["lost_records"] == 1


def test_file_systems_without_links_get_every_file_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    step = Step(tmp_path)
    step.call(0, torch.ones(3))
    step.call(1, torch.ones(3))
    step.sink.close()
    assert len({path.stat().st_ino for path in step.tensors().values()}) == 2
    assert step.sink.counts == {}


def test_writing_again_never_changes_the_files_of_an_older_run(tmp_path: Path) -> None:
    first = Step(tmp_path)
    first.call(0, torch.ones(3))
    first.call(1, torch.ones(3))
    first.sink.close()
    second = Step(tmp_path)
    second.call(0, torch.zeros(3))
    second.sink.close()
    one = torch.load(first.folder / "dump_tensor_data" / "Torch.f.1.forward.input.0.pt", weights_only=True)
    assert torch.equal(one, torch.ones(3))


def test_a_forked_child_leaves_the_files_of_its_parent_alone(tmp_path: Path) -> None:
    script = """
import os, sys, torch
from dumpscope_capture.values.hashing import raw  # noqa: E402
from dumpscope_capture.write.sink import StepSink
from dumpscope_capture.values.recorder import Recorder
recorder = Recorder(task="tensor", wants_tensor=lambda item: True)
sink = StepSink(sys.argv[1], {"task": "tensor", "level": "L1"}, recorder=recorder)
def call(n):
    name = f"Torch.f.{n}.forward"
    record = recorder.record(torch.full((2,), float(n)), name + ".input.0")
    sink.add(name, {"input_args": [record], "input_kwargs": {}, "output": []})
call(0)
child = os.fork()
if child == 0:
    call(1)
    sink.close()
    os._exit(0)
os.waitpid(child, 0)
call(2)
sink.close()
"""
    folder = tmp_path / "step0" / "rank0"
    subprocess.run([warm_python(), "-c", script, str(folder)], check=True, timeout=120)
    assert list(json.loads((folder / "dump.json").read_text())["data"]) == ["Torch.f.0.forward", "Torch.f.2.forward"]
    assert len(list((folder / "dump_tensor_data").iterdir())) == 2
