"""A dump of MindSpore or MSAdapter beside one of torch: the same types under other names are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.options import Options
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover
from dumpscope.readers.records.record_keys import torch_dtype


def dump(folder: Path, framework: str, kind: str, dtype: str, maximum: float = 2.0) -> Path:
    record: dict[str, Any] = {
        "type": kind, "dtype": dtype, "shape": [2, 3], "Max": maximum, "Min": -1.0, "Mean": 0.5, "Norm": 3.0,
        "requires_grad": False,
    }  # fmt: skip
    before = {**record, "Max": 2.0}
    data = {"Module.net.Net.forward.0": {"input_args": [before], "input_kwargs": {}, "output": [record]}}
    place = folder / "step0" / "rank0"
    place.mkdir(parents=True)
    (place / "dump.json").write_text(
        json.dumps({"task": "statistics", "level": "L0", "framework": framework, "dump_data_dir": None, "data": data})
    )
    return folder


@pytest.mark.parametrize("dtype", ["Float32", "BFloat16", "Float16", "Int64", "Bool"])
def test_names_of_mindspore_are_the_dtypes_of_torch(dtype: str, tmp_path: Path) -> None:
    one = dump(tmp_path / "t", "mindspore", "mindspore.Tensor", dtype)
    two = dump(tmp_path / "g", "pytorch", "torch.Tensor", f"torch.{dtype.lower()}")
    answer = compare_layouts(discover(one), discover(two), Options(), paths=(str(one), str(two))).answer
    assert (answer.counts.yes, answer.counts.no, answer.counts.warning) == (2, 0, 0)
    assert not any(said["id"] == "setting.dtypes" for said in answer.settings_said)
    assert not answer.origins


def test_a_float_of_mindspore_is_judged_with_the_floor_of_its_type(tmp_path: Path) -> None:
    one = dump(tmp_path / "t", "mindspore", "mindspore.Tensor", "BFloat16", maximum=2.002)
    two = dump(tmp_path / "g", "mindspore", "mindspore.Tensor", "BFloat16")
    answer = compare_layouts(discover(one), discover(two), Options(), paths=(str(one), str(two))).answer
    assert (answer.counts.yes, answer.counts.no) == (2, 0)


@pytest.mark.parametrize("name", ["float32", "torch.float32", "<class 'int'>", "my.Float", "bool", "FLOAT"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert torch_dtype(name) == name
