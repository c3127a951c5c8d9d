"""Hashes beside statistics: which of them decides depends on what the runs tell of their versions, devices and switches."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
from pipeline.comparing import compare

from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer, Unit
from dumpscope.export.table.messages import messages
from dumpscope.verdict.rules import CODES, VERDICT_RULES
from dumpscope.verdict.sentences import sentence

ARCHIVE = Path(__file__).parents[1] / "data" / "versions.tar.xz"
FAULT = "Functional.gelu.1.forward"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One training step on torch 2.1 and on 2.14, and on 2.1 with a wrong gelu (tests/data/make_versions.py)."""
    folder = tmp_path_factory.mktemp("versions")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def healthy(runs: Path) -> tuple[Answer, Unit]:
    answer, (unit,) = compare(runs / "old", runs / "new")
    return answer, unit


def rules(unit: Unit) -> set[str]:
    return {VERDICT_RULES[code] for code in unit.item_opinions.rule.tolist()}


def rewritten(run: Path, folder: Path, told: str | None) -> Path:
    """A copy of a run that tells another environment, or none. told: content of its run.json"""
    shutil.copytree(run, folder)
    (place,) = folder.glob("step0/*/run.json")
    place.unlink()
    if told is not None:
        place.write_text(told, encoding="utf-8")
    return folder


def told_by(run: Path) -> str:
    (place,) = run.glob("step0/*/run.json")
    return place.read_text(encoding="utf-8")


def test_a_healthy_pair_of_two_versions_of_torch_agrees_although_its_hashes_differ(
    healthy: tuple[Answer, Unit],
) -> None:
    answer, unit = healthy
    assert answer.outcome == "agrees"
    assert (answer.counts.no, answer.counts.warning) == (0, 0)
    assert (unit.item_opinions.rule == CODES["H-2"]).sum() == 168
    assert rules(unit) == {"E-1", "H-2"}
    assert answer.coverage is not None
    assert answer.coverage.reasons == {"statistics": 168, "hashes": 53, "arguments": 11}


def test_that_bits_differ_is_told_in_each_row_and_once_beside_the_answer(healthy: tuple[Answer, Unit]) -> None:
    answer, unit = healthy
    (said,) = [text for text in answer.settings if "hashes" in text]
    assert said.startswith("The hashes of 168 tensors differ while their statistics agree: ")
    rows = np.flatnonzero(unit.item_opinions.rule == CODES["H-2"])
    texts = [sentence(unit.context, unit.facts, unit.item_opinions, row) for row in rows.tolist()]
    assert all(text.startswith("Bits differ. ") and "times the floor" in text for text in texts)
    assert any(" against " in text for text in texts)
    assert list(messages(unit.context, unit.facts, unit.item_opinions, rows)) == texts


def test_a_fault_between_two_versions_is_named_as_surely_as_by_statistics(runs: Path) -> None:
    answer, (unit,) = compare(runs / "old_fault", runs / "new")
    (origin,) = answer.origins
    assert (origin.node, origin.kind, origin.confidence) == (FAULT, "computation", 0.85)
    assert answer.first_no is not None
    assert answer.first_no.node == FAULT
    assert "M-2" in rules(unit)


def test_hashes_decide_where_the_runs_tell_the_same_environment(runs: Path, tmp_path: Path) -> None:
    same = rewritten(runs / "old", tmp_path / "same", told_by(runs / "new"))
    answer, (unit,) = compare(same, runs / "new")
    assert answer.counts.no == 168
    assert rules(unit) == {"E-1", "H-1"}


@pytest.mark.parametrize("side", ["old", "new"])
def test_hashes_decide_where_a_run_tells_nothing_of_its_environment(runs: Path, tmp_path: Path, side: str) -> None:
    sides = {"old": runs / "old", "new": runs / "new"}
    sides[side] = rewritten(sides[side], tmp_path / side, None)
    answer, _ = compare(sides["old"], sides["new"])
    assert answer.counts.no == 168
    assert answer.outcome == "diverged"


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [("numerics", "threads", 32), ("numerics", "cpu_capability", "AVX2"), ("versions", "torch", "2.9.1")],
)
def test_statistics_decide_where_one_switch_or_version_is_another(
    runs: Path, tmp_path: Path, group: str, name: str, value: object
) -> None:
    told = json.loads(told_by(runs / "new"))
    told[group][name] = value
    answer, _ = compare(rewritten(runs / "old", tmp_path / "other", json.dumps(told)), runs / "new")
    assert answer.outcome == "agrees"


def test_another_python_or_numpy_excuses_no_bit(runs: Path, tmp_path: Path) -> None:
    told = json.loads(told_by(runs / "new"))
    told["versions"].update(python="3.10.1", numpy="1.20")
    answer, _ = compare(rewritten(runs / "old", tmp_path / "other", json.dumps(told)), runs / "new")
    assert answer.counts.no == 168


def test_hashes_without_statistics_stay_as_they_are(runs: Path, tmp_path: Path) -> None:
    sides = []
    for name in ("old", "new"):
        side = rewritten(runs / name, tmp_path / name, told_by(runs / name))
        (place,) = side.glob("step0/*/dump.json")
        text = json.loads(place.read_text(encoding="utf-8"), object_hook=_without_statistics)
        place.write_text(json.dumps(text), encoding="utf-8")
        sides.append(side)
    answer, (unit,) = compare(*sides)
    assert answer.counts.no == 168
    assert rules(unit) == {"E-1", "H-1"}


def _without_statistics(record: dict[str, object]) -> dict[str, object]:
    tensor = record.get("type") == "torch.Tensor"
    return {key: value for key, value in record.items() if not (tensor and key in ("Max", "Min", "Mean", "Norm"))}


@pytest.mark.parametrize("policy", ["ptdbg", "msprobe"])
def test_the_labels_of_other_tools_know_hashes_alone(runs: Path, policy: str) -> None:
    answer, _ = compare(runs / "old", runs / "new", Options(policy=policy))
    assert answer.counts.no == 168
