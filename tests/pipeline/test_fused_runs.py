"""Two real runs of one model, one with fused calls: they agree, and a fault in a fused kernel is named as its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from warm_python import warm_python

from dumpscope.domain.facts import METHOD_WORDS, Class, Verdict
from pipeline.comparing import compare

SCRIPT = Path(__file__).with_name("fused_model.py")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fused")
    for name, *how in (("fused", "fused"), ("plain", "plain"), ("fault", "fused", "1.03")):
        subprocess.run([warm_python(), SCRIPT, folder / name, *how], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(("target", "golden"), [("fused", "plain"), ("plain", "fused")])
def test_a_fused_and_a_written_out_run_agree_and_nothing_is_left(runs: Path, target: str, golden: str) -> None:
    answer, (unit,) = compare(runs / target, runs / golden)
    assert answer.origins == []
    assert (answer.counts.no, answer.counts.unmatched_target, answer.counts.unmatched_golden) == (0, 0, 0)
    both = (unit.pairs.target >= 0) & (unit.pairs.golden >= 0)
    fused = unit.pairs.method == METHOD_WORDS.index("fused")
    assert int((both & fused).sum()) == 16, "two norms, attention and gelu in two blocks, forward and backward"
    assert fused[~both].all()
    assert (unit.node_opinions.verdict[both & fused] == Verdict.YES).all()


@pytest.mark.parametrize(
    ("target", "golden", "name"),
    [("fault", "plain", "Functional.rms_norm.0.forward"), ("plain", "fault", "Tensor.__mul__.1.forward")],
)
def test_a_fault_in_a_fused_kernel_is_named_at_its_boundary(runs: Path, target: str, golden: str, name: str) -> None:
    answer, (unit,) = compare(runs / target, runs / golden)
    assert [(origin.node, origin.kind) for origin in answer.origins] == [(name, "computation")]
    inside = (unit.pairs.method == METHOD_WORDS.index("fused")) & ((unit.pairs.target < 0) | (unit.pairs.golden < 0))
    assert inside.any()
    assert np.isin(unit.node_opinions.verdict[inside], (Verdict.NA,)).all()
    assert not np.isin(unit.node_opinions.cls[inside], (Class.STRUCTURAL, Class.ORIGIN)).any()
