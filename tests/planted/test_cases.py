"""Pairs that differ in one stated way: two faults, a fault behind a first backward pass, an inserted call beside its like."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from pipeline.comparing import compare
from warm_python import warm_python

from dumpscope.domain.facts import METHOD_WORDS
from dumpscope.domain.result import Answer, Unit

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch makes the pairs")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cases")
    command = [warm_python(), "-m", "planted.cases", str(out)]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True)
    return out


def answer(cases: Path, name: str, *, swapped: bool = False) -> tuple[Answer, list[Unit]]:
    sides = cases / name / "target" / "dump", cases / name / "golden" / "dump"
    return compare(*(sides[::-1] if swapped else sides))


def named(cases: Path, name: str) -> list[tuple[str, str]]:
    return [(origin.node, origin.kind) for origin in answer(cases, name)[0].origins]


@pytest.mark.parametrize("name", ["two_faults", "two_faults_noisy"])
def test_of_two_faults_that_owe_each_other_nothing_both_are_listed(cases: Path, name: str) -> None:
    both = [("Functional.gelu.0.forward", "computation"), ("Functional.gelu.1.forward", "computation")]
    assert named(cases, name) == both


@pytest.mark.parametrize("name", ["second_batch", "second_batch_bfloat16"])
def test_a_fault_in_the_second_micro_batch_is_found_although_the_first_flipped_signs(cases: Path, name: str) -> None:
    assert named(cases, name)[:1] == [("Functional.conv2d.5.forward", "computation")]


@pytest.mark.parametrize(
    ("name", "node"),
    [("checkpoint", "gelu.1"), ("run_again", "gelu.1000001"), ("run_again_noisy", "gelu.1000001")],
)
def test_a_fault_under_a_checkpoint_is_named_where_it_ran(cases: Path, name: str, node: str) -> None:
    assert named(cases, name) == [(f"Functional.{node}.forward", "computation")]


def test_a_fault_under_autocast_is_found_in_noise(cases: Path) -> None:
    assert named(cases, "autocast") == [("Functional.softmax.1.forward", "computation")]


@pytest.mark.parametrize("name", ["autocast_healthy", "checkpoint_healthy"])
def test_noise_under_autocast_and_checkpoints_is_no_cause(cases: Path, name: str) -> None:
    assert named(cases, name) == []


def test_another_number_in_the_script_is_an_argument_that_differs(cases: Path) -> None:
    assert named(cases, "number") == [("Tensor.__mul__.4.forward", "configuration")]
    found, _ = answer(cases, "number")
    assert "0.8" in found.origins[0].evidence
    assert "0.9" in found.origins[0].evidence


@pytest.mark.parametrize("name", ["beside", "beside_hashes"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_call_inserted_beside_one_of_its_operator_shifts_nothing(cases: Path, name: str, swapped: bool) -> None:
    found, (unit,) = answer(cases, name, swapped=swapped)
    assert [(origin.node, origin.kind) for origin in found.origins] == [("Tensor.__mul__.0.forward", "structure")]
    assert found.counts.no == 0
    names = unit.golden.nodes.names, unit.target.nodes.names
    pairs = zip(unit.pairs.golden, unit.pairs.target, unit.pairs.method, strict=True)
    moved = {
        (names[0][g], names[1][t], METHOD_WORDS[method])
        for g, t, method in pairs
        if g >= 0 <= t and names[0][g] != names[1][t] and names[0][g].endswith("forward")
    }
    shifted = {("Tensor.__mul__.0.forward", "Tensor.__mul__.1.forward", "aligned"),
               ("Tensor.__mul__.1.forward", "Tensor.__mul__.2.forward", "aligned")}  # fmt: skip
    assert moved == ({(t, g, how) for g, t, how in shifted} if swapped else shifted)


def test_a_fault_behind_such_a_call_is_found(cases: Path) -> None:
    assert ("Torch.tanh.0.forward", "computation") in named(cases, "beside_fault")
