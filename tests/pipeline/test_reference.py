"""Three dumps: bf16 target and fp32 golden, each with a bad layer norm of its own, against a float64 reference. Real dumps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from warm_python import warm_python

from dumpscope.domain.distances import FARTHER
from dumpscope.domain.facts import Verdict
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer, Unit
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover
from dumpscope.verdict.rules import VERDICT_RULES

BAD_TARGET, BAD_GOLDEN = "Functional.layer_norm.4.forward", "Functional.layer_norm.1.forward"
RUNS = {
    "target": ("bfloat16", "4", "1.3"),
    "target_well": ("bfloat16",),
    "golden": ("float32", "1", "1.2"),
    "golden_well": ("float32",),
    "reference": ("float64",),
}


@pytest.fixture(scope="module", params=["tensor", "statistics"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(str(request.param))
    script = str(Path(__file__).with_name("three_runs.py"))
    for name, (dtype, *fault) in RUNS.items():
        subprocess.run(
            [warm_python(), script, str(folder / name), dtype, request.param, *fault], check=True, capture_output=True
        )
    return folder


def compared(runs: Path, target: str, golden: str, reference: str | None = "reference") -> tuple[Answer, Unit]:
    sides = [discover(runs / name) for name in (target, golden)]
    third = None if reference is None else (reference, discover(runs / reference))
    outcome = compare_layouts(sides[0], sides[1], Options(), paths=(target, golden), reference=third, jobs=1)
    return outcome.answer, outcome.units[0]


def causes(answer: Answer) -> list[str]:
    return [origin.node for origin in answer.origins]


def off(answer: Answer) -> list[str]:
    assert answer.reference is not None
    return [one.node for one in answer.reference.golden_off]


def test_without_a_reference_the_goldens_fault_is_put_down_to_the_target(runs: Path) -> None:
    assert causes(compared(runs, "target", "golden", None)[0])[0] == BAD_GOLDEN


def test_each_side_is_held_to_its_own_fault(runs: Path) -> None:
    answer, _ = compared(runs, "target", "golden")
    assert causes(answer) == [BAD_TARGET]
    assert off(answer) == [BAD_GOLDEN]
    assert "times as far from the reference" in answer.origins[0].evidence


def test_a_bad_golden_alone_leaves_no_origin(runs: Path) -> None:
    answer, _ = compared(runs, "target_well", "golden")
    assert causes(answer) == []
    assert off(answer) == [BAD_GOLDEN]


def test_a_bad_target_alone_leaves_the_golden_unblamed(runs: Path) -> None:
    answer, _ = compared(runs, "target", "golden_well")
    assert causes(answer) == [BAD_TARGET]
    assert off(answer) == []


def test_swapping_target_and_golden_swaps_the_blame(runs: Path) -> None:
    answer, _ = compared(runs, "golden", "target")
    assert causes(answer) == [BAD_GOLDEN]
    assert off(answer) == [BAD_TARGET]


def test_a_healthy_pair_has_no_cause_on_either_side(runs: Path) -> None:
    answer, _ = compared(runs, "target_well", "golden_well")
    assert causes(answer) == []
    assert off(answer) == []


def test_a_no_or_warning_is_farther_and_a_difference_that_is_excused_is_not(runs: Path) -> None:
    _, unit = compared(runs, "target", "golden")
    opinions = unit.item_opinions
    assert opinions.standing is not None
    rule = np.array([VERDICT_RULES[code] for code in opinions.rule])
    assert (rule == "R-1").any()
    assert (opinions.standing.ratio[rule == "R-1"] <= FARTHER).all()
    assert (opinions.verdict[rule == "R-1"] == Verdict.YES).all()
    assert (rule == "R-2").any()
    assert (opinions.standing.ratio[rule == "R-2"] > FARTHER).all()
    assert np.isin(rule[opinions.verdict == Verdict.NO], ["R-2"]).all()


def test_a_reference_equal_to_the_target_clears_it(runs: Path) -> None:
    answer, _ = compared(runs, "target", "golden_well", "target")
    assert causes(answer) == []
    assert BAD_TARGET in off(answer)


def test_a_reference_equal_to_the_golden_changes_no_cause(runs: Path) -> None:
    answer, unit = compared(runs, "target", "golden_well", "golden_well")
    assert causes(answer) == causes(compared(runs, "target", "golden_well", None)[0])
    assert off(answer) == []
    assert unit.item_opinions.standing is not None
    assert (unit.item_opinions.standing.inverse[~np.isnan(unit.item_opinions.standing.inverse)] <= 1).all()


def test_two_sides_far_larger_than_the_reference_are_told_apart(tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("three_runs.py"))
    for name, factor in (("target", "1e4"), ("golden", "30"), ("reference", "1")):
        command = [warm_python(), script, str(tmp_path / name), "float32", "statistics", "2", factor]
        subprocess.run(command, check=True, capture_output=True)
    assert causes(compared(tmp_path, "target", "golden")[0]) == ["Functional.layer_norm.2.forward"]
    answer, _ = compared(tmp_path, "golden", "target")
    assert causes(answer) == []
    assert off(answer) == ["Functional.layer_norm.2.forward"]
