"""The count of calls by which bench/real_models.py holds a dump to a run: it sees each call, and tells one without a node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from model_cases import census
from torch import nn

LINEAR = nn.Linear(3, 3)
NAMES = {
    "ones": 1, "rsqrt": 1, "mul": 2, "add": 2, "truediv": 0, "reciprocal": 1, "setitem": 1, "unsqueeze": 1, "sum": 1, "linear": 1,
    "square": 1, "mean": 1,
}  # fmt: skip


def _program() -> None:
    x = torch.ones(3, 3)
    y = torch.rsqrt(x) * x
    for _ in range(2):
        y = y + 1
    y[0] = 0
    y *= 1 / x
    assert x.T.unsqueeze(0).sum().item() > 0
    LINEAR(y).square().mean().backward()


def _counted() -> list[Any]:
    _program()  # Python 3.12 and later trace opcodes from a function's second run on
    with census.Census() as counted:
        _program()
    return list(counted.counted())


def test_each_call_of_the_program_is_counted_once_each_time() -> None:
    assert Counter(one.name for one in _counted()) == +Counter(NAMES)


def test_a_call_without_a_node_is_told(make: Any, read: Any) -> None:
    debugger = make(level="L1", risk_level="ALL")
    debugger.start()
    _program()
    debugger.stop()
    debugger.step()
    calls, nodes = _counted(), census.recorded([read().folder])
    assert [one.name for one in census.without_node(calls, nodes)] == ["ones"]
    (site,) = (one.site for one in calls if one.name == "rsqrt")
    nodes[site]["rsqrt"] -= 1
    assert sorted(one.name for one in census.without_node(calls, nodes)) == ["ones", "rsqrt"]
