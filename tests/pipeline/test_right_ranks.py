"""What is said of several ranks and steps follows from the verdicts on all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.analysis.overflow.births import find_overflow
from dumpscope.analysis.overflow.ranks import join_ranks
from dumpscope.readers import discover, read_rank
from pipeline.comparing import compare
from pipeline.written_runs import Array, Recording, random

BOTH = {"type": "torch.ProcessGroup", "group_ranks": [0, 1]}
FOUR = {"type": "torch.ProcessGroup", "group_ranks": [0, 1, 2, 3]}


def group(ranks: dict[str, Any]) -> dict[str, Any]:
    return {"type": ranks["type"], "value": {key: value for key, value in ranks.items() if key != "type"}}


def off(array: Array, floors: float) -> Array:
    """So many floors of a float32 farther away, in its norm."""
    made: Array = (array.astype(np.float64) * (1 + floors * 1e-4)).astype(np.float32)
    return made


def reduced(folder: Path, noise: dict[int, list[float]], result: float, *, ranks: dict[str, Any] = BOTH) -> Path:
    """Two ranks that sum their gradients. noise: floors by rank, of each call before the sum; result: of what comes out"""
    for rank in (0, 1):
        run = Recording(folder, rank=rank)
        x = random(rank, 32, 32)
        for call, floors in enumerate(noise[rank]):
            run.call(f"Functional.linear.{call}.forward", [x, random(50 + call, 32, 32)], [y := off(x * 1.5, floors)])
            x = y
        made = off(random(9, 32, 32), result)
        run.call("Distributed.all_reduce.0.forward", [x], [made], given={"group": group(ranks)})
        run.call("Functional.gelu.0.forward", [made], [off(np.tanh(random(9, 32, 32)), result)])
        run.done()
    return folder


CALM = {0: [0.0] * 6, 1: [0.0] * 6}


def test_inputs_that_a_verdict_calls_no_are_not_said_to_agree(tmp_path: Path) -> None:
    """Rank 1 sends what is five floors off, which its own noise excuses; the sum is off by as much on rank 0, which is quiet."""
    grown = {0: [0.0] * 6, 1: [0.1, 0.25, 0.6, 1.4, 3.0, 5.0]}
    answer, units = compare(reduced(tmp_path / "t", grown, 2.5), reduced(tmp_path / "g", CALM, 0.0))
    sent = units[1].item_opinions.verdict[
        units[1].items.pair == next(i for i, n in enumerate(units[1].target.nodes.names) if "all_reduce" in n)
    ]
    assert sent[0] == 3
    assert [one for one in answer.origins if one.kind == "communication"] == []
    assert all("inputs of all" not in one.evidence for one in answer.origins)


def test_a_sum_that_is_wrong_although_all_ranks_agree_is_the_communication_s(tmp_path: Path) -> None:
    answer, _ = compare(reduced(tmp_path / "t", CALM, 50.0), reduced(tmp_path / "g", CALM, 0.0))
    (origin,) = answer.origins
    assert (origin.node, origin.kind) == ("Distributed.all_reduce.0.forward", "communication")
    assert "The inputs of all 2 ranks agree" in origin.evidence


def test_a_result_far_worse_than_what_was_sent_is_told_with_both(tmp_path: Path) -> None:
    grown = {0: [0.0] * 6, 1: [0.1, 0.25, 0.6, 1.0, 1.2, 1.5]}
    answer, _ = compare(reduced(tmp_path / "t", grown, 500.0), reduced(tmp_path / "g", CALM, 0.0))
    origin = next(one for one in answer.origins if one.kind == "communication")
    assert "inputs of all" not in origin.evidence
    assert re.search(r"What the ranks gave differs by up to 4\.[67] times the floor", origin.evidence)


def test_groups_of_another_size_are_another_setting_and_no_fault(tmp_path: Path) -> None:
    answer, _ = compare(reduced(tmp_path / "t", CALM, 50.0), reduced(tmp_path / "g", CALM, 0.0, ranks=FOUR))
    (origin,) = answer.origins
    assert (origin.node, origin.kind) == ("Distributed.all_reduce.0.forward", "configuration")
    assert origin.confidence < 0.5
    assert "In the target 2 ranks exchange data here, in the golden 4" in origin.evidence


@pytest.mark.parametrize("kinds", [(1.05, 1.05, 1.05), (1.05, np.inf, 1.05)])
def test_a_fault_that_repeats_is_the_same_as_in_its_first_step(tmp_path: Path, kinds: tuple[float, ...]) -> None:
    for name, steps in (("t", kinds), ("g", (1.0, 1.0, 1.0))):
        for step, by in enumerate(steps):
            run = Recording(tmp_path / name, step=step)
            x = random(step, 32, 32)
            for call in range(4):
                run.call(
                    f"Functional.linear.{call}.forward", [x, random(call, 32, 32)], [x := (x * 1.5).astype(np.float32)]
                )
            run.call("Functional.gelu.0.forward", [x], [(np.tanh(x) * by).astype(np.float32)])
            run.done()
    (origin,) = compare(tmp_path / "t", tmp_path / "g")[0].origins
    assert (origin.step, origin.node) == (0, "Functional.gelu.0.forward")
    assert "The same is seen in steps 1-2." in origin.evidence


def sent(folder: Path) -> Path:
    """Rank 1 sends a NaN into a sum."""
    broken = random(2, 8, 8)
    broken[0, 0] = np.nan
    for rank in (0, 1):
        run = Recording(folder, rank=rank)
        x = random(rank, 8, 8)
        y = broken if rank else np.abs(x)
        run.call("Functional.relu.5.forward", [x], [y])
        summed = broken + np.abs(random(0, 8, 8))
        run.call("Distributed.all_reduce.0.forward", [y], [summed], given={"group": group(BOTH)})
        run.call("Functional.gelu.0.forward", [summed], [summed])
        run.done()
    return folder


def test_a_nan_that_another_rank_sent_is_not_born_in_the_communication(tmp_path: Path) -> None:
    alone = [find_overflow(read_rank(ref)) for ref in discover(sent(tmp_path)).ranks]
    assert [one.node for one in alone[0].causes] == ["Distributed.all_reduce.0.forward"]
    first, second = join_ranks(alone)
    assert first.causes == []
    assert "rank 1 sent" in first.findings[0].evidence
    assert [one.node for one in second.causes] == ["Functional.relu.5.forward"]
