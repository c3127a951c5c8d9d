"""Pairs made by bench/origin_accuracy: kernels broken below autograd in four models, with and without hardware-like noise."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.comparing import compare

ARCHIVE = Path(__file__).parents[1] / "data" / "origin_pairs.tar.xz"

with tarfile.open(ARCHIVE) as archive:
    TRUTH: list[dict[str, Any]] = json.load(archive.extractfile("truth.json"))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)  # our own archive; `filter` came only with 3.11.4
    return folder


def told(entry: dict[str, Any]) -> str:
    return "-".join(str(entry[key]) for key in ("cause", "model", "dtype", "level")) + (
        "-noisy" if entry["noisy"] else ""
    )


@pytest.mark.parametrize("entry", [e for e in TRUTH if e["cause"] == "healthy"], ids=told)
def test_a_healthy_pair_is_silent(pairs: Path, entry: dict[str, Any]) -> None:
    answer, _ = compare(pairs / entry["target"], pairs / entry["golden"])
    assert [origin for origin in answer.origins if origin.kind != "structure"] == []


@pytest.mark.parametrize("entry", [e for e in TRUTH if e["cause"] != "healthy"], ids=told)
def test_the_first_origin_is_where_the_fault_was_planted(pairs: Path, entry: dict[str, Any]) -> None:
    answer, _ = compare(pairs / entry["target"], pairs / entry["golden"])
    named = [origin.node for origin in answer.origins if origin.kind != "structure" or entry["cause"] == "structure"]
    assert named[:1] == [node for node in entry["nodes"] if node in named][:1] != []
