"""Arguments and buffers that a call writes into are recorded after it as well, under `written`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from dumpscope.cli.app import main
from dumpscope.domain.records import Role
from dumpscope.readers import discover, read_rank


def _capture(make: Any, read: Any, run: Callable[[], Any], model: Any = None, **keys: Any) -> dict[str, Any]:
    debugger = make(**{"level": "L1", **keys})
    debugger.start(model)
    run()
    debugger.stop()
    debugger.step()
    assert not read().errors
    return dict(read().data)


def test_what_a_call_writes_and_does_not_return_is_recorded(make: Any, read: Any) -> None:
    x, out = torch.zeros(3), torch.zeros(3)
    mean, variance = torch.zeros(2), torch.ones(2)

    def run() -> None:
        x[1] = 5.0
        torch.add(x, 1, out=out)
        F.relu_(x)
        F.batch_norm(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), mean, variance, training=True)
        F.batch_norm(torch.ones(2, 2), mean, variance)
        F.gelu(x)

    data = _capture(make, read, run)
    written = {name: body["written"] for name, body in data.items() if "written" in body}
    assert {name: list(items) for name, items in written.items()} == {
        "Tensor.__setitem__.0.forward": ["input.0"],
        "Functional.batch_norm.0.forward": ["input.1", "input.2"],
    }  # `out` and `x` are what add and relu_ return
    assert written["Tensor.__setitem__.0.forward"]["input.0"]["Max"] == 5.0
    assert data["Tensor.__setitem__.0.forward"]["input_args"][0]["Max"] == 0.0
    assert written["Functional.batch_norm.0.forward"]["input.1"]["Mean"] == pytest.approx(0.25)


def test_an_operator_of_a_library_that_writes_is_seen(make: Any, read: Any) -> None:
    with torch.library._scoped_library("dumpscope_test", "DEF") as library:
        library.define("fill(Tensor(a!) x, Tensor[] more) -> ()")
        library.impl("fill", lambda x, more: (x.fill_(1), more[1].fill_(2), None)[2], "CompositeExplicitAutograd")
        values = [torch.zeros(2) for _ in range(3)]
        data = _capture(make, read, lambda: torch.ops.dumpscope_test.fill(values[0], values[1:]))
    (node,) = data.values()
    assert {path: record["Max"] for path, record in node["written"].items()} == {"input.0": 1.0, "input.1.1": 2.0}


def test_inference_mode_has_no_versions_and_names_tell(make: Any, read: Any) -> None:
    with torch.inference_mode():
        cache = torch.zeros(2, 2)

        def run() -> None:
            cache[0] = 3.0

        data = _capture(make, read, run)
    assert data["Tensor.__setitem__.0.forward"]["written"]["input.0"]["Max"] == 3.0


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(4))
        self.register_buffer("table", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keys[:2] = x
        return self.keys + self.table


def test_buffers_of_modules_are_recorded_where_they_change(make: Any, read: Any) -> None:
    model = nn.ModuleDict({"norm": nn.BatchNorm1d(2), "cache": Cache(), "linear": nn.Linear(2, 2)})

    def run() -> None:
        x = model["norm"](torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        model["cache"](model["linear"](x)[0].detach())
        model["norm"].eval()
        model["norm"](x)

    data = _capture(make, read, run, model, level="L0")
    assert {name: sorted(body["written"]) for name, body in data.items() if "written" in body} == {
        "Module.norm.BatchNorm1d.forward.0": [
            "buffers.num_batches_tracked",
            "buffers.running_mean",
            "buffers.running_var",
        ],
        "Module.cache.Cache.forward.0": ["buffers.keys"],
    }


def test_written_tensors_get_files_and_are_read_as_results(make: Any, read: Any, tmp_path: Path) -> None:
    x = torch.zeros(3)

    def run() -> None:
        x[1] = 5.0
        F.relu(x)

    _capture(make, read, run, task="tensor")
    (ref,) = discover(tmp_path / "dump").ranks
    dump = read_rank(ref)
    assert dump.problems == []
    results = {
        dump.items.data_names[code]
        for role, code in zip(dump.items.role.tolist(), dump.items.data_name.tolist(), strict=True)
        if role == Role.OUTPUT and code >= 0
    }
    name = "Tensor.__setitem__.0.forward.output.written.input.0.pt"
    assert results == {name, "Functional.relu.0.forward.output.0.pt"}
    assert torch.load(Path(ref.folder) / "dump_tensor_data" / name).tolist() == [0.0, 5.0, 0.0]
    producers = read().data["Functional.relu.0.forward"]["producers"]
    assert producers == {"input.0": "Tensor.__setitem__.0.forward.output.written.input.0"}


def test_a_dump_without_them_still_compares_alike(
    make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    debugger = make()
    debugger.start(model)
    model(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    debugger.stop()
    debugger.step()
    (folder,) = (tmp_path / "dump" / "step0").iterdir()
    document = json.loads((folder / "dump.json").read_text())
    assert sum("written" in body for body in document["data"].values()) == 2
    other = tmp_path / "other" / "step0" / folder.name
    other.mkdir(parents=True)
    for body in document["data"].values():
        body.pop("written", None)
    (other / "dump.json").write_text(json.dumps(document))
    (other / "construct.json").write_bytes((folder / "construct.json").read_bytes())
    for pair in ((tmp_path / "dump", tmp_path / "other"), (tmp_path / "other", tmp_path / "dump")):
        with pytest.raises(SystemExit) as end:
            main(["compare", *map(str, pair), "--json"])
        told = json.loads(capsys.readouterr().out)
        assert told["origins"] == []
        assert end.value.code == 0
