from __future__ import annotations

from pathlib import Path

import pytest

from dumpscope.cli.app import status
from dumpscope.verdict.policy import load_policy


def test_a_healthy_pair_is_written_as_a_policy_that_compare_takes(
    dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    assert status(["calibrate", str(dumps / "target_bf16"), str(dumps / "golden"), "-o", str(policy)]) == 0
    said = capsys.readouterr().out
    assert "forward tensor" in said
    assert f"--policy {policy}" in said
    assert load_policy(policy.read_text()).name == "calibrated"
    assert status(
        ["compare", str(dumps / "target_bf16"), str(dumps / "golden"), "--step", "0", "--policy", str(policy)]
    ) in (0, 1)
    assert "policy calibrated" in capsys.readouterr().out


def test_an_unreadable_side_writes_nothing(dumps: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    assert status(["calibrate", str(tmp_path / "none"), str(dumps / "golden"), "-o", str(policy)]) == 2
    assert not policy.exists()
