"""Parts of tensors in place of the whole: fixed ones, and the tokens of one request of a server's batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dumpscope.errors import UsageError
from dumpscope.reproduce.values import Reader
from dumpscope_capture import ConfigError
from dumpscope_capture.config import Slice
from dumpscope_capture.values.slices import Slices

BATCH = torch.arange(9 * 4, dtype=torch.float32).reshape(9, 4)


def record_batch(debugger: Any, scheduled: Any = None) -> torch.Tensor:
    torch.manual_seed(3)
    model = nn.Linear(4, 6)
    debugger.start(model, scheduled_tokens=scheduled)
    result = nn.functional.relu(model(BATCH))
    debugger.stop()
    debugger.step()
    return result.detach()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_the_tokens_of_one_request_are_recorded_alone(make: Any, read: Any, task: str) -> None:
    result = record_batch(make(task=task, section={"request_id": "b"}), {"a": 3, "b": 2, "c": 4})
    step = read()
    (item,) = step.data["Functional.relu.0.forward"]["output"]
    assert (item["shape"], item["whole_shape"]) == ([2, 6], [9, 6])
    assert item["Max"] == pytest.approx(result[3:5].max().item())
    assert item["Norm"] == pytest.approx(result[3:5].norm().item())
    weight = step.data["Functional.linear.0.forward"]["input_args"][1]
    assert weight["shape"] == [6, 4], "it has no tokens"
    assert "whole_shape" not in weight
    assert step.run["notes"] == {"sliced": ["dim 0 of size 9: 3 to 5"]}
    if task == "tensor":
        file = torch.load(step.folder / "dump_tensor_data" / item["data_name"])
        assert torch.equal(file, result[3:5])
        assert file.untyped_storage().nbytes() == 2 * 6 * 4, "the rest is not in the file"


def test_the_batch_of_each_start_is_its_own(make: Any, read: Any, tmp_path: Any) -> None:
    debugger = make(level="L1", section={"request_id": "b"})
    record_batch(debugger, {"a": 9})
    assert not (tmp_path / "dump" / "step0").exists(), "the request is not in the batch"
    record_batch(debugger, {"b": 1, "a": 8})
    record_batch(debugger)
    shapes = [read(step).data["Functional.relu.0.forward"]["output"][0]["shape"] for step in (1, 2)]
    assert shapes == [[1, 6], [9, 6]], "without numbers of tokens everything is recorded"
    assert read(2).run.get("notes", {}) == {}


def test_slices_fit_by_dimension_and_size_and_the_last_one_counts() -> None:
    slices = Slices(
        [Slice(dim=1, begin=-2), Slice(dim=0, size=5, end=1), Slice(dim=0, size=9, begin=4), Slice(0, 9, 1, 4)]
    )
    assert torch.equal(slices.cut(BATCH), BATCH[1:4, -2:])
    assert slices.cut(BATCH).data_ptr() == BATCH[1:4, -2:].data_ptr()
    assert slices.cut(torch.tensor(1.0)).shape == ()
    assert slices.cut(torch.ones(7)).shape == (7,)
    assert slices.cut(torch.ones(5)).shape == (1,)
    assert Slices([Slice(begin=3, end=3)]).cut(torch.ones(5)).shape == (0,)


@pytest.mark.parametrize(
    "wrong", [{"dim": 0}, [3], [{"dim": -1}], [{"size": "9"}], [{"begin": True}], [{"step": 2}], [{"end": 1.0}]]
)
def test_a_slice_that_cannot_be_used_is_refused(make: Any, wrong: Any) -> None:
    with pytest.raises(ConfigError, match='"begin": 0'):
        make(section={"slice": wrong})


def test_levels_and_tasks_without_values_of_calls_take_no_slices(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert make(level="debug", section={"slice": [{"dim": 0, "end": 1}], "request_id": "a"}).config.slice == ()
    assert any("slice and request_id need task statistics or tensor" in line for line in caplog.messages)


def test_numbers_of_tokens_have_names_of_requests(make: Any) -> None:
    with pytest.raises(ConfigError, match="scheduled_tokens"):
        make(section={"request_id": "a"}).start(nn.Linear(1, 1), scheduled_tokens=[3, 4])


def test_a_call_with_a_part_of_an_argument_is_not_run_alone(make: Any, read: Any) -> None:
    record_batch(make(task="tensor", section={"slice": [{"dim": 0, "size": 9, "begin": 2}]}))
    (record,) = read().data["Functional.relu.0.forward"]["input_args"]
    with pytest.raises(UsageError, match=r"only a part of x, whose whole shape is \[9, 6\]"):
        Reader({}, {}).value(record, "x")
