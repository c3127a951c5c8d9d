"""Activation checkpointing: a run with it and one without have the same names for the same calls, and compare clean."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from warm_python import DUMPSCOPE, warm_python

from capture.conftest import Dump, forget
from dumpscope.domain.facts import LEFTOVER_WORDS
from dumpscope.domain.options import Options
from dumpscope.match import match
from dumpscope.readers import discover, read_rank
from dumpscope_format.naming import AGAIN, build, first_index, parse

HOWS = ["reentrant", "plain graph", "nested reentrant", "nested plain graph"]
"""Both kinds of checkpoint of torch, each also inside another one."""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.drop(torch.relu(self.second(torch.tanh(self.norm(self.first(x)))))) + x
        return out


class Stack(nn.Module):
    """Three blocks: two that are checkpointed together, or one in the other, and one alone. how: "" for no checkpoint"""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(8, 1)

    def _run(self, part: Any, x: Tensor) -> Tensor:
        out: Tensor = checkpoint(part, x, use_reentrant="reentrant" in self.how) if self.how else part(x)
        return out

    def _pair(self, x: Tensor) -> Tensor:
        return torch.sin(self._run(self.blocks[1], self._run(self.blocks[0], x)))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.mul(x, 1.5)
        x = self._run(self._pair, x) if "nested" in self.how else self._pair(x)
        out: Tensor = self.head(torch.tanh(self._run(self.blocks[2], x)))
        return out


class Net(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.stack = Stack(how)
        self.last = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.stack(x))
        return out


def train(debugger: Any, how: str, steps: int = 2) -> None:
    """Micro-batches whose backwards come in and out of order, more of them later in the same step, and calls after each."""
    torch.manual_seed(0)
    net = Net(how)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(steps):
        torch.manual_seed(step)
        debugger.start(net)
        losses = [net(torch.randn(4, 8, requires_grad=True)).sum() for _ in range(2)]
        for loss in losses if step else reversed(losses):
            loss.backward()
        torch.relu(torch.ones(3))
        for _ in range(2):
            net(torch.randn(4, 8, requires_grad=True)).sum().mul(0.5).backward()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


@pytest.fixture
def record(make: Any, tmp_path: Path) -> Any:
    """Records a run and gives its dumps, by step. The run without a checkpoint is "" """

    def recorded(how: str, **keys: Any) -> list[Dump]:
        root = tmp_path / f"dump {how}"
        train(make(dump_path=str(root), **keys), how)
        forget()
        return [Dump(root / f"step{step}") for step in range(2)]

    return recorded


def _numbers(record: Any) -> Any:
    """A record without what differs between a pass that makes a graph and one that makes none."""
    if isinstance(record, dict):
        return {key: _numbers(part) for key, part in record.items() if key not in ("requires_grad", "producers")}
    return [_numbers(part) for part in record] if isinstance(record, list) else record


@pytest.mark.parametrize(
    ("how", "level"), [*((how, "mix") for how in HOWS), ("nested reentrant", "L0"), ("nested plain graph", "L1")]
)
def test_all_calls_but_those_made_again_are_those_of_the_plain_run(record: Any, how: str, level: str) -> None:
    for plain, again in zip(record("", level=level), record(how, level=level), strict=True):
        assert not again.errors
        first = {name: body for name, body in again.data.items() if "recomputed" not in body}
        assert sorted(first) == sorted(plain.data)
        assert level == "L0" or list(first) == list(
            plain.data
        )  # at L0 only parameters tell when a module's backward is over
        assert _numbers(first) == _numbers(plain.data)
        assert {name: again.construct.get(name) for name in plain.construct} == plain.construct
        made_again = [name for name in again.data if name not in first]
        assert len(made_again) > len(plain.data) / 6
        assert all(parse(name).index >= AGAIN for name in made_again)
        assert all("forward" in name for name in made_again)


@pytest.mark.parametrize("how", HOWS)
def test_a_call_made_again_has_the_number_and_the_values_of_its_first_time(record: Any, how: str) -> None:
    for dump in record(how):
        for name, body in dump.data.items():
            if "recomputed" in body and "output" in body:
                parts = parse(name)
                first = dump.data[build(replace(parts, index=first_index(parts.index)))]
                assert _numbers(body["output"]) == _numbers(first["output"])
        assert any(parse(name).index >= 2 * AGAIN for name in dump.data) == ("nested" in how)


@pytest.mark.parametrize("how", HOWS)
def test_a_call_made_again_is_inside_the_backward_of_what_it_was_in(record: Any, how: str) -> None:
    dump = record(how)[0]
    names = {name for name in dump.construct if ".blocks.2.Block.forward.1" in name and parse(name).index >= AGAIN}
    assert len(names) == 4
    assert {dump.construct[name] for name in names} == {f"Module.stack.Stack.backward.{n}" for n in range(4)}


@pytest.mark.parametrize("how", HOWS)
def test_every_first_time_and_every_backward_is_paired_with_the_plain_run(record: Any, how: str) -> None:
    dumps = [[read_rank(ref) for dump in record(some) for ref in discover(dump.folder).ranks] for some in (how, "")]
    for target, golden in [*zip(*dumps, strict=True), *zip(*reversed(dumps), strict=True)]:
        pairs = match(target, golden, Options()).pairs
        names = [
            (target.nodes.names[t] if t >= 0 else None, golden.nodes.names[g] if g >= 0 else None)
            for t, g in zip(pairs.target, pairs.golden, strict=True)
        ]
        assert all(one == other for one, other in names if one and other)
        alone = [one or other for one, other in names if not one or not other]
        assert alone
        assert all(parse(str(name)).index >= AGAIN for name in alone)
        assert {LEFTOVER_WORDS[cause] for cause in pairs.leftover} == {None, "recomputed"}


def test_a_comparison_with_the_plain_run_names_nothing(record: Any, tmp_path: Path) -> None:
    record(""), record("nested reentrant"), record("plain graph")
    for how in ("nested reentrant", "plain graph"):
        command = [
            warm_python(DUMPSCOPE),
            "-m",
            "dumpscope",
            "compare",
            str(tmp_path / f"dump {how}"),
            str(tmp_path / "dump "),
        ]
        run = subprocess.run(
            [*command, "-o", str(tmp_path / f"out {how}")],
            check=False, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
        assert run.returncode == 0, run.stdout + run.stderr
        assert "No divergence" in run.stdout


def test_msprobes_numbers_go_on(record: Any) -> None:
    for dump in record("reentrant", numbering="msprobe"):
        marked = {name for name, body in dump.data.items() if "recomputed" in body}
        assert "Functional.linear.9.forward" not in marked
        assert "Functional.linear.16.forward" in marked
        assert "Functional.linear.16.backward" in dump.data
        assert all(parse(name).index < AGAIN for name in dump.data)


@pytest.mark.parametrize("how", ["reentrant", "plain graph"])
def test_a_list_of_names_keeps_a_call_its_backward_and_its_repetition(make: Any, read: Any, how: str) -> None:
    train(make(section={"list": ["Functional.linear.1.", "Functional.linear.1000001."]}), how, steps=1)
    assert list(read().data) == [
        "Functional.linear.1.forward", "Functional.linear.1000001.forward", "Functional.linear.1.backward",
    ]  # fmt: skip
    assert read().data["Functional.linear.1.backward"]["input"][0]["Norm"] > 0


@pytest.mark.parametrize("how", ["reentrant", "plain graph"])
def test_a_list_with_a_backward_alone_finds_it_in_a_checkpoint(make: Any, read: Any, how: str) -> None:
    train(make(section={"list": ["Functional.linear.1.backward"]}), how, steps=1)
    assert list(read().data) == ["Functional.linear.1.backward"]
    assert read().data["Functional.linear.1.backward"]["output"][0]["Norm"] > 0


def test_what_was_not_recorded_the_first_time_has_numbers_of_its_own(make: Any, read: Any) -> None:
    net = Net("reentrant")
    loss = net(torch.randn(4, 8, requires_grad=True)).sum()
    debugger = make()
    debugger.start(net)
    net(torch.randn(4, 8, requires_grad=True)).sum().backward()
    loss.backward()
    torch.relu(torch.ones(3))
    debugger.stop()
    debugger.step()
    names = set(read().data)
    assert {"Functional.linear.1000000.forward", "Functional.linear.1500000.forward"} <= names
    assert {"Functional.linear.0.backward", "Functional.linear.500000.backward"} <= names
    assert "Torch.relu.3.forward" in names  # three first times before it, whatever was made again
    assert not read().errors


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_call_that_raises_while_it_is_made_again_gives_its_number_back(make: Any, read: Any, reentrant: bool) -> None:
    tries = 0

    def flaky(x: Tensor) -> Tensor:
        nonlocal tries
        tries += 1
        with pytest.raises(RuntimeError):
            torch.matmul(x, torch.ones(tries + 7, 3))
        return torch.matmul(x, x.t())

    debugger = make(level="L1")
    debugger.start()
    checkpoint(flaky, torch.randn(2, 3, requires_grad=True), use_reentrant=reentrant).sum().backward()
    debugger.stop()
    debugger.step()
    names = [name for name in read().data if ".matmul." in name]
    assert names == [
        "Torch.matmul.0.forward", "Torch.matmul.1000000.forward", "Torch.matmul.0.backward",
    ]  # fmt: skip


def test_the_graph_of_a_checkpoint_is_not_kept_alive(make: Any) -> None:
    import gc  # noqa: PLC0415
    import weakref  # noqa: PLC0415

    debugger = make(level="mix")
    net = Net("plain graph")
    debugger.start(net)
    x = torch.randn(4, 8, requires_grad=True)
    held = weakref.ref(x)
    net(x).sum().backward()
    del x
    gc.collect()
    assert held() is None
    debugger.stop()
