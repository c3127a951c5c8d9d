"""The first step that differs, and which part of the step before made it so, on real trainings (truth: `make_steps.py`)."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.facts import Origin
from pipeline.comparing import compare

ARCHIVE = Path(__file__).parents[1] / "data" / "steps.tar.xz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)
    return folder


def only(target: Path, golden: Path) -> Origin:
    answer, _ = compare(target, golden)
    (origin,) = answer.origins
    return origin


def edited(runs: Path, tmp_path: Path, change: Callable[[dict[str, Any], int], None], *names: str) -> None:
    """Copies of runs, with `change` made to the records of every step."""
    for name in names:
        shutil.copytree(runs / name, tmp_path / name)
        for file in (tmp_path / name).rglob("dump.json"):
            dump = json.loads(file.read_text())
            change(dump["data"], int(file.parents[1].name.removeprefix("step")))
            file.write_text(json.dumps(dump))


@pytest.mark.parametrize("run", ["golden", "noisy"])
def test_healthy_trainings_have_no_origin(runs: Path, run: str) -> None:
    answer, _ = compare(runs / run, runs / "golden")
    assert answer.origins == []


@pytest.mark.parametrize("run", ["rate", "scaled", "noisy_rate"])
@pytest.mark.parametrize("swapped", [False, True])
def test_weights_that_differ_after_equal_gradients_are_laid_to_the_optimizer(
    runs: Path, run: str, swapped: bool
) -> None:
    pair = (runs / run, runs / "golden")
    origin = only(*(pair[::-1] if swapped else pair))
    assert (origin.step, origin.kind) == (2, "weight")
    assert "Forward and gradients of step 1 agree, so its optimizer" in origin.evidence
    assert "learning rate" in origin.advice
    assert origin.evidence.endswith("Step 2 is the first that differs; those before it (2) agree.")
    assert origin.explains > 40


def test_a_weight_that_differs_alone_was_not_changed_by_the_optimizer(runs: Path) -> None:
    origin = only(runs / "one_weight", runs / "golden")
    assert (origin.step, origin.kind) == (2, "weight")
    assert "blocks.1.up.weight" in origin.evidence
    assert "changed outside of the recorded part" in origin.evidence


@pytest.mark.parametrize("lost", ["backward", "step"])
def test_without_gradients_or_the_step_between_nothing_is_laid_to_the_optimizer(
    runs: Path, tmp_path: Path, lost: str
) -> None:
    def forward_only(data: dict[str, Any], _: int) -> None:
        for name in [name for name in data if "backward" in name or "parameters_grad" in name]:
            del data[name]

    edited(runs, tmp_path, forward_only if lost == "backward" else lambda _data, _step: None, "rate", "golden")
    if lost == "step":
        for name in ("rate", "golden"):
            shutil.rmtree(tmp_path / name / "step1")
    origin = only(tmp_path / "rate", tmp_path / "golden")
    before = 1 if lost == "backward" else 0
    assert f"Nothing recorded since step {before} made the difference" in origin.evidence
    assert "Dump the step before as well" in origin.advice


def test_gradients_that_differ_already_are_named_with_their_step(runs: Path, tmp_path: Path) -> None:
    """By less than counts as different, and nothing in the forward."""

    def shift(data: dict[str, Any], step: int) -> None:
        if step == 1:
            for record in data["Functional.linear.3.backward"]["output"]:
                if record is not None:
                    record["Norm"] *= 1 + 1e-7

    edited(runs, tmp_path, shift, "rate")
    origin = only(tmp_path / "rate", runs / "golden")
    assert "In step 1 the forward agrees and gradients differ, first at Functional.linear.3.backward" in origin.evidence
    assert "backward of that step" in origin.advice


def test_other_data_in_a_later_step_of_a_noisy_pair_is_an_input(runs: Path) -> None:
    origin = only(runs / "noisy_tokens", runs / "golden")
    assert (origin.step, origin.node, origin.kind) == (2, "Functional.embedding.0.forward", "input")


def test_weights_of_the_first_step_are_still_those_that_were_loaded(dumps: Path) -> None:
    origin = only(dumps / "target_fault_weight", dumps / "golden")
    assert "differs before any operator used it" in origin.evidence
    assert "checkpoint" in origin.advice
