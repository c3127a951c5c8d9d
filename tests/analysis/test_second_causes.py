"""A second cause behind the first: listed where its result is worse than what it received can make it, and only there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pipeline.comparing import compare
from pipeline.written_runs import Array, Recording, random


def gelu(x: Array) -> Array:
    made: Array = (0.5 * x * (1 + np.tanh(0.797885 * (x + 0.044715 * x**3)))).astype(np.float32)
    return made


def net(
    folder: Path,
    *,
    tensors: bool,
    weight: float = 1.0,
    norm: float = 1.0,
    behind: float = 1.0,
    row: bool = False,
    bad: bool = False,
    passed: int = 0,
) -> Path:
    """Linear calls, one of which may have another weight, a norm, gelu, a product, and a softmax.

    norm, behind: factors of the results of the norm and of gelu; row: the product loses a row; bad: the softmax makes a NaN
    passed: products between gelu and that one
    """
    run = Recording(folder, tensors=tensors)
    x = random(0, 16, 32)
    for call in range(5):
        own = random(100 + call, 32, 32) * np.float32(weight if call == 3 else 1.0)
        y = (x @ own / 6).astype(np.float32)
        run.call(f"Functional.linear.{call}.forward", [x, own], [y])
        x = y
    y = (x / np.sqrt((x**2).mean(axis=1, keepdims=True)) * norm).astype(np.float32)
    run.call("Functional.rms_norm.0.forward", [x], [y])
    z = (gelu(y) * behind).astype(np.float32)
    run.call("Functional.gelu.0.forward", [y], [z])
    for call in range(passed):
        own = random(300 + call, 32, 32)
        run.call(f"Functional.linear.{9 - call}.forward", [z, own], [z := (z @ own / 6).astype(np.float32)])
    own = random(200, 32, 32)
    y = (z @ own / 6).astype(np.float32)
    if row:
        y[3] = 0
    run.call("Functional.linear.5.forward", [z, own], [y])
    spread = np.exp(y - y.max(axis=1, keepdims=True))
    made = (spread / spread.sum(axis=1, keepdims=True)).astype(np.float32)
    if bad:
        made[2, 1] = np.nan
    run.call("Functional.softmax.0.forward", [y], [made])
    return run.done()


def named(tmp_path: Path, *, tensors: bool, **how: float | bool) -> list[tuple[str, str]]:
    passed = int(how.get("passed", 0))
    sides = net(tmp_path / "t", tensors=tensors, **how), net(tmp_path / "g", tensors=tensors, passed=passed)  # type: ignore[arg-type]
    return [(one.node, one.kind) for one in compare(*sides)[0].origins]


FIRST = ("Functional.rms_norm.0.forward", "computation")
WEIGHT = ("Functional.linear.3.forward", "weight")


@pytest.mark.parametrize(("how", "first"), [({"norm": 1.001}, FIRST), ({"weight": 1.002}, WEIGHT)])
def test_an_activation_that_is_far_worse_than_its_input_is_a_cause_of_its_own(
    tmp_path: Path, how: dict[str, float], first: tuple[str, str]
) -> None:
    both = [first, ("Functional.gelu.0.forward", "computation")]
    assert named(tmp_path / "tensors", tensors=True, behind=1.5, **how) == both
    assert named(tmp_path / "statistics", tensors=False, behind=1.5, **how) == both


def test_its_sentence_tells_by_how_much_and_is_less_sure(tmp_path: Path) -> None:
    sides = net(tmp_path / "t", tensors=True, norm=1.001, behind=1.5), net(tmp_path / "g", tensors=True)
    first, second = compare(*sides)[0].origins
    assert "its error is " in second.evidence
    assert "adds one of its own" in second.evidence
    assert second.confidence < 0.7 < first.confidence


@pytest.mark.parametrize("tensors", [False, True])
def test_a_nan_of_finite_numbers_is_a_cause_of_its_own_where_the_operation_makes_none(
    tmp_path: Path, tensors: bool
) -> None:
    found = named(tmp_path, tensors=tensors, norm=1.5, bad=True)
    assert found == [FIRST, ("Functional.softmax.0.forward", "overflow")]


def test_what_cannot_be_judged_behind_a_nan_is_said(tmp_path: Path) -> None:
    def run(name: str, *, bad: bool) -> Path:
        run = Recording(tmp_path / name)
        x = random(0, 8, 8)
        for call in range(4):
            run.call(
                f"Functional.linear.{call}.forward", [x, random(call + 1, 8, 8)], [x := (x * 1.1).astype(np.float32)]
            )
        made = np.log(np.abs(x) + 1).astype(np.float32)
        if bad:
            made[0, 0] = np.nan
        run.call("Torch.log.0.forward", [x], [made])
        for call in range(3):
            run.call(f"Functional.gelu.{call}.forward", [made], [made := gelu(made)])
        return run.done()

    (origin,) = compare(run("t", bad=True), run("g", bad=False))[0].origins
    assert (origin.node, origin.kind) == ("Torch.log.0.forward", "overflow")
    assert "where another cause would not be seen: 3." in origin.evidence


def test_a_lost_row_of_a_product_is_seen_with_tensors_only(tmp_path: Path) -> None:
    found = named(tmp_path / "tensors", tensors=True, norm=1.0005, row=True)
    assert found == [FIRST, ("Functional.linear.5.forward", "computation")]
    assert named(tmp_path / "statistics", tensors=False, norm=1.0005, row=True) == [FIRST]


def test_statistics_show_it_where_all_that_came_before_was_far_smaller(tmp_path: Path) -> None:
    found = named(tmp_path / "two", tensors=False, norm=1.00002, row=True, passed=2)
    assert found == [FIRST, ("Functional.linear.5.forward", "computation")]
    sides = (
        net(tmp_path / "a", tensors=False, norm=1.00002, row=True, passed=2),
        net(tmp_path / "b", tensors=False, passed=2),
    )
    second = compare(*sides)[0].origins[1]
    assert "their statistics do not explain those of the result" in second.evidence
    assert second.confidence < 0.5


def test_the_first_sum_that_reads_what_came_in_may_be_the_first_to_show_it(tmp_path: Path) -> None:
    assert named(tmp_path, tensors=False, norm=1.00002, row=True) == [FIRST]


def bent(folder: Path, *, tensors: bool, first: float = 1.0, back: float = 1.0, early: float = 1.0) -> Path:
    """A relu, then gelu, and back. first: factor of gelu's result; back: of the gradient of relu; early: of relu's result"""
    run = Recording(folder, tensors=tensors)
    x = random(0, 32, 32)
    for call in range(4):
        own = random(100 + call, 32, 32)
        run.call(f"Functional.linear.{call}.forward", [x, own], [x := (x @ own / 6).astype(np.float32)])
    y = (np.maximum(x, 0) * early).astype(np.float32)
    run.call("Functional.relu.0.forward", [x], [y])
    z = (gelu(y) * first).astype(np.float32)
    run.call("Functional.gelu.0.forward", [y], [z])
    gradient = (random(9, 32, 32) + z / 3).astype(np.float32)
    run.call("Functional.gelu.0.backward", [gradient], [inner := (gradient * 0.9).astype(np.float32)])
    run.call("Functional.relu.0.backward", [inner], [(inner * (x > 0) * back).astype(np.float32)])
    return run.done()


@pytest.mark.parametrize("tensors", [False, True])
def test_the_backward_pass_of_a_bend_is_judged_where_its_forward_took_equal_data(tmp_path: Path, tensors: bool) -> None:
    golden = bent(tmp_path / "g", tensors=tensors)

    def ask(name: str, **how: float) -> list[str]:
        return [one.node for one in compare(bent(tmp_path / name, tensors=tensors, **how), golden)[0].origins]

    assert ask("both", first=1.001, back=0.6) == ["Functional.gelu.0.forward", "Functional.relu.0.backward"]
    assert ask("one", first=1.001) == ["Functional.gelu.0.forward"]
    assert "Functional.relu.0.backward" not in ask("early", early=1.001, back=0.6), "another mask may have been used"


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("how", [{"norm": 1.001}, {"norm": 1.5}, {"weight": 1.3}, {"behind": 1.5}])
def test_what_only_follows_is_no_second_cause(tmp_path: Path, tensors: bool, how: dict[str, float]) -> None:
    assert len(named(tmp_path, tensors=tensors, **how)) == 1
