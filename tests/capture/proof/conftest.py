"""Fixtures of the proof tests: the simulated device, and nothing left of what a test put in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from capture.conftest import forget  # noqa: E402
from capture.proof import device  # noqa: E402
from dumpscope_capture import interventions  # noqa: E402
from dumpscope_capture.calls import observers  # noqa: E402
from dumpscope_capture.proof.call_counter import CALL_COUNTER  # noqa: E402

device.register()  # before the first backward of the process: autograd counts the devices then, once


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """One test's interventions are none of the next's."""
    yield
    for runner in list(observers.RUNNERS):
        runner.end()  # type: ignore[attr-defined]
    interventions._from_environment.clear()
    forget()
    assert not CALL_COUNTER.active
    assert not observers.OBSERVERS


@pytest.fixture
def sim() -> Iterator[Any]:
    """The simulated device without faults."""
    with device.planted():
        yield device


Step = Callable[[], tuple[torch.Tensor, list[torch.Tensor]]]


def training(where: str, seed: int = 0) -> Step:
    """A step of a small network with normalizations, dropout and in-place work: its loss and its gradients, on the CPU."""
    torch.manual_seed(seed)
    body = torch.nn.Sequential(
        torch.nn.Conv1d(4, 8, 3, padding=1),
        torch.nn.GroupNorm(2, 8),
        torch.nn.ReLU(inplace=True),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(0.25),
        torch.nn.Conv1d(8, 4, 1),
        torch.nn.GroupNorm(2, 4),
        torch.nn.SiLU(),
        torch.nn.Linear(6, 3),
    ).to(where)
    data = torch.randn(5, 4, 6).to(where)
    start = {key: value.clone() for key, value in body.state_dict().items()}

    def step() -> tuple[torch.Tensor, list[torch.Tensor]]:
        body.load_state_dict(start)
        body.zero_grad()
        torch.manual_seed(seed + 1)
        loss = body(data).pow(2).sum()
        loss.backward()
        state = [value.cpu() for value in body.state_dict().values()]
        return loss.detach().cpu(), [parameter.grad.cpu() for parameter in body.parameters()] + state

    return step
