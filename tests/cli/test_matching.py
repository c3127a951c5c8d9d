"""`compare` takes rules of the user's, shows how calls were matched, and tries rules without comparing."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from match.small import flow, step

from dumpscope.cli.app import status

RENAMED = r"layers\.(\d+)\.ffn=layers.\1.mlp"
RULE = "ours: {fused: [npu_new_thing], runs: [[sin, cos]]}"


@pytest.fixture
def sides(tmp_path: Path) -> list[str]:
    """A call that no built-in rule knows against its two steps, with no number that could prove it."""
    ends = step("Functional.linear", "x w", "h"), step("Torch.exp", "y", "z")
    flow(tmp_path / "t", [ends[0], step("NPU.npu_new_thing", "h", "y"), ends[1]], summary="structure")
    flow(
        tmp_path / "g",
        [ends[0], step("Torch.sin", "h", "s"), step("Torch.cos", "s", "y"), ends[1]],
        summary="structure",
    )
    return [str(tmp_path / "t"), str(tmp_path / "g")]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    status(["compare", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_pairs_carry_method_confidence_and_cause(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pairs = {pair["node"]: pair for pair in answer(capsys, *sides, "--pairs")["pairs"]}
    one = pairs["NPU.npu_new_thing.0.forward"]
    assert (one["match"], one["confidence"], one["leftover"], one["beside"]) == (
        "none", 0, "fused", "Torch.sin.0.forward",
    )  # fmt: skip
    assert pairs["Functional.linear.0.forward"]["confidence"] == 1
    assert pairs["Functional.linear.0.forward"]["leftover"] is None


def test_a_fusion_file_joins_what_nothing_else_could(
    sides: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.yaml").write_text(RULE)
    document = answer(capsys, *sides, "--pairs", "--fusion", str(tmp_path / "rules.yaml"))
    pairs = {pair["node"]: pair for pair in document["pairs"]}
    assert pairs["NPU.npu_new_thing.0.forward"]["match"] == "fused"
    assert (pairs["Torch.sin.0.forward"]["leftover"], pairs["Torch.sin.0.forward"]["rule"]) == ("inside", "X-6")
    assert document["counts"]["unmatched_golden"] == 0


def test_the_table_says_why_a_call_has_no_partner(sides: list[str], tmp_path: Path) -> None:
    status(["compare", *sides, "-o", str(tmp_path / "out")])
    (table,) = (tmp_path / "out").glob("*.csv")
    with table.open(newline="", encoding="utf-8-sig") as file:
        rows = {row["Node"]: row["No Partner"] for row in csv.DictReader(file)}
    assert rows["NPU.npu_new_thing.0.forward"].endswith("from Torch.sin.0.forward on: it may be a fused form of them.")
    assert rows["Functional.linear.0.forward"] == ""


def test_the_report_lists_what_is_left_with_causes_and_nothing_inside(sides: list[str], tmp_path: Path) -> None:
    status(["compare", *sides, "-o", str(tmp_path / "plain"), "--format", "html"])
    text = (tmp_path / "plain" / "report.html").read_text("utf-8")
    assert "2 only in golden" in text
    assert "Torch.sin.0.forward: One of several calls where the other side makes one" in text
    (tmp_path / "rules.yaml").write_text(RULE)
    status(
        ["compare", *sides, "-o", str(tmp_path / "ruled"), "--format", "html", "--fusion", str(tmp_path / "rules.yaml")]
    )
    assert "only in golden</summary>" not in (tmp_path / "ruled" / "report.html").read_text("utf-8")


def test_a_dry_run_counts_pairs_by_rule_and_lists_what_is_left(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = str(dumps / "target_renamed"), str(dumps / "golden")
    found = answer(capsys, *paths, "--dry-run", "--rename", RENAMED, "--rename", "nothing=x")["matching"]
    assert [rule["pairs"] > 0 for rule in found[0]["rules"]] == [True, False]
    assert all(unit["left"] == [] for unit in found)
    assert status(["compare", *paths, "--dry-run", "--rename", RENAMED]) == 0
    assert f"--rename {RENAMED}:" in capsys.readouterr().out


def test_a_dry_run_prints_causes(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["compare", *sides, "--dry-run"]) == 0
    assert "golden: Torch.sin.0.forward - One of several calls" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--rename", "(=x"], "rename"), (["--dry-run", "-o", "x"], "--dry-run")]
)
def test_rules_that_cannot_be_used_are_bad_usage(
    sides: list[str], arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["compare", *sides, *arguments]) == 2
    assert words in capsys.readouterr().err
