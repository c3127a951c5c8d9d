"""A healthy pair sets the floors: it is quiet under them afterwards, and faults of the same model stay visible."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pipeline.comparing import compare

from dumpscope.domain.options import Options
from dumpscope.verdict.calibration import FINEST, Calibration, calibrate
from dumpscope.verdict.policy import FLOORS, load_policy

ARCHIVE = Path(__file__).parents[1] / "data" / "origin_pairs.tar.xz"
with tarfile.open(ARCHIVE) as _archive:
    TRUTH: list[dict[str, Any]] = json.load(_archive.extractfile("truth.json"))  # type: ignore[arg-type]
HEALTHY = [entry for entry in TRUTH if entry["cause"] == "healthy" and entry["noisy"]]
BROKEN = [entry for entry in TRUTH if entry["cause"] not in ("healthy", "structure") and entry["noisy"]]


def setting(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["model"], entry["dtype"], entry["level"]


def named(entry: dict[str, Any]) -> str:
    return "-".join((entry["cause"], *setting(entry)))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)  # our own archive; `filter` came only with 3.11.4
    return folder


@pytest.fixture(scope="module")
def learnt(pairs: Path) -> dict[tuple[str, str, str], Calibration]:
    return {
        setting(entry): calibrate(compare(pairs / entry["target"], pairs / entry["golden"])[1]) for entry in HEALTHY
    }


@pytest.mark.parametrize("entry", HEALTHY, ids=named)
def test_the_pair_itself_has_no_no_under_its_floors(
    pairs: Path, learnt: dict[tuple[str, str, str], Calibration], entry: dict[str, Any]
) -> None:
    policy = learnt[setting(entry)].policy
    answer, _ = compare(pairs / entry["target"], pairs / entry["golden"], Options(policy=policy))
    assert (answer.counts.no, answer.policy) == (0, "calibrated")


@pytest.mark.parametrize("entry", [entry for entry in BROKEN if setting(entry) in map(setting, HEALTHY)], ids=named)
def test_a_fault_of_the_same_model_is_still_named(
    pairs: Path, learnt: dict[tuple[str, str, str], Calibration], entry: dict[str, Any]
) -> None:
    policy = learnt[setting(entry)].policy
    answer, _ = compare(pairs / entry["target"], pairs / entry["golden"], Options(policy=policy))
    assert next(origin.node for origin in answer.origins if origin.kind != "structure") in entry["nodes"]


def test_floors_move_only_as_far_as_one_pair_can_justify(learnt: dict[tuple[str, str, str], Calibration]) -> None:
    for calibration in learnt.values():
        for dtype, floor in load_policy(calibration.policy).floors.items():
            assert floor.bulk >= 0.99 * FINEST * FLOORS[dtype].bulk
            noise = calibration.noise.get(dtype)
            if noise is None or noise.level <= 1:
                assert floor.bulk <= 1.1 * FLOORS[dtype].bulk


def test_bit_equal_runs_keep_the_default_floors(dumps: Path) -> None:
    found = calibrate(compare(dumps / "stat_golden", dumps / "stat_golden")[1])
    assert {noise.factor for noise in found.noise.values()} == {1.0}
    assert (found.widened, found.never) == ([], [])


def test_differences_that_no_floor_excuses_are_listed_and_not_written(dumps: Path) -> None:
    found = calibrate(compare(dumps / "stat_nan", dumps / "stat_golden")[1])
    assert r"^Functional\.gelu\.\d+\.forward" in found.never
    assert not any("gelu" in pattern and "forward" in pattern for pattern, _ in load_policy(found.policy).scale)
