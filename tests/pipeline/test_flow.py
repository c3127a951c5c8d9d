"""What an origin explains: data flow from it to everything that differs because of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dumpscope.analysis.unit.dataflow import trace
from dumpscope.domain.facts import Verdict
from dumpscope.domain.result import Answer, Unit
from pipeline.comparing import compare

FAULTS = [
    ("target_fault", "golden"), ("stat_fault", "stat_golden"), ("stat_fault_bwd", "stat_golden"), ("stat_nan", "stat_golden"),
    ("stat_fault_weight", "stat_golden"), ("target_nan_mask", "golden"), ("md5_fault", "md5_golden"),
    ("target_fault_gelu_arg", "golden"),
]  # fmt: skip


def failed(unit: Unit) -> set[int]:
    """Node pairs with a No."""
    return set(np.unique(unit.items.pair[unit.item_opinions.verdict == Verdict.NO]).tolist())


@pytest.mark.parametrize(("target", "golden"), FAULTS)
def test_one_fault_explains_every_no_of_its_step(dumps: Path, target: str, golden: str) -> None:
    answer, units = compare(dumps / target, dumps / golden)
    first = answer.origins[0]
    unit = next(unit for unit in units if (unit.step, unit.rank) == (first.step, first.rank))
    assert first.explains >= len(failed(unit) - {first.pair}) > 0


def test_the_path_leads_from_the_origin_to_the_first_no(dumps: Path) -> None:
    answer, _ = compare(dumps / "target_fault_gelu_arg", dumps / "golden")
    path = answer.origins[0].path
    assert path[0] == answer.origins[0].node == "Functional.gelu.1.forward"
    assert answer.first_no is not None
    assert path[-1] == answer.first_no.node
    assert len(path) == len(set(path)) > 2


@pytest.mark.parametrize("pair", [("target_fault", "golden"), ("md5_fault", "md5_golden")])
def test_what_a_module_received_was_made_before_it_began(dumps: Path, pair: tuple[str, str]) -> None:
    _, units = compare(dumps / pair[0], dumps / pair[1])
    unit = units[0]
    found = trace(unit)
    at = np.full(len(unit.pairs), -1)
    real = np.flatnonzero(unit.tree.pair >= 0)
    at[unit.tree.pair[real]] = real

    def inside(node: int, module: int) -> bool:
        entry = int(at[node])
        while entry >= 0 and entry != at[module]:
            entry = int(unit.tree.parent[entry])
        return entry >= 0

    received, handed = np.flatnonzero(found.received >= 0), np.flatnonzero(found.handed >= 0)
    assert len(received)
    assert len(handed)
    assert not (set(received.tolist()) & set(handed.tolist()))
    for row in received.tolist():
        assert found.received[row] < unit.items.pair[row]
        assert not inside(int(found.received[row]), int(unit.items.pair[row]))
    assert (found.handed[handed] < unit.items.pair[handed]).all()
    assert any(inside(int(found.handed[row]), int(unit.items.pair[row])) for row in handed.tolist())


@pytest.mark.parametrize("pair", [("target_fault", "golden"), ("stat_fault_weight", "stat_golden")])
def test_swapped_sides_explain_as_much(dumps: Path, pair: tuple[str, str]) -> None:
    def told(answer: Answer) -> list[tuple[str, int]]:
        return [(origin.node, origin.explains) for origin in answer.origins]

    one, other = compare(dumps / pair[0], dumps / pair[1])[0], compare(dumps / pair[1], dumps / pair[0])[0]
    assert [node for node, _ in told(one)] == [node for node, _ in told(other)]
    assert abs(told(one)[0][1] - told(other)[0][1]) <= 2


def test_the_flow_that_either_side_stored_clears_a_suspect_on_both(dumps: Path) -> None:
    """One dump holds tensors at API level, the other statistics at level mix: only one tells who made what."""
    pair = dumps / "conv_L1", dumps / "conv_mix_stat"
    one, other = compare(*pair)[0], compare(*pair[::-1])[0]
    assert [origin.node for origin in one.origins] == [origin.node for origin in other.origins]
    assert len(one.origins) == 1
