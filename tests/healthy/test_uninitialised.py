"""Uninitialised memory differs between two healthy runs, and is judged nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from dumpscope.analysis.overflow.births import find_overflow  # noqa: E402
from dumpscope.readers import discover, read_rank  # noqa: E402
from healthy.recording import answer_of, recorded, verdicts  # noqa: E402

LEVELS = ("FOCUS", "ALL")


def drop_path() -> Any:
    x = torch.randn(4, 8)
    kept = x.new_empty((4, 1)).bernoulli_(0.5)
    return torch.relu(x * kept)


def inverse_permutation() -> Any:
    order = torch.randperm(16)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(16)
    return torch.randn(16, 2).index_select(0, inverse).exp()


def filled_number() -> Any:
    return torch.empty((), dtype=torch.int64).fill_(3) * torch.ones(4, dtype=torch.int64)


def result_argument() -> Any:
    out = torch.empty(4, 4)
    torch.mul(torch.randn(4, 4), torch.randn(4, 4), out=out)
    return torch.relu(out)


def overwritten() -> Any:
    x = torch.randn(3, 3)
    made = [
        torch.empty(3, 3).zero_(), torch.empty_like(x).copy_(x), x.new_empty(3, 3).uniform_(), torch.empty(3, 3).normal_(),
        torch.empty_strided((3, 3), (3, 1)).fill_(2.0), torch.empty(0).resize_(3, 3).fill_(1.0),
    ]  # fmt: skip
    return torch.stack(made).exp()


def row_by_row() -> Any:
    cache = torch.empty(4, 8)
    for row in range(3):
        cache[row] = torch.randn(8)
    return torch.softmax(cache[:3], dim=-1)


def set_as_a_whole() -> Any:
    x = torch.empty(4, 8)
    x[:] = torch.randn(4, 8)
    y = torch.empty(4, 8)
    y[...] = x
    return torch.relu(y)


CASES = (drop_path, inverse_permutation, filled_number, result_argument, overwritten, row_by_row, set_as_a_whole)


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("run", CASES, ids=lambda run: run.__name__)
def test_what_memory_held_before_is_no_difference(
    tmp_path: Path, run: Callable[[], Any], level: str, task: str
) -> None:
    answer, unit = answer_of(tmp_path, run, run, task=task, risk_level=level)
    assert (answer.origins, answer.counts.no, answer.counts.warning) == ([], 0, 0), verdicts(unit)


@pytest.mark.parametrize("run", [run for run in CASES if run is not row_by_row], ids=lambda run: run.__name__)
def test_a_dump_without_our_own_keys_shows_as_much(tmp_path: Path, run: Callable[[], Any]) -> None:
    answer, unit = answer_of(tmp_path, run, run, extra_info=False)
    assert (answer.origins, answer.counts.no, answer.counts.warning) == ([], 0, 0), verdicts(unit)


@torch.library.custom_op("dumpscope_healthy::doubled", mutates_args={"out"})
def doubled(out: torch.Tensor, x: torch.Tensor) -> None:
    out.copy_(x * 2)


def fused_operator() -> Any:
    x = torch.randn(4, 4)
    out = torch.empty_like(x)
    doubled(out, x)
    whole = torch.empty(2, 4, 4)
    doubled(whole[0], x)
    doubled(whole[1], out)
    return torch.relu(whole)


class Into(torch.nn.Module):
    def forward(self, out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return out.copy_(x).exp()


@pytest.mark.parametrize("level", LEVELS)
def test_an_operator_of_another_package_that_fills_a_buffer(tmp_path: Path, level: str) -> None:
    answer, unit = answer_of(tmp_path, fused_operator, fused_operator, risk_level=level)
    found = verdicts(unit)
    assert (answer.origins, answer.counts.no) == ([], 0), found
    buffers = [rule for name, rule in found.items() if "doubled" in name and name.endswith("forward.input.0")]
    assert buffers == ["X-5"] * 3


def test_a_module_that_is_given_such_memory(tmp_path: Path) -> None:
    model = Into()
    answer, unit = answer_of(
        tmp_path, *2 * [lambda: model(torch.empty(3, 3), torch.randn(3, 3))], model=model, level="mix"
    )
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)


def test_hashes_of_such_memory_are_not_compared(tmp_path: Path) -> None:
    answer, unit = answer_of(tmp_path, drop_path, drop_path, statistics={"summary_mode": "md5"})
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)


@pytest.mark.parametrize("run", CASES, ids=lambda run: run.__name__)
def test_it_is_no_overflow(tmp_path: Path, run: Callable[[], Any]) -> None:
    for seed in range(3):  # some bytes are NaN
        path = recorded(tmp_path / str(seed), run, seed=seed, risk_level="ALL")
        found = find_overflow(read_rank(discover(path).ranks[0]))
        assert [one.node for one in found.findings] == []


def test_what_is_written_into_it_is_judged(tmp_path: Path) -> None:
    def wrong() -> Any:
        order = torch.randperm(16)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(16) * 2
        return inverse.float().exp()

    def right() -> Any:
        order = torch.randperm(16)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(16) + 0
        return inverse.float().exp()

    answer, unit = answer_of(tmp_path, wrong, right)
    assert verdicts(unit)["Tensor.__setitem__.0.forward.output.written.input.0"] == "I-1"
    assert answer.counts.no > 0


def test_an_argument_that_is_written_only_in_part_and_was_made_before_is_judged(tmp_path: Path) -> None:
    def run(scale: float) -> Any:
        x = torch.randn(4, 8) * scale
        x[0] = 1.0
        return torch.relu(x)

    _, unit = answer_of(tmp_path, lambda: run(1.5), lambda: run(1.0))
    assert verdicts(unit)["Tensor.__setitem__.0.forward.input.0"] == "M-2"


def test_a_norm_whose_squares_vanish_in_float32_is_no_damage_of_its_file(tmp_path: Path) -> None:
    """Memory that nobody wrote often holds such numbers; a norm of them is recorded as 0."""
    sides = [lambda size=size: torch.sin(torch.full((4,), size)).sum() for size in (9e-44, 0.0)]
    answer, unit = answer_of(tmp_path, *sides, task="tensor")
    assert (answer.outcome, answer.problems, unit.problems) == ("agrees", [], [])
