"""Kinds of causes that look alike, on real dumps in which the numbers of single calls were changed."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.facts import Class
from dumpscope.domain.result import Answer, Unit
from pipeline.comparing import compare

Edit = Callable[[dict[str, Any]], None]
GELU = "Functional.gelu.1.forward"


def nothing(data: dict[str, Any]) -> None:
    """Leave it as it is."""


def pair(dumps: Path, folder: Path, both: Edit, target: Edit, *, replaced: str = "") -> tuple[Answer, list[Unit]]:
    """stat_golden against itself. both: a change of both sides; target: of the target alone; replaced: a label that stands for
    gelu on both sides"""
    for side, edits in (("target", (both, target)), ("golden", (both,))):
        shutil.copytree(dumps / "stat_golden", folder / side)
        for file in (folder / side).rglob("*.json"):
            text = file.read_text()
            file.write_text(text.replace("Functional.gelu.1.", replaced) if replaced else text)
        (file,) = (folder / side).rglob("dump.json")
        dump = json.loads(file.read_text())
        for edit in edits:
            edit(dump["data"])
        file.write_text(json.dumps(dump))
    return compare(folder / "target", folder / "golden")


def spoilt(node: str, **numbers: float) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        for output in data[node]["output"]:
            output.update(numbers)

    return edit


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [("float16", 65504.0), ("bfloat16", 3.3895313892515355e38), ("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0)],
)
def test_a_result_clipped_on_one_side_is_an_overflow_without_infinity(
    dumps: Path, tmp_path: Path, dtype: str, limit: float
) -> None:
    def typed(data: dict[str, Any]) -> None:
        for output in data[GELU]["output"]:
            output["dtype"] = f"torch.{dtype}"

    answer, units = pair(dumps, tmp_path, typed, spoilt(GELU, Max=limit, Norm=2 * limit))
    (origin,) = answer.origins
    assert (origin.node, origin.kind) == (GELU, "overflow")
    assert f"In the target, output.0 is at the limit of torch.{dtype} ({limit:.6g})" in origin.evidence
    assert "loss scale" in origin.advice
    assert units[0].node_opinions.cls[units[0].target.nodes.names.index(GELU)] == Class.ORIGIN


def test_nan_born_in_the_backward_pass_names_the_forward_and_its_line(dumps: Path, tmp_path: Path) -> None:
    node = "Functional.layer_norm.3.backward"
    bad = {"Max": math.nan, "Min": math.nan, "Mean": math.nan, "Norm": math.nan}
    answer, _ = pair(dumps, tmp_path, nothing, spoilt(node, **bad))
    origin = answer.origins[0]
    assert (origin.node, origin.kind) == (node, "overflow")
    assert "Functional.layer_norm.3.forward, its forward call, holds none" in origin.evidence
    assert "derivative" in origin.advice
    assert any("/home/user/train/" in frame for frame in origin.stack)


def integers(data: dict[str, Any]) -> None:
    for output in data["Torch.argsort.0.forward"]["output"]:
        output.update(dtype="torch.int64", Max=7, Min=0, Mean=3.5, Norm=12.0)


def test_ties_in_another_order_that_change_no_value_are_no_cause(dumps: Path, tmp_path: Path) -> None:
    other = spoilt("Torch.argsort.0.forward", Mean=3.25)
    answer, _ = pair(dumps, tmp_path, integers, other, replaced="Torch.argsort.0.")
    assert answer.origins == []


def test_ties_that_reach_values_are_told_as_order_and_not_as_a_wrong_kernel(dumps: Path, tmp_path: Path) -> None:
    def reaching(data: dict[str, Any]) -> None:
        spoilt("Torch.argsort.0.forward", Mean=3.25)(data)
        names = list(data)
        after = next(n for n in names[names.index("Torch.argsort.0.forward") :] if n.startswith("Functional.linear"))
        for item in (*data[after]["input_args"][:1], *data[after]["output"]):
            item["Norm"] *= 1.5

    answer, _ = pair(dumps, tmp_path, integers, reaching, replaced="Torch.argsort.0.")
    assert [(one.node, one.kind) for one in answer.origins] == [("Torch.argsort.0.forward", "configuration")]
    assert "Only indices differ" in answer.origins[0].evidence
    assert "no kernel is at fault" in answer.origins[0].advice


def test_wrong_values_of_a_sort_are_its_fault(dumps: Path, tmp_path: Path) -> None:
    answer, _ = pair(dumps, tmp_path, nothing, spoilt("Torch.sort.0.forward", Norm=99.0), replaced="Torch.sort.0.")
    assert [(one.node, one.kind) for one in answer.origins] == [("Torch.sort.0.forward", "computation")]


def test_what_uninitialised_memory_holds_is_no_cause(dumps: Path, tmp_path: Path) -> None:
    other = spoilt("Torch.empty_like.0.forward", Max=1e30, Norm=math.inf)
    answer, _ = pair(dumps, tmp_path, nothing, other, replaced="Torch.empty_like.0.")
    assert (answer.origins, answer.counts.no) == ([], 0)


def test_another_random_draw_is_laid_to_the_seeds(dumps: Path, tmp_path: Path) -> None:
    other = spoilt("Functional.dropout.0.forward", Norm=99.0)
    answer, _ = pair(dumps, tmp_path, nothing, other, replaced="Functional.dropout.0.")
    assert [(one.node, one.kind) for one in answer.origins] == [("Functional.dropout.0.forward", "configuration")]
    assert "fix the seeds" in answer.origins[0].advice


def test_a_cause_that_was_not_dumped_asks_for_a_fuller_dump(dumps: Path) -> None:
    answer, _ = compare(dumps / "stat_fault", dumps / "cfg_L0_stat")
    assert "Dump again so that the cause is recorded" in answer.origins[0].advice


@pytest.mark.parametrize(
    ("target", "golden", "said"),
    [
        ("cfg_risk_all", "stat_golden", "6 kinds of calls are in the target only"),
        ("cfg_risk_core", "stat_golden", "9 kinds of calls are in the golden only"),
        ("cfg_L0_stat", "stat_golden", "dump both at the same level"),
        ("md5_golden", "stat_golden", "dump both with the same summary mode"),
        ("golden", "stat_golden", "dump both with the same task"),
        ("stat_bf16", "stat_golden", "Compare each with a reference"),
    ],
)
def test_dumps_that_were_taken_differently_are_said_to_be_so(dumps: Path, target: str, golden: str, said: str) -> None:
    answer, _ = compare(dumps / target, dumps / golden)
    assert said in " ".join(answer.settings)
    assert answer.origins == []


@pytest.mark.parametrize("target", ["stat_golden", "stat_fault", "dist2_stat_fault"])
def test_dumps_taken_alike_have_no_word_on_their_settings(dumps: Path, target: str) -> None:
    golden = "dist2_stat_golden" if "dist2" in target else "stat_golden"
    answer, _ = compare(dumps / target, dumps / golden)
    assert answer.settings == []
