"""`list` and `scope` choose the nodes that msprobe 26.2.0 chooses, forward and backward.

selections.json holds the names that msprobe recorded for each case; where an interpreter with msprobe is named, msprobe itself
runs again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from capture import peer_models
from capture.launching import launch
from capture.peer_runs import Case

PEER = os.environ.get("DUMPSCOPE_PEER_PYTHON", "")
STORED = Path(__file__).with_name("selections.json")
WHOLE_LISTED = {"Linear.backward"}
"""A list that names backwards of modules: ours keeps their parameters' gradients too, msprobe those that come after."""


def _cases() -> list[dict[str, Any]]:
    """level, section, and names, sorted."""
    return list(json.loads(STORED.read_text(encoding="utf-8")))


def _text(case: dict[str, Any]) -> str:
    return f"{case['level']} {json.dumps(case['section'])}"


@pytest.mark.parametrize("case", _cases(), ids=_text)
def test_the_nodes_are_those_that_msprobe_chooses(make: Any, read: Any, case: dict[str, Any]) -> None:
    debugger = make(level=case["level"], backward="msprobe", section=case["section"])
    peer_models.train("blocks", debugger, steps=1)
    names = set(read().data)
    if case["section"].get("list") and set(case["section"]["list"]) & WHOLE_LISTED:
        names = {name for name in names if "parameters_grad" not in name}
    assert sorted(names) == case["names"]


@pytest.mark.skipif(not PEER, reason="no interpreter with msprobe was named")
def test_what_is_stored_is_what_msprobe_records(tmp_path: Path) -> None:
    stored = _cases()
    runs = [
        Case(name=f"s{n}", model="blocks", level=case["level"], task="statistics", summary="statistics", risk="FOCUS",
             section=case["section"], steps=1)
        for n, case in enumerate(stored)
    ]  # fmt: skip
    launch("msprobe", tmp_path, runs, PEER)
    for n, case in enumerate(stored):
        found = [
            name
            for path in (tmp_path / f"s{n}" / "step0").rglob("dump.json")
            for name in json.loads(path.read_text())["data"]
        ]
        if case["section"].get("list") and set(case["section"]["list"]) & WHOLE_LISTED:
            found = [name for name in found if "parameters_grad" not in name]
        assert sorted(found) == case["names"], _text(case)


def test_gradients_that_no_filter_keeps_get_no_file(make: Any, read: Any) -> None:
    debugger = make(
        level="L1", task="tensor", section={"scope": ["Functional.gelu.0.forward", "Functional.gelu.1.forward"]}
    )
    peer_models.train("blocks", debugger, steps=1)
    dump = read()
    assert all(path.name.split(".forward.")[0] + ".forward" in dump.data for path in dump.folder.rglob("*.pt"))


def test_a_module_that_ends_in_the_scope_shows_its_results(make: Any, read: Any) -> None:
    debugger = make(level="L0", section={"scope": ["Module.a.fc2.Linear.forward.0", "Module.b.fc1.Linear.forward.0"]})
    peer_models.train("blocks", debugger, steps=1)
    node = read().data["Module.a.Halves.forward.0"]
    assert "input_args" not in node
    assert node["output"][0]["shape"] == [3, 4]


def test_a_list_that_names_a_backward_keeps_its_gradients(make: Any, read: Any) -> None:
    debugger = make(level="L1", section={"list": ["Torch.relu.0.backward"]})
    debugger.start()
    F.gelu(torch.relu(torch.ones(2, requires_grad=True))).sum().backward()
    debugger.stop()
    debugger.step()
    assert list(read().data) == ["Torch.relu.0.backward"]
    assert read().data["Torch.relu.0.backward"]["output"][0]["Norm"] > 0
