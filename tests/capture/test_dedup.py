"""Tensors recorded again: the work is saved only where their content is truly the same."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from dumpscope_capture.values import recorder as values  # noqa: E402
from dumpscope_capture.values.recorder import Recorder  # noqa: E402
from dumpscope_capture.write.sink import StepSink  # noqa: E402


@pytest.fixture(params=["statistics", "md5"])
def recorder(request: pytest.FixtureRequest) -> Recorder:
    return Recorder(task="statistics", summary=request.param)


def measured(recorder: Recorder, value: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """(record, how many tensors were measured for it); the record is right in any case."""
    calls = []
    real = values.measure_now
    with monkeypatch.context() as patch:
        patch.setattr(values, "measure_now", lambda *args, **options: (calls.append(1), real(*args, **options))[1])
        found = recorder.record(value, "x")
    assert found == Recorder(task="statistics", summary=recorder.summary).record(value, "x")
    return found, len(calls)


def test_an_unchanged_tensor_is_measured_once(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    value = torch.randn(100, 100, requires_grad=True)
    assert measured(recorder, value, monkeypatch)[1] == 1
    assert measured(recorder, value, monkeypatch)[1] == 0
    assert measured(recorder, value.detach(), monkeypatch)[1] == 0
    assert measured(recorder, value.t(), monkeypatch)[1] == 0
    assert measured(recorder, value.view(10, 1000).transpose(0, 1), monkeypatch)[1] == 0
    assert measured(recorder, value[1:], monkeypatch)[1] == 1


def test_small_tensors_of_equal_bytes_and_shape_are_measured_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = torch.randn(300)
    assert measured(recorder, value, monkeypatch)[1] == 1
    assert measured(recorder, value.clone().requires_grad_(), monkeypatch)[1] == 0
    assert measured(recorder, value.view(10, 30), monkeypatch)[1] == 1
    assert measured(recorder, value.view(10, 30).t(), monkeypatch)[1] == 1
    assert measured(recorder, value.view(torch.int32), monkeypatch)[1] == 1
    for number in (0.0, -0.0, -math.inf, math.inf):  # past autograd: the version stays
        value.numpy()[7] = number
        assert measured(recorder, value, monkeypatch)[1] == 1
        assert measured(recorder, value, monkeypatch)[1] == 0


def test_the_bytes_of_small_tensors_are_forgotten_when_they_are_many() -> None:
    recorder = Recorder(task="statistics")
    for number in range(1500):
        recorder.record(torch.full((2000,), float(number)), "x")
        assert recorder.dedup._small_bytes == sum(len(content) for _, _, content in recorder.dedup._small) < 5_000_000


@pytest.mark.parametrize("size", [4096, 131_072, 300_001])
def test_an_unchanged_tensor_of_any_size_is_measured_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    value = torch.randn(size)
    assert measured(recorder, value, monkeypatch)[1] == 1
    assert measured(recorder, value, monkeypatch)[1] == 0
    value.numpy()[-1] += 1
    assert measured(recorder, value, monkeypatch)[1] == 1


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 4096), (5, 140_000), (299_999, 300_000)])
def test_elements_that_change_places_past_autograd_give_another_hash(one: int, other: int) -> None:
    recorder = Recorder(task="statistics", summary="md5")
    value = torch.randn(300_001)
    before = recorder.record(value, "x")["md5"]
    array = value.numpy()
    array[one], array[other] = array[other], array[one]
    after = recorder.record(value, "x")["md5"]
    assert after == Recorder(task="statistics", summary="md5").record(value, "x")["md5"] != before


@pytest.mark.parametrize("width", [64, 512, 1000, 4096])
def test_rows_that_change_places_past_autograd_give_another_hash(width: int) -> None:
    recorder = Recorder(task="statistics", summary="md5")
    value = torch.randn(200, width)
    found = [recorder.record(value, "x")["md5"]]
    for one, other in ((0, 1), (1, 3), (7, 8), (60, 124), (0, 199)):
        value.numpy()[[one, other]] = value.numpy()[[other, one]]
        found.append(recorder.record(value, "x")["md5"])
        assert found[-1] == Recorder(task="statistics", summary="md5").record(value, "x")["md5"]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bfloat16])
@pytest.mark.parametrize("start", [1, 2, 3, 7])
def test_a_change_of_memory_that_begins_anywhere_is_seen(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, dtype: Any, start: int
) -> None:
    value = torch.ones(40_003, dtype=dtype)[start:]
    assert measured(recorder, value, monkeypatch)[1] == 1
    assert measured(recorder, value, monkeypatch)[1] == 0
    for place in (0, 20_000, -1):
        value.view(torch.uint8).numpy()[place] += 1
        assert measured(recorder, value, monkeypatch)[1] == 1


CHANGES = {
    "in place": lambda value: value.add_(1),
    "past autograd": lambda value: value.data.add_(1),
    "by numpy": lambda value: value.numpy().__setitem__((3, 3), math.inf),
    "one bit": lambda value: value.view(torch.int32).numpy().__setitem__((0, 0), 1),
    "new memory": lambda value: value.set_(torch.ones(100, 100)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_any_kind_is_seen(recorder: Recorder, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    value = torch.randn(100, 100)
    measured(recorder, value, monkeypatch)
    change(value)
    assert measured(recorder, value, monkeypatch)[1] == 1


def test_memory_that_is_used_again_by_another_tensor_is_no_old_friend(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        assert measured(recorder, torch.full((10_000,), float(number)), monkeypatch)[1] == 1


def versions() -> Iterator[Any]:
    """One tensor in several guises, changed in place before the last two."""
    value = torch.randn(100, 100)
    yield from (value, value, value.t(), value.t(), value.clone().requires_grad_())
    value.add_(1)
    yield from (value, value)


def refuse(*_: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_a_content_written_before_only_gets_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    recorder = Recorder(task="tensor", summary="md5", wants_tensor=lambda item: True)
    sink = StepSink(tmp_path, {"task": "tensor", "level": "L1"}, recorder=recorder)
    expected = []
    for number, one in enumerate(versions()):
        name = f"Torch.f.{number}.forward"
        expected.append(one.detach().clone())
        sink.add(name, {"input_args": [recorder.record(one, f"{name}.input.0")], "input_kwargs": {}, "output": []})
    sink.close()
    assert sink.counts == {}
    told = json.loads((tmp_path / "run.json").read_text())["tensor_files"]
    assert (told["written"], told["linked"]) == ((4, 3) if links else (7, 0))
    for number, one in enumerate(expected):
        again = torch.load(tmp_path / "dump_tensor_data" / f"Torch.f.{number}.forward.input.0.pt", weights_only=True)
        assert torch.equal(again.detach(), one)
        assert again.requires_grad == (number == 4)


def test_a_parameter_is_not_measured_again_in_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    value, gone = torch.randn(100, 100), torch.randn(100, 100)
    first = Recorder(task="statistics")
    measured(first, value, monkeypatch)
    measured(first, gone, monkeypatch)
    del gone
    first.dedup.end_step()
    second = Recorder(task="statistics", dedup=first.dedup)
    assert measured(second, value, monkeypatch)[1] == 0
    value.data.add_(1)
    assert measured(second, value, monkeypatch)[1] == 1
    assert len(first.dedup) == 1


def test_each_step_has_its_own_name_of_an_unchanged_tensor(tmp_path: Path) -> None:
    value, seen = torch.randn(100, 100), None
    for step in ("step0", "step1"):
        recorder = Recorder(task="tensor", wants_tensor=lambda item: True, dedup=seen)
        sink = StepSink(tmp_path / step, {"task": "tensor", "level": "L1"}, recorder=recorder)
        recorded = recorder.record(value, "Torch.f.0.forward.input.0")
        sink.add("Torch.f.0.forward", {"input_args": [recorded], "input_kwargs": {}, "output": []})
        sink.close()
        seen = recorder.dedup
        seen.end_step()
        file = tmp_path / step / "dump_tensor_data" / "Torch.f.0.forward.input.0.pt"
        assert torch.equal(torch.load(file, weights_only=True), value)
